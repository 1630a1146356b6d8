"""A directory for each test, in which shell scripts take the place of programs."""

import os
import subprocess
import tempfile
import unittest

# For what must end soon; only what is broken runs this long.
DEADLINE_SECONDS = 60.0


class TemporaryDirectoryTest(unittest.TestCase):
    """`directory` is removed after the test."""

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.directory = temporary.name

    def path(self, *parts):
        return os.path.join(self.directory, *parts)

    def write(self, name, content):
        """Text or bytes; returns the file's path."""
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode())
        return path

    def write_script(self, name, script):
        """A program in sh; returns its path."""
        path = self.write(name, f"#!/bin/sh\n{script}\n")
        os.chmod(path, 0o755)
        return path

    def read(self, *parts):
        with open(self.path(*parts), encoding="utf-8") as file:
            return file.read()

    def logged(self):
        """The lines that scripts have added to the file "log"."""
        return self.read("log").splitlines() if os.path.exists(self.path("log")) else []

    @staticmethod
    def run_program(*command, **options):
        """`options`: those of subprocess.run."""
        return subprocess.run(
            command, capture_output=True, text=True, timeout=DEADLINE_SECONDS, check=False, **options
        )
