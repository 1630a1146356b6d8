"""Lines for the user, coloured where that helps, and one status line that is redrawn in place."""

import contextlib
import os
import shutil
import sys
from typing import Optional, TextIO

RED = "31"
YELLOW = "33"
BOLD = "1"
# For the names of replicas: readable on light and on dark backgrounds, none of them red or yellow.
NAME_COLOURS = ("36", "32", "35", "34", "96", "92", "95", "94")


class Console:
    """A closed pipe behind it ("| head") never disturbs the job."""

    def __init__(self, out: Optional[TextIO] = None, color: str = "auto"):
        """`color`: auto (on a terminal, unless NO_COLOR is set), always or never."""
        self._out = out or sys.stdout
        self.is_terminal = self._out.isatty()
        self._coloured = _wants_color(color, self.is_terminal)
        self._status = ""

    def paint(self, text: str, color: str) -> str:
        return f"\x1b[{color}m{text}\x1b[0m" if self._coloured and text else text

    def line(self, text: str = "") -> None:
        """A line of its own; on a terminal the status line moves below it."""
        if self._status:
            self._write(f"\r\x1b[K{text}\n{self._status}")
        else:
            self._write(f"{text}\n")

    def status(self, text: str) -> None:
        """Redraws the status line on a terminal; a plain line elsewhere."""
        if not self.is_terminal:
            self.line(text)
            return
        width = shutil.get_terminal_size().columns
        shown = text[: max(1, width - 1)]
        if shown != self._status:
            self._status = shown
            self._write(f"\r{shown}\x1b[K")

    def end_status(self) -> None:
        """What the status line says last stays as a line."""
        if self._status:
            self._status = ""
            self._write("\n")

    def _write(self, text: str) -> None:
        try:
            self._out.write(text)
            self._out.flush()
        except BrokenPipeError:
            self._discard_the_rest()
        except (OSError, ValueError):
            pass

    def _discard_the_rest(self) -> None:
        """What could not be written Python tries again at its end, and exits with 120 if it cannot."""
        with contextlib.suppress(OSError, ValueError), open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), self._out.fileno())


def _wants_color(color: str, is_terminal: bool) -> bool:
    if color != "auto":
        return color == "always"
    return is_terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
