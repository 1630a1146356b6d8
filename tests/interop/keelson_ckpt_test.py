"""Exchanges tensors with keelson_ckpt by files that Python's standard library writes and reads.

Needs the release build's programs, in $KEELSON_BINARY_DIR or build/release/bin.
"""

import ast
import json
import os
import struct
import tempfile
import unittest
import zipfile

import programs

# Its one step changes no value.
CONFIG = """
model {
  input_shape: [28, 28, 1]
  layers { flatten {} }
  layers { name: "dense" dense { units: 10 } }
  loss { kind: SOFTMAX_CROSS_ENTROPY }
}
optimizer { momentum { momentum: 0.9 } }
learning_rate { base: 1e-30 }
data { generated { train_records: 100 eval_records: 10 } }
train { batch_size: 10 max_steps: 8 }
"""
KERNEL = [0.5 * i - 3 for i in range(12)]
BIAS = [1.25, -2.0, 1e30]


def floats(values, code="f"):
    return struct.pack(f"<{len(values)}{code}", *values)


def write_safetensors(path, tensors):
    """tensors: (name, dtype, shape, bytes)."""
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, dtype, shape, content in tensors:
        offsets = [len(data), len(data) + len(content)]
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": offsets}
        data += content
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def read_safetensors(path):
    """name -> (dtype, shape, bytes)."""
    with open(path, "rb") as file:
        content = file.read()
    (length,) = struct.unpack_from("<Q", content)
    header = json.loads(content[8 : 8 + length])
    data = content[8 + length :]
    tensors = {}
    for name, entry in header.items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            tensors[name] = (entry["dtype"], entry["shape"], data[begin:end])
    return tensors


def npy(descr, fortran_order, shape, content, version=1):
    text = repr({"descr": descr, "fortran_order": fortran_order, "shape": shape}) + "\n"
    length = struct.pack("<H" if version == 1 else "<I", len(text))
    return b"\x93NUMPY" + bytes([version, 0]) + length + text.encode() + content


def read_npz(path):
    """Returns name -> (descr, shape, bytes); checks what numpy requires of the format."""
    arrays = {}
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        for info in archive.infolist():
            assert info.filename.endswith(".npy"), info.filename
            content = archive.read(info)
            assert content[:8] == b"\x93NUMPY\x01\x00", content[:8]
            (length,) = struct.unpack_from("<H", content, 8)
            assert (10 + length) % 64 == 0, length
            header = ast.literal_eval(content[10 : 10 + length].decode("latin1"))
            assert set(header) == {"descr", "fortran_order", "shape"}, header
            assert header["fortran_order"] is False
            arrays[info.filename[:-4]] = (header["descr"], header["shape"], content[10 + length :])
    return arrays


class KeelsonCkptTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name

    def path(self, name):
        return os.path.join(self.directory, name)

    def run_tool(self, *arguments, exit_code=0):
        return programs.run("keelson_ckpt", *arguments, exit_code=exit_code)

    def import_values(self, model_dir="model"):
        source = self.path("in.safetensors")
        write_safetensors(
            source,
            [("dense/kernel", "F32", [4, 3], floats(KERNEL)), ("dense/bias", "F32", [3], floats(BIAS))],
        )
        self.run_tool("import", source, self.path(model_dir))
        return self.path(model_dir)

    def test_safetensors_to_snapshot_to_npz(self):
        model = self.import_values()
        self.run_tool("export", model, self.path("out.npz"))
        arrays = read_npz(self.path("out.npz"))
        self.assertEqual(
            arrays,
            {
                "dense/kernel": ("<f4", (4, 3), floats(KERNEL)),
                "dense/bias": ("<f4", (3,), floats(BIAS)),
            },
        )

    def test_numpys_variations_of_npz(self):
        columns_first = [KERNEL[row * 3 + column] for column in range(3) for row in range(4)]
        with zipfile.ZipFile(self.path("in.npz"), "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("w.npy", npy("<f8", True, (4, 3), floats(columns_first, "d"), version=2))
            archive.writestr("h.npy", npy("<f2", False, (3,), floats([0.5, -2, 65504], "e")))
            archive.writestr("n.npy", npy("<i8", False, (), floats([-7], "q"), version=3))
            archive.writestr("readme.txt", "no array")
        self.run_tool("import", self.path("in.npz"), self.path("model"), "--step=30")
        self.run_tool("export", self.path("model/model.ckpt-30"), self.path("out.safetensors"))
        self.assertEqual(
            read_safetensors(self.path("out.safetensors")),
            {
                "w": ("F32", [4, 3], floats(KERNEL)),
                "h": ("F32", [3], floats([0.5, -2, 65504])),
                "n": ("F32", [], floats([-7])),
            },
        )

    def test_an_array_that_cannot_be_read_is_named(self):
        with zipfile.ZipFile(self.path("in.npz"), "w") as archive:
            archive.writestr("big.npy", npy(">f4", False, (1,), b"1234"))
        error = self.run_tool("import", self.path("in.npz"), self.path("model"), exit_code=2)
        self.assertIn("in.npz: array 'big': elements of numpy's type '>f4'", error)
        with zipfile.ZipFile(self.path("in.npz"), "w") as archive:
            archive.writestr("short.npy", npy("<f4", False, (2,), b"1234"))
        error = self.run_tool("import", self.path("in.npz"), self.path("model"), exit_code=2)
        self.assertIn("array 'short': expected 8 bytes for float32 [2], found 4", error)
        self.assertEqual(len(error.splitlines()), 1)

    def test_a_header_that_lies_about_sizes_needs_no_memory(self):
        with zipfile.ZipFile(self.path("in.npz"), "w") as archive:
            archive.writestr("huge.npy", npy("<f4", False, (1 << 40, 1 << 10), b""))
        error = self.run_tool("import", self.path("in.npz"), self.path("model"), exit_code=2)
        self.assertIn("array 'huge': expected", error)

    def test_a_job_starts_from_imported_values(self):
        config = self.path("config.textproto")
        with open(config, "w", encoding="utf-8") as file:
            file.write(CONFIG)
        kernel = floats([0.01 * (i % 13) - 0.055 for i in range(784 * 10)])
        bias = floats([0.25 + i for i in range(10)])
        source = self.path("in.safetensors")
        write_safetensors(source, [("w", "F32", [784, 10], kernel), ("dense/bias", "F32", [10], bias)])
        model = self.path("model")
        arguments = ["import", source, model, f"--config={config}", "--step=7"]
        error = self.run_tool(*arguments, exit_code=2)
        self.assertIn("dense/kernel is missing", error)
        self.run_tool(*arguments, "--map=w=dense/kernel")
        programs.run("chief", f"--config={config}", f"--model_dir={model}")
        listed = self.run_tool("list", model)
        self.assertRegex(listed, r"(?m)^8 .*model.ckpt-8 \(newest\)$")
        self.run_tool("export", model, self.path("out.npz"))
        arrays = read_npz(self.path("out.npz"))
        self.assertEqual(arrays["dense/kernel"], ("<f4", (784, 10), kernel))
        self.assertEqual(arrays["dense/bias"], ("<f4", (10,), bias))
        self.assertIn("Momentum", self.run_tool("show", model))

    def test_exit_codes_tell_what_was_found(self):
        model = self.import_values()
        other = self.import_values("other")
        self.assertIn("equal: 0 of 3", self.run_tool("diff", model, other))
        self.assertIn("ok: ", self.run_tool("verify", model))
        self.assertIn("(newest)", self.run_tool("list", model))
        self.assertIn("float32  [4, 3]", self.run_tool("show", model))
        self.assertEqual(self.run_tool("show", model, "--values=dense/bias"), "1.25 -2 1.00000002e+30\n")
        data = os.path.join(other, "model.ckpt-0.data-00000-of-00001")
        with open(data, "r+b") as file:
            file.write(b"\xff")
        self.assertIn("checksum mismatch", self.run_tool("verify", other, exit_code=1))
        self.assertIn("checksum mismatch", self.run_tool("diff", model, other, exit_code=2))
        write_safetensors(self.path("one.safetensors"), [("dense/bias", "F32", [3], floats(BIAS))])
        difference = self.run_tool("diff", model, self.path("one.safetensors"), exit_code=1)
        self.assertIn("dense/kernel: only in the first", difference)
        self.assertIn("no snapshots", self.run_tool("list", self.directory, exit_code=2))

    def test_usage_errors_are_one_line(self):
        for arguments in ([], ["look"], ["show"], ["diff", "a"], ["show", "a", "--limit=-1"]):
            error = self.run_tool(*arguments, exit_code=2)
            self.assertEqual(len(error.splitlines()), 1, error)
            self.assertIn("see --help", error)
        self.assertIn("import", self.run_tool("--help"))
