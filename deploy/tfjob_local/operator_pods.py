"""The job's pods as the operator handles them: every request is told as the event of the same kind."""

from typing import Callable, Iterable, List, Sequence, Set

from tfjob_api.model import TFJob
from tfjob_api.naming import is_leader, pod_name

from .pods import Pod, PodControl


def ending_first(job: TFJob, pods: Sequence[Pod]) -> Sequence[Pod]:
    """Where all shall end: the leader while it lives, as its last snapshot needs the servers; then all."""
    leaders = [pod for pod in pods if is_leader(job, pod.replica_type, pod.index)]
    return [pod for pod in leaders if not pod.phase.ended] or pods


class JobPods:
    def __init__(self, control: PodControl, job: TFJob, on_event: Callable[[str], None]):
        self._control = control
        self._job_name = job.name
        self._namespace = job.namespace
        self._on_event = on_event
        # The uids of pods whose end was told.
        self._told: Set[int] = set()

    def look(self) -> List[Pod]:
        """All that exist; tells of those that have ended meanwhile."""
        pods = list(self._control.pods())
        for pod in pods:
            if pod.phase.ended and pod.exit_code is not None and pod.uid not in self._told:
                self._told.add(pod.uid)
                self._on_event(
                    f"ExitedWithCode Pod: {self._namespace}.{pod.name} exited with code {pod.exit_code}"
                )
        return pods

    def create(self, replica_type: str, index: int) -> None:
        self._control.create(replica_type, index)
        name = pod_name(self._job_name, replica_type, index)
        self._on_event(f"SuccessfulCreatePod Created pod: {name}")

    def delete(self, pods: Iterable[Pod]) -> None:
        """Those whose end was asked for already are left alone."""
        for pod in pods:
            if not pod.deleting:
                self._control.delete(pod)
                self._on_event(f"SuccessfulDeletePod Deleted pod: {pod.name}")
