"""The status of a TrainJob as kubectl shows it."""

import unittest

import support
from tfjob_api.conditions import find_end, read_conditions, state
from tfjob_api.status import COMPLETE, FAILED, SUSPENDED
from tfjob_api.trainjob_status import ALL_JOBS_COMPLETED, NodeCounts, TrainJobStatus

assert support.REPOSITORY

NONE = {"active": 0, "failed": 0, "name": "node", "ready": 0, "succeeded": 0, "suspended": 0}


class TrainJobStatusTest(unittest.TestCase):
    def setUp(self):
        self.status = TrainJobStatus()

    def job(self):
        return self.status.to_document()["jobsStatus"]

    def test_the_job(self):
        self.assertEqual(self.job(), [NONE])
        self.status.nodes = NodeCounts(wanted=2, active=2, running=1)
        self.assertEqual(self.job(), [{**NONE, "active": 1}])
        self.status.nodes = NodeCounts(wanted=2, active=1, running=1, succeeded=1)
        self.assertEqual(self.job(), [{**NONE, "active": 1, "ready": 1}])
        self.status.update(COMPLETE, ALL_JOBS_COMPLETED, "m", 1)
        self.assertEqual(self.job(), [{**NONE, "succeeded": 1}])

    def test_one_that_runs_has_no_condition(self):
        self.assertEqual(state({"status": self.status.to_document()}), "")
        self.status.nodes = NodeCounts(wanted=2, active=2)
        self.assertEqual(state({"status": self.status.to_document()}), "Running")

    def test_conditions_stay_in_their_place(self):
        self.assertTrue(self.status.update(SUSPENDED, "Suspended", "a", 10))
        self.assertFalse(self.status.update(SUSPENDED, "Suspended", "a", 20))
        self.assertTrue(self.status.update(SUSPENDED, "Resumed", "b", 30, False))
        self.assertTrue(self.status.update(FAILED, "FailedJobs", "c", 40))
        found = [(c.type, c.status, c.reason, c.last_transition_time) for c in self.status.conditions]
        self.assertEqual(found, [(SUSPENDED, False, "Resumed", 30), (FAILED, True, "FailedJobs", 40)])
        self.assertTrue(self.status.finished)
        self.assertEqual(self.job(), [{**NONE, "failed": 1}])

    def test_document(self):
        self.status.update(COMPLETE, ALL_JOBS_COMPLETED, "jobset completed successfully", 0)
        document = {"status": self.status.to_document()}
        self.assertEqual(
            document["status"]["conditions"],
            [
                {
                    "lastTransitionTime": "1970-01-01T00:00:00Z",
                    "message": "jobset completed successfully",
                    "reason": "AllJobsCompleted",
                    "status": "True",
                    "type": "Complete",
                }
            ],
        )
        self.assertEqual((find_end(read_conditions(document)).type, state(document)), ("Complete", "Complete"))


if __name__ == "__main__":
    unittest.main()
