"""What docs/python.md shows of the examples is what they are."""

import difflib
import os
import unittest

import support

EXAMPLES = os.path.join(support.PACKAGES, "examples")


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


class ExamplesTest(unittest.TestCase):
    def test_the_lines_in_which_a_ddp_script_differs(self):
        before, after = (read(os.path.join(EXAMPLES, name)).splitlines() for name in ("with_ddp.py", "from_ddp.py"))
        guide = read(os.path.join(support.REPOSITORY, "docs", "python.md"))
        shown = guide.partition("```diff\n")[2].partition("```")[0].splitlines()
        changed = list(difflib.unified_diff(before, after, n=0, lineterm=""))[2:]
        self.assertEqual([line for line in shown if line], [line for line in changed if not line.startswith("@@")])

    def test_the_script_of_an_evaluator(self):
        guide = read(os.path.join(support.REPOSITORY, "docs", "python.md"))
        self.assertIn(f"```python\n{read(os.path.join(EXAMPLES, 'evaluate.py'))}```\n", guide)


if __name__ == "__main__":
    unittest.main()
