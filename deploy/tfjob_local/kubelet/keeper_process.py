"""The keeper: ends what a launcher that is gone has left behind. A program of its own.

usage: keeper_process.py RUN_ID LAUNCHER_SESSION GRACE_SECONDS LOG_FILE

It reads from stdin "+GROUP" for every process group that the launcher has started and "-GROUP" for every
one that has ended, a line each. The end of the input is the end of the launcher, however it came: what is
left of the groups, and whatever carries the run's mark in its environment, gets SIGTERM, and after
GRACE_SECONDS SIGKILL, until nothing is left. LOG_FILE is written only if there was something to end.

It does not import the package, so that it needs nothing of the launcher."""

import os
import signal
import sys
import time
from dataclasses import dataclass
from typing import Callable, Iterable, List, Optional, Set

# The environment variable that all processes of a run carry: RUN_ID/CONTAINER/NUMBER.
MARKER = "KEELSON_RUN"
_POLL_SECONDS = 0.05
# The longest wait for a process that cannot be killed (in a hung file system).
_GIVE_UP_SECONDS = 60.0


@dataclass(frozen=True)
class _Stat:
    state: str
    group: int
    session: int


def marked_processes(mark: str) -> List[int]:
    """The processes whose mark is `mark`, or begins with it and "/"."""
    wanted = f"{MARKER}={mark}".encode()
    return [pid for pid in _all_processes() if _has_mark(pid, wanted)]


def _has_mark(pid: int, wanted: bytes) -> bool:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            variables = file.read().split(b"\0")
    except OSError:
        return False
    return any(v == wanted or v.startswith(wanted + b"/") for v in variables)


def _all_processes() -> Iterable[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _stat(pid: int) -> Optional[_Stat]:
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            # The name before the state, in parentheses, may hold anything.
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return None
    return _Stat(fields[0], int(fields[2]), int(fields[3]))


class Keeper:
    def __init__(self, run_id: str, session: int, grace_seconds: float, log: Callable[[str], None]):
        """`session`: the launcher's. A group elsewhere only has the id of one that is long gone."""
        self._run_id = run_id
        self._session = session
        self._grace_seconds = grace_seconds
        self._log = log
        self._groups: Set[int] = set()

    def read(self, line: str) -> None:
        sign, group = line[:1], line[1:].strip()
        if not group.isdecimal():
            return  # The launcher was killed in the middle of the line.
        if sign == "-":
            self._groups.discard(int(group))
        elif sign == "+":
            self._groups.add(int(group))

    def end_all(self) -> None:
        left = self._left()
        if not left:
            return
        self._log(f"the launcher is gone, ending {_names(left)}")
        self._ask(left)
        left = self._wait(self._grace_seconds)
        if not left:
            self._log("all have ended")
            return
        self._log(f"still there after {self._grace_seconds:g} s, killing {_names(left)}")
        left = self._wait(_GIVE_UP_SECONDS, self._kill)
        self._log(f"cannot be killed: {_names(left)}" if left else "all have ended")

    def _ask(self, pids: Iterable[int]) -> None:
        """Once each: a second SIGTERM ends Keelson's programs without a snapshot.

        A group's first process is the launcher's child and has it from the kernel.
        """
        for pid in pids:
            if pid not in self._groups:
                send(pid, signal.SIGTERM)

    @staticmethod
    def _kill(pids: Iterable[int]) -> None:
        for pid in pids:
            send(pid, signal.SIGKILL)

    def _wait(self, seconds: float, meanwhile: Callable[[List[int]], None] = lambda left: None) -> List[int]:
        """Until nothing is left, at most that long; what is left is given to `meanwhile`, again and again."""
        deadline = time.monotonic() + seconds
        while True:
            left = self._left()
            meanwhile(left)
            if not left or time.monotonic() >= deadline:
                return left
            time.sleep(_POLL_SECONDS)

    def _left(self) -> List[int]:
        return [pid for pid in _all_processes() if self._is_ours(pid)]

    def _is_ours(self, pid: int) -> bool:
        stat = _stat(pid)
        if stat is None or stat.state in "ZX" or pid == os.getpid():
            return False
        in_group = stat.group in self._groups and stat.session == self._session
        return in_group or _has_mark(pid, f"{MARKER}={self._run_id}".encode())


def send(pid: int, number: signal.Signals) -> None:
    """A process that has just ended, or is another user's, is left alone."""
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        pass


def _names(pids: Iterable[int]) -> str:
    return ", ".join(f"{pid} ({_name(pid)})" for pid in pids)


def _name(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return "gone"


def _open_no_link(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o666)


def _append_to(path: str) -> Callable[[str], None]:
    def log(text: str) -> None:
        try:
            with open(path, "a", encoding="utf-8", opener=_open_no_link) as file:
                file.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {text}\n")
        except OSError:
            pass  # The run's directory may be gone; the processes matter more.

    return log


def main(argv: List[str]) -> int:
    run_id, session, grace_seconds, log_file = argv
    keeper = Keeper(run_id, int(session), float(grace_seconds), _append_to(log_file))
    for line in sys.stdin:
        keeper.read(line)
    keeper.end_all()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
