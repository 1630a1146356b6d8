"""The operator's rules: how faithful the emulation is, the consequence of a pod's end, the limits of a
job."""

import enum
from dataclasses import dataclass
from typing import FrozenSet, Optional, Sequence

from tfjob_api.model import TrainingJob
from tfjob_api.operator_version import OperatorVersion
from tfjob_api.status import JobStatus

from .pods import Phase, Pod

MAX_RESTARTS = 10
# Keelson's programs end with it on bad configuration or data; the next attempt would end the same way.
EXIT_PERMANENT = 2
# The exit code that the operator assumes for a pod whose container's end was not observed.
UNKNOWN_EXIT_CODE = 0xBEEF
_FIRST_RETRYABLE_CODE = 128
# What operators before 1.5 retry: SIGINT, SIGKILL, "restart me", SIGTERM.
_OLD_RETRYABLE_CODES = frozenset({130, 137, 138, 143})


@dataclass(frozen=True)
class Rules:
    # - backoffLimit counts only what pods that run now were restarted in place; a limit of 0 also
    #   failures;
    # - activeDeadlineSeconds is only looked at when something happens;
    # - a running pod that is being deleted counts as a failed one;
    # - while the job is Restarting, no other failure is seen;
    # - a job can succeed and fail at once, and has then failed;
    # - a dynamic job goes on for ever when a worker has failed without whom it cannot succeed;
    # - the pods of a suspended job end all at once, so that the chief's last snapshot finds no servers.
    known_bugs: bool
    # cleanPodPolicy and ttlSecondsAfterFinished are applied. Otherwise the launcher ends the pods, after a
    # time to end by themselves.
    cleans_up: bool
    # Restarts of one replica, whatever backoffLimit says; None: no limit.
    max_restarts: Optional[int] = None
    # These fail the job under every restart policy.
    hopeless_codes: FrozenSet[int] = frozenset()

    @classmethod
    def strict(cls) -> "Rules":
        """The behaviour of the operator of the given version, with its known bugs."""
        return cls(known_bugs=True, cleans_up=True)

    @classmethod
    def lenient(cls, max_restarts: int = MAX_RESTARTS) -> "Rules":
        """The behaviour that its users want."""
        return cls(
            known_bugs=False,
            cleans_up=False,
            max_restarts=max_restarts,
            hopeless_codes=frozenset({EXIT_PERMANENT}),
        )


class Verdict(enum.Enum):
    # It has not failed.
    NONE = "none"
    # Its pod is replaced by a new one.
    RESTART = "restart"
    # It stays as it is, and the job fails.
    FAIL = "fail"


def is_retryable(exit_code: Optional[int], version: OperatorVersion) -> bool:
    """Under the restart policy ExitCode."""
    code = UNKNOWN_EXIT_CODE if exit_code is None else exit_code
    if version.retries_every_code_from_128:
        return code >= _FIRST_RETRYABLE_CODE
    return code in _OLD_RETRYABLE_CODES


def judge(pod: Pod, restart_policy: str, version: OperatorVersion) -> Verdict:
    """Under OnFailure and Always, the operator only sees the loss of a whole pod: the kubelet restarts
    the container in place."""
    if pod.phase is not Phase.FAILED:
        return Verdict.NONE
    if restart_policy == "ExitCode":
        return Verdict.RESTART if is_retryable(pod.exit_code, version) else Verdict.FAIL
    if restart_policy in ("OnFailure", "Always") and version.recreates_lost_on_failure_pods:
        return Verdict.RESTART
    return Verdict.FAIL


def reached_backoff_limit(job: TrainingJob, status: JobStatus, pods: Sequence[Pod]) -> bool:
    """`status`: as it was before these pods were counted."""
    limit = job.run_policy.backoff_limit
    if limit is None:
        return False
    restarts = _restarts_of_running_pods(job, pods)
    if limit == 0:
        return restarts > 0 or _has_new_failure(job, status, pods)
    return restarts >= limit


def past_deadline(job: TrainingJob, status: JobStatus, now: float) -> bool:
    deadline = job.run_policy.active_deadline_seconds
    if deadline is None or status.start_time is None:
        return False
    return now - status.start_time >= deadline


def _restarts_of_running_pods(job: TrainingJob, pods: Sequence[Pod]) -> int:
    """A pod that was restarted and has ended since does not count any more."""
    restarting_types = {t for t, spec in job.replica_specs.items() if spec.restart_policy != "Never"}
    return sum(
        pod.restart_count
        for pod in pods
        if pod.phase is Phase.RUNNING and pod.replica_type in restarting_types
    )


def _has_new_failure(job: TrainingJob, status: JobStatus, pods: Sequence[Pod]) -> bool:
    failed = sum(pod.phase is Phase.FAILED for pod in pods)
    failed_before = sum(counts.failed for counts in status.replica_statuses.values())
    active = sum(not pod.phase.ended and not pod.deleting for pod in pods)
    return failed > failed_before and active != job.total_replicas()
