"""What the operator adds to a pod of any kind of job: variables and init containers."""

from typing import Dict, Tuple

from .job_kind import PYTORCH_JOB
from .model import Container, TrainingJob
from .naming import Addresses
from .operator_version import OperatorVersion
from .pytorch_pod import pytorch_init_containers, pytorch_variables
from .tf_config import TfConfig


def operator_variables(
    job: TrainingJob, addresses: Addresses, version: OperatorVersion, replica_type: str, index: int
) -> Dict[str, str]:
    """In the operator's order, behind the container's own; one of the same name takes that one's place."""
    if job.kind == PYTORCH_JOB:
        return pytorch_variables(job, addresses, version, replica_type, index)
    tf_config = TfConfig(job, addresses, version).render(replica_type, index)
    return {} if tf_config is None else {"TF_CONFIG": tf_config}


def operator_init_containers(
    job: TrainingJob, version: OperatorVersion, replica_type: str
) -> Tuple[Container, ...]:
    """Those behind the pod template's own."""
    if job.kind == PYTORCH_JOB:
        return pytorch_init_containers(job, version, replica_type)
    return ()
