"""Lines for the user, and one status line that is redrawn in place on a terminal."""

import shutil
import sys
from typing import Optional, TextIO


class Console:
    """A closed pipe behind it ("| head") never disturbs the job."""

    def __init__(self, out: Optional[TextIO] = None):
        self._out = out or sys.stdout
        self.is_terminal = self._out.isatty()
        self._status_shown = False

    def line(self, text: str = "") -> None:
        """A line of its own, in place of the status line."""
        erase = "\r\x1b[K" if self._status_shown else ""
        self._status_shown = False
        self._write(f"{erase}{text}\n")

    def status(self, text: str) -> None:
        """Redraws the status line on a terminal; a plain line elsewhere."""
        if not self.is_terminal:
            self.line(text)
            return
        width = shutil.get_terminal_size().columns
        self._write(f"\r{text[: width - 1]}\x1b[K")
        self._status_shown = True

    def _write(self, text: str) -> None:
        try:
            self._out.write(text)
            self._out.flush()
        except (OSError, ValueError):
            pass
