"""Kubernetes' quantities are read exactly, and nothing else is taken for one."""

import unittest

import support
from tfjob_api.quantity import parse_quantity

assert support.REPOSITORY


class QuantityTest(unittest.TestCase):
    def test_values(self):
        for text, expected in (
            ("2", 2), ("0.5", 0.5), ("500m", 0.5), ("1k", 1000), ("1Ki", 1024), ("1.5Gi", 1.5 * 2**30),
            ("1e3", 1000), ("2E", 2e18), ("100n", 1e-7), ("3000m", 3), (".5", 0.5), ("-1", -1),
        ):
            self.assertEqual(float(parse_quantity(text)), expected, text)

    def test_others_are_refused(self):
        for text in ("", "two", "1 Gi", "1gi", "1KiB", "m", "--1", " 1", "1\n"):
            with self.assertRaises(ValueError) as caught:
                parse_quantity(text)
            self.assertEqual(
                str(caught.exception), f'expected a quantity such as 2, 500m or 1Gi, found "{text}"'
            )
