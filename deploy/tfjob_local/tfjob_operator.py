"""The emulated training operator: one job's pods and conditions, as pods come, run, fail and end."""

import copy
from typing import Callable, Dict, Mapping, Optional, Sequence, Tuple

from tfjob_api.model import ReplicaSpec, TrainingJob
from tfjob_api.operator_version import OperatorVersion
from tfjob_api.status import FAILED, SUCCEEDED, JobStatus, ReplicaStatus

from .job_operator import JobOutcome
from .operator_conditions import ConditionWriter
from .operator_pods import (
    FailedPod,
    JobPods,
    RestartLedger,
    count_pods,
    ending_first,
    job_has_succeeded,
    of_type,
)
from .operator_rules import Rules, Verdict, judge, past_deadline, reached_backoff_limit
from .pods import Pod, PodControl

# What a pass changes wakes the operator again at once. Bounded, as Running and Restarting take turns
# while a failed pod is still there.
_MOST_PASSES = 3


class Operator:
    """Does something in reconcile() alone; everything else only changes what it will find."""

    def __init__(
        self,
        job: TrainingJob,
        pods: PodControl,
        clock: Callable[[], float],
        version: OperatorVersion,
        rules: Rules,
        on_event: Callable[[str], None],
    ):
        """`clock`: as time.time. `on_event`: "REASON message", as `kubectl describe` lists events."""
        # The current spec: scale(), suspend() and resume() change it.
        self.job = job
        self.status = JobStatus(reason_prefix=job.kind.reason_prefix(version))
        # Its time to live is over: the job is deleted, and its pods with it.
        self.expired = False
        self._control = pods
        self._pods = JobPods(pods, job, on_event)
        self._clock = clock
        self._version = version
        self._rules = rules
        self._on_event = on_event
        self._conditions = ConditionWriter(self.status, clock, version, rules, on_event)
        self._ledger = RestartLedger()
        # The state that the last pass saw; None: it changed something, and another pass is due.
        self._seen: Optional[Tuple[object, ...]] = None
        self._conditions.created(job)

    @property
    def finished(self) -> bool:
        return self.status.finished

    @property
    def outcome(self) -> Optional[JobOutcome]:
        """None until the job has finished. One that both succeeded and failed has failed."""
        failed, succeeded = self.status.condition(FAILED), self.status.condition(SUCCEEDED)
        if failed is not None and failed.status:
            return JobOutcome(False, failed.message, self._conditions.failed_pod)
        if succeeded is not None and succeeded.status:
            return JobOutcome(True, succeeded.message)
        return None

    def scale(self, numbers: Mapping[str, int]) -> None:
        """By replica type, all or nothing. Pods that run keep the TF_CONFIG they have. ValueError: the
        job does not admit such a number."""
        self._expect_unfinished()
        for replica_type, number in numbers.items():
            self._check_number(replica_type, number)
        self.job = self.job.with_replicas(numbers)

    def suspend(self) -> None:
        """ValueError: the job has finished or is suspended, or this operator cannot."""
        self._expect_unfinished()
        if not self._version.knows_suspend:
            raise ValueError(f"operator {self._version} cannot suspend a job; 1.7 and newer can")
        self.job = self.job.with_suspend(True)

    def resume(self) -> None:
        """ValueError: the job has finished, or is not suspended."""
        self._expect_unfinished()
        self.job = self.job.with_suspend(False)

    def stopped(self, how: str) -> None:
        """Its user has ended an unfinished job, whose pods have ended. `how`: "stopped by SIGTERM"."""
        self.status.clear_active()
        self._conditions.stopped(self.job, how)

    def reconcile(self) -> None:
        """Reconciles the job. Call it after every change and, for time limits, now and then; the strict
        operator sleeps through calls that nothing but time caused."""
        if not self._is_woken():
            return
        for _ in range(_MOST_PASSES):
            status, seen = copy.deepcopy(self.status), self._fingerprint()
            self._pass()
            unchanged = self.status == status and self._fingerprint() == seen
            self._seen = seen if unchanged else None
            if unchanged:
                break

    def _is_woken(self) -> bool:
        if not (self._rules.known_bugs and self._version.forgets_the_deadline):
            return True
        return self._ttl_is_over() or self._seen != self._fingerprint()

    def _fingerprint(self) -> Tuple[object, ...]:
        pods = self._control.pods()
        return (self.job, *((p.uid, p.phase, p.exit_code, p.restart_count, p.deleting) for p in pods))

    def _pass(self) -> None:
        """The operator's order: what has finished, what is suspended, what is at its limits, the rest."""
        pods = self._pods.look()
        if self.status.finished:
            self._clean_up(pods)
        elif self.job.run_policy.suspend and self._version.knows_suspend:
            self._pods.delete(pods if self._rules.known_bugs else ending_first(self.job, pods))
            self.status.clear_active()
            self._conditions.suspended(self.job)
        else:
            self._conditions.resumed(self.job)
            self._ledger.observe(pods, lambda pod: not pod.deleting and self._is_to_restart(pod))
            if not self._fail_at_limits(pods):
                self._reconcile_replicas(pods)

    def _clean_up(self, pods: Sequence[Pod]) -> None:
        if self._rules.cleans_up:
            policy = self.job.run_policy.clean_pod_policy or self.job.kind.default_clean_pod_policy(self._version)
            if policy != "None":
                self._pods.delete(pod for pod in pods if policy == "All" or not pod.phase.ended)
            if self._ttl_is_over():
                self.expired = True
                self._on_event(f"SuccessfulDeleteJob Deleted job: {self.job.name}")
                self._pods.delete(pods)
        if self.status.succeeded:
            self.status.count_active_as_succeeded()

    def _ttl_is_over(self) -> bool:
        """Never for a job without completion time: one that failed for good while Restarting."""
        ttl = self.job.run_policy.ttl_seconds_after_finished
        if self.expired or ttl is None or not self.finished or self.status.completion_time is None:
            return False
        return self._clock() > self.status.completion_time + ttl

    def _fail_at_limits(self, pods: Sequence[Pod]) -> bool:
        exceeded = self._exceeded_limit(pods)
        if exceeded is None:
            return False
        if not self._rules.known_bugs and job_has_succeeded(self.job, self._count(pods), pods, self._version):
            return False
        if self._rules.cleans_up and not self._version.cleans_up_after_limits:
            self._pods.delete(pods)
        self._conditions.limit_exceeded(*exceeded)
        return True

    def _exceeded_limit(self, pods: Sequence[Pod]) -> Optional[Tuple[str, Optional[FailedPod]]]:
        """Returns the message and the pod that failed last; None: the job is within its limits."""
        name = self.job.name
        if self._past_backoff_limit(pods):
            message = f"Job {name} has failed because it has reached the specified backoff limit"
            return message, self._ledger.last_failure
        pod = self._restarted_too_often(pods)
        if pod is not None:
            why = f"{pod.replica_name} failed again after {self._rules.max_restarts} restart(s)"
            return f"{self.job.kind} {self.job.namespace}/{name} has failed because {why}.", FailedPod.of(pod)
        if past_deadline(self.job, self.status, self._clock()):
            return f"Job {name} has failed because it was active longer than specified deadline", None
        return None

    def _past_backoff_limit(self, pods: Sequence[Pod]) -> bool:
        if self._rules.known_bugs:
            return reached_backoff_limit(self.job, self.status, pods)
        limit = self.job.run_policy.backoff_limit
        return limit is not None and self._ledger.total > limit

    def _restarted_too_often(self, pods: Sequence[Pod]) -> Optional[Pod]:
        limit = self._rules.max_restarts
        if limit is None:
            return None
        return next((pod for pod in pods if self._ledger.restarts(pod.replica_name) > limit), None)

    def _reconcile_replicas(self, pods: Sequence[Pod]) -> None:
        self.status.replica_statuses = self._count(pods)
        for replica_type, spec in self.job.replica_specs.items():
            self._reconcile_pods(spec, of_type(pods, replica_type))
        self._conditions.update(self.job, pods)

    def _reconcile_pods(self, spec: ReplicaSpec, pods: Sequence[Pod]) -> None:
        """Recreates missing pods, even those that had succeeded."""
        present = {pod.index for pod in pods}
        for index in range(spec.replicas):
            if index not in present:
                self._pods.create(spec.type, index)
        for pod in pods:
            if pod.index >= spec.replicas:
                self._pods.delete([pod])
            elif self._is_to_restart(pod):
                self._conditions.restarting(self.job, pod)
                self._pods.delete([pod])
            elif self._rules.known_bugs and self._conditions.is_permanent(pod, spec.restart_policy):
                self._conditions.permanent_failure(self.job, pod)

    def _is_to_restart(self, pod: Pod) -> bool:
        policy = self.job.replica_specs[pod.replica_type].restart_policy
        return judge(pod, policy, self._version) is Verdict.RESTART

    def _count(self, pods: Sequence[Pod]) -> Dict[str, ReplicaStatus]:
        terminating_failed = self._rules.known_bugs and self._version.counts_terminating_as_failed
        return count_pods(self.job, pods, terminating_failed)

    def _check_number(self, replica_type: str, number: int) -> None:
        if replica_type not in self.job.replica_specs:
            known = ", ".join(self.job.replica_specs)
            raise ValueError(f'replica type: expected one of {known}, found "{replica_type}"')
        chief = self.job.chief_type()
        if replica_type == chief and number != 1:
            raise ValueError(f"{replica_type}: expected 1 replica, found {number}")
        leads = replica_type == "Worker" and chief is None
        if number < (1 if leads else 0):
            least = "1 replica or more, as worker 0 leads the job" if leads else "0 replicas or more"
            raise ValueError(f"{replica_type}: expected {least}; found {number}")

    def _expect_unfinished(self) -> None:
        if self.finished:
            raise ValueError(f"job {self.job.name} has finished")
