"""Restart policies: what the operator does with a replica that ended, and with its job."""

import unittest

from operator_fakes import World, make_job
from tfjob_local.operator_rules import Rules
from tfjob_local.pods import Phase

RETRYABLE_UP_TO_1_4 = {130, 137, 138, 143}
CODES = (0, 1, 2, 126, 127, 128, 130, 134, 137, 138, 139, 143)


def started(policy, version="1.9.4", rules=None, **replicas):
    """The chief never fails; the other replicas have `policy`."""
    numbers = replicas or {"Worker": 2}
    policies = {replica_type: policy for replica_type in numbers}
    return World(make_job(Chief=1, policies=policies, **numbers), rules, version).start()


class ExitCodeTest(unittest.TestCase):
    """Every code under every policy, with an operator of each generation: is the replica started again?"""

    def outcome(self, policy, code, version):
        world = started(policy, version)
        uid = world.pods["worker-0"].uid
        world.exit("worker-0", code)
        world.reconcile()
        if world.operator.finished:
            return "job failed"
        pod = world.pods["worker-0"]
        if pod.uid != uid:
            return "recreated"
        return "in place" if pod.restart_count else pod.phase.value

    def test_all(self):
        for version in ("1.4.0", "1.5.0", "1.9.4"):
            for code in CODES:
                failed = "Succeeded" if code == 0 else "job failed"
                retryable = code in RETRYABLE_UP_TO_1_4 if version == "1.4.0" else code >= 128
                expected = {
                    "Always": "in place",
                    "OnFailure": "Succeeded" if code == 0 else "in place",
                    "Never": failed,
                    "ExitCode": failed,
                }
                # Before 1.5 the running chief hides that the worker restarts.
                if retryable and version != "1.4.0":
                    expected["ExitCode"] = "recreated"
                for policy, what in expected.items():
                    with self.subTest(version=version, code=code, policy=policy):
                        self.assertEqual(self.outcome(policy, code, version), what)

    def test_up_to_1_4_a_worker_restarts_if_no_later_type_says_that_the_job_runs(self):
        for code in CODES:
            world = World(make_job(policies={"PS": "ExitCode"}, PS=1, Worker=1), version="1.4.0").start()
            uid = world.pods["ps-0"].uid
            world.exit("ps-0", code)
            world.reconcile()
            with self.subTest(code=code):
                self.assertEqual(world.pods["ps-0"].uid != uid, code in RETRYABLE_UP_TO_1_4)
                self.assertEqual(world.status.failed, code not in RETRYABLE_UP_TO_1_4 and code != 0)


class RecreationTest(unittest.TestCase):
    """ExitCode, retryable: Restarting until the new pod is there, then Running again."""

    def test_conditions_and_events(self):
        world = started("ExitCode")
        world.pods.exit("worker-1", 138)
        world.reconcile()
        self.assertEqual(world.conditions(), ["Created", "Restarting"])
        message = "job mnist is restarting because Worker replica(s) failed."
        self.assertEqual(world.message("Restarting"), message)
        self.assertEqual(world.pods.deleting(), ["worker-1"])
        self.assertEqual(
            world.events,
            [
                "ExitedWithCode Pod: default.mnist-worker-1 exited with code 138",
                f"TFJobRestarting {message}",
                "SuccessfulDeletePod Deleted pod: mnist-worker-1",
            ],
        )

    def test_new_pod_comes_when_the_old_one_is_gone(self):
        world = started("ExitCode")
        uid = world.pods["worker-1"].uid
        world.pods.exit("worker-1", 138)
        world.reconcile()
        world.reconcile()
        self.assertEqual(world.pods["worker-1"].uid, uid)
        world.pods.vanish("worker-1")
        world.reconcile()
        self.assertNotEqual(world.pods["worker-1"].uid, uid)
        self.assertEqual(world.conditions(), ["Created", "Running"])

    def test_message_names_the_kind_before_1_6(self):
        world = World(make_job("ExitCode", Worker=2), version="1.5.0").start()
        world.exit("worker-1", 138)
        self.assertEqual(
            world.message("Restarting"), "TFJob mnist is restarting because Worker replica(s) failed."
        )

    def test_retries_have_no_limit_of_their_own(self):
        world = started("ExitCode")
        for _ in range(50):
            world.exit("worker-1", 139)
            world.reconcile()
            world.pods.run()
            world.reconcile()
        self.assertEqual(world.conditions(), ["Created", "Running"])


