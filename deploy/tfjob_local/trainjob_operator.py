"""The emulated controllers of a TrainJob: Trainer, its JobSet and the one Job in it, as pods come, fail and end.

The Job replaces pods that have failed until its limits are reached; then it has failed, and the JobSet starts it anew
or fails, too. What is no rule of theirs: a replica that fails again and again, and an exit code that no restart mends,
fail the job, as of every kind.
"""

from dataclasses import dataclass, field
from typing import Callable, Iterable, Mapping, Optional, Sequence, Set

from tfjob_api.job_set import (
    BACKOFF_LIMIT_EXCEEDED,
    DEADLINE_EXCEEDED,
    FAIL_JOB,
    FAIL_JOB_SET,
    IGNORE,
    POD_FAILURE_POLICY,
    RESTART_JOB_SET,
)
from tfjob_api.model import TrainingJob
from tfjob_api.naming import job_of_pods
from tfjob_api.status import COMPLETE, FAILED, RESUMED, RUNNING, STOPPED, SUSPENDED, reason
from tfjob_api.trainjob_status import (
    ALL_JOBS_COMPLETED,
    FAIL_ACTION,
    FAILED_JOBS,
    REACHED_MAX_RESTARTS,
    RESUMED_MESSAGE,
    SUSPENDED_MESSAGE,
    NodeCounts,
    TrainJobStatus,
)

from .job_operator import JobOutcome
from .operator_pods import FailedPod, JobPods, RestartLedger, ending_first
from .operator_rules import Rules
from .pods import Phase, Pod, PodControl

_MAX_RESTARTS_MESSAGE = "jobset failed due to reaching max number of restarts"
_FAIL_MESSAGE = "applying FailJobSet failure policy action"


@dataclass
class _Attempt:
    """The Job, from its creation to its end; the JobSet may make several."""

    # Seconds since the epoch; None: it is suspended.
    started_at: Optional[float] = None
    completed: Set[int] = field(default_factory=set)
    # The number of pods that failed, and that the Job's limit counts.
    failed: int = 0


@dataclass(frozen=True)
class _JobFailure:
    # The Job's condition has this reason and this message.
    reason: str
    message: str
    pod: Optional[FailedPod] = None


