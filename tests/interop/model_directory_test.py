"""Jobs that are launched in the same second with one model directory.

Needs the release build's programs, in $KEELSON_BINARY_DIR or build/release/bin.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from programs import BINARIES, REPOSITORY

TIMEOUT_SECONDS = 120

sys.path.insert(0, os.path.join(REPOSITORY, "tests", "support"))

import stop_signals  # noqa: E402  (needs the path above)
from tfjob_text import manifest, replica  # noqa: E402

stop_signals.restore()
JOB = manifest(*(replica(kind, policy="ExitCode") for kind in ("Chief", "PS", "Worker")))
MANY_STEPS = 100_000_000


class ModelDirectoryTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name
        with open(self.path("job.yaml"), "w", encoding="utf-8") as file:
            file.write(JOB)

    def path(self, *names):
        return os.path.join(self.directory, *names)

    def launch(self, name):
        with open(self.path(name), "w", encoding="utf-8") as output:
            launcher = subprocess.Popen(
                [
                    os.path.join(REPOSITORY, "deploy", "tfjob_local.py"),
                    self.path("job.yaml"),
                    f"--bin_dir={BINARIES}",
                    f"--run_dir={self.path('run-' + name)}",
                    f"--model_dir={self.path('model')}",
                    f"--training_steps={MANY_STEPS}",
                ],
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.addCleanup(self._end, launcher)
        return launcher

    @staticmethod
    def _end(launcher):
        if launcher.poll() is None:
            launcher.kill()
            launcher.wait()

    def chief_log(self, name):
        with open(self.path("run-" + name, "logs", "chief-0.log"), encoding="utf-8") as file:
            return file.read()

    def wait_until(self, condition, what):
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while not condition():
            self.assertLess(time.monotonic(), deadline, f"not within {TIMEOUT_SECONDS} s: {what}")
            time.sleep(0.05)

    def test_of_three_launches_one_trains(self):
        launchers = {name: self.launch(name) for name in "abc"}
        self.wait_until(
            lambda: sum(launcher.poll() is not None for launcher in launchers.values()) == 2, "two have ended"
        )
        (winner,) = (name for name, launcher in launchers.items() if launcher.poll() is None)
        self.wait_until(lambda: "training from the start: step 0" in self.chief_log(winner), "one trains")
        for name, launcher in launchers.items():
            if name == winner:
                continue
            log = self.chief_log(name)
            self.assertEqual(launcher.returncode, 2, log)
            self.assertIn(f"checkpoint.model_dir {self.path('model')}: expected a directory that no other job", log)
            self.assertNotIn("training from", log)
        self.assertNotIn("\nE ", self.chief_log(winner))
        launchers[winner].send_signal(signal.SIGINT)
        launchers[winner].wait(timeout=TIMEOUT_SECONDS)
        self.assertIn("stopped: by a signal", self.chief_log(winner))


if __name__ == "__main__":
    unittest.main()
