"""SIGTERM as something that waits look at, rather than what ends the script at once."""

from __future__ import annotations

import os
import signal
import threading
from types import FrameType
from typing import Optional

from .errors import Stopped


class TermSignal:
    """While it is open, the first SIGTERM is remembered, and check() raises Stopped; a second one ends the process.

    A handler of the script's own stays, and outside of the main thread there is none.
    """

    def __init__(self) -> None:
        self._came = False
        self._installed = False
        self._process = os.getpid()

    def open(self) -> None:
        self._process = os.getpid()
        in_main = threading.current_thread() is threading.main_thread()
        if in_main and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            signal.signal(signal.SIGTERM, self._remember)
            self._installed = True

    def close(self) -> None:
        if self._installed and signal.getsignal(signal.SIGTERM) == self._remember:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
        self._installed = False

    def check(self) -> None:
        """Raises once, so that what follows can end in order."""
        if self._came:
            self._came = False
            raise Stopped()

    def _remember(self, number: int, frame: Optional[FrameType]) -> None:
        self._came = True
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        self._installed = False
        if os.getpid() != self._process:
            os.kill(os.getpid(), signal.SIGTERM)  # A forked child, which nobody asks to end in order.
