"""backoffLimit and activeDeadlineSeconds: as the operator counts, and as its users expect."""

import unittest

from operator_fakes import START, World, make_job
from tfjob_api.status import JobStatus, ReplicaStatus
from tfjob_local.operator_pods import RestartLedger
from tfjob_local.operator_rules import Rules, reached_backoff_limit
from tfjob_local.pods import Phase, Pod

BACKOFF_MESSAGE = "Job mnist has failed because it has reached the specified backoff limit"
DEADLINE_MESSAGE = "Job mnist has failed because it was active longer than specified deadline"


def started(limit, policy, rules=None, **replicas):
    numbers = replicas or {"PS": 1, "Worker": 2}
    policies = {replica_type: policy for replica_type in numbers}
    job = make_job(Chief=1, policies=policies, run_policy={"backoff_limit": limit}, **numbers)
    return World(job, rules).start()


def fail(world, name, code=1):
    """It ends and runs again, if the job still does."""
    world.exit(name, code)
    world.reconcile()
    world.pods.run()
    world.reconcile()


class StrictBackoffTest(unittest.TestCase):
    """Restarts in place of pods that run now; the whole job's; nothing else."""

    def test_limit_is_reached_by_that_many_restarts(self):
        world = started(2, "OnFailure")
        fail(world, "worker-0")
        self.assertFalse(world.operator.finished)
        fail(world, "worker-1", 7)
        self.assertEqual(world.operator.outcome.reason, BACKOFF_MESSAGE)
        self.assertEqual(world.operator.outcome.failed_pod, ("worker-1", 7))
        self.assertEqual(world.conditions(), ["Created", "!Running", "Failed"])
        self.assertEqual(world.status.completion_time, START)

    def test_zero_admits_none(self):
        world = started(0, "OnFailure")
        self.assertFalse(world.operator.finished)
        fail(world, "ps-0")
        self.assertEqual(world.operator.outcome.reason, BACKOFF_MESSAGE)

    def test_zero_counts_failed_pods_too(self):
        world = started(0, "ExitCode")
        fail(world, "worker-1", 137)
        self.assertEqual(world.operator.outcome.reason, BACKOFF_MESSAGE)

    def test_zero_admits_a_replica_that_succeeds(self):
        world = started(0, "ExitCode")
        world.exit("worker-1", 0)
        self.assertFalse(world.operator.finished)

    def test_zero_looks_at_failed_pods_only_while_others_are_missing(self):
        job = make_job("ExitCode", Chief=1, Worker=1, run_policy={"backoff_limit": 0})
        pods = [
            Pod("mnist-chief-0", "Chief", 0, 1, Phase.RUNNING),
            Pod("mnist-worker-0", "Worker", 0, 2, Phase.RUNNING),
            Pod("mnist-worker-1", "Worker", 1, 3, Phase.FAILED, 137),
        ]
        self.assertFalse(reached_backoff_limit(job, JobStatus(), pods))
        pods[1].deleting = True
        self.assertTrue(reached_backoff_limit(job, JobStatus(), pods))
        counted = JobStatus(replica_statuses={"Worker": ReplicaStatus(failed=1)})
        self.assertFalse(reached_backoff_limit(job, counted, pods))

    def test_exit_code_retries_are_not_counted_by_a_greater_limit(self):
        world = started(1, "ExitCode")
        for _ in range(20):
            fail(world, "worker-1", 137)
        self.assertFalse(world.operator.finished)

    def test_never_is_not_counted(self):
        world = started(1, "Never")
        world.pods["worker-1"].restart_count = 5  # Of an init container.
        world.reconcile()
        self.assertFalse(world.operator.finished)

    def test_pod_that_was_restarted_and_has_ended_counts_no_more(self):
        world = started(2, "OnFailure")
        fail(world, "worker-0")
        world.exit("worker-0", 0)
        fail(world, "worker-1")
        self.assertFalse(world.operator.finished)

    def test_without_limit(self):
        world = started(None, "OnFailure")
        for _ in range(50):
            fail(world, "worker-1")
        self.assertFalse(world.operator.finished)


