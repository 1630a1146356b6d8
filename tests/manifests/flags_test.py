"""Every flag in a manifest is one of its program's, as `--help` lists them."""

import os
import re
import subprocess
import unittest
from functools import lru_cache
from pathlib import Path
from typing import FrozenSet

from support import REPOSITORY, ROLES, all_roles

BINARY_DIR = Path(os.environ.get("KEELSON_BINARY_DIR", REPOSITORY / "build" / "release" / "bin"))


@lru_cache(maxsize=None)
def flags_of(program: str) -> FrozenSet[str]:
    result = subprocess.run(
        [BINARY_DIR / program, "--help"], capture_output=True, text=True, timeout=30, check=True
    )
    return frozenset(re.findall(r"--([a-z_]+)", result.stdout))


@unittest.skipUnless(
    all((BINARY_DIR / program).exists() for program in ROLES), f"the programs are not in {BINARY_DIR}"
)
class Flags(unittest.TestCase):
    def test_of_manifests_are_known(self) -> None:
        for role in all_roles():
            (program,) = role.container["command"]
            with self.subTest(role.name):
                self.assertLessEqual(set(role.flags()), flags_of(program))

    def test_unknown_flag_would_be_seen(self) -> None:
        self.assertNotIn("no_such_flag", flags_of("worker"))
        self.assertIn("config", flags_of("worker"))


if __name__ == "__main__":
    unittest.main()
