"""Tests of reverts.py."""

import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import reverts  # pylint: disable=wrong-import-position


class RevertsTest(unittest.TestCase):
    def test_every_mend_can_be_taken_out_of_the_sources(self) -> None:
        for name, mend in reverts.MENDS.items():
            with self.subTest(name):
                for path, text in reverts.edited_sources(mend, reverts.SOURCE).items():
                    self.assertNotEqual(text, (reverts.SOURCE / path).read_text(encoding="utf-8"))

    def test_an_edit_fits_once(self) -> None:
        edit = reverts.Edit("a.cc", "x", "y")
        self.assertEqual(reverts.reverted("axb", edit), "ayb")
        for text in ("ab", "axbx"):
            with self.assertRaisesRegex(ValueError, "a.cc: expected once, found [02] times: 'x'"):
                reverts.reverted(text, edit)

    def test_files_that_are_equal_are_not_written_again(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            copy = pathlib.Path(directory)
            reverts.copy_sources(reverts.SOURCE, copy)
            readme = copy / "README.md"
            changed = copy / "CMakeLists.txt"
            changed.write_text("", encoding="utf-8")
            before = readme.stat().st_mtime_ns
            reverts.copy_sources(reverts.SOURCE, copy)
            self.assertEqual(readme.stat().st_mtime_ns, before)
            self.assertEqual(changed.read_bytes(), (reverts.SOURCE / "CMakeLists.txt").read_bytes())

    def test_the_first_violation_is_shown(self) -> None:
        self.assertEqual(reverts.first_violation("1 schedule\n  VIOLATION seed 18\nVIOLATION seed 19"), "VIOLATION seed 18")
        self.assertIsNone(reverts.first_violation("10 schedules, 0 violations"))


if __name__ == "__main__":
    unittest.main()
