"""Tests which parts of the replicas' logs are shown, and how."""

import io
import unittest

import support
from tfjob_local.console import Console
from tfjob_local.log_follower import LogFollower, Selection

KNOWN = ("chief-0", "ps-0", "worker-0", "worker-1")


class SelectionTest(unittest.TestCase):
    def followed(self, *words, known=KNOWN, leader="chief-0"):
        selection = Selection(words, known, leader)
        return [name for name in (*known, "worker-7") if name in selection]

    def test_words(self):
        self.assertEqual(self.followed(), [])
        self.assertEqual(self.followed("none"), [])
        self.assertEqual(self.followed("all"), [*KNOWN, "worker-7"])
        self.assertEqual(self.followed("worker-1", "ps"), ["ps-0", "worker-1"])

    def test_a_role_has_its_later_replicas_too(self):
        self.assertEqual(self.followed("worker"), ["worker-0", "worker-1", "worker-7"])

    def test_chief_is_whoever_leads(self):
        self.assertEqual(self.followed("chief"), ["chief-0"])
        self.assertEqual(
            self.followed("chief", known=("worker-0", "worker-1"), leader="worker-0"), ["worker-0"]
        )

    def test_unknown_word(self):
        with self.assertRaises(ValueError) as caught:
            self.followed("worker-2")
        self.assertEqual(
            str(caught.exception),
            "expected one of all, none, chief, ps, worker, chief-0, ps-0, worker-0, worker-1; "
            'found "worker-2"',
        )


