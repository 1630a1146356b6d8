"""Lines, the status line below them, and colours only where they are wanted."""

import io
import os
import unittest
from unittest import mock

import support  # Sets the path that the next imports need.
from tfjob_local.console import RED, Console


class Terminal(io.StringIO):
    def isatty(self):
        return True


class ClosedPipe(io.StringIO):
    def write(self, text):
        raise BrokenPipeError()


class StatusLineTest(unittest.TestCase):
    def test_is_redrawn_in_place_below_the_lines(self):
        out = Terminal()
        console = Console(out)
        console.status("step 1")
        console.line("worker-1 ended")
        console.status("step 2")
        console.end_status()
        console.line("over")
        self.assertEqual(out.getvalue(), "\rstep 1\x1b[K\r\x1b[Kworker-1 ended\nstep 1\rstep 2\x1b[K\nover\n")

    def test_is_a_plain_line_elsewhere(self):
        out = io.StringIO()
        console = Console(out)
        console.status("step 1")
        console.line("worker-1 ended")
        console.end_status()
        self.assertEqual(out.getvalue(), "step 1\nworker-1 ended\n")

    def test_is_cut_at_the_terminals_width(self):
        out = Terminal()
        with mock.patch.dict(os.environ, COLUMNS="40"):
            Console(out).status("x" * 5000)
        self.assertEqual(out.getvalue(), "\r" + "x" * 39 + "\x1b[K")

    def test_closed_pipe_disturbs_nobody(self):
        console = Console(ClosedPipe())
        console.line("x")
        console.status("y")


class ColorTest(unittest.TestCase):
    def painted(self, out, color, **environment):
        with mock.patch.dict(os.environ, {"TERM": "xterm", "NO_COLOR": "", **environment}):
            return Console(out, color).paint("x", RED)

    def test_rules(self):
        red, plain = "\x1b[31mx\x1b[0m", "x"
        for out, color, environment, expected in (
            (Terminal(), "auto", {}, red),
            (Terminal(), "auto", {"NO_COLOR": "1"}, plain),
            (Terminal(), "auto", {"TERM": "dumb"}, plain),
            (Terminal(), "never", {}, plain),
            (io.StringIO(), "auto", {}, plain),
            (io.StringIO(), "always", {"NO_COLOR": "1"}, red),
        ):
            self.assertEqual(self.painted(out, color, **environment), expected, (color, environment))

    def test_nothing_is_not_painted(self):
        self.assertEqual(Console(Terminal(), "always").paint("", RED), "")
