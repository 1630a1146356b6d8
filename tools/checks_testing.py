"""What the tests of the checks share: a tree of files, with one fault each."""

import importlib.machinery
import importlib.util
import os
import subprocess
import tempfile
import unittest

TOOLS = os.path.dirname(os.path.abspath(__file__))


def load(name):
    """The program as a module."""
    loader = importlib.machinery.SourceFileLoader(name, os.path.join(TOOLS, name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


class TreeTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.root = temporary.name

    def violations(self):
        """Those of the tree, as text."""
        raise NotImplementedError

    def write(self, path, text):
        path = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def check(self, path, text):
        """The violations of the tree with this file."""
        self.write(path, text)
        found = self.violations()
        os.remove(os.path.join(self.root, path))
        return found

    def assert_clean(self, path, text):
        self.assertEqual(self.check(path, text), [])

    def run_program(self, name, *arguments):
        command = [os.path.join(TOOLS, name), "--root", self.root, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)
