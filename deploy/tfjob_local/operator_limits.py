"""backoffLimit and activeDeadlineSeconds as the operator looks at them. Pure functions."""

from typing import Sequence

from tfjob_api.model import TFJob
from tfjob_api.status import JobStatus

from .pods import Phase, Pod


def reached_backoff_limit(job: TFJob, status: JobStatus, pods: Sequence[Pod]) -> bool:
    """`status`: as it was before these pods were counted."""
    limit = job.run_policy.backoff_limit
    if limit is None:
        return False
    restarts = _restarts_of_running_pods(job, pods)
    if limit == 0:
        return restarts > 0 or _has_new_failure(job, status, pods)
    return restarts >= limit


def past_deadline(job: TFJob, status: JobStatus, now: float) -> bool:
    deadline = job.run_policy.active_deadline_seconds
    if deadline is None or status.start_time is None:
        return False
    return now - status.start_time >= deadline


def _restarts_of_running_pods(job: TFJob, pods: Sequence[Pod]) -> int:
    """A pod that was restarted and has ended since does not count any more."""
    restarting_types = {t for t, spec in job.replica_specs.items() if spec.restart_policy != "Never"}
    return sum(
        pod.restart_count
        for pod in pods
        if pod.phase is Phase.RUNNING and pod.replica_type in restarting_types
    )


def _has_new_failure(job: TFJob, status: JobStatus, pods: Sequence[Pod]) -> bool:
    failed = sum(pod.phase is Phase.FAILED for pod in pods)
    failed_before = sum(counts.failed for counts in status.replica_statuses.values())
    active = sum(not pod.phase.ended and not pod.deleting for pod in pods)
    return failed > failed_before and active != job.total_replicas()
