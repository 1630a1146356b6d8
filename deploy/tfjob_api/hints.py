"""Hints that errors end with: what a document probably means that has another form, lost its indentation or
was not rendered. Each is "" where there is nothing to say, and else begins with "; "."""

import re
from typing import Any, Dict, Mapping

from .job_kind import TF_JOB, JobKind

_REPLICA_FIELDS = ("replicas", "restartPolicy", "template")


def missing_replica_specs(document: Mapping[str, Any], kind: JobKind) -> str:
    """`document`: a job of this kind without its replica types."""
    own = kind.specs_field
    spec = _mapping(document.get("spec"))
    for key, value in spec.items():
        if re.fullmatch(r"\w*replicaspecs?", key, re.IGNORECASE) and value:
            if isinstance(value, list) and kind == TF_JOB:
                return (
                    f"; found spec.{key}, the list of v1alpha1: it becomes the mapping spec.tfReplicaSpecs with the "
                    "keys Chief (was MASTER), Worker and PS"
                )
            return f"; found spec.{key}, which is called {own}"
    if own in document:
        return f"; found {own} beside spec: indent it"
    for place, fields in (("spec", spec), ("the document", document)):
        found = [key for key in fields if _is_replica_type(key, kind)]
        if found:
            return f"; found {found[0]} directly under {place}: indent it below {kind.specs_path}"
    return ""


def missing_name(document: Mapping[str, Any]) -> str:
    found = [key for key in ("name", "generateName") if key in document]
    return f"; found {found[0]} beside metadata: indent it" if found else ""


def unknown_replica_type(key: str) -> str:
    return "; it belongs to a replica type: indent it" if key in _REPLICA_FIELDS else ""


def missing_containers(spec: Mapping[str, Any]) -> str:
    """`spec`: a replica's, without containers."""
    template = _mapping(spec.get("template"))
    for place, fields in (("template", template), ("the replica type", spec)):
        if "containers" in fields:
            return f"; found containers directly under {place}: indent it below template.spec"
    return "; found spec beside template: indent it" if "spec" in spec else ""


def unrendered(value: Any) -> str:
    """`value`: of a field that cannot refer to variables."""
    text = value if isinstance(value, str) else ""
    if re.search(r"\$\([A-Za-z_][\w.-]*\)", text):
        return "; $(...) is a variable of kustomize: render the file first, as with kubectl kustomize DIR"
    if re.search(r"\$\{[A-Za-z_]\w*\}", text):
        return "; ${...} is a variable: fill it in first, as with envsubst"
    return ""


def _is_replica_type(key: str, kind: JobKind) -> bool:
    return key.lower() in (name.lower() for name in kind.replica_types)


def _mapping(value: Any) -> Dict[str, Any]:
    return value if isinstance(value, dict) else {}
