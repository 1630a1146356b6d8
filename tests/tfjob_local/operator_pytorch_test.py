"""PyTorchJobs under the operator: success, failure and restarts, with the operator's words."""

import unittest

from operator_fakes import World, make_job
from tfjob_api.job_kind import PYTORCH_JOB
from tfjob_api.model import ElasticPolicy
from tfjob_local.operator_rules import Rules


def world(policy="OnFailure", version="1.9.3", rules=None, **fields):
    return World(make_job(policy, kind=PYTORCH_JOB, **fields), rules, version).start()


class SuccessTest(unittest.TestCase):
    def test_the_master_decides_whatever_the_workers_do(self):
        for rules in (Rules.strict(), Rules.lenient()):
            job = world(Master=1, Worker=2, rules=rules)
            self.assertEqual(job.message("Running"), "PyTorchJob mnist is running.")
            job.exit("worker-0", 0)
            self.assertEqual(job.conditions(), ["Created", "Running"])
            job.exit("master-0", 0)
            self.assertEqual(job.conditions(), ["Created", "!Running", "Succeeded"])
            self.assertEqual(job.message("Succeeded"), "PyTorchJob mnist is successfully completed.")
            self.assertEqual(job.status.condition("Succeeded").reason, "PyTorchJobSucceeded")

    def test_without_a_master_all_workers_do(self):
        job = world(Worker=2)
        self.assertEqual(job.message("Running"), "PyTorchJob default/mnist is running.")
        job.exit("worker-0", 0)
        self.assertEqual(job.conditions(), ["Created", "Running"])
        job.exit("worker-1", 0)
        self.assertEqual(job.conditions(), ["Created", "!Running", "Succeeded"])
        self.assertEqual(job.message("Succeeded"), "PyTorchJob default/mnist successfully completed.")

    def test_of_an_elastic_job_any_worker_does_since_1_6(self):
        for version, expected in (("1.5", "Running"), ("1.6", "Succeeded")):
            job = world(Worker=2, elastic_policy=ElasticPolicy(), version=version)
            job.exit("worker-1", 0)
            self.assertEqual(job.conditions()[-1], expected)


class FailureTest(unittest.TestCase):
    def test_the_kubelet_restarts_in_place(self):
        for rules in (Rules.strict(), Rules.lenient()):
            job = world(Master=1, Worker=1, rules=rules)
            job.exit("worker-0", 137)
            self.assertEqual(job.pods["worker-0"].restart_count, 1)
            self.assertEqual(job.conditions(), ["Created", "Running"])

    def test_a_lost_pod_is_made_anew(self):
        job = world(Master=1, Worker=1)
        job.pods.lose("worker-0")
        job.reconcile()
        self.assertEqual(job.pods.deleting(), ["worker-0"])
        self.assertEqual(job.conditions(), ["Created", "Restarting"])
        # Of two in one pass the later one counts.
        self.assertEqual(
            [event for event in job.events if "Restarting" in event][-1],
            "PyTorchJobRestarting PyTorchJob mnist is restarting because 1 Worker replica(s) failed.",
        )
        job.pods.vanish()
        job.reconcile()
        self.assertEqual(job.pods.names(), ["master-0", "worker-0"])

    def test_never_fails_the_job(self):
        for rules in (Rules.strict(), Rules.lenient()):
            job = world("Never", Master=1, Worker=1, rules=rules)
            job.exit("worker-0", 1)
            self.assertEqual(job.conditions(), ["Created", "!Running", "Failed"])
            self.assertEqual(job.message("Failed"), "PyTorchJob mnist is failed because 1 Worker replica(s) failed.")

    def test_exit_codes(self):
        for rules in (Rules.strict(), Rules.lenient()):
            job = world("ExitCode", Master=1, Worker=1, rules=rules)
            job.exit("worker-0", 137)
            self.assertNotIn("Failed", job.conditions())
            job = world("ExitCode", Master=1, Worker=1, rules=rules)
            job.exit("worker-0", 1)
            self.assertIn("Failed", job.conditions())
            self.assertEqual(job.message("Failed"), 'job "mnist" is failing because "Worker" replica(s) failed.')

    def test_1_7_restarts_for_ever_after_a_permanent_exit_code(self):
        """A known bug: no new pod is made, and the job does not fail."""
        job = world("ExitCode", Master=1, Worker=1, version="1.7")
        job.exit("worker-0", 1)
        self.assertEqual(job.conditions(), ["Created", "Restarting"])
        self.assertEqual(job.pods.deleting(), [])
        lenient = world("ExitCode", Master=1, Worker=1, version="1.7", rules=Rules.lenient())
        lenient.exit("worker-0", 1)
        self.assertIn("Failed", lenient.conditions())

    def test_before_1_7_reasons_do_not_name_the_kind(self):
        job = world(Master=1, version="1.6")
        self.assertEqual(job.status.condition("Running").reason, "JobRunning")

    def test_the_backoff_limit_counts_restarts_in_place(self):
        job = world(Master=1, Worker=1, run_policy={"backoff_limit": 2})
        job.exit("worker-0", 1)
        self.assertEqual(job.conditions(), ["Created", "Running"])
        job.exit("master-0", 1)
        self.assertIn("Failed", job.conditions())
        self.assertEqual(job.message("Failed"), "Job mnist has failed because it has reached the specified backoff limit")

    def test_pods_stay_after_the_job_by_default(self):
        job = world(Master=1, Worker=1, version="1.4")
        job.exit("master-0", 0)
        job.reconcile()
        self.assertEqual(job.pods.deleting(), [])


if __name__ == "__main__":
    unittest.main()
