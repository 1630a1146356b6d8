"""Writes the job's conditions, which follow from its pods."""

from dataclasses import dataclass, field
from typing import Callable, List, Optional, Sequence

from tfjob_api.job_kind import TF_JOB
from tfjob_api.model import TrainingJob
from tfjob_api.naming import is_leader
from tfjob_api.operator_version import OperatorVersion
from tfjob_api.status import (
    CREATED,
    FAILED,
    RESTARTING,
    RESUMED,
    RUNNING,
    STOPPED,
    SUCCEEDED,
    SUSPENDED,
    Condition,
    JobStatus,
    reason,
)

from .operator_pods import FailedPod, is_terminating, job_has_succeeded, job_is_running, leading_type, of_type
from .operator_rules import Rules, Verdict, judge
from .pods import Phase, Pod


@dataclass(eq=False)
class ConditionWriter:
    """`job` is the current spec at each call; it may change between them."""

    _status: JobStatus
    _clock: Callable[[], float]
    _version: OperatorVersion
    _rules: Rules
    _on_event: Callable[[str], None]
    # The pod whose end failed the job.
    failed_pod: Optional[FailedPod] = field(init=False, default=None)

    def created(self, job: TrainingJob) -> None:
        self._write(CREATED, f"{job.kind} {job.name} is created.")

    def suspended(self, job: TrainingJob) -> None:
        message = f"{job.kind} {job.name} is suspended."
        if self._status.is_true(RUNNING):
            self._status.update(RUNNING, message, self._clock(), status=False, reason_name=SUSPENDED)
        if self._write(SUSPENDED, message):
            self._tell(SUSPENDED, message)

    def stopped(self, job: TrainingJob, how: str) -> None:
        """`how`: "stopped by SIGTERM"."""
        message = f"{job.kind} {job.namespace}/{job.name} was {how}."
        self._status.update(RUNNING, message, self._clock(), status=False, reason_name=STOPPED)

    def resumed(self, job: TrainingJob) -> None:
        """Does nothing for a job that was not suspended. Its deadline starts again."""
        if not self._status.is_true(SUSPENDED):
            return
        message = f"{job.kind} {job.name} is resumed."
        self._status.update(SUSPENDED, message, self._clock(), status=False, reason_name=RESUMED)
        self._tell(RESUMED, message)
        self._status.start_time = self._clock()

    def restarting(self, job: TrainingJob, pod: Pod) -> None:
        subject = self._version.restarting_subject if job.kind == TF_JOB else "job"
        message = f"{subject} {job.name} is restarting because {pod.replica_type} replica(s) failed."
        if not pod.deleting:
            self._tell(RESTARTING, message)
        self._write(RESTARTING, message)

    def limit_exceeded(self, message: str, pod: Optional[FailedPod]) -> None:
        self._complete()
        self._fail(message, pod)

    def is_permanent(self, pod: Pod, restart_policy: str) -> bool:
        """Its exit code fails the job by itself, with a message of its own."""
        if restart_policy != "ExitCode" or not self._version.names_failing_replica_type:
            return False
        return judge(pod, restart_policy, self._version) is Verdict.FAIL

    def permanent_failure(self, job: TrainingJob, pod: Pod) -> None:
        """The failure of a pod under ExitCode. Only this one sets no completion time."""
        message = f'job "{job.name}" is failing because "{pod.replica_type}" replica(s) failed.'
        self._fail(message, FailedPod.of(pod))

    def update(self, job: TrainingJob, pods: Sequence[Pod]) -> None:
        """By the pods, which the status' replica_statuses count already."""
        if self._status.start_time is None:
            self._status.start_time = self._clock()
        # Read before Running is written below, which removes it.
        restarting = self._status.condition(RESTARTING)
        types = [t for t in job.kind.replica_types if t in job.replica_specs]
        if self._rules.known_bugs:
            for replica_type in types:
                self._update_progress(job, replica_type, pods)
                self._update_failures(job, replica_type, pods, restarting)
            return
        for replica_type in types:
            self._update_progress(job, replica_type, pods)
        if not self._status.succeeded:
            for replica_type in types:
                self._fail_hopeless(job, replica_type, pods)
                self._update_failures(job, replica_type, pods, restarting)

    def _update_progress(self, job: TrainingJob, replica_type: str, pods: Sequence[Pod]) -> None:
        """By the type that leads the job."""
        if replica_type != leading_type(job):
            return
        if job_has_succeeded(job, self._status.replica_statuses, pods, self._version):
            self._complete()
            message = job.messages.succeeded.format(namespace=job.namespace, name=job.name)
            if self._write(SUCCEEDED, message):
                self._tell(SUCCEEDED, message)
        elif job_is_running(job, self._status.replica_statuses):
            self._write(RUNNING, job.messages.running.format(namespace=job.namespace, name=job.name))

    def _update_failures(
        self, job: TrainingJob, replica_type: str, pods: Sequence[Pod], restarting_before: Optional[Condition]
    ) -> None:
        if self._status.replica_statuses[replica_type].failed == 0:
            return
        if self._rules.known_bugs and job.kind != TF_JOB:
            self._update_by_policy(job, replica_type, pods)
            return
        failed = [pod for pod in self._failed(job, replica_type, pods) if not self._is_tolerated(job, pod)]
        restarting = restarting_before
        if self._rules.known_bugs and not self._version.remembers_restarting:
            restarting = self._status.condition(RESTARTING)
        if restarting is not None and (self._rules.known_bugs or not failed):
            self._write(RESTARTING, restarting.message)
            return
        if failed:
            self._complete()
            self._fail(self._failure(job, replica_type, len(failed)), FailedPod.of(failed[0]))

    def _update_by_policy(self, job: TrainingJob, replica_type: str, pods: Sequence[Pod]) -> None:
        """As of all kinds but TFJob: what the pods' restart policy is decides, whatever their exit code was."""
        counts, spec = self._status.replica_statuses[replica_type], job.replica_specs[replica_type]
        if self._version.fails_while_others_run:
            restarts = spec.restart_policy == "ExitCode"
        elif spec.replicas <= counts.succeeded + counts.active:
            return
        else:
            restarts = spec.restart_policy != "Never"
        if restarts:
            what = f"is restarting because {counts.failed} {replica_type} replica(s) failed."
            if self._write(RESTARTING, f"{job.kind} {job.name} {what}"):
                self._tell(RESTARTING, f"{job.kind} {job.name} {what}")
            return
        failed = self._failed(job, replica_type, pods)
        self._complete()
        self._fail(self._failure(job, replica_type, counts.failed), FailedPod.of(failed[0]))

    @staticmethod
    def _failure(job: TrainingJob, replica_type: str, count: int) -> str:
        return job.messages.failed.format(
            namespace=job.namespace, name=job.name, count=count, type=replica_type
        )

    def _is_tolerated(self, job: TrainingJob, pod: Pod) -> bool:
        """A dynamic job goes on without the worker; but not without one that its success needs."""
        if not (job.dynamic_workers and self._version.knows_dynamic_workers):
            return False
        decides = is_leader(job, pod.replica_type, pod.index) or (
            job.chief_type() is None and job.success_policy == "AllWorkers"
        )
        return pod.replica_type == "Worker" and (self._rules.known_bugs or not decides)

    def _failed(self, job: TrainingJob, replica_type: str, pods: Sequence[Pod]) -> List[Pod]:
        """The number of pods that will not be replaced; with the known bugs, of all that have failed."""
        own = of_type(pods, replica_type)
        if self._rules.known_bugs:
            terminating = self._version.counts_terminating_as_failed
            return [p for p in own if p.phase is Phase.FAILED or (terminating and is_terminating(p))]
        policy = job.replica_specs[replica_type].restart_policy
        return [pod for pod in own if judge(pod, policy, self._version) is Verdict.FAIL]

    def _fail_hopeless(self, job: TrainingJob, replica_type: str, pods: Sequence[Pod]) -> None:
        policy = job.replica_specs[replica_type].restart_policy
        for pod in of_type(pods, replica_type):
            if policy in ("OnFailure", "Always") and self._is_hopeless(pod):
                self._complete()
                how = f"{pod.replica_name} exited with code {pod.exit_code}, which no restart mends"
                self._fail(f"{job.kind} {job.namespace}/{job.name} has failed because {how}.", FailedPod.of(pod))
            elif self.is_permanent(pod, policy):
                self.permanent_failure(job, pod)

    def _is_hopeless(self, pod: Pod) -> bool:
        return pod.exit_code in self._rules.hopeless_codes and not pod.deleting

    def _fail(self, message: str, pod: Optional[FailedPod]) -> None:
        if self._write(FAILED, message):
            self.failed_pod = pod
            self._tell(FAILED, message)

    def _complete(self) -> None:
        if self._status.completion_time is None:
            self._status.completion_time = self._clock()

    def _write(self, condition_type: str, message: str) -> bool:
        return self._status.update(condition_type, message, self._clock())

    def _tell(self, name: str, message: str) -> None:
        self._on_event(f"{reason(name, self._status.reason_prefix)} {message}")
