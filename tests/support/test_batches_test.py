"""Tests of test_batches.py."""

import re
import unittest
from typing import Any, Dict

import test_batches


def listed(name: str, **properties: Any) -> Dict[str, Any]:
    return {"name": name, "properties": [{"name": key, "value": value} for key, value in properties.items()]}


class TestBatchesTest(unittest.TestCase):
    def test_the_most_expensive_ones_come_first(self) -> None:
        listing = {"tests": [listed("a", COST=300.0), listed("b", LABELS=["unit"], COST=900.0), listed("c"), {"name": "d"}]}
        self.assertEqual(test_batches.costs_of(listing), [(900, "b"), (300, "a"), (0, "c"), (0, "d")])

    def test_each_test_is_in_one_batch(self) -> None:
        self.assertEqual(test_batches.batches_of(["a", "b", "c"], 2), ["1 ^(c)$", "2 ^(a|b)$"])
        self.assertEqual(test_batches.batches_of(["a", "b", "c"], 0), ["3 ^(a|b|c)$"])
        self.assertEqual(test_batches.batches_of([], 0), [])

    def test_a_batch_names_no_other_tests(self) -> None:
        pattern = test_batches.batches_of(["wire_test", "a.b"], 0)[0].split(" ", 1)[1]
        self.assertTrue(re.search(pattern, "wire_test"))
        self.assertFalse(re.search(pattern, "hardwire_test"))
        self.assertFalse(re.search(pattern, "a_b"))


if __name__ == "__main__":
    unittest.main()
