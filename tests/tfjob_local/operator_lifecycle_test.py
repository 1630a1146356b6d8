"""A job's life: its pods made, scaled, suspended and resumed, and the leader ending it."""

import unittest

from operator_fakes import START, World, make_job
from tfjob_local.operator_rules import Rules
from tfjob_local.pods import Phase


class CreationTest(unittest.TestCase):
    def test_job_is_created_before_anything_else(self):
        world = World(make_job(Chief=1, Worker=2))
        self.assertEqual(world.conditions(), ["Created"])
        self.assertEqual(world.message("Created"), "TFJob mnist is created.")
        self.assertEqual(world.pods.names(), [])

    def test_every_replica_gets_its_pod_once(self):
        world = World(make_job(Chief=1, Evaluator=1, PS=2, Worker=3))
        for _ in range(3):
            world.reconcile()
        expected = ["chief-0", "evaluator-0", "ps-0", "ps-1", "worker-0", "worker-1", "worker-2"]
        self.assertEqual(world.pods.names(), expected)
        self.assertEqual(world.conditions(), ["Created"])
        self.assertEqual(len(world.events), 7)
        self.assertIn("SuccessfulCreatePod Created pod: mnist-evaluator-0", world.events)

    def test_type_without_replicas(self):
        world = World(make_job(PS=0, Worker=1)).start()
        self.assertEqual(world.pods.names(), ["worker-0"])
        self.assertEqual(world.counts("PS"), (0, 0, 0))

    def test_runs_as_soon_as_the_leader_does(self):
        world = World(make_job(Chief=1, Worker=1))
        world.reconcile()
        world.pods.run("worker-0")
        world.reconcile()
        self.assertEqual(world.conditions(), ["Created"])
        world.pods.run("chief-0")
        world.reconcile()
        self.assertEqual(world.conditions(), ["Created", "Running"])
        self.assertEqual(world.message("Running"), "TFJob default/mnist is running.")


class ShutdownTest(unittest.TestCase):
    """The end of the job, with the operator as it is and as its users want it."""

    RULES = (Rules.strict(), Rules.lenient())

    def test_chief_ends_the_job(self):
        for rules in self.RULES:
            world = World(make_job(Chief=1, PS=1, Worker=2), rules).start()
            world.exit("worker-0", 0)
            world.exit("worker-1", 0)
            self.assertFalse(world.operator.finished)
            world.exit("chief-0", 0)
            self.assertTrue(world.operator.outcome.succeeded)
            self.assertEqual(world.conditions(), ["Created", "!Running", "Succeeded"])

    def test_worker_0_ends_a_job_without_chief(self):
        for rules in self.RULES:
            world = World(make_job(PS=1, Worker=3), rules).start()
            world.exit("worker-1", 0)
            self.assertFalse(world.operator.finished)
            world.exit("worker-0", 0)
            self.assertTrue(world.operator.outcome.succeeded)

    def test_all_workers_end_it_where_the_success_policy_says_so(self):
        for rules in self.RULES:
            world = World(make_job(Worker=2, success_policy="AllWorkers"), rules).start()
            world.exit("worker-0", 0)
            self.assertFalse(world.operator.finished)
            world.exit("worker-1", 0)
            self.assertTrue(world.operator.outcome.succeeded)

    def test_leader_that_restarts_ends_it_later(self):
        for rules in self.RULES:
            world = World(make_job("ExitCode", Chief=1, Worker=1), rules).start()
            world.exit("chief-0", 137)
            self.assertEqual(world.conditions(), ["Created", "Restarting"])
            world.reconcile()
            world.pods.run()
            world.reconcile()
            world.exit("chief-0", 0)
            self.assertEqual(world.conditions(), ["Created", "!Running", "Succeeded"])

    def test_nothing_happens_afterwards(self):
        for rules in self.RULES:
            world = World(make_job(Chief=1, Worker=2), rules).start()
            world.exit("chief-0", 0)
            conditions = world.status.conditions
            world.exit("worker-0", 1)
            world.pods.vanish("worker-1")
            world.reconcile()
            self.assertEqual(world.status.conditions, conditions)
            self.assertEqual(world.pods.names(), ["chief-0", "worker-0"])


