"""Warns of PyTorchJobs that the operator accepts, and that wait for ever or fail."""

import os
import re
from typing import List, Optional, Sequence

from .model import Container, ElasticPolicy, TrainingJob
from .operator_version import OperatorVersion
from .pytorch_pod import node_range, processes_per_node

_POLICY = "spec.elasticPolicy"


def pytorch_warnings(job: TrainingJob, version: OperatorVersion) -> List[str]:
    """One line each, with the field's path."""
    warnings = _rank_warnings(job, version)
    if job.elastic_policy is not None:
        warnings += _elastic_warnings(job, job.elastic_policy)
    elif "Master" not in job.replica_specs:
        warnings.append(
            f"{job.kind.specs_path}: no Master and no elasticPolicy: the operator sets neither MASTER_ADDR nor RANK, and "
            "the workers do not find one another"
        )
    return warnings


def runs_torchrun(container: Container) -> Optional[bool]:
    """Whether the command starts torchrun, or a launcher that does; None: the image's own command is not known, or
    is a shell's."""
    words = [*container.command, *container.args]
    if not container.command:
        return None
    return any(_is_launcher(words, i) for i in range(len(words)))


def _is_launcher(words: Sequence[str], i: int) -> bool:
    """Also within the script of a shell."""
    if re.search(r"\b(torchrun|torch\.distributed\.(run|launch)|deepspeed)\b", words[i]):
        return True
    return os.path.basename(words[i]) == "accelerate" and words[i + 1 : i + 2] == ["launch"]


def _rank_warnings(job: TrainingJob, version: OperatorVersion) -> List[str]:
    """RANK counts pods, WORLD_SIZE processes."""
    number = processes_per_node(job.nproc_per_node)
    if number < 2 or "Master" not in job.replica_specs:
        return []
    pods = job.total_replicas()
    types = [t for t, spec in job.replica_specs.items() if runs_torchrun(spec.container) is False]
    if not types:
        return []
    return [
        f"spec.nprocPerNode: {number}: WORLD_SIZE is {pods * number}, RANK counts pods, 0 to {pods - 1}, and is not "
        f"multiplied: the command of {', '.join(types)} is not torchrun, so that its processes wait for ranks that never "
        "come; start it with torchrun, or leave nprocPerNode out"
    ]


def _elastic_warnings(job: TrainingJob, policy: ElasticPolicy) -> List[str]:
    warnings = []
    if policy.standalone:
        warnings.append(
            f"{_POLICY}.standalone: the operator sets PET_STANDALONE to the empty text, and torchrun, which reads a number "
            'there, ends with ValueError: int(""); leave it out and write torchrun --standalone'
        )
    workers, (least, most) = job.replicas("Worker"), node_range(job, policy)
    if not least <= workers <= most:
        warnings.append(
            f"{_POLICY}: expected Worker.replicas from {least} to {most}, found {workers}: "
            + ("torchrun waits for more pods" if workers < least else f"torchrun leaves {workers - most} out, which wait")
        )
    if "Master" in job.replica_specs:
        warnings.append(
            f"{_POLICY}: there is a Master beside the workers: the rendezvous is at worker 0 all the same, PET_NNODES "
            "counts the Master's torchrun, too, and its success alone is the job's"
        )
    types = [t for t, spec in job.replica_specs.items() if runs_torchrun(spec.container) is False]
    if types:
        warnings.append(
            f"{_POLICY}: its variables are torchrun's, and the command of {', '.join(types)} is not torchrun: it has "
            + ("no rendezvous" if "Master" in job.replica_specs else "neither RANK nor MASTER_ADDR")
        )
    return warnings
