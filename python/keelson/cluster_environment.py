"""What the environment says of the cluster that a script belongs to; core/cluster/rank_environment.cc has the same names."""

import json
import os
import re
from typing import Any, Dict, List, Optional

# Of several processes each, if the second one is there and is not one of `_ONE`.
_ENDPOINT = "PET_RDZV_ENDPOINT"
_LAUNCHERS = (
    ("RANK", "WORLD_SIZE"),
    ("PET_NODE_RANK", "PET_NNODES"),
    (_ENDPOINT, "PET_NNODES"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
)
_ONE = ("", "1", "1:1")
_FIXED = ("TF_CONFIG", "JOB_COMPLETION_INDEX")
_OF_RANKS = (
    *("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "LOCAL_RANK", "LOCAL_WORLD_SIZE"),
    *("PET_NODE_RANK", "PET_MASTER_ADDR", "PET_MASTER_PORT", "PET_RDZV_ENDPOINT", "PET_NNODES", "PET_NPROC_PER_NODE"),
    *("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMI_SIZE", "TORCHELASTIC_USE_AGENT_STORE"),
)

# They tell a program which job it belongs to, and as what.
CLUSTER_VARIABLES = _FIXED + _OF_RANKS


def cluster_variables() -> Dict[str, str]:
    """Those that are there, for a program of the same task."""
    return {name: os.environ[name] for name in CLUSTER_VARIABLES if os.environ.get(name)}


def in_cluster() -> bool:
    """Whether others belong to the job of this process: TF_CONFIG says so, or a launcher of several processes."""
    return bool(os.environ.get("TF_CONFIG")) or _launcher() is not None


def holds_shard() -> bool:
    """Whether the agents of the cluster hold the model: it has no parameter servers."""
    if not os.environ.get("TF_CONFIG"):
        return _launcher() is not None
    return bool(_trainers()) and not _cluster().get("ps")


def processes() -> int:
    """How many hold a shard each, where holds_shard()."""
    if os.environ.get("TF_CONFIG"):
        return len(_trainers())
    size = dict(_LAUNCHERS)[_launcher() or "RANK"]
    return _last_number(os.environ.get(size, "")) or 1


def task_index() -> int:
    """Of this process among the scripts of its cluster. A chief that trains is the first one, before the workers."""
    if not os.environ.get("TF_CONFIG"):
        launcher = _launcher()
        if launcher is None:
            return int(os.environ.get("JOB_COMPLETION_INDEX", 0))
        # Where there is only an endpoint, the host's name says it.
        rank = os.environ.get("HOSTNAME", "").partition(".")[0] if launcher == _ENDPOINT else os.environ[launcher]
        return _last_number(rank)
    task = _tf_config().get("task", {})
    index = int(os.environ.get("JOB_COMPLETION_INDEX", task.get("index", 0)))
    chief_trains = holds_shard() and len(_trainers()) > len(_cluster().get("worker", ()))
    return index + 1 if chief_trains and task.get("type") == "worker" else index


def _tf_config() -> Dict[str, Any]:
    """Empty where it makes no sense, of which the agent says why."""
    try:
        config = json.loads(os.environ["TF_CONFIG"])
    except ValueError:
        return {}
    return config if isinstance(config, dict) else {}


def _cluster() -> Dict[str, Any]:
    cluster = _tf_config().get("cluster")
    return cluster if isinstance(cluster, dict) else {}


def _trainers() -> List[str]:
    """The addresses of those that compute gradients where there are no servers."""
    return [address for role in ("chief", "master", "worker") for address in _cluster().get(role, ())]


def _launcher() -> Optional[str]:
    """The name of the variable with this process's number among several; None: nobody has started several."""
    for rank, size in _LAUNCHERS:
        if os.environ.get(rank) and os.environ.get(size, "") not in _ONE:
            return rank
    return None


def _last_number(text: str) -> int:
    found = re.search(r"[0-9]+$", text)
    return int(found.group()) if found else 0