class SuspendTest(unittest.TestCase):
    def test_suspended_from_the_start(self):
        world = World(make_job(Chief=1, Worker=1, run_policy={"suspend": True}))
        for _ in range(3):
            world.reconcile()
        self.assertEqual(world.pods.names(), [])
        self.assertEqual(world.conditions(), ["Created", "Suspended"])
        self.assertEqual(world.message("Suspended"), "TFJob mnist is suspended.")
        self.assertIsNone(world.status.start_time)
        self.assertEqual(world.events, ["TFJobSuspended TFJob mnist is suspended."])

    def test_resumed(self):
        world = World(make_job(Chief=1, Worker=1, run_policy={"suspend": True}))
        world.reconcile()
        world.operator.resume()
        world.after(100)
        self.assertEqual(world.conditions(), ["Created", "!Suspended"])
        self.assertEqual(world.status.condition("Suspended").reason, "TFJobResumed")
        self.assertEqual(world.message("Suspended"), "TFJob mnist is resumed.")
        self.assertEqual(world.status.start_time, START + 100)
        world.pods.run()
        world.reconcile()
        self.assertEqual(world.conditions(), ["Created", "!Suspended", "Running"])
        self.assertIn("TFJobResumed TFJob mnist is resumed.", world.events)

    def test_suspended_while_it_runs(self):
        for policy in ("None", "Running", "All"):
            job = make_job(Chief=1, PS=1, Worker=2, run_policy={"clean_pod_policy": policy})
            world = World(job).start()
            world.exit("worker-1", 0)
            world.operator.suspend()
            world.reconcile()
            self.assertEqual(world.pods.deleting(), ["chief-0", "ps-0", "worker-0", "worker-1"], policy)
            self.assertEqual(world.conditions(), ["Created", "!Running", "Suspended"])
            self.assertEqual(world.status.condition("Running").reason, "TFJobSuspended")
            self.assertEqual(world.counts("PS"), (0, 0, 0))
            self.assertEqual(world.status.start_time, START)

    def test_and_resumed_with_new_pods_and_a_new_start(self):
        world = World(make_job(Chief=1, Worker=1)).start()
        uid = world.pods["chief-0"].uid
        world.operator.suspend()
        world.settle()
        self.assertEqual(world.pods.names(), [])
        world.operator.resume()
        world.after(100)
        world.pods.run()
        world.reconcile()
        self.assertNotEqual(world.pods["chief-0"].uid, uid)
        self.assertEqual(world.status.start_time, START + 100)
        self.assertEqual(world.conditions(), ["Created", "!Suspended", "Running"])

    def test_lenient_lets_the_leader_end_first(self):
        for job, leader in (
            (make_job(Chief=1, PS=1, Worker=1), "chief-0"),
            (make_job(PS=1, Worker=2), "worker-0"),
        ):
            world = World(job, Rules.lenient()).start()
            everybody = world.pods.names()
            world.operator.suspend()
            world.reconcile()
            world.reconcile()
            self.assertEqual(world.pods.deleting(), [leader])
            self.assertTrue(world.status.is_true("Suspended"))
            world.pods.vanish(leader)
            world.reconcile()
            self.assertEqual(world.pods.deleting(), [name for name in everybody if name != leader])

    def test_lenient_has_no_leader_to_wait_for(self):
        world = World(make_job(Worker=2), Rules.lenient()).start()
        world.pods["worker-0"].phase = Phase.FAILED
        world.operator.suspend()
        world.reconcile()
        self.assertEqual(world.pods.deleting(), ["worker-0", "worker-1"])

    def test_resumed_while_the_old_pods_still_end(self):
        for rules, failed in ((Rules.strict(), True), (Rules.lenient(), False)):
            world = World(make_job(Chief=1, Worker=1), rules).start()
            world.operator.suspend()
            world.reconcile()
            world.operator.resume()
            world.reconcile()
            self.assertEqual(world.status.failed, failed)
            self.assertIn("chief-0", world.pods.deleting())
            self.assertEqual(world.pods.names(), ["chief-0", "worker-0"])

    def test_operator_that_does_not_know_it(self):
        world = World(make_job(Worker=1, run_policy={"suspend": True}), version="1.6.0").start()
        self.assertEqual(world.conditions(), ["Created", "Running"])
        with self.assertRaises(ValueError) as raised:
            world.operator.suspend()
        self.assertEqual(str(raised.exception), "operator 1.6.0 cannot suspend a job; 1.7 and newer can")

    def test_finished_job(self):
        world = World(make_job(Worker=1)).start()
        world.exit("worker-0", 0)
        for change in (world.operator.suspend, world.operator.resume):
            with self.assertRaisesRegex(ValueError, "^job mnist has finished$"):
                change()


