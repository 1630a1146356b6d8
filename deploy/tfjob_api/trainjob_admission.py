"""What is refused of TrainJobs: what the API server refuses, and what nothing here does."""

import re
from typing import Any, Dict

from .admission import check_namespace
from .fields import FieldReader
from .job_kind import TRAIN_JOB
from .trainjob_runtime import API_VERSION

_NAME = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_MAX_NAME_LENGTH = 63
# runtimePatches took the place of podTemplateOverrides in Trainer 2.2.
_OVERRIDES = ("podTemplateOverrides", "runtimePatches")


def check_train_job(fields: FieldReader, document: Dict[str, Any]) -> None:
    """A document with its name. ManifestError."""
    version = document.get("apiVersion")
    if version != API_VERSION:
        raise fields.expected("apiVersion", API_VERSION, version)
    name = fields.text(document["metadata"].get("name"), "metadata.name")
    if not _NAME.fullmatch(name) or len(name) > _MAX_NAME_LENGTH:
        rule = f"a letter, then lower case letters, digits and '-', at most {_MAX_NAME_LENGTH} characters"
        raise fields.expected("metadata.name", rule, name)
    spec = fields.mapping(document.get("spec"), "spec")
    check_namespace(fields, document["metadata"])
    manager = fields.text(spec.get("managedBy"), "spec.managedBy")
    if manager not in ("", TRAIN_JOB.controller):
        raise fields.expected("spec.managedBy", f"{TRAIN_JOB.controller}, whose part the launcher plays", manager)
    fields.refuse(spec, "spec", ("initializer",), "the launcher runs a TrainJob's nodes alone")
    fields.refuse(spec, "spec", _OVERRIDES, "write it into the runtime, which is a copy of your own here")
