"""The TFJob CRD's schema, and Kubernetes' other kinds, as JSON Schemas that refuse unknown fields.

An API server drops what a schema does not know (or refuses it, with kubectl's validation): a misspelt
field would be a rule that nobody follows.
"""

from functools import lru_cache
from typing import Any, Dict, List, Mapping

import jsonschema
import yaml
from support import REPOSITORY

CRD_PATH = REPOSITORY.parent / "shared" / "tfjob" / "tfjob-crd-v1.9.4.yaml"

Schema = Dict[str, Any]

_INT_OR_STRING: Schema = {"anyOf": [{"type": "integer"}, {"type": "string"}]}
_STRING_MAP: Schema = {"type": "object", "additionalProperties": {"type": "string"}}
METADATA: Schema = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "name": {"type": "string", "pattern": "^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$", "maxLength": 253},
        "generateName": {"type": "string"},
        "namespace": {"type": "string"},
        "labels": _STRING_MAP,
        "annotations": _STRING_MAP,
    },
}


def strict(schema: Mapping[str, Any]) -> Schema:
    """An OpenAPI v3 schema of a CRD as a JSON Schema that knows no field beyond those it declares."""
    if schema.get("x-kubernetes-int-or-string"):
        kept = {key: schema[key] for key in ("pattern",) if key in schema}
        return {**_INT_OR_STRING, **kept}
    result: Schema = {}
    for key, value in schema.items():
        if key in ("description", "default", "format") or key.startswith("x-kubernetes-"):
            continue
        if key == "properties":
            result[key] = {name: _property(name, child) for name, child in value.items()}
        elif key in ("items", "additionalProperties") and isinstance(value, dict):
            result[key] = strict(value)
        elif key in ("anyOf", "allOf", "oneOf"):
            result[key] = [strict(child) for child in value]
        else:
            result[key] = value
    open_ended = schema.get("x-kubernetes-preserve-unknown-fields", False)
    if "properties" in schema and not open_ended:
        result.setdefault("additionalProperties", False)
    return result


def errors(schema: Schema, content: Any) -> List[str]:
    """One line per violation: the field's path and what is wrong."""
    found = jsonschema.Draft7Validator(schema).iter_errors(content)
    return sorted(f"{_path(error)}: {error.message[:300]}" for error in found)


def has_crd() -> bool:
    return CRD_PATH.exists()


@lru_cache(maxsize=None)
def tfjob_schema() -> Schema:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    with open(CRD_PATH, encoding="utf-8") as file:
        crd = yaml.load(file, loader)
    (version,) = crd["spec"]["versions"]
    schema = strict(version["schema"]["openAPIV3Schema"])
    # An API server takes a CRD's object without them; kubectl does not.
    schema["required"] = ["apiVersion", "kind", "metadata", "spec"]
    return schema


def pod_template_schema() -> Schema:
    """The CRD carries the whole PodTemplateSpec."""
    spec = tfjob_schema()["properties"]["spec"]
    replica = spec["properties"]["tfReplicaSpecs"]["additionalProperties"]
    return replica["properties"]["template"]


def _property(name: str, schema: Mapping[str, Any]) -> Schema:
    # CRDs leave it open; the API server knows it.
    if name == "metadata" and "properties" not in schema:
        return METADATA
    return strict(schema)


def _path(error: jsonschema.ValidationError) -> str:
    path = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in error.absolute_path)
    return path.lstrip(".") or "the whole"