class TrainJobOperator:
    """Implements JobOperator."""

    def __init__(
        self,
        job: TrainingJob,
        pods: PodControl,
        clock: Callable[[], float],
        rules: Rules,
        on_event: Callable[[str], None],
    ):
        """`clock`: as time.time. `rules`: those beyond the JobSet's. `on_event`: as Operator's."""
        # The current spec: suspend() and resume() change it.
        self.job = job
        self.status = TrainJobStatus()
        self._control = pods
        self._pods = JobPods(pods, job, on_event)
        self._clock = clock
        self._rules = rules
        self._on_event = on_event
        self._node = job.kind.worker_type
        self._ledger = RestartLedger()
        self._attempt = _Attempt()
        # Restarts of the JobSet that count.
        self._restarts = 0
        # The pods of the last attempt are ending.
        self._starts_anew = False
        # The uids of pods whose end was asked for here, and of those whose failure was seen.
        self._deleted: Set[int] = set()
        self._judged: Set[int] = set()
        # What fails the Job, found while pods were looked at.
        self._failure: Optional[_JobFailure] = None
        self._failed_pod: Optional[FailedPod] = None

    @property
    def finished(self) -> bool:
        return self.status.finished

    @property
    def outcome(self) -> Optional[JobOutcome]:
        for condition_type in (FAILED, COMPLETE):
            condition = self.status.condition(condition_type)
            if condition is not None and condition.status:
                return JobOutcome(condition_type == COMPLETE, condition.message, self._failed_pod)
        return None

    def scale(self, numbers: Mapping[str, int]) -> None:
        raise ValueError(f"{', '.join(numbers)}: the number of a TrainJob's nodes is fixed once it is there")

    def suspend(self) -> None:
        self._expect_unfinished()
        self.job = self.job.with_suspend(True)

    def resume(self) -> None:
        self._expect_unfinished()
        self.job = self.job.with_suspend(False)

    def stopped(self, how: str) -> None:
        self.status.nodes = NodeCounts(self.job.replicas(self._node))
        name = f"{self.job.kind} {self.job.namespace}/{self.job.name}"
        self._write(RUNNING, reason(STOPPED, self.job.kind.name), f"{name} was {how}.", False)

    def reconcile(self) -> None:
        pods = self._pods.look()
        if self.finished:
            return
        if self.job.run_policy.suspend:
            self._suspend(pods)
            return
        if self.status.is_true(SUSPENDED):
            self._write(SUSPENDED, RESUMED, RESUMED_MESSAGE, False)
        if self._starts_anew:
            self._delete(pods)
            if self._control.pods():
                return
            self._starts_anew = False
            self._attempt = _Attempt()
        if self._attempt.started_at is None:
            self._attempt.started_at = self._clock()
        self._observe(pods)
        self._count(pods)
        if self._job_succeeds() or self._job_fails(pods):
            return
        self._replace_pods(pods)

    def _suspend(self, pods: Sequence[Pod]) -> None:
        self._attempt.started_at = None
        self._delete(ending_first(self.job, pods))
        self.status.nodes = NodeCounts(self.job.replicas(self._node))
        self._write(SUSPENDED, SUSPENDED, SUSPENDED_MESSAGE)

    def _observe(self, pods: Sequence[Pod]) -> None:
        """Judges pods that have failed, or that somebody else deletes, once each."""
        self._ledger.observe(pods, lambda pod: pod.phase is Phase.FAILED and not pod.deleting)
        for pod in pods:
            if pod.uid in self._deleted:
                continue
            if pod.phase is Phase.SUCCEEDED:
                self._attempt.completed.add(pod.index)
            elif (pod.phase is Phase.FAILED or pod.deleting) and pod.uid not in self._judged:
                self._judged.add(pod.uid)
                self._judge(pod, disrupted=pod.deleting)

    def _judge(self, pod: Pod, disrupted: bool) -> None:
        exit_code = None if disrupted else pod.exit_code
        action = self.job.job_set.pod_failure(exit_code, disrupted)
        if action == FAIL_JOB:
            what = "was deleted" if disrupted else f"failed with exit code {exit_code}"
            message = f"Pod {self.job.namespace}/{pod.name} {what}, for which podFailurePolicy says {FAIL_JOB}"
            self._failure = _JobFailure(POD_FAILURE_POLICY, message, FailedPod.of(pod))
        elif action != IGNORE:
            self._attempt.failed += 1

    def _count(self, pods: Sequence[Pod]) -> None:
        active = [pod for pod in pods if not pod.phase.ended and not pod.deleting]
        self.status.nodes = NodeCounts(
            wanted=self.job.replicas(self._node),
            active=len(active),
            running=sum(pod.phase is Phase.RUNNING for pod in active),
            succeeded=len(self._attempt.completed),
        )

    def _job_succeeds(self) -> bool:
        if len(self._attempt.completed) < self.job.replicas(self._node):
            return False
        self._write(COMPLETE, ALL_JOBS_COMPLETED, self.job.messages.succeeded)
        return True

    def _job_fails(self, pods: Sequence[Pod]) -> bool:
        failure, self._failure = self._failure or self._limit_reached(pods), None
        if failure is None or self.job.job_set.job_failure(failure.reason) != FAIL_JOB_SET:
            hopeless = self._hopeless(pods)
            if hopeless is not None:
                self._fail(FAILED_JOBS, hopeless.message, hopeless.pod)
                return True
        if failure is None:
            return False
        self._on_event(f"{failure.reason} {failure.message}")
        self._follow_failure_policy(failure)
        return True

    def _hopeless(self, pods: Sequence[Pod]) -> Optional[_JobFailure]:
        """What no restart mends, by the launcher's own rules."""
        subject = f"{self.job.kind} {self.job.namespace}/{self.job.name} has failed because"
        for pod in pods:
            limit = self._rules.max_restarts
            if limit is not None and self._ledger.restarts(pod.replica_name) > limit:
                what = f"{subject} {pod.replica_name} failed again after {limit} restart(s)."
                return _JobFailure(FAILED_JOBS, what, FailedPod.of(pod))
            if pod.exit_code in self._rules.hopeless_codes and not pod.deleting and not self._is_ignored(pod):
                what = f"{subject} {pod.replica_name} exited with code {pod.exit_code}, which no restart mends."
                return _JobFailure(FAILED_JOBS, what, FailedPod.of(pod))
        return None

    def _is_ignored(self, pod: Pod) -> bool:
        return pod.phase is Phase.FAILED and self.job.job_set.pod_failure(pod.exit_code, False) == IGNORE

    def _limit_reached(self, pods: Sequence[Pod]) -> Optional[_JobFailure]:
        rules = self.job.job_set
        in_place = sum(pod.restart_count for pod in pods if not pod.phase.ended and pod.uid not in self._deleted)
        # Failed pods may be as many as the limit, restarts in place may not, but for a limit of 0.
        if self._attempt.failed > rules.backoff_limit or in_place >= max(rules.backoff_limit, 1):
            message = "Job has reached the specified backoff limit"
            return _JobFailure(BACKOFF_LIMIT_EXCEEDED, message, self._ledger.last_failure)
        deadline, started_at = rules.active_deadline_seconds, self._attempt.started_at
        if deadline is not None and started_at is not None and self._clock() - started_at >= deadline:
            return _JobFailure(DEADLINE_EXCEEDED, "Job was active longer than specified deadline")
        return None

    def _follow_failure_policy(self, failure: _JobFailure) -> None:
        rules = self.job.job_set
        action = rules.job_failure(failure.reason)
        which = f"(first failed job: {job_of_pods(self.job.name)})"
        if action == FAIL_JOB_SET:
            own = rules.max_restarts is None
            message = self.job.messages.failed if own else _FAIL_MESSAGE
            self._fail(FAILED_JOBS if own else FAIL_ACTION, f"{message} {which}", failure.pod)
            return
        if action == RESTART_JOB_SET:
            if self._restarts >= (rules.max_restarts or 0):
                self._fail(REACHED_MAX_RESTARTS, f"{_MAX_RESTARTS_MESSAGE} {which}", failure.pod)
                return
            self._restarts += 1
        self._on_event(f"{action}FailurePolicyAction applying {action} failure policy action {which}")
        self._starts_anew = True

    def _replace_pods(self, pods: Sequence[Pod]) -> None:
        """Pods that have failed make room for others of their index; those that have succeeded stay."""
        self._delete(pod for pod in pods if pod.phase is Phase.FAILED)
        there = {pod.index for pod in self._control.pods()} | self._attempt.completed
        for index in range(self.job.replicas(self._node)):
            if index not in there:
                self._pods.create(self._node, index)

    def _delete(self, pods: Iterable[Pod]) -> None:
        wanted = [pod for pod in pods if not pod.deleting]
        self._deleted.update(pod.uid for pod in wanted)
        self._pods.delete(wanted)

    def _fail(self, why: str, message: str, pod: Optional[FailedPod]) -> None:
        self._failed_pod = pod
        self._write(FAILED, why, message)

    def _write(self, condition_type: str, why: str, message: str, status: bool = True) -> None:
        self.status.update(condition_type, why, message, self._clock(), status)

    def _expect_unfinished(self) -> None:
        if self.finished:
            raise ValueError(f"job {self.job.name} has finished")
