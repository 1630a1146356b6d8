"""Jobs whose programs are the tests' own: fake_programs."""

import contextlib
import io
import json
import os
import tempfile
import time
import unittest
from unittest import mock

import support

import keelson

DEADLINE_SECONDS = 30


class FakeJobTest(unittest.TestCase):
    """Of a job in a directory of the test's own."""

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.model_dir = os.path.join(directory.name, "model")
        environment = {"KEELSON_BINARY_DIR": support.FAKE_PROGRAMS, "TF_CONFIG": "", "TMPDIR": directory.name}
        for patch in (mock.patch.dict(os.environ, environment), mock.patch("tempfile.tempdir", directory.name)):
            patch.start()
            self.addCleanup(patch.stop)
        self.directory = directory.name
        self.stderr = io.StringIO()
        redirected = contextlib.redirect_stderr(self.stderr)
        redirected.__enter__()
        self.addCleanup(redirected.__exit__, None, None, None)

    def plan(self, **plan):
        os.environ["KEELSON_TEST_PLAN"] = json.dumps({"steps": 5, **plan})

    def join(self, variables=None, plan=None, **changes):
        self.plan(**(plan or {}))
        given = {"records": 10, "batch_size": 2, "max_steps": 5, "model_dir": self.model_dir}
        variables = {"w": [1.0, 2.0]} if variables is None else variables
        return keelson.join("line", variables=variables, optimizer=keelson.Sgd(lr=1.0), **{**given, **changes})

    def events(self):
        with open(os.path.join(self.model_dir, "events.json"), encoding="utf-8") as file:
            return json.load(file)

    def log(self, role):
        with open(os.path.join(self.model_dir, "script", f"{role}.log"), encoding="utf-8") as file:
            return file.read()

    def processes(self):
        """Of this test: their command lines have its directory."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", encoding="utf-8", errors="replace") as file:
                if f"--model_dir={self.directory}" in file.read():
                    found.append(pid)
        return found

    def assert_nothing_runs(self):
        deadline = time.monotonic() + DEADLINE_SECONDS
        while self.processes() and time.monotonic() < deadline:
            time.sleep(0.02)
        self.assertEqual(self.processes(), [])
