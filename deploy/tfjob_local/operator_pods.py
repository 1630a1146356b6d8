"""The job's pods as the operator sees and handles them: their numbers, their restarts, their events."""

from typing import Callable, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Set

from tfjob_api.job_kind import TF_JOB
from tfjob_api.model import TrainingJob
from tfjob_api.naming import is_leader, pod_name
from tfjob_api.operator_version import OperatorVersion
from tfjob_api.status import ReplicaStatus

from .pods import Phase, Pod, PodControl


def of_type(pods: Sequence[Pod], replica_type: str) -> List[Pod]:
    return [pod for pod in pods if pod.replica_type == replica_type]


def is_terminating(pod: Pod) -> bool:
    """True: the pod runs, and its end was requested."""
    return pod.phase is Phase.RUNNING and pod.deleting


def leading_type(job: TrainingJob) -> str:
    """The replica type whose pods decide about success."""
    return job.chief_type() or "Worker"


def count_pods(job: TrainingJob, pods: Sequence[Pod], terminating_failed: bool) -> Dict[str, ReplicaStatus]:
    """By replica type. A pending pod counts nowhere, a terminating one as failed if anywhere."""
    counts = {replica_type: ReplicaStatus() for replica_type in job.replica_specs}
    for pod in pods:
        own = counts[pod.replica_type]
        if pod.phase is Phase.SUCCEEDED:
            own.succeeded += 1
        elif pod.phase is Phase.FAILED or (is_terminating(pod) and terminating_failed):
            own.failed += 1
        elif pod.phase is Phase.RUNNING and not pod.deleting:
            own.active += 1
    return counts


def job_has_succeeded(
    job: TrainingJob, counts: Mapping[str, ReplicaStatus], pods: Sequence[Pod], version: OperatorVersion
) -> bool:
    """By the leader; without one by all workers or, as the kind of job has it, by worker 0 or any of them."""
    leader = leading_type(job)
    if leader not in job.replica_specs:
        return False
    if job.replicas(leader) == counts[leader].succeeded:
        return True
    if leader != "Worker":
        return False
    if job.kind == TF_JOB:
        return job.success_policy != "AllWorkers" and _worker_0_succeeded(pods)
    one_is_enough = job.elastic_policy is not None and version.one_elastic_worker_is_enough
    return one_is_enough and counts[leader].succeeded > 0


def job_is_running(job: TrainingJob, counts: Mapping[str, ReplicaStatus]) -> bool:
    leader = leading_type(job)
    return leader in counts and counts[leader].active > 0


def _worker_0_succeeded(pods: Sequence[Pod]) -> bool:
    first = [pod for pod in of_type(pods, "Worker") if pod.index == 0]
    return len(first) == 1 and first[0].phase is Phase.SUCCEEDED and first[0].exit_code == 0


def ending_first(job: TrainingJob, pods: Sequence[Pod]) -> Sequence[Pod]:
    """Where all shall end: the leader while it lives, as its last snapshot needs the servers; then all."""
    leaders = [pod for pod in pods if is_leader(job, pod.replica_type, pod.index)]
    return [pod for pod in leaders if not pod.phase.ended] or pods


class JobPods:
    def __init__(self, control: PodControl, job: TrainingJob, on_event: Callable[[str], None]):
        self._control = control
        self._job_name = job.name
        self._namespace = job.namespace
        self._on_event = on_event
        # The uids of pods whose end was reported.
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
        """Deletes pods, except those whose end was requested already."""
        for pod in pods:
            if not pod.deleting:
                self._control.delete(pod)
                self._on_event(f"SuccessfulDeletePod Deleted pod: {pod.name}")


class FailedPod(NamedTuple):
    # "worker-1"
    replica_name: str
    # None: its end was not observed.
    exit_code: Optional[int]

    @classmethod
    def of(cls, pod: Pod) -> "FailedPod":
        return cls(pod.replica_name, pod.exit_code)


class RestartLedger:
    """Counts what observe() is shown; a failure counts as the restart that it asks for."""

    def __init__(self) -> None:
        self._by_replica: Dict[str, int] = {}
        # By the uid of a pod: its restarts in place so far.
        self._in_place: Dict[int, int] = {}
        # The uids of pods that asked for a new one in their place.
        self._failed: Set[int] = set()
        self.last_failure: Optional[FailedPod] = None

    @property
    def total(self) -> int:
        return sum(self._by_replica.values())

    def restarts(self, replica_name: str) -> int:
        return self._by_replica.get(replica_name, 0)

    def observe(self, pods: Sequence[Pod], asks_for_restart: Callable[[Pod], bool]) -> None:
        for pod in pods:
            news = pod.restart_count - self._in_place.get(pod.uid, 0)
            self._in_place[pod.uid] = pod.restart_count
            if pod.uid not in self._failed and asks_for_restart(pod):
                self._failed.add(pod.uid)
                news += 1
            if news > 0:
                self._by_replica[pod.replica_name] = self.restarts(pod.replica_name) + news
                self.last_failure = FailedPod.of(pod)
