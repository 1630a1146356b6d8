"""Tests how the pods' states determine the job's: the cases that the operator's own tests list.

Each case names how many pods of a type have failed, succeeded and run; there are no others. The
operator's tests ask whether one condition is in the list; these ask for the whole list.
"""

import unittest

from operator_fakes import START, World, make_job
from tfjob_local.pods import Phase


def world_with(job, exit_codes=None, **pods):
    """`pods`: by type (failed, succeeded, active); indexes go in the order succeeded, failed, active."""
    world = World(job)
    for replica_type, (failed, succeeded, active) in pods.items():
        phases = [Phase.SUCCEEDED] * succeeded + [Phase.FAILED] * failed + [Phase.RUNNING] * active
        for index, phase in enumerate(phases):
            world.pods.create(replica_type, index)
            pod = world.pods[f"{replica_type.lower()}-{index}"]
            pod.phase = phase
            pod.exit_code = (exit_codes or {}).get(pod.replica_name)
    world.reconcile()
    return world


class StatusTest(unittest.TestCase):
    def check(self, expected, job, exit_codes=None, **pods):
        world = world_with(job, exit_codes, **pods)
        self.assertEqual(world.conditions(), ["Created", *expected])
        return world

    def test_chief_succeeded(self):
        self.check(["Succeeded"], make_job(Chief=1, Worker=1), Chief=(0, 1, 0), Worker=(0, 1, 0))

    def test_chief_is_running(self):
        self.check(["Running"], make_job(Chief=1, Worker=1), Chief=(0, 0, 1))

    def test_chief_failed(self):
        self.check(["Failed"], make_job(Chief=1, Worker=1), Chief=(1, 0, 0))

    def test_no_chief_worker_failed(self):
        self.check(["Failed"], make_job(Worker=1), Worker=(1, 0, 0))

    def test_no_chief_worker_succeeded(self):
        self.check(["Succeeded"], make_job(Worker=1), Worker=(0, 1, 0))

    def test_no_chief_worker_is_running(self):
        self.check(["Running"], make_job(Worker=1), Worker=(0, 0, 1))

    def test_no_chief_two_workers_succeeded_but_nobody_saw_worker_0_end_well(self):
        self.check(["Running"], make_job(Worker=4, PS=2), Worker=(0, 2, 2), PS=(0, 0, 2))

    def test_no_chief_two_workers_run_two_failed(self):
        world = self.check(["!Running", "Failed"], make_job(Worker=4, PS=2), Worker=(2, 0, 2), PS=(0, 0, 2))
        self.assertEqual(
            world.message("Failed"), "TFJob default/mnist has failed because 2 Worker replica(s) failed."
        )

    def test_no_chief_two_workers_succeeded_two_failed(self):
        self.check(["Failed"], make_job(Worker=4, PS=2), Worker=(2, 2, 0), PS=(0, 0, 2))

    def test_no_chief_worker_0_succeeded_three_run(self):
        job = make_job(Worker=4, PS=2)
        self.check(["Succeeded"], job, {"worker-0": 0}, Worker=(0, 1, 3), PS=(0, 0, 2))

    def test_all_workers_worker_0_succeeded_three_run(self):
        job = make_job(Worker=4, success_policy="AllWorkers")
        self.check(["Running"], job, {"worker-0": 0}, Worker=(0, 1, 3))

    def test_all_workers_four_succeeded(self):
        job = make_job(Worker=4, success_policy="AllWorkers")
        self.check(["Succeeded"], job, {"worker-0": 0}, Worker=(0, 4, 0))

    def test_all_workers_one_failed(self):
        job = make_job(Worker=4, success_policy="AllWorkers")
        self.check(["!Running", "Failed"], job, {"worker-0": 0}, Worker=(1, 1, 2))

    def test_chief_is_running_workers_failed(self):
        pods = {"Chief": (0, 0, 1), "Worker": (4, 0, 0), "PS": (0, 0, 2)}
        self.check(["!Running", "Failed"], make_job(Chief=1, Worker=4, PS=2), **pods)

    def test_chief_is_running_workers_succeeded(self):
        pods = {"Chief": (0, 0, 1), "Worker": (0, 4, 0), "PS": (0, 0, 2)}
        self.check(["Running"], make_job(Chief=1, Worker=4, PS=2), **pods)

    def test_chief_is_running_a_server_failed(self):
        pods = {"Chief": (0, 0, 1), "Worker": (0, 4, 0), "PS": (1, 0, 1)}
        world = self.check(["!Running", "Failed"], make_job(Chief=1, Worker=4, PS=2), **pods)
        message = "TFJob default/mnist has failed because 1 PS replica(s) failed."
        self.assertEqual(world.message("Failed"), message)

    def test_chief_failed_workers_succeeded(self):
        pods = {"Chief": (1, 0, 0), "Worker": (0, 4, 0), "PS": (0, 0, 2)}
        self.check(["Failed"], make_job(Chief=1, Worker=4, PS=2), **pods)

    def test_chief_succeeded_workers_failed_both_at_once(self):
        pods = {"Chief": (0, 1, 0), "Worker": (4, 0, 0), "PS": (0, 0, 2)}
        world = self.check(["Succeeded", "Failed"], make_job(Chief=1, Worker=4, PS=2), **pods)
        self.assertEqual(world.status.conditions[-1].type, "Failed")
        self.assertFalse(world.operator.outcome.succeeded)

    def test_chief_failed_and_restarts(self):
        pods = {"Chief": (1, 0, 0), "Worker": (4, 0, 0), "PS": (0, 0, 2)}
        codes = {name: 130 for name in ("chief-0", "worker-0", "worker-1", "worker-2", "worker-3")}
        world = self.check(["Restarting"], make_job("ExitCode", Chief=1, Worker=4, PS=2), codes, **pods)
        message = r"^job mnist is restarting because \w+ replica\(s\) failed\.$"
        self.assertRegex(world.message("Restarting"), message)


