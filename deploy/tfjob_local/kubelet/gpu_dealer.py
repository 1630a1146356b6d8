"""GPU limits -> CUDA_VISIBLE_DEVICES."""

from typing import Callable, Dict, Optional, Sequence, Tuple

from tfjob_api.model import ReplicaSpec, TrainingJob
from tfjob_api.naming import replica_name, replica_names
from tfjob_api.quantity import parse_quantity

RESOURCE = "nvidia.com/gpu"


class GpuDealer:
    """Assigns the machine's GPUs to pods; a recreated pod gets the same ones again."""

    def __init__(self, gpus: Optional[Sequence[str]], warn: Callable[[str], None]):
        """`gpus`: None leaves CUDA_VISIBLE_DEVICES alone."""
        self._gpus = gpus
        self._warn = warn
        self._held: Dict[str, Tuple[str, ...]] = {}

    def visible_devices(self, job: TrainingJob, replica_type: str, index: int) -> Optional[str]:
        """The variable's value; None: it is not set."""
        if self._gpus is None or not any(gpu_limit(spec) for spec in job.replica_specs.values()):
            return None
        self._forget_scaled_away(job)
        spec = job.replica_specs[replica_type]
        wanted = gpu_limit(spec)
        name = replica_name(replica_type, index)
        if name not in self._held or len(self._held[name]) != min(wanted, len(self._gpus)):
            self._held[name] = self._deal(replica_type, name, wanted)
        return ",".join(self._held[name])

    def _deal(self, replica_type: str, name: str, wanted: int) -> Tuple[str, ...]:
        self._held.pop(name, None)
        gpus = self._gpus or ()
        if wanted > len(gpus):
            there = "no GPU" if not gpus else "1 GPU" if len(gpus) == 1 else f"{len(gpus)} GPUs"
            self._warn(f"{replica_type}: {RESOURCE}: {wanted} wanted by each, this machine has {there}")
        users = {gpu: sum(gpu in held for held in self._held.values()) for gpu in gpus}
        chosen = sorted(gpus, key=lambda gpu: (users[gpu], gpus.index(gpu)))[:wanted]
        if any(users[gpu] for gpu in chosen):
            self._warn(f"{RESOURCE}: more are wanted than this machine has, replicas share them")
        return tuple(sorted(chosen, key=gpus.index))

    def _forget_scaled_away(self, job: TrainingJob) -> None:
        names = replica_names(job)
        self._held = {name: held for name, held in self._held.items() if name in names}


def gpu_limit(spec: ReplicaSpec) -> int:
    return int(parse_quantity(spec.container.limits.get(RESOURCE, "0")))