class PermanentCodeTest(unittest.TestCase):
    """ExitCode, permanent: the message of the type since 1.8, the number of failed ones before."""

    def test_since_1_8(self):
        world = started("ExitCode")
        world.exit("worker-1", 1)
        message = 'job "mnist" is failing because "Worker" replica(s) failed.'
        self.assertEqual(world.message("Failed"), message)
        self.assertEqual(world.conditions(), ["Created", "!Running", "Failed"])
        self.assertEqual(world.operator.outcome.failed_pod, ("worker-1", 1))
        self.assertIsNotNone(world.status.completion_time)

    def test_before_1_8(self):
        world = started("ExitCode", version="1.7.0")
        world.exit("worker-1", 1)
        self.assertEqual(
            world.message("Failed"), "TFJob default/mnist has failed because 1 Worker replica(s) failed."
        )

    def test_while_another_restarts(self):
        for version, failed in (("1.9.4", True), ("1.8.0", True), ("1.7.0", False)):
            world = started("ExitCode", version)
            world.pods.exit("worker-0", 137)
            world.pods.exit("worker-1", 1)
            world.reconcile()
            self.assertEqual(world.status.failed, failed, version)

    def test_has_no_completion_time_then(self):
        world = started("ExitCode")
        world.pods.exit("worker-0", 137)
        world.pods.exit("worker-1", 1)
        world.reconcile()
        self.assertTrue(world.status.failed)
        self.assertIsNone(world.status.completion_time)

    def test_fails_a_job_with_dynamic_workers_too(self):
        for version, failed in (("1.9.4", True), ("1.7.0", False)):
            job = make_job(policies={"Worker": "ExitCode"}, Worker=3, PS=1, dynamic_workers=True)
            world = World(job, version=version).start()
            world.exit("worker-1", 1)
            self.assertEqual(world.status.failed, failed, version)


class LostPodTest(unittest.TestCase):
    """A pod in phase Failed whose container's end was not observed: node drain, eviction."""

    def check(self, policy, version, recreated):
        world = started(policy, version)
        uid = world.pods["worker-1"].uid
        world.pods.lose("worker-1")
        world.settle()
        world.reconcile()
        self.assertEqual(world.status.failed, not recreated, f"{policy}, {version}")
        self.assertEqual(world.pods["worker-1"].uid != uid, recreated, f"{policy}, {version}")

    def test_never_fails_the_job(self):
        self.check("Never", "1.9.4", recreated=False)

    def test_exit_code(self):
        self.check("ExitCode", "1.4.0", recreated=False)
        self.check("ExitCode", "1.5.0", recreated=True)
        self.check("ExitCode", "1.9.4", recreated=True)

    def test_on_failure_and_always(self):
        for policy in ("OnFailure", "Always"):
            self.check(policy, "1.5.0", recreated=False)
            self.check(policy, "1.6.0", recreated=True)
            self.check(policy, "1.9.4", recreated=True)

    def test_missing_pod_is_made_anew_even_when_it_had_succeeded(self):
        for rules in (Rules.strict(), Rules.lenient()):
            world = started("Never", rules=rules)
            world.exit("worker-1", 0)
            world.pods.vanish("worker-1")
            world.reconcile()
            self.assertIs(world.pods["worker-1"].phase, Phase.PENDING)


class KnownBugsTest(unittest.TestCase):
    """The behaviour of the strict operator that the lenient one does not have."""

    def test_restarting_hides_another_failure(self):
        job = make_job(policies={"Worker": "ExitCode"}, PS=1, Worker=1)
        for rules, failed in ((Rules.strict(), False), (Rules.lenient(), True)):
            world = World(job, rules).start()
            world.exit("worker-0", 137)
            world.pods.exit("ps-0", 1)
            world.reconcile()
            self.assertEqual(world.status.failed, failed)
            self.assertEqual(world.conditions()[-1], "Failed" if failed else "Restarting")

    def world_with_hidden_failure(self, **chief):
        world = World(make_job(policies={"Worker": "ExitCode"}, PS=1, Worker=1, **chief)).start()
        world.exit("worker-0", 137)
        world.pods.exit("ps-0", 1)
        for _ in range(5):
            world.reconcile()
            world.pods.run()
        return world

    def test_until_a_worker_runs_again(self):
        self.assertEqual(self.world_with_hidden_failure().conditions(), ["Created", "!Running", "Failed"])

    def test_for_ever_beside_a_chief(self):
        self.assertEqual(self.world_with_hidden_failure(Chief=1).conditions(), ["Created", "Restarting"])

    def test_deleted_pod_that_still_runs_fails_the_job_since_1_7(self):
        for version, rules, failed in (
            ("1.6.0", Rules.strict(), False),
            ("1.7.0", Rules.strict(), True),
            ("1.9.4", Rules.lenient(), False),
        ):
            world = started("OnFailure", version, rules)
            world.pods["worker-1"].deleting = True
            world.reconcile()
            self.assertEqual(world.status.failed, failed, version)
            self.assertEqual(world.counts("Worker"), (1, 0, 1 if failed else 0))

    def failed_without(self, worker, rules, success_policy="", **chief):
        """Whether a dynamic job fails because that worker did."""
        job = make_job(PS=1, Worker=3, dynamic_workers=True, success_policy=success_policy, **chief)
        world = World(job, rules).start()
        world.exit(worker, 1)
        return world.status.failed

    def test_dynamic_job_that_cannot_succeed_any_more_goes_on_for_ever(self):
        for rules, failed in ((Rules.strict(), False), (Rules.lenient(), True)):
            self.assertEqual(self.failed_without("worker-0", rules), failed)
            self.assertEqual(self.failed_without("worker-1", rules, "AllWorkers"), failed)

    def test_dynamic_job_that_still_can_goes_on(self):
        for rules in (Rules.strict(), Rules.lenient()):
            self.assertFalse(self.failed_without("worker-1", rules))
            self.assertFalse(self.failed_without("worker-0", rules, Chief=1))
            self.assertFalse(self.failed_without("worker-0", rules, "AllWorkers", Chief=1))

    def test_lenient_success_wins_over_a_failure_of_the_same_moment(self):
        for policy in ("Never", "ExitCode"):
            world = started(policy, rules=Rules.lenient())
            world.pods.exit("chief-0", 0)
            world.pods.exit("worker-0", 1)
            world.reconcile()
            self.assertEqual(world.conditions(), ["Created", "!Running", "Succeeded"])
            self.assertTrue(world.operator.outcome.succeeded)

    def test_lenient_without_chief_too(self):
        world = World(make_job(PS=1, Worker=2), Rules.lenient()).start()
        world.pods.exit("ps-0", 1)
        world.pods.exit("worker-0", 0)
        world.reconcile()
        self.assertTrue(world.operator.outcome.succeeded)

    def test_strict_without_chief_fails_by_the_server_first(self):
        world = World(make_job(PS=1, Worker=2)).start()
        world.pods.exit("ps-0", 1)
        world.pods.exit("worker-0", 0)
        world.reconcile()
        self.assertEqual(world.conditions(), ["Created", "!Running", "Failed"])


