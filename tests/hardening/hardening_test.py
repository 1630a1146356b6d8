"""The programs that are shipped have what cmake/KeelsonHardening.cmake asks compiler and linker for.

usage: hardening_test.py COMPILER PROGRAM...   (CTest names them)
"""

import os
import re
import subprocess
import sys
import tempfile
import unittest
from typing import List

COMPILER = ""
PROGRAMS: List[str] = []
DEADLINE_SECONDS = 60
# What the program looks like -> what is wrong where it does not.
EXPECTED = {
    r"(?m)^ +Type: +DYN ": "it is not position independent",
    r"(?m)^ +GNU_RELRO ": "no table of addresses becomes read only (GNU_RELRO)",
    r"\(FLAGS_1\) +Flags: .*\bNOW\b": "functions are bound when they are first called (no BIND_NOW)",
    r"(?m)^ +GNU_STACK .* RW +0x": "its stack is executable, or GNU_STACK is missing",
    r" __stack_chk_fail@": "no function checks its stack (-fstack-protector-strong)",
    r" \w*__glibcxx_assert_fail": "the standard library's preconditions are not checked (_GLIBCXX_ASSERTIONS)",
}


def weaknesses(program: str) -> List[str]:
    command = ["readelf", "--wide", "--file-header", "--program-headers", "--dynamic", "--dyn-syms", program]
    text = subprocess.run(
        command, capture_output=True, text=True, check=True, timeout=DEADLINE_SECONDS
    ).stdout
    return [problem for pattern, problem in EXPECTED.items() if not re.search(pattern, text)]


class ShippedProgramsTest(unittest.TestCase):
    def test_are_hardened(self) -> None:
        self.assertTrue(PROGRAMS)
        for program in PROGRAMS:
            with self.subTest(program):
                self.assertEqual(weaknesses(program), [])


class CheckTest(unittest.TestCase):
    """The checks see what they are for: a program with the opposite flags lacks all of it."""

    def test_finds_every_weakness(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            program = os.path.join(folder, "weak")
            flags = ["-no-pie", "-fno-pie", "-fno-stack-protector", "-U_GLIBCXX_ASSERTIONS"]
            link = ["-Wl,-z,norelro,-z,lazy,-z,execstack"]
            source = "int main(int count, char**) { return count - 1; }"
            subprocess.run(
                [COMPILER, *flags, "-x", "c++", "-", *link, "-o", program],
                input=source,
                text=True,
                check=True,
                timeout=DEADLINE_SECONDS,
            )
            self.assertEqual(weaknesses(program), list(EXPECTED.values()))


if __name__ == "__main__":
    COMPILER, PROGRAMS = sys.argv[1], sys.argv[2:]
    unittest.main(argv=sys.argv[:1])
