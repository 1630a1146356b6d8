"""Tests the clean-up of a finished job: cleanPodPolicy and ttlSecondsAfterFinished."""

import unittest

from operator_fakes import World, make_job
from tfjob_local.operator_rules import Rules

ALL = ["chief-0", "ps-0", "worker-0", "worker-1"]


def finished(policy, chief_code, rules=None, version="1.9.4", **run_policy):
    """The chief has ended, worker 1 had succeeded before; ps 0 and worker 0 run."""
    run_policy["clean_pod_policy"] = policy
    world = World(make_job(Chief=1, PS=1, Worker=2, run_policy=run_policy), rules, version).start()
    world.exit("worker-1", 0)
    world.pods.exit("chief-0", chief_code)
    world.events.clear()
    world.reconcile()
    return world


class CleanPodPolicyTest(unittest.TestCase):
    """All, Running and None, after success and after failure alike."""

    def check(self, policy, deleted, version="1.9.4"):
        for code in (0, 1):
            world = finished(policy, code, version=version)
            self.assertTrue(world.operator.finished)
            self.assertEqual(world.pods.deleting(), deleted, f"chief's exit code {code}")

    def test_all(self):
        self.check("All", ALL)

    def test_running(self):
        self.check("Running", ["ps-0", "worker-0"])

    def test_none(self):
        self.check("None", [])

    def test_not_given(self):
        for version, deleted in (("1.5.0", ["ps-0", "worker-0"]), ("1.6.0", []), ("1.9.4", [])):
            self.check(None, deleted, version)

    def test_pending_pods_count_as_running(self):
        world = World(make_job(Chief=1, Worker=1, run_policy={"clean_pod_policy": "Running"}))
        world.reconcile()
        world.pods.run("chief-0")
        world.exit("chief-0", 0)
        self.assertEqual(world.pods.names(), ["chief-0"])

    def test_what_is_gone_is_not_made_anew(self):
        world = finished("All", 0)
        world.pods.vanish()
        for _ in range(3):
            world.reconcile()
        self.assertEqual(world.pods.names(), [])

    def test_events(self):
        self.assertEqual(
            finished("Running", 0).events,
            [
                "ExitedWithCode Pod: default.mnist-chief-0 exited with code 0",
                "TFJobSucceeded TFJob default/mnist successfully completed.",
                "SuccessfulDeletePod Deleted pod: mnist-ps-0",
                "SuccessfulDeletePod Deleted pod: mnist-worker-0",
            ],
        )

    def test_evaluator_is_not_given_time_for_its_last_evaluation(self):
        job = make_job(Chief=1, Evaluator=1, run_policy={"clean_pod_policy": "Running"})
        world = World(job).start()
        world.pods.exit("chief-0", 0)
        world.reconcile()
        self.assertEqual(world.pods.deleting(), ["evaluator-0"])

    def test_lenient_leaves_all_to_who_runs_the_operator(self):
        for policy in ("All", "Running", "None"):
            for code in (0, 1):
                world = finished(policy, code, Rules.lenient(), ttl_seconds_after_finished=0)
                world.after(3600)
                self.assertEqual(world.pods.deleting(), [])
                self.assertFalse(world.operator.expired)


class CleanUpAfterLimitsTest(unittest.TestCase):
    """A job that ran out of time: the policy counts, but from 1.7 to 1.9.3 every pod is deleted."""

    def deleted(self, policy, version):
        run_policy = {"clean_pod_policy": policy, "active_deadline_seconds": 60}
        world = World(make_job(Chief=1, PS=1, Worker=2, run_policy=run_policy), version=version).start()
        world.exit("worker-1", 0)
        world.now += 60
        # Something happens.
        world.pods.exit("worker-0", 0)
        world.reconcile()
        self.assertTrue(world.status.failed)
        return world.pods.deleting()

    def test_policy_counts(self):
        for version in ("1.6.0", "1.9.4"):
            self.assertEqual(self.deleted("None", version), [], version)
            self.assertEqual(self.deleted("Running", version), ["chief-0", "ps-0"], version)
            self.assertEqual(self.deleted("All", version), ALL, version)

    def test_every_pod_is_deleted(self):
        for version in ("1.7.0", "1.9.3"):
            for policy in ("None", "Running", "All"):
                self.assertEqual(self.deleted(policy, version), ALL, f"{version}, {policy}")


class TimeToLiveTest(unittest.TestCase):
    def test_job_is_deleted_with_all_its_pods(self):
        world = finished("None", 0, ttl_seconds_after_finished=60)
        world.after(60)
        self.assertFalse(world.operator.expired)
        self.assertEqual(world.pods.deleting(), [])
        world.events.clear()
        world.after(0.5)
        self.assertTrue(world.operator.expired)
        self.assertEqual(world.pods.deleting(), ALL)
        self.assertEqual(world.events[0], "SuccessfulDeleteJob Deleted job: mnist")

    def test_after_failure_too(self):
        world = finished("None", 1, ttl_seconds_after_finished=0)
        world.after(0.5)
        self.assertTrue(world.operator.expired)

    def test_is_told_once(self):
        world = finished("None", 0, ttl_seconds_after_finished=0)
        for _ in range(3):
            world.after(1)
        self.assertEqual(world.events.count("SuccessfulDeleteJob Deleted job: mnist"), 1)

    def test_without_one_the_job_stays(self):
        world = finished("None", 0)
        world.after(10 * 365 * 24 * 3600)
        self.assertFalse(world.operator.expired)

    def test_not_before_the_job_has_finished(self):
        world = World(make_job(Chief=1, Worker=1, run_policy={"ttl_seconds_after_finished": 0})).start()
        world.after(3600)
        self.assertFalse(world.operator.expired)

    def test_job_without_completion_time_stays(self):
        job = make_job("ExitCode", Chief=1, Worker=2, run_policy={"ttl_seconds_after_finished": 0})
        world = World(job).start()
        world.pods.exit("worker-0", 137)
        world.pods.exit("worker-1", 1)
        world.reconcile()
        self.assertTrue(world.status.failed)
        world.after(3600)
        self.assertFalse(world.operator.expired)
