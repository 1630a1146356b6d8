"""The published schemas of TFJob, JobSet and Trainer, as JSON Schemas that refuse unknown fields."""

import json
from functools import lru_cache
from typing import Any, List, Mapping, Tuple

from reduce_crds import OUTPUT, Schema


@lru_cache(maxsize=None)
def published_schemas() -> Mapping[Tuple[str, str], Schema]:
    """(apiVersion, kind) -> schema. Shared: do not modify."""
    content = json.loads(OUTPUT.read_text(encoding="utf-8"))
    parts: List[Schema] = []
    for value in content["parts"]:
        parts.append(_filled_in(value, parts))
    schemas = {}
    for name, value in content["kinds"].items():
        api_version, kind = name.split()
        schemas[api_version, kind] = _filled_in(value, parts)
    return schemas


def part(schema: Schema, *path: str) -> Schema:
    """The schema of the field at this path; "*" is any item of a list or a map."""
    for name in path:
        if name == "*":
            schema = schema["items"] if "items" in schema else schema["additionalProperties"]
        else:
            schema = schema["properties"][name]
    return schema


def _filled_in(value: Any, parts: List[Schema]) -> Any:
    if isinstance(value, list):
        return [_filled_in(item, parts) for item in value]
    if not isinstance(value, dict):
        return value
    # "$ref" is also the name of a field where a schema describes schemas; none of ours does.
    if value.keys() == {"$ref"}:
        return parts[value["$ref"]]
    return {key: _filled_in(item, parts) for key, item in value.items()}
