"""Warns of TrainJobs that Trainer accepts, and whose nodes do not find one another."""

import os
from typing import List

from .model import PROGRAMS, Container, TrainingJob
from .pytorch_lint import runs_torchrun
from .trainjob_runtime import Runtime

# Where the image has Keelson's scripts.
_OWN_SCRIPTS = "/opt/keelson/"


def train_job_warnings(job: TrainingJob, runtime: Runtime) -> List[str]:
    """One line each, with the field's path."""
    if not runtime.is_torch:
        return []
    if job.nproc_per_node is None:
        return ["spec.trainer: not there: Trainer sets none of the torch policy's variables, write trainer: {}"]
    warnings = []
    where = f"{runtime.title}: spec.template.spec.network"
    if not runtime.job_set.has_host_names:
        warnings.append(f"{where}.enableDNSHostnames: false: nobody finds PET_MASTER_ADDR")
    if runtime.job_set.subdomain not in ("", job.name):
        warnings.append(
            f"{where}.subdomain: {runtime.job_set.subdomain}: PET_MASTER_ADDR ends in .{job.name} all the same, and nobody "
            "finds it"
        )
    (node,) = job.replica_specs.values()
    if runs_torchrun(node.container) is False and not _is_keelsons(node.container):
        warnings.append(
            "spec.trainer.command: the torch policy's variables are torchrun's, and the command is not torchrun: it has "
            "neither RANK nor MASTER_ADDR"
        )
    return warnings


def _is_keelsons(container: Container) -> bool:
    """Keelson's programs and scripts read the variables themselves."""
    words = [*container.command, *container.args]
    return os.path.basename(words[0]) in PROGRAMS or any(word.startswith(_OWN_SCRIPTS) for word in words)
