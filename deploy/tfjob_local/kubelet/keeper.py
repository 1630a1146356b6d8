"""No process survives the launcher, whatever happens to it: the launcher's side of the keeper."""

import os
import secrets
import signal
import subprocess
import sys
from typing import Callable, Optional, Sequence, Set

# A stop signal to all processes of the user or the terminal must not end the keeper.
_IGNORED = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGTSTP, signal.SIGPIPE)
_PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "keeper_process.py")


class Keeper:
    """A process that outlives the launcher just long enough to end what the launcher has started.

    It notices the launcher's end by the end of a pipe whose other end the launcher alone holds.
    """

    def __init__(
        self,
        log_dir: str,
        grace_seconds: float = 10.0,
        on_event: Callable[[str], None] = lambda text: None,
        keep_open: Sequence[int] = (),
    ):
        """`keep_open`: descriptors that the keeper holds, too, as a lock until nothing of the run is left."""
        # What every process of this run carries as KEELSON_RUN, with something after a "/".
        self.run_id = secrets.token_hex(8)
        self._log_file = os.path.join(os.path.abspath(log_dir), "keeper.log")
        self._grace_seconds = grace_seconds
        self._on_event = on_event
        self._keep_open = tuple(keep_open)
        self._groups: Set[int] = set()
        self._process: Optional[subprocess.Popen] = None
        self._start()

    def __enter__(self) -> "Keeper":
        return self

    def __exit__(self, *unused: object) -> None:
        self.close()

    @property
    def pid(self) -> int:
        return self._process.pid

    def group_started(self, group: int) -> None:
        """Its first process must be one that the kernel tells, by SIGTERM, of the launcher's end."""
        self._groups.add(group)
        self._tell(f"+{group}\n")

    def group_ended(self, group: int) -> None:
        self._groups.discard(group)
        self._tell(f"-{group}\n")

    def check(self) -> None:
        """Starts another keeper if it was ended."""
        if self._process is not None and self._process.poll() is not None:
            dead = self._process
            dead.stdin.close()
            self._start()
            self._on_event(f"the keeper (process {dead.pid}) was killed, another one has taken its place")

    def close(self) -> None:
        """Ends the keeper, which ends the remaining processes of the run; returns when that is done."""
        if self._process is None:
            return
        # A keeper that has ended could not end anything.
        self.check()
        process, self._process = self._process, None
        process.stdin.close()
        process.wait()

    def _start(self) -> None:
        self._process = subprocess.Popen(
            # -I: neither the user's environment nor the current directory has an effect.
            [
                sys.executable,
                "-I",
                _PROGRAM,
                self.run_id,
                str(os.getsid(0)),
                str(self._grace_seconds),
                self._log_file,
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
            pass_fds=self._keep_open,
            preexec_fn=_ignore_signals,
        )
        for group in self._groups:
            self._tell(f"+{group}\n")

    def _tell(self, line: str) -> None:
        try:
            # Written directly to the pipe: nothing may be in a buffer when the launcher crashes.
            os.write(self._process.stdin.fileno(), line.encode())
        except BrokenPipeError:
            self.check()


def _ignore_signals() -> None:
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)