class LenientTest(unittest.TestCase):
    """Codes that no restart mends, and replicas that fail again and again."""

    def test_code_2_fails_the_job_under_every_policy(self):
        for policy in ("Always", "OnFailure", "Never", "ExitCode"):
            world = started(policy, rules=Rules.lenient())
            world.exit("worker-1", 2)
            self.assertEqual(world.operator.outcome.failed_pod, ("worker-1", 2), policy)
            self.assertEqual(world.status.completion_time, world.now, policy)

    def test_of_a_pod_that_is_being_deleted_it_means_nothing(self):
        world = started("OnFailure", rules=Rules.lenient())
        world.operator.scale({"Worker": 1})
        world.reconcile()
        world.pods["worker-1"].exit_code = 2
        world.reconcile()
        self.assertFalse(world.operator.finished)

    def test_its_message(self):
        world = started("OnFailure", rules=Rules.lenient())
        world.exit("worker-1", 2)
        self.assertEqual(
            world.operator.outcome.reason,
            "TFJob default/mnist has failed because worker-1 exited with code 2, which no restart mends.",
        )

    def test_strict_restarts_it(self):
        world = started("OnFailure")
        world.exit("worker-1", 2)
        self.assertFalse(world.operator.finished)

    def test_permanent_code_has_the_operators_message(self):
        world = started("ExitCode", rules=Rules.lenient())
        world.exit("worker-1", 1)
        self.assertEqual(
            world.operator.outcome.reason, 'job "mnist" is failing because "Worker" replica(s) failed.'
        )
        self.assertEqual(world.status.completion_time, world.now)

    def test_replica_that_fails_again_after_the_last_restart(self):
        for policy, code in (("ExitCode", 139), ("OnFailure", 1), ("Always", 0)):
            with self.subTest(policy=policy):
                world = started(policy, rules=Rules.lenient(max_restarts=2))
                for _ in range(2):
                    world.exit("worker-1", code)
                    world.reconcile()
                    world.pods.run()
                    self.assertFalse(world.operator.finished)
                world.exit("worker-1", code)
                self.assertEqual(
                    world.operator.outcome.reason,
                    "TFJob default/mnist has failed because worker-1 failed again after 2 restart(s).",
                )
                self.assertEqual(world.operator.outcome.failed_pod, ("worker-1", code))
                self.assertIn("worker-1", world.pods.names())

    def test_each_replica_has_its_own_restarts(self):
        world = started("ExitCode", rules=Rules.lenient(max_restarts=1), Worker=4)
        for name in ("worker-0", "worker-1", "worker-2", "worker-3"):
            world.exit(name, 137)
            world.reconcile()
            world.pods.run()
        self.assertFalse(world.operator.finished)

    def test_restarting_is_told_while_the_chief_runs(self):
        world = started("ExitCode", rules=Rules.lenient())
        world.pods.exit("worker-1", 137)
        world.reconcile()
        self.assertEqual(world.conditions(), ["Created", "Restarting"])
        world.pods.vanish("worker-1")
        world.reconcile()
        self.assertEqual(world.conditions(), ["Created", "Running"])

    def test_chief_that_has_succeeded_is_not_failed_by_a_limit(self):
        world = started("ExitCode", rules=Rules.lenient(max_restarts=0))
        world.pods.exit("chief-0", 0)
        world.pods.exit("worker-1", 137)
        world.reconcile()
        self.assertTrue(world.operator.outcome.succeeded)
