"""Every flag in a manifest is one of its program's, as `--help=json` lists them."""

import unittest

from support import all_roles, flags_of, needs_programs


@needs_programs
class Flags(unittest.TestCase):
    def test_of_manifests_are_known(self) -> None:
        for role in all_roles():
            with self.subTest(role.name):
                known = flags_of(role.program) if role.program else ()
                self.assertLessEqual(set(role.flags()), set(known))

    def test_unknown_flag_would_be_seen(self) -> None:
        self.assertNotIn("no_such_flag", flags_of("worker"))
        self.assertIn("config", flags_of("worker"))