class ScaleTest(unittest.TestCase):
    def test_up(self):
        world = World(make_job(Chief=1, Worker=1)).start()
        world.operator.scale({"Worker": 3})
        self.assertEqual(world.operator.job.replicas("Worker"), 3)
        world.reconcile()
        self.assertEqual(world.pods.names(), ["chief-0", "worker-0", "worker-1", "worker-2"])
        self.assertIs(world.pods["worker-0"].phase, Phase.RUNNING)

    def test_down_takes_the_highest(self):
        world = World(make_job(Chief=1, Worker=3), Rules.lenient()).start()
        world.operator.scale({"Worker": 1})
        world.settle()
        world.reconcile()
        self.assertEqual(world.pods.names(), ["chief-0", "worker-0"])
        self.assertEqual(world.conditions(), ["Created", "Running"])

    def test_down_fails_the_strict_job_since_1_7_while_the_pods_end(self):
        cases = (("1.6.0", False, False), ("1.7.0", False, True), ("1.9.4", True, False))
        for version, dynamic, failed in cases:
            world = World(make_job(PS=1, Worker=3, dynamic_workers=dynamic), version=version).start()
            world.operator.scale({"Worker": 1})
            world.reconcile()
            self.assertEqual(world.pods.deleting(), ["worker-1", "worker-2"])
            self.assertEqual(world.status.failed, failed, f"{version}, {dynamic}")

    def test_workers_to_none_beside_a_chief(self):
        world = World(make_job(Chief=1, Worker=2), Rules.lenient()).start()
        world.operator.scale({"Worker": 0})
        world.settle()
        self.assertEqual(world.pods.names(), ["chief-0"])

    def test_what_is_refused(self):
        cases = (
            ({"Evaluator": 1}, 'replica type: expected one of Chief, Worker, found "Evaluator"'),
            ({"Worker": -1}, "Worker: expected 0 replicas or more; found -1"),
            ({"Worker": 2, "Chief": 2}, "Chief: expected 1 replica, found 2"),
            ({"Chief": 0}, "Chief: expected 1 replica, found 0"),
        )
        world = World(make_job(Chief=1, Worker=1)).start()
        for numbers, message in cases:
            with self.assertRaises(ValueError) as raised:
                world.operator.scale(numbers)
            self.assertEqual(str(raised.exception), message)
            self.assertEqual(world.operator.job.replicas("Worker"), 1)

    def test_worker_0_stays_where_it_leads(self):
        world = World(make_job(PS=1, Worker=2)).start()
        with self.assertRaises(ValueError) as raised:
            world.operator.scale({"Worker": 0})
        self.assertEqual(
            str(raised.exception), "Worker: expected 1 replica or more, as worker 0 leads the job; found 0"
        )

    def test_finished_job(self):
        world = World(make_job(Chief=1, Worker=1)).start()
        world.exit("chief-0", 0)
        with self.assertRaisesRegex(ValueError, "^job mnist has finished$"):
            world.operator.scale({"Worker": 2})


class EventsTest(unittest.TestCase):
    def test_each_is_told_once(self):
        world = World(make_job("ExitCode", Chief=1, Worker=1)).start()
        world.pods.exit("worker-0", 137)
        for _ in range(3):
            world.reconcile()
        world.pods.vanish()
        for _ in range(3):
            world.reconcile()
        self.assertEqual(
            world.events,
            [
                "ExitedWithCode Pod: default.mnist-worker-0 exited with code 137",
                "TFJobRestarting job mnist is restarting because Worker replica(s) failed.",
                "SuccessfulDeletePod Deleted pod: mnist-worker-0",
                "SuccessfulCreatePod Created pod: mnist-worker-0",
            ],
        )

    def test_failure(self):
        world = World(make_job(Chief=1, Worker=1)).start()
        world.exit("worker-0", 3)
        world.reconcile()
        self.assertEqual(
            world.events,
            [
                "ExitedWithCode Pod: default.mnist-worker-0 exited with code 3",
                "TFJobFailed TFJob default/mnist has failed because 1 Worker replica(s) failed.",
            ],
        )