class LenientBackoffTest(unittest.TestCase):
    """Every restart of the job counts; the limit is how many are admitted."""

    def check(self, policy, code):
        world = started(2, policy, Rules.lenient())
        fail(world, "worker-0", code)
        fail(world, "worker-1", code)
        self.assertFalse(world.operator.finished)
        fail(world, "ps-0", code)
        self.assertEqual(world.operator.outcome.reason, BACKOFF_MESSAGE)
        self.assertEqual(world.operator.outcome.failed_pod, ("ps-0", code))

    def test_restarts_in_place(self):
        self.check("OnFailure", 1)
        self.check("Always", 0)

    def test_new_pods(self):
        self.check("ExitCode", 137)

    def test_zero_admits_none(self):
        world = started(0, "ExitCode", Rules.lenient())
        fail(world, "worker-0", 137)
        self.assertEqual(world.operator.outcome.reason, BACKOFF_MESSAGE)

    def test_ended_pods_count_too(self):
        world = started(1, "OnFailure", Rules.lenient())
        fail(world, "worker-0")
        world.exit("worker-0", 0)
        fail(world, "worker-1")
        self.assertEqual(world.operator.outcome.reason, BACKOFF_MESSAGE)

    def test_a_pod_in_place_of_another_adds_to_its_restarts(self):
        world = started(2, "OnFailure", Rules.lenient())
        fail(world, "worker-0")
        world.pods.lose("worker-0")
        world.settle()
        world.reconcile()
        world.pods.run()
        self.assertFalse(world.operator.finished)
        fail(world, "worker-0")
        self.assertEqual(world.operator.outcome.reason, BACKOFF_MESSAGE)

    def test_what_the_launcher_itself_ends_is_no_restart(self):
        world = started(0, "ExitCode", Rules.lenient())
        world.operator.suspend()
        world.reconcile()
        for name in world.pods.names():
            world.pods.exit(name, 143)
        world.settle()
        world.settle()
        self.assertEqual(world.pods.names(), [])
        world.operator.resume()
        world.reconcile()
        self.assertFalse(world.operator.finished)


class RestartLedgerTest(unittest.TestCase):
    def test_a_failed_pod_counts_once_however_often_it_is_seen(self):
        ledger = RestartLedger()
        pod = Pod("mnist-worker-1", "Worker", 1, 7, Phase.FAILED, 137, restart_count=2)
        for _ in range(3):
            ledger.observe([pod], lambda seen: True)
        self.assertEqual((ledger.total, ledger.restarts("worker-1"), ledger.restarts("worker-0")), (3, 3, 0))
        self.assertEqual(ledger.last_failure, ("worker-1", 137))


class DeadlineTest(unittest.TestCase):
    def started(self, rules=None, version="1.9.4"):
        job = make_job(Chief=1, Worker=2, run_policy={"active_deadline_seconds": 60})
        return World(job, rules, version).start()

    def test_strict_notices_it_when_something_happens(self):
        world = self.started()
        world.after(3600)
        self.assertFalse(world.operator.finished)
        world.exit("worker-1", 0)
        self.assertEqual(world.operator.outcome.reason, DEADLINE_MESSAGE)
        self.assertIsNone(world.operator.outcome.failed_pod)

    def test_strict_up_to_1_2_notices_it_in_time(self):
        for version, in_time in (("1.2.0", True), ("1.3.0", False)):
            world = self.started(version=version)
            world.after(60)
            self.assertEqual(world.operator.finished, in_time, version)

    def test_lenient_notices_it_in_time(self):
        world = self.started(Rules.lenient())
        world.after(59.5)
        self.assertFalse(world.operator.finished)
        world.after(0.5)
        self.assertEqual(world.operator.outcome.reason, DEADLINE_MESSAGE)
        self.assertEqual(world.conditions(), ["Created", "!Running", "Failed"])

    def test_starts_anew_when_the_job_is_resumed(self):
        world = self.started(Rules.lenient())
        world.after(50)
        world.operator.suspend()
        world.settle()
        world.settle()
        world.after(3600)
        self.assertFalse(world.operator.finished)
        world.operator.resume()
        world.reconcile()
        world.after(59)
        self.assertFalse(world.operator.finished)
        world.after(1)
        self.assertEqual(world.operator.outcome.reason, DEADLINE_MESSAGE)

    def test_backoff_limit_is_looked_at_first(self):
        run_policy = {"active_deadline_seconds": 60, "backoff_limit": 0}
        world = World(make_job("OnFailure", Chief=1, Worker=1, run_policy=run_policy)).start()
        world.now += 60
        world.exit("worker-0", 1)
        self.assertEqual(world.operator.outcome.reason, BACKOFF_MESSAGE)
