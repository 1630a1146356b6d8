"""What the operator adds to a pod of any kind of job: variables and init containers."""

from dataclasses import replace
from typing import Dict, Mapping, Tuple

from .fields import FieldReader
from .job_kind import PYTORCH_JOB, TRAIN_JOB
from .model import Container, TrainingJob
from .naming import Addresses, cluster_addresses
from .operator_version import OperatorVersion
from .pytorch_pod import pytorch_init_containers, pytorch_variables
from .tf_config import TfConfig
from .trainjob_pod import index_variable, train_job_variables


def operator_variables(
    job: TrainingJob, addresses: Addresses, version: OperatorVersion, replica_type: str, index: int
) -> Dict[str, str]:
    """In the operator's order, behind the container's own; one of the same name takes that one's place."""
    if job.kind == PYTORCH_JOB:
        return pytorch_variables(job, addresses, version, replica_type, index)
    if job.kind == TRAIN_JOB:
        return train_job_variables(job, addresses, replica_type, index)
    tf_config = TfConfig(job, addresses, version).render(replica_type, index)
    return {} if tf_config is None else {"TF_CONFIG": tf_config}


def operator_init_variables(job: TrainingJob, container: Container, index: int) -> Dict[str, str]:
    """The same of an init container."""
    return index_variable(container, index) if job.kind == TRAIN_JOB else {}


def operator_init_containers(
    job: TrainingJob, version: OperatorVersion, replica_type: str
) -> Tuple[Container, ...]:
    """Those behind the pod template's own."""
    if job.kind == PYTORCH_JOB:
        return pytorch_init_containers(job, version, replica_type)
    return ()


def without_operators_variables(
    job: TrainingJob, version: OperatorVersion, fields: FieldReader, places: Mapping[str, str]
) -> TrainingJob:
    """Variables of the manifest's own count only where the operator sets none of that name. `places`: replica type ->
    the path of its containers."""
    addresses = cluster_addresses(job, version=version)
    specs = {}
    for replica_type, spec in job.replica_specs.items():
        operators = operator_variables(job, addresses, version, replica_type, 0) if spec.replicas else {}
        environment = tuple(v for v in spec.container.environment if v.name not in operators)
        for name in dict.fromkeys(v.name for v in spec.container.environment if v not in environment):
            fields.warn(places[replica_type], f"the operator's {name} takes the place of the one in env")
        specs[replica_type] = replace(spec, container=replace(spec.container, environment=environment))
    return replace(job, replica_specs=specs)
