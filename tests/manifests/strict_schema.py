"""The published schemas of TFJob, JobSet and Trainer, as JSON Schemas that refuse unknown fields.

An API server drops what a schema does not know (or refuses it, with kubectl's validation): a misspelt
field would be a rule that nobody follows.
"""

import json
from functools import lru_cache
from typing import Any, List, Mapping, Tuple

import jsonschema
from reduce_crds import METADATA, OUTPUT, Schema

__all__ = ["METADATA", "Schema", "errors", "part", "published_schemas"]


def errors(schema: Schema, content: Any) -> List[str]:
    """One line per violation: the field's path and what is wrong."""
    found = jsonschema.Draft7Validator(schema).iter_errors(content)
    return sorted(f"{_path(error)}: {error.message[:300]}" for error in found)


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


def _path(error: jsonschema.ValidationError) -> str:
    path = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in error.absolute_path)
    return path.lstrip(".") or "the whole"
