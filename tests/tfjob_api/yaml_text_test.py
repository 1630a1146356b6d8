"""Documents are written as a person would write them, and read back as they were."""

import unittest

import support
import yaml
from tfjob_api.yaml_text import to_yaml

assert support.REPOSITORY


class YamlTest(unittest.TestCase):
    def test_several_lines_are_a_block(self):
        self.assertEqual(to_yaml([{"a": "x\ny\n", "b": ["1"]}]), "a: |\n  x\n  y\nb:\n  - '1'\n")

    def test_documents_are_parted(self):
        self.assertEqual(to_yaml([{"a": 1}, {"b": 2}]), "a: 1\n---\nb: 2\n")

    def test_shared_values_are_written_out(self):
        shared = {"x": 1}
        self.assertEqual(to_yaml([{"a": shared, "b": shared}]), "a:\n  x: 1\nb:\n  x: 1\n")

    def test_reads_back(self):
        document = {"number": "1", "flag": "true", "time": "2026-11-22T08:00:00Z", "e": "é\n\tx"}
        self.assertEqual(list(yaml.safe_load_all(to_yaml([document]))), [document])
