"""Which commands run a Python script of this machine, and where it is looked for."""

import os
import unittest
from unittest import mock

import support
from tfjob_local.kubelet.user_scripts import find_user_script


class UserScriptsTest(support.TemporaryDirectoryTest):
    def setUp(self):
        super().setUp()
        self.script = self.write("app/train.py", "")
        self.write("app/pkg/__main__.py", "")
        self.write("here/other.py", "")
        patch = mock.patch("os.getcwd", return_value=self.path("here"))
        patch.start()
        self.addCleanup(patch.stop)

    def find(self, text, working_dir="app"):
        words = text.split()
        return find_user_script(words[:1], words[1:], self.path(working_dir) if working_dir else "")

    def test_commands_with_a_script_that_is_here(self):
        for text in (
            "python train.py", "python3.11 -u -W ignore train.py --lr 1", f"/usr/bin/python3 {self.script}",
            "torchrun train.py", "torchrun --nnodes 2 --nproc_per_node=1 train.py data.py",
            "python -m torch.distributed.run --nnodes=2 train.py", "python -m torch.distributed.launch train.py",
            "torchrun -m train", "python -m train",
        ):  # fmt: skip
            found = self.find(text)
            self.assertIsNotNone(found, text)
            self.assertEqual((found.words, found.file), (tuple(text.split()), self.script), text)
            self.assertEqual(found.directory, self.path("app"))

    def test_modules(self):
        self.assertEqual(self.find("python -m pkg --lr=1").file, self.path("app/pkg/__main__.py"))

    def test_others(self):
        for text in (
            "python /app/train.py", "python -c print(1)", "python", "python -", "python -m", "python train", "sh train.py",
            "torchrun", "torchrun --nnodes=2", "worker train.py", "python -m torch.distributed.run", "python3 config.yaml",
        ):  # fmt: skip
            self.assertIsNone(self.find(text), text)
        self.assertIsNone(find_user_script((), (), ""))

    def test_the_launchers_own_directory_comes_last(self):
        self.assertEqual(self.find("python other.py").directory, self.path("here"))
        self.assertEqual(self.find("python other.py", "").directory, self.path("here"))
        self.write("here/train.py", "")
        self.assertEqual(self.find("python train.py").file, self.script)
        self.assertEqual(self.find("python train.py", "").file, self.path("here/train.py"))

    def test_another_python_in_place_of_the_commands(self):
        self.assertEqual(self.find("python train.py -v").with_python("/py"), ("/py", ("train.py", "-v")))
        expected = ("/py", ("-m", "torch.distributed.run", "--x", "train.py"))
        self.assertEqual(self.find("torchrun --x train.py").with_python("/py"), expected)

    def test_a_directory_is_no_script(self):
        os.mkdir(self.path("app/dir.py"))
        self.assertIsNone(self.find("python dir.py"))


if __name__ == "__main__":
    unittest.main()
