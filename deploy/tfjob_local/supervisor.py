"""Starts the replicas, restarts them, decides how the job ends, and leaves no process behind."""

import signal
from dataclasses import dataclass, field
from typing import Callable, List, Optional, Sequence

from .console import Console
from .job import TFJob
from .progress import Progress
from .replica import Replica, Verdict, describe_exit, judge
from .signals import STOP_SIGNALS, SignalQueue

# How long the other replicas may take to end by themselves once the job has succeeded.
END_SECONDS = 15.0
_TICK_SECONDS = 0.2


@dataclass
class Outcome:
    succeeded: bool
    exit_code: int
    reason: str = ""
    # The replica whose end failed the job.
    failed: Optional[Replica] = None
    # What did not end as it should, one line each.
    problems: List[str] = field(default_factory=list)


class Supervisor:
    """Runs one job to its end. Single-threaded; everything happens in run()."""

    def __init__(
        self,
        job: TFJob,
        replicas: Sequence[Replica],
        signals: SignalQueue,
        console: Console,
        progress: Progress,
        clock: Callable[[], float],
        max_restarts: int,
        end_seconds: float = END_SECONDS,
    ):
        """`max_restarts`: of one replica; the manifest's backoffLimit counts the whole job's."""
        self._job = job
        self._replicas = list(replicas)
        self._signals = signals
        self._console = console
        self._progress = progress
        self._clock = clock
        self._max_restarts = max_restarts
        self._end_seconds = end_seconds
        self._stop_signals = 0

    def run(self) -> Outcome:
        """OSError: a program could not be started. No process is left in any case."""
        started_at = self._clock()
        try:
            for replica in self._replicas:
                replica.start()
            outcome = None
            while outcome is None:
                outcome = self._wait() or self._step(started_at)
            if outcome.succeeded:
                self._await_others(outcome)
            self._end_all()
            return outcome
        finally:
            self._kill_all()

    def _wait(self) -> Optional[Outcome]:
        """Sleeps until something happened; an outcome when that was the wish to stop."""
        due = [r.restart_at - self._clock() for r in self._replicas if r.restart_at is not None]
        number = self._signals.wait(min([_TICK_SECONDS, *due]))
        if number not in STOP_SIGNALS:
            return None
        self._stop_signals += 1
        name = signal.Signals(number).name
        return Outcome(False, 128 + number, f"stopped by {name}")

    def _step(self, started_at: float) -> Optional[Outcome]:
        ended = [replica for replica in self._replicas if replica.poll() is not None]
        if self._job_succeeded():
            return Outcome(True, 0)
        for replica in ended:
            outcome = self._judge(replica)
            if outcome is not None:
                return outcome
        if self._deadline_passed(started_at):
            return Outcome(False, 1, "the job was active longer than activeDeadlineSeconds")
        for replica in self._replicas:
            if replica.restart_at is not None and replica.restart_at <= self._clock():
                replica.start()
        self._progress.update()
        return None

    def _judge(self, replica: Replica) -> Optional[Outcome]:
        code = replica.exit_code
        verdict = judge(replica.command.restart_policy, code)
        if verdict is Verdict.SUCCEEDED:
            return None
        how = f"{replica.name} ended with {describe_exit(code)}"
        if verdict is Verdict.FAILED:
            return Outcome(False, code, how, replica)
        exhausted = self._restarts_exhausted(replica)
        if exhausted:
            return Outcome(False, code or 1, f"{how}; {exhausted}", replica)
        delay = replica.plan_restart()
        self._console.line(f"{how}; restart {replica.restarts + 1} in {delay:g} s")
        return None

    def _restarts_exhausted(self, replica: Replica) -> str:
        limit = self._job.backoff_limit
        total = sum(r.restarts for r in self._replicas)
        if limit is not None and total >= limit:
            return f"the job has reached its backoffLimit of {limit} restarts"
        if replica.restarts >= self._max_restarts:
            return f"it was restarted {replica.restarts} times already"
        return ""

    def _job_succeeded(self) -> bool:
        chief = self._job.chief_type()
        if chief:
            return self._all_succeeded([r for r in self._replicas if r.command.type == chief])
        workers = [r for r in self._replicas if r.command.type == "Worker"]
        if self._job.success_policy == "AllWorkers":
            return self._all_succeeded(workers)
        return self._all_succeeded(workers[:1])

    @staticmethod
    def _all_succeeded(replicas: Sequence[Replica]) -> bool:
        return all(r.exit_code == 0 and not r.running for r in replicas)

    def _deadline_passed(self, started_at: float) -> bool:
        deadline = self._job.active_deadline_seconds
        return deadline is not None and self._clock() - started_at > deadline

    def _await_others(self, outcome: Outcome) -> None:
        """After success: everyone else ends by themselves, or is reported."""
        succeeded_at = self._clock()
        deadline = succeeded_at + self._end_seconds
        while self._running() and self._clock() < deadline and not self._stop_signals:
            if self._signals.wait(_TICK_SECONDS) in STOP_SIGNALS:
                self._stop_signals += 1
            self._poll_all()
            self._progress.update()
        for replica in self._replicas:
            if replica.running:
                waited = self._clock() - succeeded_at
                outcome.problems.append(
                    f"{replica.name} was still running {waited:.0f} s after the job had succeeded"
                )
            elif replica.exit_code != 0:
                outcome.problems.append(f"{replica.name} ended with {describe_exit(replica.exit_code)}")

    def _end_all(self) -> None:
        """SIGTERM, the grace period, SIGKILL; a stop signal meanwhile skips the waiting."""
        if self._running():
            names = ", ".join(replica.name for replica in self._running())
            self._console.line(f"ending {names}")
        self._signal_all(signal.SIGTERM)
        asked_at = self._clock()
        while self._running():
            if self._signals.wait(_TICK_SECONDS) in STOP_SIGNALS:
                self._signal_all(signal.SIGKILL)
            self._poll_all()
            for replica in self._running():
                if self._clock() - asked_at >= replica.command.grace_seconds:
                    replica.killed = True
                    replica.send(signal.SIGKILL)

    def _kill_all(self) -> None:
        self._signal_all(signal.SIGKILL)
        while self._running():
            self._signals.wait(_TICK_SECONDS)
            self._poll_all()

    def _running(self) -> List[Replica]:
        return [replica for replica in self._replicas if replica.running]

    def _poll_all(self) -> None:
        for replica in self._replicas:
            replica.poll()

    def _signal_all(self, signal_number: int) -> None:
        for replica in self._running():
            replica.killed = replica.killed or signal_number == signal.SIGKILL
            replica.send(signal_number)
