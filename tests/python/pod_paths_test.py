"""A pod's paths where the pod is a process."""

import json
import os
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import support  # noqa: F401  (finds the package)

import keelson
from keelson import safetensors
from keelson.config import make_settings
from keelson.config_file import ConfigFile


def mounted(**mounts):
    """`mounts`: names of directories at / -> directories of this machine."""
    text = json.dumps({f"/{name}": directory for name, directory in mounts.items()})
    return mock.patch.dict(os.environ, {"KEELSON_MOUNTS": text})


class PodPathsTest(unittest.TestCase):
    def test_paths_below_a_mount_are_those_of_this_machine(self):
        with mounted(data="/home/me/data", model="/runs/1/model"):
            for path, expected in (
                ("/data", "/home/me/data"),
                ("/data/a/b", "/home/me/data/a/b"),
                (Path("/model/x"), "/runs/1/model/x"),
                ("/database", "/database"),
                ("data/a", "data/a"),
                ("", ""),
            ):
                self.assertEqual(keelson.local_path(path), expected)

    def test_the_inner_one_of_nested_mounts_decides(self):
        with mock.patch.dict(os.environ, {"KEELSON_MOUNTS": json.dumps({"/a": "/x", "/a/b": "/y"})}):
            self.assertEqual([keelson.local_path(path) for path in ("/a/b/c", "/a/bc")], ["/y/c", "/x/bc"])

    def test_what_is_of_this_machine_already_stays(self):
        with mounted(tmp="/tmp/run/volumes/tmp", model="/tmp/run/model"):
            model = keelson.local_path("/model/x")
            self.assertEqual((model, keelson.local_path(model)), ("/tmp/run/model/x",) * 2)
            self.assertEqual(keelson.local_path("/tmp/x"), "/tmp/run/volumes/tmp/x")

    def test_elsewhere_paths_are_what_they_are(self):
        self.assertNotIn("KEELSON_MOUNTS", os.environ)
        self.assertEqual(keelson.local_path("/model"), "/model")

    def test_a_job_has_its_directories_there(self):
        def settings(model_dir, initial):
            return make_settings("n", 1, 1, 1, None, None, None, None, None, model_dir, initial, 0)

        with mounted(model="/runs/1/model"):
            found = settings("/model", "/model/a.safetensors")
            self.assertEqual((found.model_dir, found.initial), ("/runs/1/model", "/runs/1/model/a.safetensors"))
            with tempfile.TemporaryDirectory() as directory, mounted(model="/runs/1/model", data=directory):
                with open(os.path.join(directory, "job.textproto"), "w", encoding="utf-8") as file:
                    file.write('model { name: "n" } train { batch_size: 1 epochs: 1 } checkpoint { model_dir: "/model/a" }')
                config = ConfigFile.read("/data/job.textproto", "/data/idx")
            self.assertEqual(config.data_dir, os.path.join(directory, "idx"))
            self.assertEqual(config.settings(1, None).model_dir, "/runs/1/model/a")
            arrays = {"w": [1.0]}
            self.assertEqual(settings(None, arrays).initial, arrays)

    def test_snapshots_are_there(self):
        calls = []

        def run_ckpt(*words):
            calls.append(words)
            if words[0] == "export":
                safetensors.write(words[2], {"w": safetensors.Tensor("F32", (1,), memoryview(b"1234"))})

        with mounted(model="/runs/1/model"), mock.patch("keelson.snapshots._run_ckpt", run_ckpt):
            keelson.save("/model", {"w": [1.0]}, step=3)
            self.assertEqual(bytes(keelson.load_state_dict("/model", step=7)["w"].data), b"1234")
        self.assertEqual(calls[0][2:], ("/runs/1/model", "--step=3"))
        self.assertEqual(calls[1][:2], ("export", "/runs/1/model/model.ckpt-7"))


if __name__ == "__main__":
    unittest.main()
