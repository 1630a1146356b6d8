"""Shared code of the tests of tfjob_api: reading manifests, exact errors and warnings."""

import os
import sys

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

sys.path[:0] = [os.path.join(REPOSITORY, "deploy"), os.path.join(REPOSITORY, "tests", "support")]

from temporary_directory import TemporaryDirectoryTest  # noqa: E402  (needs the path above)
from tfjob_api.fields import ManifestError  # noqa: E402
from tfjob_api.operator_version import OperatorVersion  # noqa: E402
from tfjob_api.reader import ReadOptions, read_manifest  # noqa: E402
from tfjob_text import manifest, replica  # noqa: E402, F401  (for the tests)


class ManifestTest(TemporaryDirectoryTest):
    """Reads manifests from a directory of its own, where they are called job.yaml."""

    def setUp(self):
        super().setUp()
        self.job_path = self.path("job.yaml")

    def read(self, text, version=None, **options):
        path = self.write("job.yaml", text)
        parsed = None if version is None else OperatorVersion.parse(version)
        return read_manifest([path], ReadOptions(version=parsed, **options))

    def read_spec(self, text, replica_type="Worker", **options):
        return self.read(text, **options).job.replica_specs[replica_type]

    def assert_refused(self, text, expected, **options):
        """`expected`: the whole error after the file's name, "FIELD: what"."""
        with self.assertRaises(ManifestError) as caught:
            self.read(text, **options)
        self.assert_error(caught.exception, f"{self.job_path}: {expected}")

    def assert_error(self, error, expected):
        self.assertEqual(str(error), expected)
        self.assertNotIn("\n", str(error))

    def assert_warnings(self, text, *expected, **options):
        """All of them, in order."""
        self.assertEqual(list(self.read(text, **options).warnings), list(expected))
