"""Refuses jobs: those that the operator's admission webhook refuses, with its words, and those that could
never end well.

The webhook came with operator 1.8; before it the controller made the same checks with other words and
failed the job. Beyond both, the operator takes jobs here refused that no one can want: those that nothing
ends, two chiefs of one type, an unknown replica type.
"""

import re
from typing import Any, Dict

from . import hints
from .fields import FieldReader, ManifestError
from .model import CONTAINER_NAME, REPLICA_TYPES, TFJob
from .naming import pod_name
from .operator_version import OperatorVersion

SPECS = "spec.tfReplicaSpecs"
_MAX_NAME_LENGTH = 63
_OPERATOR_NAME = "kubeflow.org/training-operator"
_OTHER_CONTROLLER = "kueue.x-k8s.io/multikueue"

_LABEL = r"[a-z]([-a-z0-9]*[a-z0-9])?"
_LABEL_RULE = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic "
    "character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for "
    f"validation is '{_LABEL}')"
)
_NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")


class Admission:
    def __init__(self, fields: FieldReader, version: OperatorVersion):
        self._fields = fields
        self._version = version

    def check_document(self, document: Dict[str, Any]) -> None:
        """A v1 document with its name, before anything else of it is read. ManifestError."""
        fields = self._fields
        metadata = fields.mapping(document.get("metadata"), "metadata")
        self._check_name(fields.text(metadata.get("name"), "metadata.name"))
        self._check_namespace(fields.text(metadata.get("namespace"), "metadata.namespace"))
        spec = fields.mapping(document.get("spec"), "spec")
        self._check_managed_by(fields.mapping(spec.get("runPolicy"), "spec.runPolicy"))
        if not spec.get("tfReplicaSpecs"):
            hint = hints.missing_replica_specs(document)
            raise self._error(SPECS, f"Required value: must be required{hint}", hint)
        self._check_replica_specs(spec["tfReplicaSpecs"])

    def _error(self, where: str, webhook: str, controller: str) -> ManifestError:
        return self._fields.error(
            where, webhook if self._version.has_webhook else f"TFJobSpec is not valid{controller}"
        )

    def _check_name(self, name: str) -> None:
        broken = []
        if len(name) > _MAX_NAME_LENGTH:
            broken.append(f"must be no more than {_MAX_NAME_LENGTH} characters")
        if not re.fullmatch(_LABEL, name):
            broken.append(_LABEL_RULE)
        if not broken:
            return
        # Old operators check no name; there the Services would be refused by the same rule.
        if self._version.has_webhook or not self._version.wants_dns_1035_name:
            what = f'Invalid value: "{name}": should match: {",".join(broken)}'
        else:
            what = f"TFJob name is invalid: [{' '.join(broken)}]"
        raise self._fields.error("metadata.name", what + hints.unrendered(name))

    def _check_namespace(self, name: str) -> None:
        if name and not (_NAMESPACE.fullmatch(name) and len(name) <= _MAX_NAME_LENGTH):
            raise self._fields.expected(
                "metadata.namespace", "lower case letters, digits and '-', at most 63", name
            )

    def _check_managed_by(self, run_policy: Dict[str, Any]) -> None:
        where = "spec.runPolicy.managedBy"
        name = self._fields.text(run_policy.get("managedBy"), where)
        if not self._version.knows_managed_by or name in ("", _OPERATOR_NAME):
            return
        if name == _OTHER_CONTROLLER:
            raise self._fields.error(
                where, f'"{name}": another controller runs this job, the operator leaves it alone'
            )
        raise self._fields.error(
            where, f'Unsupported value: "{name}": supported values: "{_OPERATOR_NAME}", "{_OTHER_CONTROLLER}"'
        )

    def _check_replica_specs(self, value: Any) -> None:
        specs = self._fields.mapping(value, SPECS)
        for replica_type, spec in specs.items():
            if replica_type not in REPLICA_TYPES:
                raise self._fields.error(
                    f"{SPECS}.{replica_type}",
                    f"unknown replica type, expected one of {', '.join(REPLICA_TYPES)}"
                    + hints.unknown_replica_type(replica_type),
                )
            self._check_containers(replica_type, spec)
        if "Chief" in specs and "Master" in specs:
            raise self._error(
                SPECS,
                "Forbidden: must not have more than 1 Chief or Master role",
                ": more than 1 chief/master found",
            )

    def _check_containers(self, replica_type: str, spec: Any) -> None:
        fields = self._fields
        where = f"{SPECS}.{replica_type}"
        spec = fields.mapping(spec, where)
        template = fields.mapping(spec.get("template"), f"{where}.template")
        pod = fields.mapping(template.get("spec"), f"{where}.template.spec")
        # The webhook's own way to name an entry of a map.
        named = f"{SPECS}[{replica_type}]" if self._version.has_webhook else where
        path = f"{named}.template.spec.containers"
        containers = fields.mappings(pod.get("containers"), path)
        if not containers:
            hint = hints.missing_containers(spec)
            raise self._error(
                path,
                f"Required value: must be specified{hint}",
                f": containers definition expected in {replica_type}{hint}",
            )
        for container_path, container in containers:
            if not container.get("image"):
                raise self._error(
                    f"{container_path}.image",
                    "Required value: must be required",
                    f": Image is undefined in the container of {replica_type}",
                )
        if all(container.get("name") != CONTAINER_NAME for _, container in containers):
            raise self._error(
                path,
                f"Required value: must have at least one container with name {CONTAINER_NAME}",
                f": There is no container named {CONTAINER_NAME} in {replica_type}",
            )

    def check_job(self, job: TFJob) -> None:
        """What the operator would take, and never end, or never start. ManifestError."""
        self._check_leader(job)
        if self._version.wants_one_evaluator and job.replicas("Evaluator") > 1:
            raise self._fields.error(SPECS, "TFJobSpec is not valid: more than 1 evaluator found")
        for spec in job.replica_specs.values():
            longest = pod_name(job.name, spec.type, max(spec.replicas - 1, 0))
            if len(longest) > _MAX_NAME_LENGTH:
                raise self._fields.error(
                    "metadata.name",
                    f'the pod and its Service are called "{longest}": must be no more than '
                    f"{_MAX_NAME_LENGTH} characters, found {len(longest)}",
                )

    def _check_leader(self, job: TFJob) -> None:
        chief = job.chief_type()
        if chief:
            if job.replicas(chief) != 1:
                raise self._fields.error(
                    f"{SPECS}.{chief}.replicas", f"expected 1 {chief}, found {job.replicas(chief)}"
                )
        elif "Worker" not in job.replica_specs:
            found = ", ".join(job.replica_specs)
            raise self._fields.error(
                SPECS, f"expected a Chief or a Worker, found {found} alone: nothing would end the job"
            )
        elif job.replicas("Worker") == 0:
            raise self._fields.error(
                f"{SPECS}.Worker.replicas",
                "expected at least 1 where there is no Chief, found 0: the operator would report success "
                "at once",
            )
