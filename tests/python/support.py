"""What the tests of the Python package share."""

import os
import signal
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
REPOSITORY = os.path.dirname(os.path.dirname(HERE))
FAKE_PROGRAMS = os.path.join(HERE, "fake_programs")
PACKAGES = os.path.join(REPOSITORY, "python")

sys.path.insert(0, PACKAGES)


class Script(subprocess.Popen):
    """A Python script, with the signals as a terminal leaves them, whoever runs the tests. A with block that fails kills it
    instead of waiting for its end."""

    def __init__(self, path, **options):
        super().__init__(
            [sys.executable, path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL), **options,
        )  # fmt: skip

    def __exit__(self, kind, error, trace):
        if kind is not None:
            self.kill()
        super().__exit__(kind, error, trace)
