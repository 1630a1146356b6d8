"""Writes published_schemas.json: what the tests need of the resource definitions that Kubernetes' projects publish.

usage: reduce_crds.py FOLDER   (FOLDER: with the files that SOURCES names)

Descriptions, defaults and what only an API server evaluates are left out; unknown fields are refused, as kubectl
refuses them. A part that stands in several places is written once, under a number, before all that contain it.
"""

import json
import sys
from pathlib import Path
from typing import Any, Dict, List, Mapping

import yaml

OUTPUT = Path(__file__).resolve().parent / "published_schemas.json"
# File -> who publishes it; all under the Apache License 2.0.
SOURCES = {
    "tfjob-crd-v1.9.4.yaml": "github.com/kubeflow/trainer v1.9.4",
    "jobset-crd-v0.10.1.yaml": "github.com/kubernetes-sigs/jobset v0.10.1",
    "clustertrainingruntime-crd-v2.1.0.yaml": "github.com/kubeflow/trainer v2.1.0",
    "trainjob-crd-v2.1.0.yaml": "github.com/kubeflow/trainer v2.1.0",
    "pytorchjob-crd-v1.9.4.yaml": "github.com/kubeflow/trainer v1.9.4",
}

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
_LEFT_OUT = ("description", "default", "format", "nullable")
_SHORTEST_SHARED_TEXT = 60


def strict(schema: Mapping[str, Any]) -> Schema:
    """An OpenAPI v3 schema of a CRD as a JSON Schema that knows no field beyond those it declares."""
    if schema.get("x-kubernetes-int-or-string"):
        kept = {key: schema[key] for key in ("pattern",) if key in schema}
        return {**_INT_OR_STRING, **kept}
    result: Schema = {}
    for key, value in schema.items():
        if key in _LEFT_OUT or key.startswith("x-kubernetes-"):
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


def _property(name: str, schema: Mapping[str, Any]) -> Schema:
    # CRDs leave it open; the API server knows it.
    if name == "metadata" and "properties" not in schema:
        return METADATA
    return strict(schema)


class SharedParts:
    """Parts that schemas have in common, each replaced by {"$ref": its number}."""

    def __init__(self) -> None:
        # In the order of their numbers: each refers to earlier ones alone.
        self.texts: List[str] = []
        self._numbers: Dict[str, int] = {}

    def share(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self.share(item) for item in value]
        if not isinstance(value, dict):
            return value
        result = {key: self.share(item) for key, item in value.items()}
        text = _compact(result)
        if result.get("type") not in ("object", "array") or len(text) < _SHORTEST_SHARED_TEXT:
            return result
        if text not in self._numbers:
            self._numbers[text] = len(self.texts)
            self.texts.append(text)
        return {"$ref": self._numbers[text]}


def reduce_crds(folder: Path) -> str:
    """The text of published_schemas.json."""
    parts = SharedParts()
    kinds = {}
    for name in SOURCES:
        crd = _load(folder / name)
        (version,) = crd["spec"]["versions"]
        schema = strict(version["schema"]["openAPIV3Schema"])
        # The operator's, not the manifest's.
        schema["properties"].pop("status", None)
        # An API server takes a CRD's object without them; kubectl does not.
        schema["required"] = ["apiVersion", "kind", "metadata", "spec"]
        kinds[f"{crd['spec']['group']}/{version['name']} {crd['spec']['names']['kind']}"] = parts.share(schema)
    note = f"Written by {Path(__file__).name} from the CRDs of {', '.join(dict.fromkeys(SOURCES.values()))}"
    lines = [f'{{"note": {json.dumps(note)},', f'"kinds": {_compact(kinds)},', '"parts": [']
    return "\n".join([*lines, ",\n".join(parts.texts), "]}"]) + "\n"


def _load(path: Path) -> Dict[str, Any]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    with open(path, encoding="utf-8") as file:
        content: Dict[str, Any] = yaml.load(file, loader)
    return content


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def main(arguments: List[str]) -> int:
    if len(arguments) != 1:
        print(str(__doc__), end="", file=sys.stderr)
        return 2
    OUTPUT.write_text(reduce_crds(Path(arguments[0])), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
