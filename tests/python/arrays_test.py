"""Arrays of others, and files of tensors."""

import array
import math
import os
import struct
import tempfile
import unittest

import support  # noqa: F401  (finds the package)

from keelson import safetensors
from keelson.arrays import floats_of, is_finite

try:
    import numpy
except ImportError:
    numpy = None


class FloatsTest(unittest.TestCase):
    def assert_floats(self, value, shape, numbers):
        floats = floats_of(value)
        self.assertEqual(floats.shape, shape)
        self.assertEqual(floats.data.cast("f").tolist() if numbers else floats.data.nbytes, numbers or 0)

    def test_numbers_and_lists(self):
        self.assert_floats(2, (), [2.0])
        self.assert_floats([[1, 2.5], [3, 4]], (2, 2), [1.0, 2.5, 3.0, 4.0])
        self.assert_floats((1.0,), (1,), [1.0])

    def test_buffers_of_floats_are_not_copied(self):
        numbers = array.array("f", [1, 2])
        floats = floats_of(numbers)
        numbers[0] = 5
        self.assertEqual(floats.data.cast("f").tolist(), [5.0, 2.0])

    def test_doubles_are_rounded(self):
        self.assert_floats(array.array("d", [0.1]), (1,), [struct.unpack("f", struct.pack("f", 0.1))[0]])

    def test_what_is_no_array_of_floats_is_refused(self):
        for value in ("text", None, [], [[1.0], 2.0], array.array("i", [1])):
            with self.assertRaises(TypeError):
                floats_of(value)

    def test_arrays_without_elements_have_their_shape(self):
        for none in (array.array("f"), array.array("d"), memoryview(array.array("d", [1]))[:0]):
            self.assert_floats(none, (0,), [])

    def test_finite(self):
        for numbers, expected in (
            ([3.4e38] * 100, True), ([], True), ([1, math.nan], False), ([math.inf, -math.inf], False),
        ):  # fmt: skip
            self.assertEqual(is_finite(memoryview(array.array("f", numbers)).cast("B")), expected)

    @unittest.skipIf(numpy is None, "no package numpy")
    def test_numpy(self):
        whole = numpy.arange(6, dtype=numpy.float32).reshape(2, 3)
        self.assert_floats(whole, (2, 3), [0, 1, 2, 3, 4, 5])
        self.assert_floats(whole.T, (3, 2), [0, 3, 1, 4, 2, 5])
        self.assert_floats(numpy.float32(2), (), [2])
        self.assert_floats(whole[:0], (0, 3), [])
        self.assert_floats(whole.astype(numpy.float64)[:, :0], (2, 0), [])
        self.assert_floats(whole.astype(numpy.float64)[:, :1], (2, 1), [0, 3])

    @unittest.skipIf(numpy is None, "no package numpy")
    def test_dlpack(self):
        class Foreign:
            def __init__(self, values):
                self._values = values

            def __dlpack__(self):
                return self._values.__dlpack__()

        whole = numpy.arange(6, dtype=numpy.float32).reshape(2, 3)
        self.assert_floats(Foreign(whole), (2, 3), [0, 1, 2, 3, 4, 5])
        self.assert_floats(Foreign(whole[1:]), (1, 3), [3, 4, 5])
        self.assert_floats(Foreign(whole[:0]), (0, 3), [])
        for wrong in (whole.T, whole.astype(numpy.float64)):
            with self.assertRaises(TypeError):
                floats_of(Foreign(wrong))


class SafetensorsTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.path = os.path.join(directory.name, "file.safetensors")

    def test_what_was_written_is_read(self):
        given = {
            "a.weight": safetensors.Tensor("F32", (2, 1), memoryview(struct.pack("<2f", 1, 2))),
            "é": safetensors.Tensor("I64", (), memoryview(struct.pack("<q", -7))),
            "none": safetensors.Tensor("F16", (0, 3), memoryview(b"")),
        }
        safetensors.write(self.path, given, {"made": "here"})
        found = safetensors.read(self.path)
        self.assertEqual(found.metadata, {"made": "here"})
        self.assertEqual(
            [(name, t.dtype, t.shape, bytes(t.data)) for name, t in found.tensors.items()],
            [(name, t.dtype, t.shape, bytes(t.data)) for name, t in given.items()],
        )
        self.assertEqual(found.tensors["a.weight"].elements().tolist(), [[1.0], [2.0]])
        self.assertEqual(os.listdir(os.path.dirname(self.path)), ["file.safetensors"])
        with self.assertRaises(ValueError):
            found.tensors["é"].elements()

    def test_a_damaged_file_is_refused(self):
        def content(header, data=b""):
            return struct.pack("<Q", len(header)) + header + data

        entry = b'{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}'
        for bytes_there in (
            b"", b"1234567", struct.pack("<Q", 100) + b"{}", content(b"{"), content(b"[]"), content(entry, b"1234"),
            content(entry.replace(b"[2]", b"[3]"), bytes(8)), content(entry.replace(b"F32", b"F99"), bytes(8)),
            content(b'{"a":{"dtype":"F32"}}'),
        ):  # fmt: skip
            with open(self.path, "wb") as file:
                file.write(bytes_there)
            with self.assertRaisesRegex(ValueError, "expected a safetensors file"):
                safetensors.read(self.path)


if __name__ == "__main__":
    unittest.main()
