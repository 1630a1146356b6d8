"""Jobs on Keelson's own chief, server and agent: of $KEELSON_BINARY_DIR, or of build/release/bin."""

import contextlib
import io
import os
import socket
import subprocess
import tempfile
import time
import unittest
from unittest import mock

import support

BINARIES = os.path.abspath(
    os.environ.get("KEELSON_BINARY_DIR", os.path.join(support.REPOSITORY, "build", "release", "bin"))
)
_PROGRAMS = ("chief", "ps_server", "keelson_agent", "keelson_ckpt")
DEADLINE_SECONDS = 120


class RealJobTest(unittest.TestCase):
    """Skipped where the programs are not built."""

    def setUp(self):
        self.needs(*_PROGRAMS)
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name
        self.model_dir = os.path.join(directory.name, "model")
        self.environment = {**os.environ, "KEELSON_BINARY_DIR": BINARIES, "OMP_NUM_THREADS": "1"}
        self.environment.pop("TF_CONFIG", None)
        patch = mock.patch.dict(os.environ, self.environment, clear=True)
        patch.start()
        self.addCleanup(patch.stop)
        redirected = contextlib.redirect_stderr(io.StringIO())
        redirected.__enter__()
        self.addCleanup(redirected.__exit__, None, None, None)

    def needs(self, *programs):
        missing = [name for name in programs if not os.path.exists(os.path.join(BINARIES, name))]
        if missing:
            self.skipTest(f"not built: {', '.join(missing)}")

    def start(self, path, **environment):
        return support.Script(path, stdin=subprocess.PIPE, env={**self.environment, **environment})

    def write(self, name, text):
        """A script that finds the package; returns its path."""
        return self.path_of(name, f"import sys\nsys.path.insert(0, {support.PACKAGES!r})\n{text}")

    def path_of(self, name, text):
        path = os.path.join(self.directory, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def processes(self):
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", encoding="utf-8", errors="replace") as file:
                if f"--model_dir={self.directory}" in file.read():
                    found.append(pid)
        return found

    def assert_nothing_runs(self):
        deadline = time.monotonic() + DEADLINE_SECONDS
        while self.processes() and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertEqual(self.processes(), [])


def free_ports(count):
    with contextlib.ExitStack() as sockets:
        opened = [sockets.enter_context(socket.socket()) for _ in range(count)]
        for listener in opened:
            listener.bind(("127.0.0.1", 0))
        return [listener.getsockname()[1] for listener in opened]
