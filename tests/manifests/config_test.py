"""The job configs in the ConfigMaps: copies of those in configs/, which other tests train with."""

import unittest

from support import REPOSITORY, all_documents


class JobConfigs(unittest.TestCase):
    def test_are_those_of_the_repository(self) -> None:
        texts = {path.read_text(encoding="utf-8"): path for path in (REPOSITORY / "configs").iterdir()}
        maps = [d for d in all_documents() if "job.textproto" in d.content.get("data", {})]
        self.assertGreaterEqual(len(maps), 8)
        for document in maps:
            with self.subTest(document.name):
                self.assertEqual(list(document.content["data"]), ["job.textproto"])
                self.assertIn(
                    document.content["data"]["job.textproto"],
                    texts,
                    "expected the text of one of configs/*.textproto; copy it again",
                )
