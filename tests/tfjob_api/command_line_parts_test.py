"""Tests the commands' shared parts: tables, and flags that all of them have."""

import argparse
import contextlib
import io
import unittest

import support
from tfjob_api.command_flags import Parser, count, split_at_dashes
from tfjob_api.text_table import render_table

assert support.REPOSITORY


class TableTest(unittest.TestCase):
    def test_columns_are_as_wide_as_their_widest_cell(self):
        self.assertEqual(
            render_table(("a", "long"), [("widest", "x"), ("y", "")]), ["a        long", "widest   x", "y"]
        )

    def test_without_rows(self):
        self.assertEqual(render_table(("a", "b"), []), ["a   b"])


class FlagsTest(unittest.TestCase):
    def test_errors_are_one_line(self):
        parser = Parser(prog="tool.py run")
        errors = io.StringIO()
        with contextlib.redirect_stderr(errors), self.assertRaises(SystemExit) as caught:
            parser.parse_args(["--no_such"])
        self.assertEqual(caught.exception.code, 2)
        self.assertEqual(
            errors.getvalue(), "tool: unrecognized arguments: --no_such; --help lists the flags\n"
        )

    def test_the_first_dashes_part(self):
        for argv, expected in (
            (["a", "b"], (["a", "b"], [])),
            (["a", "--", "b", "--", "c"], (["a"], ["b", "--", "c"])),
            (["--"], ([], [])),
        ):
            self.assertEqual(split_at_dashes(argv), expected)

    def test_counts(self):
        self.assertEqual((count("0"), count("12")), (0, 12))
        for text in ("-1", "1.5", "", "x"):
            with self.assertRaises(argparse.ArgumentTypeError) as caught:
                count(text)
            self.assertEqual(str(caught.exception), f'expected a whole number >= 0, found "{text}"')
