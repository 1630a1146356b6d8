"""Shows a selection of the replicas' log files, which themselves are complete.

The replicas that the user follows are shown line by line, each line with its replica's name before it.
Of all others only errors ("E ...") and warnings ("W ...") are shown, and of these only so many that
the screen stays readable; and the last lines of an init container that failed, whose words are its own.
"""

import collections
import os
import re
from typing import Callable, Deque, Dict, FrozenSet, Iterable, List, Sequence

from .console import NAME_COLOURS, RED, YELLOW, Console

# worker-1.log, worker-1.restart-2.log, worker-1.init-fetch.log, worker-1.init-fetch.restart-2.log
_LOG_NAME = re.compile(r"([a-z]+-\d+)(?:\.init-(.+?))?(?:\.restart-(\d+))?\.log")
_ANNOUNCED = re.compile(r"([EWF]) ")
# Colours and the like, and what else would move the cursor.
_CONTROL_CHARACTERS = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f]")
# The bytes read of a file at a time, and how far behind a follower may be before it skips.
_READ_BYTES = 64 * 1024
_LONGEST_LAG_BYTES = 1024 * 1024
_LONGEST_LINE_BYTES = 16 * 1024
# Errors and warnings of replicas that are not followed: this many at once, then so many a second.
_BURST_LINES = 20
_LINES_PER_SECOND = 1.0
# The number of lines shown of a failed init container whose replica is not followed.
_LAST_LINES = 5


class Selection:
    """The replicas that the user selected: "chief" (the replica that leads), "worker", "worker-1", "all"."""

    def __init__(self, words: Iterable[str], known: Sequence[str], leader: str):
        """`known`: the replicas' names. ValueError: a word that names none of them."""
        self._all = False
        self._names: FrozenSet[str] = frozenset()
        self._types: FrozenSet[str] = frozenset()
        types = {name.rpartition("-")[0] for name in known}
        for word in words:
            if word == "all":
                self._all = True
            elif word in known:
                self._names |= {word}
            elif word in types:
                self._types |= {word}
            elif word == "chief" and leader:
                self._names |= {leader}
            elif word != "none":
                expected = ", ".join(["all", "none", "chief", *sorted(types - {"chief"}), *known])
                raise ValueError(f'expected one of {expected}; found "{word}"')

    def __contains__(self, replica_name: str) -> bool:
        return self._all or replica_name in self._names or replica_name.rpartition("-")[0] in self._types


class LogFollower:
    """Call show_new() often; show_rest() once all processes have ended."""

    def __init__(
        self,
        log_dir: str,
        selection: Selection,
        known: Sequence[str],
        console: Console,
        clock: Callable[[], float],
    ):
        self._log_dir = log_dir
        self._selection = selection
        self._console = console
        self._width = max((len(name) for name in known), default=0)
        self._colours: Dict[str, str] = {}
        for name in known:
            self._colour(name)
        self._files: Dict[str, "_Tail"] = {}
        self._limit = _RateLimit(clock)

    def show_new(self) -> None:
        for tail in self._tails():
            self._show(tail, tail.read())
        self._report_left_out()

    def show_init_failure(self, replica_name: str, container: str) -> None:
        """The last lines of the container's log that were not shown."""
        for tail in self._tails():
            if (tail.replica, tail.init) == (replica_name, container):
                self._show_all(tail)
                for line in tail.unshown:
                    self._console.line(f"{self._prefix(tail)} {line}")
                tail.unshown.clear()

    def show_rest(self) -> None:
        for tail in self._tails():
            self._show_all(tail)
        self._report_left_out(finally_=True)

    def _tails(self) -> List["_Tail"]:
        try:
            names = sorted(os.listdir(self._log_dir))
        except OSError:
            return []
        for name in names:
            if name not in self._files:
                match = _LOG_NAME.fullmatch(name)
                if match:
                    path = os.path.join(self._log_dir, name)
                    self._files[name] = _Tail(path, match.group(1), match.group(2) or "")
        return [self._files[name] for name in names if name in self._files]

    def _show_all(self, tail: "_Tail") -> None:
        """Shows the rest of a log that is no longer written."""
        while True:
            lines = tail.read()
            if not lines:
                break
            self._show(tail, lines)
        self._show(tail, tail.rest())

    def _show(self, tail: "_Tail", lines: Sequence[str]) -> None:
        followed = tail.replica in self._selection
        for line in lines:
            announced = _ANNOUNCED.match(line)
            if not followed and not (announced and self._limit.allows()):
                tail.unshown.append(line)
                continue
            if announced:
                line = self._console.paint(line, YELLOW if announced.group(1) == "W" else RED)
            self._console.line(f"{self._prefix(tail)} {line}")

    def _prefix(self, tail: "_Tail") -> str:
        name = f"{tail.replica} init {tail.init}" if tail.init else tail.replica
        return self._console.paint(f"{name.ljust(self._width)} |", self._colour(tail.replica))

    def _colour(self, replica_name: str) -> str:
        """Each new name gets the next colour and keeps it."""
        return self._colours.setdefault(replica_name, NAME_COLOURS[len(self._colours) % len(NAME_COLOURS)])

    def _report_left_out(self, finally_: bool = False) -> None:
        count = self._limit.take_left_out(finally_)
        if count:
            lines = "error or warning" if count == 1 else "errors and warnings"
            self._console.line(f"({count} more {lines} in {self._log_dir})")


