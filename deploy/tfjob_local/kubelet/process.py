"""One run of one container: a process group with its log file."""

import ctypes
import os
import re
import signal
import subprocess
from typing import Callable, FrozenSet, Iterable, Optional

from ..own_files import open_own
from .keeper_process import MARKER, marked_processes, send
from .plan import ProcessPlan

# The shell's exit code.
_EXIT_NOT_EXECUTABLE = 126
_EXIT_NOT_FOUND = 127
# They tell a program which job it belongs to, and as what: operators', torchrun's and mpirun's.
_JOB_VARIABLES = re.compile(
    r"TF_CONFIG|JOB_COMPLETION_INDEX|MASTER_(ADDR|PORT)|WORLD_SIZE|RANK|(LOCAL|GROUP|ROLE)_(RANK|WORLD_SIZE)|PET_\w+|"
    r"TORCHELASTIC_\w+|OMPI_COMM_WORLD_\w+|PMIX?_\w+"
)
# What a command of the manifest's gets of the user's environment, which may hold secrets: what it needs to
# run, and the user's limits for this machine.
_SHARED_VARIABLES = ("PATH", "HOME", "LANG", "TZ", "CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS")
_PR_SET_PDEATHSIG = 1

_libc = ctypes.CDLL(None, use_errno=True)


def tells_of_job(variable: str) -> bool:
    """Whether a variable of this name says which job a process belongs to; the launcher's own may be another one."""
    return _JOB_VARIABLES.fullmatch(variable) is not None


class ContainerProcess:
    """Runs from its construction on; the caller polls it until it has ended.

    The calling thread must be the main thread: the kernel tells a child, by SIGTERM, when the thread
    that started it ends.
    """

    def __init__(
        self,
        plan: ProcessPlan,
        log_path: str,
        marker: str,
        unblocked_signals: Iterable[int] = (),
        on_end: Callable[["ContainerProcess"], None] = lambda process: None,
    ):
        """`marker`: no other run has it; every process of this one carries it in its environment.

        `unblocked_signals`: what the launcher blocks for itself and a child must not inherit.
        """
        self.plan = plan
        self.log_path = log_path
        # 128 + n after signal n; None: it runs.
        self.exit_code: Optional[int] = None
        # Set when it was ended by SIGKILL from here.
        self.killed = False
        self._marker = marker
        self._on_end = on_end
        self._unblocked: FrozenSet[int] = frozenset(unblocked_signals)
        self._process: Optional[subprocess.Popen] = None
        try:
            self._process = self._start()
        except OSError as error:
            self._fail_to_start(error)

    @property
    def pid(self) -> Optional[int]:
        """Also the id of its group; None: the program could not be started."""
        return self._process.pid if self._process else None

    def poll(self) -> Optional[int]:
        """The exit code, or None; when the first process has ended, all its others are ended too."""
        if self.exit_code is not None or self._process is None:
            return self.exit_code
        # The process is checked first and reaped last: until then no other process can get this group's id.
        ended = os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if ended is None:
            return None
        self._signal_group(signal.SIGKILL)
        for pid in marked_processes(self._marker):
            send(pid, signal.SIGKILL)
        status = self._process.wait()
        self.exit_code = status if status >= 0 else 128 - status
        self._on_end(self)
        return self.exit_code

    def terminate(self) -> None:
        if self.exit_code is None:
            self._signal_group(signal.SIGTERM)

    def kill(self) -> None:
        if self.exit_code is None:
            self.killed = True
            self._signal_group(signal.SIGKILL)

    def _start(self) -> subprocess.Popen:
        environment = {key: value for key, value in os.environ.items() if self._shares(key)}
        environment.update(self.plan.environment)
        environment[MARKER] = self._marker
        # Appending: a program that opens /dev/stdout for itself writes no hole into the log.
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND
        with open(open_own(self.log_path, flags), "ab") as log:
            return subprocess.Popen(
                self.plan.argv,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.plan.working_dir,
                env=environment,
                process_group=0,
                preexec_fn=self._prepare_child(os.getpid()),
            )

    def _shares(self, variable: str) -> bool:
        if self.plan.is_keelsons:
            return not tells_of_job(variable)
        return variable in _SHARED_VARIABLES

    def _fail_to_start(self, error: OSError) -> None:
        missing = isinstance(error, (FileNotFoundError, NotADirectoryError))
        self.exit_code = _EXIT_NOT_FOUND if missing else _EXIT_NOT_EXECUTABLE
        with open(self.log_path, "a", encoding="utf-8", opener=open_own) as log:
            log.write(f"E cannot start {self.plan.argv[0]} in {self.plan.working_dir}: {error.strerror}\n")

    def _signal_group(self, number: signal.Signals) -> None:
        try:
            os.killpg(self._process.pid, number)
        except (ProcessLookupError, PermissionError):
            pass  # It has just ended.

    def _prepare_child(self, launcher_pid: int) -> Callable[[], None]:
        def prepare() -> None:
            _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
            if os.getppid() != launcher_pid:
                os._exit(128 + signal.SIGTERM)  # The launcher ended before the line above.
            signal.pthread_sigmask(signal.SIG_UNBLOCK, self._unblocked)

        return prepare
