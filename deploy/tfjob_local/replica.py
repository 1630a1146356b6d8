"""One replica: its processes, attempt after attempt, each with its own log file."""

import ctypes
import enum
import os
import signal
import subprocess
from typing import Callable, FrozenSet, Iterable, List, Optional

from .command import ReplicaCommand

# The programs' own code for "bad configuration or data": the next attempt would end the same way.
EXIT_PERMANENT = 2
# The operator's rule for ExitCode since 1.5: signals and "restart me" (138) lie above.
FIRST_RETRYABLE_CODE = 128

_PR_SET_PDEATHSIG = 1
_FIRST_DELAY_SECONDS = 0.25
_LONGEST_DELAY_SECONDS = 10.0
# An attempt that lasted this long was no crash loop.
_HEALTHY_SECONDS = 60.0

_libc = ctypes.CDLL(None, use_errno=True)


class Verdict(enum.Enum):
    SUCCEEDED = "succeeded"
    RESTART = "restart"
    FAILED = "failed"


def judge(restart_policy: str, exit_code: int) -> Verdict:
    """What the end of an attempt means.

    As the operator and the kubelet have it, but for one thing: exit code 2 is never retried.
    """
    if exit_code == EXIT_PERMANENT:
        return Verdict.FAILED
    if restart_policy == "Always":
        return Verdict.RESTART
    if exit_code == 0:
        return Verdict.SUCCEEDED
    if restart_policy == "OnFailure":
        return Verdict.RESTART
    if restart_policy == "ExitCode" and exit_code >= FIRST_RETRYABLE_CODE:
        return Verdict.RESTART
    return Verdict.FAILED


class Replica:
    """Runs `command`; a child is a process group of its own and dies with the launcher.

    The calling thread must be the main thread: the kernel ends a child when the thread that
    started it ends.
    """

    def __init__(
        self,
        command: ReplicaCommand,
        log_dir: str,
        clock: Callable[[], float],
        unblocked_signals: Iterable[signal.Signals] = (),
    ):
        """`unblocked_signals`: what the launcher blocks for itself and a child must not inherit."""
        self.command = command
        self.restarts = 0
        # Of the attempt that ended last, 128 + n after signal n; None: none has ended.
        self.exit_code: Optional[int] = None
        # Set when the launcher had to end the process.
        self.killed = False
        self.restart_at: Optional[float] = None
        self._log_dir = log_dir
        self._clock = clock
        self._unblocked: FrozenSet[signal.Signals] = frozenset(unblocked_signals)
        self._process: Optional[subprocess.Popen] = None
        self._started_at = 0.0
        self._seconds = 0.0
        self._failures_in_a_row = 0

    @property
    def name(self) -> str:
        return self.command.name

    @property
    def pid(self) -> Optional[int]:
        """Of the last attempt."""
        return self._process.pid if self._process else None

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.returncode is None

    @property
    def seconds(self) -> float:
        """In all attempts together."""
        return self._seconds + (self._clock() - self._started_at if self.running else 0.0)

    @property
    def log_path(self) -> str:
        """Of the current attempt."""
        suffix = f".restart-{self.restarts}" if self.restarts else ""
        return os.path.join(self._log_dir, f"{self.name}{suffix}.log")

    def start(self) -> None:
        """Starts the first attempt, or the next one. OSError: the program cannot be run."""
        if self._process is not None:
            self.restarts += 1
        self.restart_at = None
        environment = {k: v for k, v in os.environ.items() if k != "TF_CONFIG"}
        environment.update(self.command.environment)
        with open(self.log_path, "wb") as log:
            self._process = subprocess.Popen(
                self.command.argv,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.command.working_dir,
                env=environment,
                process_group=0,
                preexec_fn=self._prepare_child(os.getpid()),
            )
        self._started_at = self._clock()

    def poll(self) -> Optional[int]:
        """The exit code, once, when the running attempt has ended; its group is ended with it."""
        if not self.running:
            return None
        pid = self._process.pid
        # Looked at first and reaped last: until then nobody else can get this group's id.
        ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if ended is None:
            return None
        self.send(signal.SIGKILL)
        status = self._process.wait()
        self._seconds += self._clock() - self._started_at
        self.exit_code = status if status >= 0 else 128 - status
        return self.exit_code

    def send(self, signal_number: int) -> None:
        if not self.running:
            return
        try:
            os.killpg(self._process.pid, signal_number)
        except (ProcessLookupError, PermissionError):
            pass  # It has just ended.

    def plan_restart(self) -> float:
        """Sets restart_at; returns the delay, which doubles with every failure in a row."""
        lasted = self._clock() - self._started_at
        self._failures_in_a_row = 0 if lasted >= _HEALTHY_SECONDS else self._failures_in_a_row + 1
        exponent = max(0, self._failures_in_a_row - 1)
        delay = min(_LONGEST_DELAY_SECONDS, _FIRST_DELAY_SECONDS * 2**exponent)
        self.restart_at = self._clock() + delay
        return delay

    def last_error_lines(self, count: int = 5) -> List[str]:
        """The last lines of the log that are errors ("E ..."); without any, its last lines."""
        try:
            with open(self.log_path, encoding="utf-8", errors="replace") as log:
                lines = [line.rstrip("\n") for line in log if line.strip()]
        except OSError:
            return []
        errors = [line for line in lines if line.startswith("E ")]
        return (errors or lines)[-count:]

    def _prepare_child(self, launcher_pid: int) -> Callable[[], None]:
        def prepare() -> None:
            _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            if os.getppid() != launcher_pid:
                os._exit(128 + signal.SIGKILL)  # The launcher ended before the line above.
            signal.pthread_sigmask(signal.SIG_UNBLOCK, self._unblocked)

        return prepare


def describe_exit(exit_code: int) -> str:
    """"exit code 2", "signal SIGKILL (exit code 137)"."""
    if exit_code > 128 and exit_code != 138:
        try:
            return f"signal {signal.Signals(exit_code - 128).name} (exit code {exit_code})"
        except ValueError:
            pass
    return f"exit code {exit_code}"
