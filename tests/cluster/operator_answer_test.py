"""Compares the launcher's answer with what a real operator made of the same manifests.

The golden files are written by tests/cluster/run.sh --golden, which asks a real API server and operator.
"""

import unittest

import jobs
from operator_view import compare, launchers_answer


class OperatorsAnswer(unittest.TestCase):
    maxDiff = None

    def test_every_file_of_tfjobs_has_an_answer(self) -> None:
        named = {source.golden.name for source in jobs.sources() if source.jobs}
        self.assertEqual(named | {"refused-jobs.json"}, {path.name for path in jobs.GOLDEN.glob("*.json")})

    def test_pods_and_services_are_those_that_the_operator_made(self) -> None:
        for source in jobs.sources():
            answers = jobs.read_golden(source.golden) if source.jobs else {}
            self.assertEqual(sorted(answers), sorted(job["metadata"]["name"] for job in source.jobs))
            for job in source.jobs:
                name = job["metadata"]["name"]
                with self.subTest(source.path, job=name):
                    expected = launchers_answer(jobs.read_job(job, source.path))
                    compared, differences = compare(answers[name], expected)
                    self.assertGreater(compared, 15)
                    self.assertEqual(differences, [])

    def test_the_launcher_refuses_with_the_webhooks_words(self) -> None:
        source = jobs.load(jobs.REFUSED)
        answers = jobs.read_golden(source.golden)
        self.assertEqual(len(answers), len(source.jobs))
        for job in source.jobs:
            name = job["metadata"]["name"]
            with self.subTest(name):
                self.assertEqual(jobs.one_order(jobs.refusal(job, source.path)), answers[name])


if __name__ == "__main__":
    unittest.main()
