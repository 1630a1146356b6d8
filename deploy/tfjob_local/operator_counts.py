"""From pods to the numbers that decide about the job. Pure functions."""

from typing import Dict, List, Mapping, Sequence

from tfjob_api.model import TFJob
from tfjob_api.status import ReplicaStatus

from .pods import Phase, Pod


def of_type(pods: Sequence[Pod], replica_type: str) -> List[Pod]:
    return [pod for pod in pods if pod.replica_type == replica_type]


def is_terminating(pod: Pod) -> bool:
    """It runs, and its end was asked for."""
    return pod.phase is Phase.RUNNING and pod.deleting


def leading_type(job: TFJob) -> str:
    """Whose pods decide about success."""
    return job.chief_type() or "Worker"


def count_pods(job: TFJob, pods: Sequence[Pod], terminating_failed: bool) -> Dict[str, ReplicaStatus]:
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


def job_has_succeeded(job: TFJob, counts: Mapping[str, ReplicaStatus], pods: Sequence[Pod]) -> bool:
    """By the chief; without one by worker 0, or by all workers."""
    leader = leading_type(job)
    if leader not in job.replica_specs:
        return False
    if job.replicas(leader) == counts[leader].succeeded:
        return True
    return leader == "Worker" and job.success_policy != "AllWorkers" and _worker_0_succeeded(pods)


def job_is_running(job: TFJob, counts: Mapping[str, ReplicaStatus]) -> bool:
    leader = leading_type(job)
    return leader in counts and counts[leader].active > 0


def _worker_0_succeeded(pods: Sequence[Pod]) -> bool:
    first = [pod for pod in of_type(pods, "Worker") if pod.index == 0]
    return len(first) == 1 and first[0].phase is Phase.SUCCEEDED and first[0].exit_code == 0
