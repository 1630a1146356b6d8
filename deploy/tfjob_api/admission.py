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
from .job_kind import PYTORCH_JOB, JobKind
from .model import TrainingJob
from .naming import pod_name
from .operator_version import OperatorVersion
from .pytorch_admission import check_elastic_policy, check_replicas

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
    def __init__(self, fields: FieldReader, version: OperatorVersion, kind: JobKind):
        self._fields = fields
        self._version = version
        self._kind = kind
        # "spec.tfReplicaSpecs"
        self._specs = kind.specs_path

    def check_document(self, document: Dict[str, Any]) -> None:
        """A v1 document with its name, before anything else of it is read. ManifestError."""
        fields = self._fields
        metadata = fields.mapping(document.get("metadata"), "metadata")
        self._check_name(fields.text(metadata.get("name"), "metadata.name"))
        check_namespace(fields, metadata)
        spec = fields.mapping(document.get("spec"), "spec")
        self._check_managed_by(fields.mapping(spec.get("runPolicy"), "spec.runPolicy"))
        specs = spec.get(self._kind.specs_field)
        if not specs:
            hint = hints.missing_replica_specs(document, self._kind)
            raise self._error(self._specs, f"Required value: must be required{hint}", hint)
        if self._kind == PYTORCH_JOB:
            check_elastic_policy(fields, self._version, spec)
        self._check_replica_specs(specs)

    def _error(self, where: str, webhook: str, controller: str) -> ManifestError:
        return self._fields.error(
            where, webhook if self._version.has_webhook else f"{self._kind}Spec is not valid{controller}"
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
            what = f"{self._kind} name is invalid: [{' '.join(broken)}]"
        raise self._fields.error("metadata.name", what + hints.unrendered(name))

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
        specs = self._fields.mapping(value, self._specs)
        for replica_type, spec in specs.items():
            if replica_type not in self._kind.replica_types:
                raise self._unknown_type(replica_type)
            self._check_containers(replica_type, spec)
            if self._kind == PYTORCH_JOB:
                check_replicas(self._fields, self._version, replica_type, spec)
        if "Chief" in specs and "Master" in specs:
            raise self._error(
                self._specs,
                "Forbidden: must not have more than 1 Chief or Master role",
                ": more than 1 chief/master found",
            )

    def _unknown_type(self, replica_type: str) -> ManifestError:
        known = self._kind.replica_types
        hint = hints.unknown_replica_type(replica_type)
        if self._kind.webhook_knows_types and self._version.has_webhook:
            supported = ", ".join(f'"{name}"' for name in known)
            what = f'Unsupported value: "{replica_type}": supported values: {supported}{hint}'
            return self._fields.error(f"{self._specs}[{replica_type}]", what)
        what = f"unknown replica type, expected one of {', '.join(known)}{hint}"
        return self._fields.error(f"{self._specs}.{replica_type}", what)

    def _check_containers(self, replica_type: str, spec: Any) -> None:
        fields = self._fields
        where = f"{self._specs}.{replica_type}"
        spec = fields.mapping(spec, where)
        template = fields.mapping(spec.get("template"), f"{where}.template")
        pod = fields.mapping(template.get("spec"), f"{where}.template.spec")
        # The webhook's own way to name an entry of a map.
        named = f"{self._specs}[{replica_type}]" if self._version.has_webhook else where
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
        name = self._kind.container
        if all(container.get("name") != name for _, container in containers):
            raise self._error(
                path,
                f"Required value: must have at least one container with name {name}",
                f": There is no container named {name} in {replica_type}",
            )

    def check_job(self, job: TrainingJob) -> None:
        """What the operator would take, and never end, or never start. ManifestError."""
        self._check_leader(job)
        if self._version.wants_one_evaluator and job.replicas("Evaluator") > 1:
            raise self._fields.error(self._specs, "TFJobSpec is not valid: more than 1 evaluator found")
        for spec in job.replica_specs.values():
            longest = pod_name(job.name, spec.type, max(spec.replicas - 1, 0))
            if len(longest) > _MAX_NAME_LENGTH:
                raise self._fields.error(
                    "metadata.name",
                    f'the pod and its Service are called "{longest}": must be no more than '
                    f"{_MAX_NAME_LENGTH} characters, found {len(longest)}",
                )

    def _check_leader(self, job: TrainingJob) -> None:
        chief = job.chief_type()
        if chief:
            if job.replicas(chief) != 1:
                raise self._fields.error(
                    f"{self._specs}.{chief}.replicas", f"expected 1 {chief}, found {job.replicas(chief)}"
                )
            return
        leader = self._kind.leader_types[0]
        if "Worker" not in job.replica_specs:
            found = ", ".join(job.replica_specs)
            raise self._fields.error(
                self._specs, f"expected a {leader} or a Worker, found {found} alone: nothing would end the job"
            )
        if job.replicas("Worker") == 0:
            raise self._fields.error(
                f"{self._specs}.Worker.replicas",
                f"expected at least 1 where there is no {leader}, found 0: the operator would report success "
                "at once",
            )


def check_namespace(fields: FieldReader, metadata: Dict[str, Any]) -> None:
    name = fields.text(metadata.get("namespace"), "metadata.namespace")
    if name and not (_NAMESPACE.fullmatch(name) and len(name) <= _MAX_NAME_LENGTH):
        raise fields.expected("metadata.namespace", "lower case letters, digits and '-', at most 63", name)
