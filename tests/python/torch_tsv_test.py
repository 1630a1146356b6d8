"""keelson.torch.TsvDataset: files of Criteo's form."""

import json
import os
import pickle
import tempfile
import unittest
from unittest import mock

import support  # noqa: F401  (finds the package)

try:
    import torch

    import keelson.torch as kt
    from keelson.torch import tsv
except ImportError:
    torch = None


def setUpModule():
    if torch is None:
        raise unittest.SkipTest("no package torch")


class TsvDatasetTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.path = os.path.join(directory.name, "log.tsv")

    def write(self, *lines):
        with open(self.path, "w", encoding="utf-8") as file:
            file.write("\n".join(lines))
        return kt.TsvDataset(self.path, dense=2, ids=3)

    def test_records_are_those_of_data_criteo(self):
        lines = [f"{n % 2}\t{n}\t{'-1' if n % 3 else ''}\tab{n:06x}\t\tlonger than a word {n}" for n in range(40)]
        for end in ("", "\n"):
            data = self.write(*lines[:-1], lines[-1] + end)
            self.assertEqual(len(data), 40)
            for position in (0, 1, 15, 16, 39):
                dense, ids, label = data[position]
                torch.testing.assert_close(dense, torch.tensor([float(position), 0.0]).log1p())
                self.assertEqual(float(label), position % 2)
                texts = lines[position].split("\t")[3:]
                expected = [tsv._hash(t.encode(), tsv.stable_hash(f"c{k + 1}".encode())) for k, t in enumerate(texts)]
                self.assertEqual([one % (1 << 64) for one in ids.tolist()], expected)
            batch = pickle.loads(pickle.dumps(data)).batch([3, 1])
            self.assertTrue(torch.equal(batch[1], torch.stack([data[3][1], data[1][1]])))
        # As value_hash_test.cc has them.
        for text, field, expected in (
            (b"68fd1e64", b"c1", 0xC8090938E55E3FB0),
            (b"68fd1e64", b"c2", 0xF750C6171AA68521),
            (b"", b"c1", 0x3DAD38D96CD8ADB9),
            (b"a longer value", b"c26", 0x2C31F193634D9E97),
        ):
            self.assertEqual(tsv._hash(text, tsv.stable_hash(field)), expected)

    def test_a_path_of_a_pod_is_where_its_volume_is(self):
        expected = self.write("1\t2\t3\ta\tb\tc")[0]
        directory, name = os.path.split(self.path)
        with mock.patch.dict(os.environ, {"KEELSON_MOUNTS": json.dumps({"/data": directory})}):
            found = kt.TsvDataset(f"/data/{name}", dense=2, ids=3)[0]
        for one, other in zip(found, expected):
            self.assertTrue(torch.equal(torch.as_tensor(one), torch.as_tensor(other)))

    def test_what_is_no_record_is_named(self):
        good = "1\t2\t3\ta\tb\tc"
        for line, error in (
            ("1\t2\t3\ta\tb", ":2: expected 6 columns, found 5"),
            ("2\t2\t3\ta\tb\tc", ":2: expected 0 or 1 as the label, and whole numbers or nothing, found '2'"),
            ("1\t2\tx\ta\tb\tc", ":2: expected 0 or 1 as the label, and whole numbers or nothing, found 'x'"),
            ("1\t2\t-\ta\tb\tc", "found '-'"),
        ):
            data = self.write(good, line)
            data[0]
            with self.assertRaisesRegex(ValueError, error):
                data[1]
        with self.assertRaisesRegex(IndexError, "expected one of 2 records, found 2"):
            data[2]
        with self.assertRaisesRegex(ValueError, "expected lines, found an empty file"):
            self.write("")
        with self.assertRaisesRegex(ValueError, "label: expected a column from 0 to 39, found 40"):
            kt.TsvDataset(self.path, label=40)


if __name__ == "__main__":
    unittest.main()
