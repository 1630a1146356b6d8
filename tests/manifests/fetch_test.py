"""The script that fetches data before the chief starts."""

import os
import subprocess
import tempfile
import unittest
from pathlib import Path
from typing import List, Tuple

from support import Role, roles_of


class FetchData(unittest.TestCase):
    path = "deploy/tfjob/mnist_data.yaml"

    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = Path(directory.name)
        self.data = self.directory / "data"
        self.data.mkdir()
        for program in ("curl", "sleep"):
            self.write_program(program, f'echo "$@" >> {self.directory}/{program}_calls')

    def write_program(self, name: str, script: str) -> None:
        path = self.directory / name
        path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        path.chmod(0o755)

    def run_script(self) -> Tuple[int, List[str]]:
        """Its exit code, and the pauses that it made."""
        chief: Role = next(role for role in roles_of(self.path) if role.role == "chief")
        (container,) = chief.pod["initContainers"]
        script = container["args"][0].replace("/data/", f"{self.data}/")
        done = subprocess.run(
            [*container["command"], script],
            env={"PATH": f"{self.directory}:{os.environ['PATH']}", "FILES": "a b", "SOURCE": "http://x"},
            capture_output=True,
            timeout=30,
            check=False,
        )
        calls = self.directory / "sleep_calls"
        return done.returncode, calls.read_text(encoding="utf-8").splitlines() if calls.exists() else []

    def test_fetches_what_is_missing(self) -> None:
        self.write_program("curl", 'while [ "$1" != -o ]; do shift; done; echo x > "$2"')
        (self.data / "a").write_text("there", encoding="utf-8")
        self.assertEqual(self.run_script(), (0, []))
        self.assertEqual(sorted(os.listdir(self.data)), ["a", "b"])
        self.assertEqual((self.data / "a").read_text(encoding="utf-8"), "there")

    def test_pauses_before_the_operator_tries_again(self) -> None:
        self.write_program("curl", "exit 22")
        self.assertEqual(self.run_script(), (22, ["20"]))
        self.assertEqual(os.listdir(self.data), [])


class FetchDataForScripts(FetchData):
    path = "deploy/tfjob/pytorch_mnist.yaml"