class _Tail:
    """One log file, read to its end again and again."""

    def __init__(self, path: str, replica: str, init: str):
        self.replica = replica
        # The init container's name; empty: the main container.
        self.init = init
        # The newest of its lines that were not selected.
        self.unshown: Deque[str] = collections.deque(maxlen=_LAST_LINES)
        self._path = path
        self._offset = 0
        self._partial = b""

    def read(self) -> List[str]:
        """The lines that have become complete; some of them where there are many."""
        try:
            size = os.stat(self._path).st_size
            if size <= self._offset:
                return []
            with open(self._path, "rb") as file:
                skipped = self._skip(size)
                file.seek(self._offset)
                data = file.read(_READ_BYTES)
        except OSError:
            return []
        self._offset += len(data)
        *complete, self._partial = (self._partial + data).split(b"\n")
        if len(self._partial) > _LONGEST_LINE_BYTES:
            complete.append(self._partial)
            self._partial = b""
        return skipped + [_text(line) for line in complete]

    def rest(self) -> List[str]:
        """The last line, if nothing ended it."""
        partial, self._partial = self._partial, b""
        return [_text(partial)] if partial else []

    def _skip(self, size: int) -> List[str]:
        if size - self._offset <= _LONGEST_LAG_BYTES:
            return []
        start = size - _READ_BYTES
        note = f"... {start - self._offset} bytes are only in {self._path}"
        self._offset, self._partial = start, b""
        return [note]


class _RateLimit:
    def __init__(self, clock: Callable[[], float]):
        self._clock = clock
        self._allowance = float(_BURST_LINES)
        self._seen_at = clock()
        self._left_out = 0

    def allows(self) -> bool:
        now = self._clock()
        gained = (now - self._seen_at) * _LINES_PER_SECOND
        self._allowance = min(float(_BURST_LINES), self._allowance + gained)
        self._seen_at = now
        # What was left out is reported before more is shown.
        if self._allowance < 1.0 or self._left_out:
            self._left_out += 1
            return False
        self._allowance -= 1.0
        return True

    def take_left_out(self, finally_: bool) -> int:
        """How many lines were held back, when it is time to say so."""
        now = self._clock()
        recovered = self._allowance + (now - self._seen_at) * _LINES_PER_SECOND >= _BURST_LINES / 2
        if not self._left_out or not (recovered or finally_):
            return 0
        count, self._left_out = self._left_out, 0
        return count


def _text(line: bytes) -> str:
    """As a terminal would leave it: what stands after the last carriage return, no control characters."""
    text = line.decode("utf-8", "replace").rstrip("\r").rpartition("\r")[2]
    return _CONTROL_CHARACTERS.sub("", text)
