"""What is refused of PyTorchJobs beyond what is refused of all jobs: the operator's words, of its version."""

from typing import Any, Dict

from .fields import FieldReader
from .job_kind import PYTORCH_JOB
from .operator_version import OperatorVersion

_SPECS = PYTORCH_JOB.specs_path


def check_elastic_policy(fields: FieldReader, version: OperatorVersion, spec: Dict[str, Any]) -> None:
    """`spec`: of the job, which has replica types. ManifestError."""
    where = "spec.elasticPolicy"
    if spec.get("elasticPolicy") is None or not version.knows_elastic_policy:
        return
    policy = fields.mapping(spec["elasticPolicy"], where)
    specs = fields.mapping(spec[PYTORCH_JOB.specs_field], _SPECS)
    if "Worker" not in specs:
        # Operators without a webhook crash on it.
        what = "Required value: must be configured if elastic policy is used"
        raise fields.error(f"{_SPECS}[Worker]", what)
    if policy.get("nProcPerNode") is not None and spec.get("nprocPerNode") is not None:
        if version.has_webhook:
            raise fields.error(f"{where}.nProcPerNode", "Forbidden: must not be used with spec.nprocPerNode")
        if version.has_torchrun_variables:
            what = ".spec.elasticPolicy.nProcPerNode is deprecated, use .spec.nprocPerNode instead"
            raise fields.error(f"{where}.nProcPerNode", what)


def check_replicas(fields: FieldReader, version: OperatorVersion, replica_type: str, spec: Dict[str, Any]) -> None:
    """`spec`: of one replica type. The webhook sees it without defaults. ManifestError."""
    replicas = fields.count(spec.get("replicas"), f"{_SPECS}.{replica_type}.replicas")
    where = f"{_SPECS}[{replica_type}].replicas"
    if replica_type == "Master":
        if version.has_webhook and replicas != 1:
            raise fields.error(where, "Forbidden: must be 1")
        if replicas is not None and replicas != 1:
            raise fields.error(where, "PyTorchJobSpec is not valid: There must be only 1 master replica")
    elif version.has_webhook and replicas is not None and replicas < 1:
        raise fields.error(where, "Forbidden: must be at least 1")
