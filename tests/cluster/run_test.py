"""What run.sh says before it builds or starts anything."""

import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

import jobs

SCRIPT = Path(__file__).with_name("run.sh")


class Script(unittest.TestCase):
    def run_script(self, *arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [str(SCRIPT), *arguments], capture_output=True, text=True, timeout=60, env={**os.environ, **environment}
        )

    def test_help_and_unknown_arguments(self) -> None:
        result = self.run_script("--help")
        self.assertEqual(result.returncode, 0)
        self.assertIn(f"training operator v{jobs.OPERATOR}", result.stdout)
        result = self.run_script("--gold")
        self.assertEqual(result.returncode, 2)
        self.assertTrue(result.stderr.startswith("run.sh: unknown argument: --gold\n"))

    @unittest.skipUnless(os.geteuid() == 0, "needs root")
    def test_a_program_that_is_missing_is_named(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            for name in ("bash", "cat", "dirname"):
                os.symlink(str(shutil.which(name)), os.path.join(folder, name))
            result = self.run_script(PATH=folder)
        self.assertEqual((result.returncode, result.stderr), (2, "run.sh: go is missing\n"))


if __name__ == "__main__":
    unittest.main()
