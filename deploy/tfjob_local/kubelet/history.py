"""One replica through all its pods: logs, restarts, exit codes."""

import os
from dataclasses import dataclass
from typing import Callable, Dict, FrozenSet, Optional

from .keeper import Keeper
from .plan import ProcessPlan
from .process import ContainerProcess


@dataclass(frozen=True)
class ReplicaRecord:
    """The history of one replica so far."""

    # "worker-1"
    name: str
    # The pid of the newest process, whether it runs or not.
    pid: Optional[int]
    # The exit code of the process that ended last, 128 + n after signal n; None: none has ended.
    exit_code: Optional[int]
    # Restarts that have begun, in place and by a new pod.
    restarts: int
    # The time of all attempts together.
    seconds: float
    # The log of the newest attempt.
    log_path: str
    # The launcher ended the newest process by SIGKILL.
    killed: bool
    running: bool


class ReplicaHistory:
    """Starts the processes of one replica and remembers them."""

    def __init__(
        self,
        replica_name: str,
        log_dir: str,
        clock: Callable[[], float],
        keeper: Keeper,
        unblocked_signals: FrozenSet[int],
    ):
        self._name = replica_name
        self._log_dir = log_dir
        self._clock = clock
        self._keeper = keeper
        self._unblocked_signals = unblocked_signals
        # It has started nothing yet.
        self._pod_is_new = False
        # The number of started processes that replaced another one, in its pod or by a new one; -1: none was
        # started yet.
        self._restarts = -1
        # Container -> how often it was started; "" is the main one.
        self._starts: Dict[str, int] = {}
        self._process: Optional[ContainerProcess] = None
        self._log_path = self._path("", 0)
        self._exit_code: Optional[int] = None
        self._started_at = 0.0
        self._seconds = 0.0

    def begin_pod(self) -> None:
        """A new pod takes the place of the one before."""
        self._pod_is_new = True

    def start(self, plan: ProcessPlan, is_init: bool, again: bool) -> ContainerProcess:
        if again or self._pod_is_new:
            self._restarts += 1
            self._pod_is_new = False
        name = plan.container if is_init else ""
        number = self._starts.get(name, 0)
        self._starts[name] = number + 1
        self._log_path = self._path(name, number)
        self._started_at = self._clock()
        process = ContainerProcess(
            plan,
            self._log_path,
            f"{self._keeper.run_id}/{self._name}/{sum(self._starts.values())}",
            self._unblocked_signals,
            self._ended,
        )
        if process.pid is not None:
            self._keeper.group_started(process.pid)
        else:
            self._exit_code = process.exit_code
        self._process = process
        return process

    def record(self) -> ReplicaRecord:
        process = self._process
        running = process is not None and process.exit_code is None
        return ReplicaRecord(
            name=self._name,
            pid=process.pid if process else None,
            exit_code=self._exit_code,
            restarts=max(0, self._restarts),
            seconds=self._seconds + (self._clock() - self._started_at if running else 0.0),
            log_path=self._log_path,
            killed=process is not None and process.killed,
            running=running,
        )

    def _ended(self, process: ContainerProcess) -> None:
        self._keeper.group_ended(process.pid)
        self._exit_code = process.exit_code
        self._seconds += self._clock() - self._started_at

    def _path(self, init_name: str, number: int) -> str:
        """worker-1.log, worker-1.restart-2.log, worker-1.init-fill.log and so on."""
        init = f".init-{init_name}" if init_name else ""
        restart = f".restart-{number}" if number else ""
        return os.path.join(self._log_dir, f"{self._name}{init}{restart}.log")
