"""Exchanges files with the safetensors library itself, in both directions.

Skipped where Python has no safetensors; tests/interop/run.sh makes an environment that has it. Needs
the release build's programs, in $KEELSON_BINARY_DIR or build/release/bin.
"""

import importlib.util
import os
import tempfile
import unittest

import programs

HAS_SAFETENSORS = importlib.util.find_spec("safetensors") is not None

if HAS_SAFETENSORS:
    import numpy as np
    from safetensors import safe_open
    from safetensors.numpy import load_file, save_file


@unittest.skipUnless(HAS_SAFETENSORS, "needs safetensors: see tests/interop/run.sh")
class SafetensorsTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name

    def path(self, name):
        return os.path.join(self.directory, name)

    def tensors(self):
        """Values whose bits a detour over another type would change."""
        generator = np.random.default_rng(5)
        kernel = generator.standard_normal((5, 7)).astype(np.float32)
        kernel[0, :4] = [np.float32(1e-45), -0.0, np.finfo(np.float32).max, 16777217]
        return {"dense/kernel": kernel, "dense/bias": np.zeros(7, np.float32), "scalar": np.array(0.1, np.float32)}

    def assert_same_bits(self, found, expected):
        self.assertEqual(sorted(found), sorted(expected))
        for name, value in expected.items():
            self.assertEqual((found[name].dtype, found[name].shape), (value.dtype, value.shape), name)
            self.assertEqual(found[name].tobytes(), value.tobytes(), name)

    def test_the_library_reads_what_an_export_wrote(self):
        expected = self.tensors()
        np.savez(self.path("in.npz"), **expected)
        programs.run("keelson_ckpt", "import", self.path("in.npz"), self.path("model"), "--step=3")
        programs.run("keelson_ckpt", "export", self.path("model"), self.path("out.safetensors"))
        self.assert_same_bits(load_file(self.path("out.safetensors")), expected)
        with safe_open(self.path("out.safetensors"), framework="numpy") as file:
            self.assertEqual(file.get_slice("dense/kernel")[1:3].tobytes(), expected["dense/kernel"][1:3].tobytes())

    def test_an_import_reads_what_the_library_wrote(self):
        expected = self.tensors()
        save_file(expected, self.path("in.safetensors"), metadata={"format": "np", "made": "elsewhere"})
        programs.run("keelson_ckpt", "import", self.path("in.safetensors"), self.path("model"))
        programs.run("keelson_ckpt", "export", self.path("model"), self.path("out.npz"))
        with np.load(self.path("out.npz")) as arrays:
            self.assert_same_bits({name: arrays[name] for name in arrays}, expected)

    def test_smaller_and_wider_types_become_floats(self):
        given = {
            "half": np.array([0.5, -2, 65504], np.float16),
            "double": np.array([0.1, 1e30], np.float64),
            "long": np.array([-7, 1 << 24], np.int64),
        }
        save_file(given, self.path("in.safetensors"))
        programs.run("keelson_ckpt", "import", self.path("in.safetensors"), self.path("model"))
        programs.run("keelson_ckpt", "export", self.path("model"), self.path("out.safetensors"))
        expected = {name: value.astype(np.float32) for name, value in given.items()}
        self.assert_same_bits(load_file(self.path("out.safetensors")), expected)


if __name__ == "__main__":
    unittest.main()
