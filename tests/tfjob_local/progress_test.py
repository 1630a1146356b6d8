"""The progress line."""

import io
import json
import os
import unittest

import support
from tfjob_local.console import Console
from tfjob_local.progress import Progress, TrainingFiles, duration, render, short_number

STATUS = {
    "phase": "TRAINING",
    "step": 1200,
    "max_steps": 5000,
    "loss": 0.04314,
    "steps_per_second": 118.0,
    "examples_per_second": 12345.6,
    "eta_seconds": 32.2,
    "snapshot_step": 1000,
    "error": "",
}


class RenderTest(unittest.TestCase):
    def test_whole_line(self):
        self.assertEqual(
            render(STATUS, {"step": 1000, "wall_time": 1.0, "loss": 0.06, "accuracy": 0.9812}),
            "step 1200/5000  loss 0.0431  12.3k examples/s  eval accuracy 0.9812 (step 1000)  ETA 0:32",
        )

    def test_a_diverging_loss_is_seen(self):
        line = render({"phase": "TRAINING", "step": 7, "max_steps": 9, "loss": 1.4e21, "diverging": True}, {})
        self.assertEqual(line, "step 7/9  loss 1.4e+21  DIVERGING")

    def test_missing_fields_are_left_out(self):
        self.assertEqual(render({"phase": "TRAINING", "step": 3}, {}), "step 3")
        self.assertEqual(render({"step": 3, "loss": float("nan"), "eta_seconds": None}, {}), "step 3")
        self.assertEqual(render({"step": 3}, {"loss": 0.5}), "step 3  eval loss 0.5")
        self.assertEqual(render({"step": "x"}, {"accuracy": "high"}), "")

    def test_before_training(self):
        self.assertEqual(render({}, {}), "waiting for the chief")
        self.assertEqual(render({"phase": "WAITING_FOR_SERVERS"}, {}), "waiting for the servers")
        self.assertEqual(render({"phase": "WAITING", "error": "ps-1"}, {}), "waiting for ps-1")
        waiting = {"phase": "WAITING", "waiting_for": ["ps-0", "ps-1"], "step": 0}
        self.assertEqual(render(waiting, {}), "waiting for ps-0, ps-1")

    def test_after_training(self):
        self.assertEqual(
            render({"phase": "FINISHING", "step": 5, "max_steps": 5, "eta_seconds": 0}, {}),
            "finishing  step 5/5",
        )

    def test_numbers(self):
        self.assertEqual(
            [short_number(n) for n in (0, 999, 1000, 12345, 2.5e6)], ["0", "999", "1.0k", "12.3k", "2.5M"]
        )
        self.assertEqual(
            [duration(s) for s in (-1, 0, 59.9, 60, 3700)], ["0:00", "0:00", "0:59", "1:00", "1:01:40"]
        )


class TrainingFilesTest(support.TemporaryDirectoryTest):
    def test_missing_and_damaged_files(self):
        files = TrainingFiles(self.directory)
        self.assertEqual((files.status(), files.last_evaluation()), ({}, {}))
        self.write("status.json", '{"step": ')
        self.write("eval/metrics.jsonl", "nonsense\n")
        self.assertEqual((files.status(), files.last_evaluation()), ({}, {}))
        self.write("status.json", "[1]")
        self.assertEqual(files.status(), {})

    def test_newest_complete_evaluation(self):
        path = self.write("eval/metrics.jsonl", '{"step":1}\n{"step":2}\n{"st')
        files = TrainingFiles(self.directory)
        self.assertEqual(files.last_evaluation(), {"step": 2})
        with open(path, "a", encoding="utf-8") as file:
            file.write('ep":3}\n')
        self.assertEqual(files.last_evaluation(), {"step": 3})
        self.assertEqual(files.last_evaluation(), {"step": 3})

    def test_status_of_an_earlier_run_does_not_count(self):
        self.write("status.json", '{"step":9}')
        files = TrainingFiles(self.directory)
        self.assertEqual(files.status(), {})
        self.assertEqual(files.status(also_old=True), {"step": 9})
        self.write("new.json", '{"step":1}')
        os.replace(self.path("new.json"), self.path("status.json"))
        self.assertEqual(files.status(), {"step": 1})


class Terminal(io.StringIO):
    def isatty(self):
        return True


class ProgressTest(support.TemporaryDirectoryTest):
    def setUp(self):
        super().setUp()
        self.now = 0.0

    def show(self, out, steps, seconds_apart):
        console = Console(out)
        progress = Progress(TrainingFiles(self.directory), console, lambda: self.now)
        for step in steps:
            self.write("new.json", json.dumps({"phase": "TRAINING", "step": step}))
            os.replace(self.path("new.json"), self.path("status.json"))
            progress.update()
            self.now += seconds_apart
        return console

    def test_plain_lines_every_two_seconds(self):
        out = io.StringIO()
        self.show(out, range(9), 0.5)
        self.assertEqual(out.getvalue(), "step 0\nstep 4\nstep 8\n")

    def test_plain_line_without_news_is_repeated_seldom(self):
        out = io.StringIO()
        self.show(out, [7] * 41, 1.0)
        self.assertEqual(out.getvalue(), "step 7\nstep 7\n")

    def test_terminal_is_redrawn_in_place(self):
        out = Terminal()
        console = self.show(out, range(3), 0.5)
        console.line("worker-1 ended")
        self.assertEqual(
            out.getvalue(), "\rstep 0\x1b[K\rstep 1\x1b[K\rstep 2\x1b[K\r\x1b[Kworker-1 ended\nstep 2"
        )

    def test_what_is_said_instead(self):
        out = io.StringIO()
        progress = Progress(TrainingFiles(self.directory), Console(out), lambda: self.now)
        for instead in ("", "suspended", "suspended", ""):
            progress.update(instead)
        self.assertEqual(out.getvalue(), "waiting for the chief\nsuspended\nwaiting for the chief\n")
        self.assertEqual(progress.text(), "waiting for the chief")