class FollowTest(support.TemporaryDirectoryTest):
    def setUp(self):
        super().setUp()
        self.now = 0.0
        self.out = io.StringIO()

    def follower(self, *words, color="never"):
        console = Console(self.out, color)
        return LogFollower(
            self.directory, Selection(words, KNOWN, "chief-0"), KNOWN, console, lambda: self.now
        )

    def append(self, name, text):
        with open(self.path(name), "ab") as file:
            file.write(text if isinstance(text, bytes) else text.encode())

    def shown(self):
        text = self.out.getvalue()
        self.out.truncate(0)
        self.out.seek(0)
        return text

    def test_lines_have_their_replicas_name_and_appear_once(self):
        follower = self.follower("all")
        self.append("worker-1.log", "one\n")
        self.append("ps-0.log", "two\n")
        follower.show_new()
        self.assertEqual(self.shown(), "ps-0     | two\nworker-1 | one\n")
        self.append("worker-1.log", "three\n")
        follower.show_new()
        follower.show_new()
        self.assertEqual(self.shown(), "worker-1 | three\n")

    def test_a_line_is_shown_when_it_is_complete(self):
        follower = self.follower("all")
        self.append("ps-0.log", "be")
        follower.show_new()
        self.assertEqual(self.shown(), "")
        self.append("ps-0.log", "gun\nla")
        follower.show_new()
        self.assertEqual(self.shown(), "ps-0     | begun\n")
        follower.show_rest()
        self.assertEqual(self.shown(), "ps-0     | la\n")

    def test_restarts_and_init_containers(self):
        follower = self.follower("worker")
        self.append("worker-1.restart-2.log", "again\n")
        self.append("worker-1.init-fetch.restart-1.log", "got it\n")
        self.append("keeper.log", "E not a replica's\n")
        follower.show_new()
        self.assertEqual(self.shown(), "worker-1 init fetch | got it\nworker-1 | again\n")

    def test_last_lines_of_a_failed_init_container(self):
        follower = self.follower()
        self.append("worker-1.init-fetch.log", "".join(f"line {i}\n" for i in range(9)))
        self.append("worker-0.init-fetch.log", "fine\n")
        follower.show_new()
        self.assertEqual(self.shown(), "")
        self.append("worker-1.init-fetch.log", "E no such host\nthe end")
        follower.show_init_failure("worker-1", "fetch")
        self.assertEqual(
            self.shown(),
            "worker-1 init fetch | E no such host\n"
            + "".join(f"worker-1 init fetch | {text}\n" for text in ("line 5", "line 6", "line 7", "line 8"))
            + "worker-1 init fetch | the end\n",
        )
        # The next attempt has a log of its own, and what was shown is not shown again.
        self.append("worker-1.init-fetch.restart-1.log", "again\n")
        follower.show_init_failure("worker-1", "fetch")
        self.assertEqual(self.shown(), "worker-1 init fetch | again\n")

    def test_a_followed_init_container_is_shown_once(self):
        follower = self.follower("worker")
        self.append("worker-1.init-fetch.log", "one\ntwo\n")
        follower.show_init_failure("worker-1", "fetch")
        follower.show_new()
        self.assertEqual(self.shown(), "worker-1 init fetch | one\nworker-1 init fetch | two\n")

    def test_of_others_errors_and_warnings_are_shown(self):
        follower = self.follower("chief")
        self.append("worker-1.log", "I fine\nE broken\nEvery word\nW odd\n")
        follower.show_new()
        self.assertEqual(self.shown(), "worker-1 | E broken\nworker-1 | W odd\n")

    def test_errors_of_others_never_flood_the_screen(self):
        follower = self.follower()
        for _ in range(50):
            self.append("worker-1.log", "E broken\n" * 20)
            follower.show_new()
            self.now += 0.1
        self.assertEqual(self.shown().count("E broken"), 20)
        self.now += 60.0
        self.append("worker-1.log", "E later\n")
        follower.show_new()
        follower.show_new()
        self.append("worker-1.log", "E again\n")
        follower.show_new()
        shown = self.shown()
        self.assertIn(f"({50 * 20 - 20 + 1} more errors and warnings in {self.directory})\n", shown)
        self.assertTrue(shown.endswith("worker-1 | E again\n"), shown)

    def test_the_end_says_what_was_left_out(self):
        follower = self.follower()
        self.append("worker-1.log", "E broken\n" * 21)
        follower.show_rest()
        self.assertTrue(self.shown().endswith(f"(1 more error or warning in {self.directory})\n"))

    def test_followed_replicas_are_shown_without_limit(self):
        follower = self.follower("worker-1")
        self.append("worker-1.log", "E broken\n" * 100)
        follower.show_new()
        self.assertEqual(self.shown().count("E broken"), 100)

    def test_a_follower_far_behind_skips(self):
        follower = self.follower("ps")
        self.append("ps-0.log", "x" * 63 + "\n")
        follower.show_new()
        self.shown()
        self.append("ps-0.log", (b"y" * 63 + b"\n") * 40000)
        follower.show_new()
        first = self.shown().splitlines()[0]
        self.assertEqual(
            first, f"ps-0     | ... {40000 * 64 - 65536} bytes are only in {self.path('ps-0.log')}"
        )
        follower.show_rest()
        self.assertNotIn("bytes are only", self.shown())

    def test_a_line_without_end_is_cut(self):
        follower = self.follower("ps")
        self.append("ps-0.log", "z" * 20000)
        follower.show_new()
        self.assertEqual(self.shown(), f"ps-0     | {'z' * 20000}\n")

    def test_what_would_disturb_the_terminal_is_left_out(self):
        follower = self.follower("ps")
        self.append("ps-0.log", b"10%\r20%\r30%\r\n\x1b[31mred\x1b[0m \xff\a\ttab\n")
        follower.show_new()
        self.assertEqual(self.shown(), "ps-0     | 30%\nps-0     | red \ufffd\ttab\n")

    def test_each_replica_has_its_color_and_errors_are_red(self):
        follower = self.follower("all", color="always")
        self.append("chief-0.log", "a\n")
        self.append("ps-0.log", "E b\n")
        self.append("worker-0.log", "W c\n")
        follower.show_new()
        self.assertEqual(
            self.shown().splitlines(),
            [
                "\x1b[36mchief-0  |\x1b[0m a",
                "\x1b[32mps-0     |\x1b[0m \x1b[31mE b\x1b[0m",
                "\x1b[35mworker-0 |\x1b[0m \x1b[33mW c\x1b[0m",
            ],
        )

    def test_no_directory_is_no_error(self):
        console = Console(self.out)
        follower = LogFollower(self.path("none"), Selection([], [], ""), [], console, lambda: 0.0)
        follower.show_rest()
        self.assertEqual(self.shown(), "")