class OtherTypesTest(unittest.TestCase):
    """The types that the list above leaves out."""

    def test_master_leads_as_the_chief_does(self):
        world = world_with(make_job(Master=1, Worker=2), Master=(0, 1, 0), Worker=(0, 0, 2))
        self.assertEqual(world.conditions(), ["Created", "Succeeded"])

    def test_every_one_of_two_chiefs_must_succeed(self):
        job = make_job(Chief=2, Worker=1)
        self.assertEqual(world_with(job, Chief=(0, 1, 1)).conditions(), ["Created", "Running"])
        self.assertEqual(world_with(job, Chief=(0, 2, 0)).conditions(), ["Created", "Succeeded"])

    def test_failed_evaluator_fails_the_job(self):
        job = make_job(Chief=1, Worker=1, Evaluator=1)
        world = world_with(job, Chief=(0, 0, 1), Worker=(0, 0, 1), Evaluator=(1, 0, 0))
        self.assertEqual(
            world.message("Failed"), "TFJob default/mnist has failed because 1 Evaluator replica(s) failed."
        )
        self.assertEqual(world.operator.outcome.failed_pod, ("evaluator-0", None))

    def test_evaluator_is_not_waited_for(self):
        job = make_job(Chief=1, Evaluator=1)
        world = world_with(job, {"chief-0": 0}, Chief=(0, 1, 0), Evaluator=(0, 0, 1))
        self.assertTrue(world.operator.outcome.succeeded)

    def test_success_policy_does_nothing_beside_a_chief(self):
        job = make_job(Chief=1, Worker=2, success_policy="AllWorkers")
        self.assertTrue(world_with(job, Chief=(0, 1, 0), Worker=(0, 0, 2)).status.succeeded)

    def test_without_chief_and_workers_nothing_ends_the_job(self):
        world = world_with(make_job(PS=2), PS=(0, 2, 0))
        self.assertEqual(world.conditions(), ["Created"])
        self.assertIsNone(world.operator.outcome)

    def test_failed_worker_of_a_dynamic_job_is_tolerated_and_a_server_is_not(self):
        job = make_job(Worker=3, PS=2, dynamic_workers=True)
        world = world_with(job, Worker=(1, 0, 2), PS=(0, 0, 2))
        self.assertEqual(world.conditions(), ["Created", "Running"])
        world = world_with(job, Worker=(0, 0, 3), PS=(1, 0, 1))
        self.assertTrue(world.status.failed)


class CountsTest(unittest.TestCase):
    def test_active_succeeded_failed_and_pending_nowhere(self):
        world = World(make_job(Worker=4))
        world.reconcile()
        self.assertEqual(world.counts("Worker"), (0, 0, 0))
        world.pods.run("worker-0", "worker-1", "worker-2")
        world.pods.exit("worker-1", 0)
        world.pods.exit("worker-2", 1)
        world.reconcile()
        self.assertEqual(world.counts("Worker"), (1, 1, 1))

    def test_after_success_what_is_active_counts_as_succeeded(self):
        world = World(make_job(Chief=1, Worker=2, PS=2)).start()
        self.assertEqual(world.counts("PS"), (2, 0, 0))
        world.exit("chief-0", 0)
        self.assertEqual(world.counts("PS"), (0, 2, 0))
        self.assertEqual(world.counts("Worker"), (0, 2, 0))
        self.assertEqual(world.pods.alive(), ["ps-0", "ps-1", "worker-0", "worker-1"])

    def test_after_failure_it_stays_active(self):
        world = World(make_job(Chief=1, Worker=2)).start()
        world.exit("worker-0", 1)
        self.assertEqual(world.counts("Worker"), (1, 0, 1))


class TimesTest(unittest.TestCase):
    def test_start_and_completion(self):
        world = World(make_job(Chief=1, Worker=1))
        self.assertIsNone(world.status.start_time)
        world.start()
        self.assertEqual(world.status.start_time, START)
        self.assertIsNone(world.status.completion_time)
        world.now += 60
        world.exit("chief-0", 0)
        world.now += 60
        world.reconcile()
        self.assertEqual(world.status.completion_time, START + 60)


class OutcomeTest(unittest.TestCase):
    def test_success(self):
        world = World(make_job(Chief=1, Worker=1)).start()
        self.assertIsNone(world.operator.outcome)
        world.exit("chief-0", 0)
        outcome = world.operator.outcome
        self.assertTrue(outcome.succeeded)
        self.assertEqual(outcome.reason, "TFJob default/mnist successfully completed.")
        self.assertIsNone(outcome.failed_pod)

    def test_failure_names_the_first_pod(self):
        world = World(make_job(Chief=1, Worker=3)).start()
        world.pods.exit("worker-2", 4)
        world.pods.exit("worker-1", 3)
        world.reconcile()
        outcome = world.operator.outcome
        self.assertFalse(outcome.succeeded)
        self.assertEqual(outcome.reason, "TFJob default/mnist has failed because 2 Worker replica(s) failed.")
        self.assertEqual(outcome.failed_pod.replica_name, "worker-1")
        self.assertEqual(outcome.failed_pod.exit_code, 3)
