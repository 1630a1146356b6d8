"""What the environment says of the cluster that a script belongs to; core/cluster/rank_environment.cc has the same names."""

import json
import os
from typing import Dict

# Of several processes each, if the second one is there and is not one of `_ONE`.
_LAUNCHERS = (
    ("RANK", "WORLD_SIZE"),
    ("PET_NODE_RANK", "PET_NNODES"),
    ("PET_RDZV_ENDPOINT", "PET_NNODES"),
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
    if os.environ.get("TF_CONFIG"):
        return True
    return any(os.environ.get(rank) and os.environ.get(size, "") not in _ONE for rank, size in _LAUNCHERS)


def task_index() -> int:
    """Of this process among the workers of TF_CONFIG's cluster."""
    task = json.loads(os.environ.get("TF_CONFIG") or "{}").get("task", {})
    return int(os.environ.get("JOB_COMPLETION_INDEX", task.get("index", 0)))
