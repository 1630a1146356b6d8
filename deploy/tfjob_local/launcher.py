"""One job from its first process to its last: the loop around the operator and the kubelet."""

import signal
from dataclasses import dataclass, field
from typing import Callable, List, Optional, Set, Tuple

from tfjob_api.naming import replica_names

from .control import ControlServer
from .job_operator import JobOperator, JobOutcome
from .job_view import Journal
from .kubelet.kubelet import Kubelet
from .live_output import LiveOutput
from .operator_pods import ending_first
from .pods import Pod, describe_exit
from .signals import STOP_SIGNALS, SignalQueue

# How long the other replicas may take to end by themselves once the job has succeeded.
END_SECONDS = 15.0
# Other terminals wait at most this long for an answer, log lines for being shown.
_TICK_SECONDS = 0.1


@dataclass
class Result:
    """The result for the launcher's user."""

    succeeded: bool
    exit_code: int
    # Empty after success.
    reason: str = ""
    # Its user has ended it; it did not fail.
    stopped: bool = False
    # The replica whose end failed the job ("worker-1").
    failed: str = ""
    # Replicas that did not end as they should, one line each.
    problems: List[str] = field(default_factory=list)


@dataclass(eq=False)
class Launcher:
    """Single-threaded; everything happens in run()."""

    _operator: JobOperator
    _kubelet: Kubelet
    _signals: SignalQueue
    _output: LiveOutput
    _journal: Journal
    _clock: Callable[[], float]
    # Replicas that the operator leaves running after the end of the job run on.
    _strict: bool = False
    # Whether a replica ends by itself once the job has, as Keelson's do.
    _ends_by_itself: Callable[[Pod], bool] = lambda pod: True
    _control: Optional[ControlServer] = field(init=False, default=None)
    # The first signal (or the command stop) that asked for the end: exit code, reason.
    _stopped: Optional[Tuple[int, str]] = field(init=False, default=None)
    _finished_at: Optional[float] = field(init=False, default=None)
    # Replicas that had to be ended after the job's success.
    _overdue: Set[str] = field(init=False, default_factory=set)
    _problems: List[str] = field(init=False, default_factory=list)

    def serve(self, control: ControlServer) -> None:
        """Answers requests of other terminals during run()."""
        self._control = control

    def stop(self, exit_code: int, reason: str) -> None:
        """First call: SIGTERM and the grace period. A later one: SIGKILL."""
        if self._stopped is None:
            self._stopped = (exit_code, reason)
            self._output.stopping(self._alive())
            self._end_in_order()
        else:
            self._kubelet.kill_all()

    def _end_in_order(self) -> None:
        pods = self._kubelet.pods()
        for pod in pods if self._strict else ending_first(self._operator.job, pods):
            self._kubelet.delete(pod)

    def run(self) -> Result:
        """PlanError, OSError: a replica cannot be run any more. No process is left in any case."""
        try:
            while not self._over():
                self._turn()
            if self._operator.outcome is None and self._stopped is not None:
                self._operator.stopped(self._stopped[1])
            self._journal.update()
            return self._result()
        finally:
            while self._alive():
                self._kubelet.kill_all()
                self._signals.wait(_TICK_SECONDS)
                self._kubelet.poll()

    def _turn(self) -> None:
        self._kubelet.poll()
        if self._control is not None:
            # Before the operator, which sees a pod that a request deletes while the pod still runs.
            self._control.poll()
        if self._stopped is None:
            self._operator.reconcile()
        else:
            self._end_in_order()
        outcome = self._operator.outcome
        if outcome is not None:
            self._after_finish(outcome)
        self._journal.update()
        self._output.update()
        if not self._over():
            self._wait()

    def _wait(self) -> None:
        due = self._kubelet.next_due()
        seconds = _TICK_SECONDS if due is None else min(_TICK_SECONDS, max(0.0, due - self._clock()))
        number = self._signals.wait(seconds)
        if number in STOP_SIGNALS:
            self.stop(128 + number, f"stopped by {signal.Signals(number).name}")

    def _over(self) -> bool:
        ended = self._stopped is not None or self._operator.finished
        return ended and not self._alive()

    def _alive(self) -> List[Pod]:
        return [pod for pod in self._kubelet.pods() if not pod.phase.ended]

    def _after_finish(self, outcome: JobOutcome) -> None:
        """Replicas that still run get time to end by themselves, then are ended and reported."""
        if self._finished_at is None:
            self._finished_at = self._clock()
            self._output.finished(self._alive(), self._strict)
            if outcome.succeeded and not self._strict and self._stopped is None:
                self._clean_up()
        if self._strict or self._stopped is not None:
            return
        if not outcome.succeeded:
            self._delete(self._alive())
            return
        running = {record.name for record in self._kubelet.records() if record.running}
        for pod in self._alive():
            if pod.replica_name not in running:
                # It waits for a restart that is no longer needed.
                self._kubelet.delete(pod)
        waited = self._clock() - self._finished_at
        if waited >= END_SECONDS:
            self._end_overdue(waited)

    def _clean_up(self) -> None:
        """As the manifest's cleanPodPolicy says of pods that would serve on; the others have time to end well."""
        if self._operator.job.run_policy.clean_pod_policy in ("Running", "All"):
            pods = [pod for pod in self._alive() if not self._ends_by_itself(pod)]
            self._overdue.update(pod.replica_name for pod in pods)
            self._delete(pods)

    def _end_overdue(self, waited: float) -> None:
        overdue = [pod for pod in self._alive() if pod.replica_name not in self._overdue]
        for pod in overdue:
            self._overdue.add(pod.replica_name)
            self._problems.append(
                f"{pod.replica_name} was still running {waited:.0f} s after the job had succeeded"
            )
        self._delete(overdue)

    def _delete(self, pods: List[Pod]) -> None:
        wanted = [pod for pod in pods if not pod.deleting]
        self._output.ending(wanted)
        for pod in wanted:
            self._kubelet.delete(pod)

    def _result(self) -> Result:
        outcome = self._operator.outcome
        if outcome is None:
            exit_code, reason = self._stopped or (1, "it did not finish")
            return Result(False, exit_code, reason, stopped=self._stopped is not None)
        if not outcome.succeeded:
            return _failure(outcome)
        if not self._strict and self._stopped is None:
            self._problems += self._bad_ends()
        return Result(True, 0, problems=self._problems)

    def _bad_ends(self) -> List[str]:
        """Lists bad ends of replicas that the job still has and that were not ended on purpose."""
        names = set(replica_names(self._operator.job)) - self._overdue
        return [
            f"{record.name} ended with {describe_exit(record.exit_code)}"
            for record in self._kubelet.records()
            if record.name in names and record.exit_code not in (0, None)
        ]


def _failure(outcome: JobOutcome) -> Result:
    if outcome.failed_pod is None:
        return Result(False, 1, outcome.reason)
    name, exit_code = outcome.failed_pod
    reason = f"{name} ended with {describe_exit(exit_code)}: {outcome.reason}"
    return Result(False, exit_code or 1, reason, failed=name)
