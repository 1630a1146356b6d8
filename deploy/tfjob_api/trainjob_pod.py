"""What Trainer's torch policy and the Job add to the container `node` of a TrainJob: variables, in their order.

Source: pkg/runtime/framework/plugins/torch/torch.go and pkg/constants of kubeflow/trainer; of the index
pkg/controller/job of kubernetes.
"""

from typing import Dict

from .model import Container, TrainingJob
from .naming import Addresses

TORCH_VARIABLES = ("PET_NNODES", "PET_NPROC_PER_NODE", "PET_NODE_RANK", "PET_MASTER_ADDR", "PET_MASTER_PORT")
_INDEX = "JOB_COMPLETION_INDEX"


def train_job_variables(job: TrainingJob, addresses: Addresses, replica_type: str, index: int) -> Dict[str, str]:
    host, _, port = addresses[replica_type][0].rpartition(":")
    result: Dict[str, str] = {}
    if job.nproc_per_node is not None:
        values = (str(job.replicas(replica_type)), job.nproc_per_node, str(index), host, port)
        result.update(zip(TORCH_VARIABLES, values))
    result.update(index_variable(job.replica_specs[replica_type].container, index))
    return result


def index_variable(container: Container, index: int) -> Dict[str, str]:
    """What the Job adds to every container, init containers too; one of the name is left as it is."""
    return {} if any(v.name == _INDEX for v in container.environment) else {_INDEX: str(index)}
