"""Signals as events to wait for, rather than handlers that interrupt."""

import signal
from typing import FrozenSet, Optional, Set

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class SignalQueue:
    """Blocks the watched signals while it is open; none is lost, each is seen by wait().

    A stop signal that the launcher was started to ignore (nohup, a script's background job) is left
    ignored.
    """

    def __init__(self) -> None:
        wanted = {s for s in STOP_SIGNALS if signal.getsignal(s) is not signal.SIG_IGN}
        self.watched: FrozenSet[signal.Signals] = frozenset({signal.SIGCHLD, *wanted})
        self._old_mask: Set[int] = set()

    def __enter__(self) -> "SignalQueue":
        # If it were ignored, the kernel would reap the children before their exit codes are read.
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        self._old_mask = signal.pthread_sigmask(signal.SIG_BLOCK, self.watched)
        return self

    def __exit__(self, *unused: object) -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, self._old_mask)

    def wait(self, timeout_seconds: float) -> Optional[int]:
        """The next signal; None after the timeout."""
        info = signal.sigtimedwait(self.watched, max(0.0, timeout_seconds))
        return info.si_signo if info else None
