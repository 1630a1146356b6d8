"""Jobs of older API versions and shapes, brought to kubeflow.org/v1."""

from typing import Any, Dict

from .fields import FieldReader
from .job_kind import TF_JOB, JobKind
from .model import API_GROUP
from .operator_version import OperatorVersion

_FIRST_VERSIONS = ("kubeflow.org/v1alpha1", "tensorflow.org/v1alpha1", "kubeflow.caicloud.io/v1alpha1")
_MOVED_POLICIES = ("cleanPodPolicy", "ttlSecondsAfterFinished", "activeDeadlineSeconds", "backoffLimit")


def to_v1(
    fields: FieldReader,
    document: Dict[str, Any],
    kind: JobKind,
    api_version: str,
    version: OperatorVersion,
    honour_misplaced_policies: bool,
) -> Dict[str, Any]:
    """A v1 document of its own, without status. In older versions the policies stand directly under spec."""
    spec = dict(fields.mapping(document.get("spec"), "spec"))
    moved_by_version = api_version != "v1" or version.reads_policies_beside_run_policy
    _move_policies(fields, spec, moved_by_version, honour_misplaced_policies)
    specs = spec.get(kind.specs_field)
    if isinstance(specs, dict) and not (kind.webhook_knows_types and version.has_webhook):
        spec[kind.specs_field] = _with_known_spelling(fields, kind, specs)
    result = {key: value for key, value in document.items() if key != "status"}
    result.update(apiVersion=f"{API_GROUP}/v1", kind=kind.name, spec=spec)
    return result


def read_api_version(fields: FieldReader, document: Dict[str, Any], kind: JobKind) -> str:
    """What the document was written for: "v1", "v1beta2". ManifestError."""
    text = fields.required_text(document.get("apiVersion"), "apiVersion")
    if kind == TF_JOB and text in _FIRST_VERSIONS:
        raise fields.error(
            "apiVersion",
            f"{text} is not read; write the job for {API_GROUP}/v1: the list replicaSpecs becomes the "
            "mapping spec.tfReplicaSpecs with the keys Chief (was MASTER), Worker and PS",
        )
    group, _, api_version = text.partition("/")
    if group != API_GROUP or api_version not in kind.api_versions:
        known = ", ".join(f"{API_GROUP}/{name}" for name in kind.api_versions)
        one_of = "one of " if len(kind.api_versions) > 1 else ""
        raise fields.expected("apiVersion", f"{one_of}{known}", text)
    if api_version != "v1":
        fields.warn("apiVersion", f"{text} is read as {API_GROUP}/v1; clusters of today refuse it")
    return api_version


def _move_policies(
    fields: FieldReader, spec: Dict[str, Any], moved_by_version: bool, honour_misplaced: bool
) -> None:
    """Changes `spec`: policies directly under it go under runPolicy, or away."""
    run_policy = dict(fields.mapping(spec.get("runPolicy"), "spec.runPolicy"))
    for name in _MOVED_POLICIES:
        if name not in spec:
            continue
        value = spec.pop(name)
        where = f"spec.{name}"
        if name in run_policy:
            fields.warn(where, f"ignored, spec.runPolicy.{name} counts")
        elif not moved_by_version and not honour_misplaced:
            fields.warn(where, f"dropped, as the operator does; its place is spec.runPolicy.{name}")
        else:
            run_policy[name] = value
            if not moved_by_version:
                fields.warn(
                    where, f"taken as spec.runPolicy.{name}; IN THIS PLACE AN OPERATOR OF TODAY DROPS IT"
                )
    if run_policy:
        spec["runPolicy"] = run_policy


def _with_known_spelling(fields: FieldReader, kind: JobKind, specs: Dict[str, Any]) -> Dict[str, Any]:
    """Keys such as "ps" and "WORKER" in the operator's camel case, unknown ones as they are."""
    spellings = {name.lower(): name for name in kind.replica_types}
    result: Dict[str, Any] = {}
    for key, value in specs.items():
        replica_type = spellings.get(key.lower(), key)
        if replica_type in result:
            raise fields.error(
                f"{kind.specs_path}.{key}",
                f"second entry for the replica type {replica_type}, the operator would lose one of them",
            )
        result[replica_type] = value
    return result
