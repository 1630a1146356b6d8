"""One pod: its containers one after another, restarts in place, its end."""

from dataclasses import dataclass
from typing import Callable, List, Optional, Protocol

from ..pods import Phase, Pod, describe_exit
from .backoff import Backoff
from .plan import PodPlan, ProcessPlan


class RunningContainer(Protocol):
    """A ContainerProcess, as far as a pod needs to know it."""

    exit_code: Optional[int]
    killed: bool

    def poll(self) -> Optional[int]: ...

    def terminate(self) -> None: ...

    def kill(self) -> None: ...


class StartContainer(Protocol):
    def __call__(self, plan: ProcessPlan, is_init: bool, again: bool) -> RunningContainer:
        """`again`: the pod has run this container before."""


@dataclass(frozen=True)
class PodTools:
    """The objects that a pod shares with the others of its job."""

    clock: Callable[[], float]
    backoff: Backoff
    on_event: Callable[[str], None]
    # "worker-1", and the init container that ended with another code than 0.
    on_init_failure: Callable[[str, str], None]
    # Whether the main container of that replica ("master-0") runs.
    is_running: Callable[[str], bool] = lambda replica_name: True


class PodRun:
    """Owns the state of `pod`; step() moves it on."""

    def __init__(self, pod: Pod, plan: PodPlan, start: StartContainer, tools: PodTools, start_at: float):
        self.pod = pod
        self.plan = plan
        # Its last process has ended and it is no longer needed.
        self.gone = False
        # When the next container is to be started; None: one runs, or the pod has ended.
        self.start_at: Optional[float] = start_at
        self._start = start
        self._tools = tools
        self._containers: List[ProcessPlan] = [*plan.init, plan.main]
        self._position = 0
        self._process: Optional[RunningContainer] = None
        self._started_at = tools.clock()
        self._ends_in_a_row = 0
        # What is started next was started before.
        self._restarting = False
        # When SIGKILL follows SIGTERM.
        self._kill_at: Optional[float] = None
        # It still looks for the replica that it waits for.
        self._waits = bool(plan.waits_for)

    @property
    def running(self) -> bool:
        return self._process is not None

    @property
    def seconds(self) -> float:
        """The time since its newest container was started."""
        return self._tools.clock() - self._started_at

    def next_due(self) -> Optional[float]:
        if self.running:
            return self._kill_at
        # What it waits for shows in another pod.
        return None if self._waits else self.start_at

    def step(self) -> bool:
        """True: the pod has changed."""
        if self._process is not None:
            code = self._process.poll()
            if code is not None:
                self._container_ended(code)
                return True
            if self._kill_at is not None and self._tools.clock() >= self._kill_at:
                self._kill_at = None
                self._process.kill()
            return False
        if self.start_at is not None and self.start_at <= self._tools.clock():
            self._waits = self._waits and not self._tools.is_running(self.plan.waits_for)
            if self._waits:
                return False
            self._start_container()
            return True
        return False

    def delete(self) -> None:
        """SIGTERM, and SIGKILL after the grace period; once, as a second SIGTERM means "at once"."""
        if self.pod.deleting:
            return
        self.pod.deleting = True
        self.start_at = None
        if self._process is None:
            self.gone = True
            return
        self._process.terminate()
        self._kill_at = self._tools.clock() + self.plan.grace_seconds

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()

    def _start_container(self) -> None:
        self.start_at = None
        self._started_at = self._tools.clock()
        is_init = self._position < len(self.plan.init)
        again, self._restarting = self._restarting, False
        if again:
            if not self._tools.backoff.counts_early:
                self.pod.restart_count += 1
            self._tools.on_event(f"{self.pod.replica_name}: restart {self.pod.restart_count} in its pod")
        self.pod.phase = Phase.PENDING if is_init else Phase.RUNNING
        self._process = self._start(self._containers[self._position], is_init, again)

    def _container_ended(self, code: int) -> None:
        self._process = None
        self._kill_at = None
        is_init = self._position < len(self.plan.init)
        if self.pod.deleting:
            succeeded = code == 0 and not is_init
            self._end(Phase.SUCCEEDED if succeeded else Phase.FAILED, None if is_init else code)
        elif is_init:
            self._init_ended(code)
        else:
            self._main_ended(code)
        self.gone = self.gone or self.pod.deleting

    def _init_ended(self, code: int) -> None:
        if code == 0:
            self._position += 1
            self._ends_in_a_row = 0
            self.start_at = self._tools.clock()
            return
        container = self._containers[self._position].container
        what = f"{self.pod.replica_name}: init container {container} ended with {describe_exit(code)}"
        if self.plan.restart_policy in ("Always", "OnFailure"):
            self._restart(what)
        else:
            self._tools.on_event(what)
            self._end(Phase.FAILED, None)
        self._tools.on_init_failure(self.pod.replica_name, container)

    def _main_ended(self, code: int) -> None:
        policy = self.plan.restart_policy
        self.pod.exit_code = code
        if policy == "Always" or (policy == "OnFailure" and code != 0):
            self._restart(f"{self.pod.replica_name} ended with {describe_exit(code)}")
        else:
            self._end(Phase.SUCCEEDED if code == 0 else Phase.FAILED, code)

    def _restart(self, what: str) -> None:
        now = self._tools.clock()
        healthy = now - self._started_at >= self._tools.backoff.healthy_seconds
        self._ends_in_a_row = 1 if healthy else self._ends_in_a_row + 1
        delay = self._tools.backoff.delay(self._ends_in_a_row)
        if self._tools.backoff.counts_early:
            self.pod.restart_count += 1
        self.start_at = now + delay
        self._restarting = True
        self._tools.on_event(f"{what}, back-off {delay:g} s")

    def _end(self, phase: Phase, exit_code: Optional[int]) -> None:
        self.pod.phase = phase
        self.pod.exit_code = exit_code
