"""What the operator adds to a pod of a PyTorchJob: variables for torch and torchrun, byte for byte and in its order,
and an init container that waits for the master's name.

Source: pkg/controller.v1/pytorch of kubeflow/training-operator (envvar.go, master.go, elastic.go, initcontainer.go).
"""

from typing import Dict, Optional, Tuple

from .model import Container, ElasticPolicy, TrainingJob
from .naming import Addresses, pod_name
from .operator_version import OperatorVersion

_AUTO = "auto"
_BACKEND = "c10d"
# The operator's defaults; flags of its own change them.
_INIT_IMAGE = "alpine:3.10"
_INIT_TRIES = 100


def pytorch_variables(
    job: TrainingJob, addresses: Addresses, version: OperatorVersion, replica_type: str, index: int
) -> Dict[str, str]:
    """Each name once: of two of the same name the later one counts, in its place."""
    result: Dict[str, str] = {}
    if version.master_has_its_name:
        result["PYTHONUNBUFFERED"] = "1" if version.has_torchrun_variables else "0"
    nproc_per_node = _nproc_per_node(job, version)
    if "Master" in job.replica_specs:
        result.update(_master_variables(addresses, version, replica_type))
        rank = str(index + (replica_type == "Worker"))
        result["WORLD_SIZE"] = str(job.total_replicas() * processes_per_node(nproc_per_node))
        result["RANK"] = rank
        if version.has_torchrun_variables:
            if nproc_per_node is not None and not version.always_has_nproc_per_node:
                result["PET_NPROC_PER_NODE"] = nproc_per_node
            result["PET_NODE_RANK"] = rank
    if not version.master_has_its_name:
        result["PYTHONUNBUFFERED"] = "0"
    if nproc_per_node is not None and version.always_has_nproc_per_node:
        result["PET_NPROC_PER_NODE"] = nproc_per_node
    if job.elastic_policy is not None:
        for name, value in _elastic_variables(job, job.elastic_policy, addresses).items():
            result.pop(name, None)
            result[name] = value
    elif version.has_torchrun_variables:
        result["PET_NNODES"] = str(job.total_replicas())
    return result


def pytorch_init_containers(
    job: TrainingJob, version: OperatorVersion, replica_type: str
) -> Tuple[Container, ...]:
    """Those that come behind the manifest's own."""
    if replica_type != "Worker" or "Master" not in job.replica_specs or not version.waits_for_master:
        return ()
    look = f"nslookup {pod_name(job.name, 'Master', 0)}"
    script = f"until {look}; do echo waiting for master; sleep 2; done;"
    if version.gives_up_waiting:
        script = (
            f"err=1;for i in $(seq {_INIT_TRIES}); do if {look}; then err=0 && break; fi;echo waiting for master; "
            "sleep 2; done; exit $err"
        )
    init = Container(
        name="init-pytorch",
        image=_INIT_IMAGE,
        command=("sh", "-c", script),
        requests={"cpu": "50m", "memory": "10Mi"},
        limits={"cpu": "100m", "memory": "20Mi"},
    )
    return (init,)


def processes_per_node(nproc_per_node: Optional[str]) -> int:
    """How many processes of each pod WORLD_SIZE counts: 1 for a word such as auto."""
    try:
        return 1 if nproc_per_node is None else int(nproc_per_node)
    except ValueError:
        return 1


def _nproc_per_node(job: TrainingJob, version: OperatorVersion) -> Optional[str]:
    """spec.nprocPerNode with its default, which the older field of elasticPolicy takes the place of."""
    if not version.has_torchrun_variables or job.nproc_per_node is not None:
        return job.nproc_per_node
    older = job.elastic_policy.nproc_per_node if job.elastic_policy else None
    return _AUTO if older is None else None


def _master_variables(addresses: Addresses, version: OperatorVersion, replica_type: str) -> Dict[str, str]:
    host, _, port = addresses["Master"][0].rpartition(":")
    if replica_type == "Master" and not version.master_has_its_name:
        host = "localhost"
    if not version.has_torchrun_variables:
        return {"MASTER_PORT": port, "MASTER_ADDR": host}
    return {"MASTER_PORT": port, "PET_MASTER_PORT": port, "MASTER_ADDR": host, "PET_MASTER_ADDR": host}


def _elastic_variables(job: TrainingJob, policy: ElasticPolicy, addresses: Addresses) -> Dict[str, str]:
    host, _, port = addresses["Worker"][0].rpartition(":")
    result = {
        "PET_RDZV_ENDPOINT": f"{policy.rdzv_host or host}:{policy.rdzv_port or port}",
        "PET_RDZV_BACKEND": policy.rdzv_backend or _BACKEND,
        "PET_NNODES": ":".join(str(number) for number in node_range(job, policy)),
    }
    if policy.max_restarts is not None:
        result["PET_MAX_RESTARTS"] = str(policy.max_restarts)
    if policy.nproc_per_node is not None:
        result["PET_NPROC_PER_NODE"] = str(policy.nproc_per_node)
    if policy.rdzv_id is not None:
        result["PET_RDZV_ID"] = policy.rdzv_id
    if policy.rdzv_conf:
        result["PET_RDZV_CONF"] = ",".join(policy.rdzv_conf)
    if policy.standalone:
        result["PET_STANDALONE"] = ""
    return result


def node_range(job: TrainingJob, policy: ElasticPolicy) -> Tuple[int, int]:
    """The least and the most pods of a rendezvous: minReplicas and maxReplicas stand for each other where one is
    missing, and the workers for both."""
    given = [n for n in (policy.min_replicas, policy.max_replicas) if n is not None]
    return (given[0], given[-1]) if given else (job.replicas("Worker"), job.replicas("Worker"))
