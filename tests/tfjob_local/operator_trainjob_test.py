"""TrainJobs under Trainer, JobSet and Job: success, failed pods, limits, restarts of the JobSet, suspension."""

import unittest

from operator_fakes import World, make_job
from tfjob_api.job_kind import TRAIN_JOB
from tfjob_api.job_set import JobFailureRule, JobSetRules, PodFailureRule
from tfjob_local.operator_rules import Rules
from tfjob_local.pods import Phase
from tfjob_local.trainjob_operator import TrainJobOperator

FIRST = "(first failed job: mnist-node-0)"
FAILED = f"jobset failed due to one or more job failures {FIRST}"
AS_DEPLOYED = (
    PodFailureRule("FailJob", frozenset({1, 2, 126, 127})),
    PodFailureRule("Ignore", of_disruptions=True),
)


class TrainJobWorld(World):
    def make_operator(self, job, rules, version):
        return TrainJobOperator(job, self.pods, lambda: self.now, rules or Rules.lenient(), self.events.append)

    def again(self, name, code):
        """The node ends, and the pod in its place runs, if there is one."""
        self.exit(name, code)
        self.reconcile()
        self.pods.run()
        self.reconcile()

    def drain(self, name):
        """Its pod is deleted from outside."""
        self.pods[name].deleting = True
        self.reconcile()
        self.pods.vanish(name)
        self.reconcile()
        self.pods.run()
        self.reconcile()


def world(policy="Never", nodes=2, rules=None, suspend=False, **job_set):
    job = make_job(policy, kind=TRAIN_JOB, Node=nodes, job_set=JobSetRules(**job_set), run_policy={"suspend": suspend})
    return TrainJobWorld(job, rules).start()


class SuccessTest(unittest.TestCase):
    def test_every_node_has_to_succeed(self):
        job = world()
        self.assertEqual(job.pods.names(), ["node-0", "node-1"])
        job.exit("node-0", 0)
        self.assertEqual((job.conditions(), job.operator.outcome), ([], None))
        job.exit("node-1", 0)
        self.assertEqual(job.conditions(), ["Complete"])
        self.assertEqual(job.status.condition("Complete").reason, "AllJobsCompleted")
        outcome = job.operator.outcome
        self.assertEqual((outcome.succeeded, outcome.reason), (True, "jobset completed successfully"))

    def test_a_node_that_has_succeeded_is_not_made_again(self):
        job = world()
        job.exit("node-0", 0)
        job.pods.vanish("node-0")
        job.reconcile()
        self.assertEqual(job.pods.names(), ["node-1"])
        job.exit("node-1", 0)
        self.assertEqual(job.conditions(), ["Complete"])

    def test_the_status_counts_nodes(self):
        job = world()
        nodes = job.status.nodes
        self.assertEqual((nodes.wanted, nodes.active, nodes.running, nodes.succeeded), (2, 2, 2, 0))
        job.exit("node-0", 0)
        nodes = job.status.nodes
        self.assertEqual((nodes.active, nodes.running, nodes.succeeded), (1, 1, 1))


class FailureTest(unittest.TestCase):
    def test_a_failed_pod_is_replaced(self):
        job = world()
        first = job.pods["node-1"].uid
        job.exit("node-1", 1)
        job.reconcile()
        self.assertEqual(job.pods.names(), ["node-0", "node-1"])
        self.assertNotEqual(job.pods["node-1"].uid, first)

    def test_as_many_pods_may_fail_as_the_limit_says(self):
        job = world(backoff_limit=2)
        job.again("node-0", 1)
        job.again("node-1", 1)
        self.assertIsNone(job.operator.outcome)
        job.again("node-1", 7)
        self.assertIn("BackoffLimitExceeded Job has reached the specified backoff limit", job.events)
        self.assertEqual(job.status.condition("Failed").reason, "FailedJobs")
        outcome = job.operator.outcome
        self.assertEqual((outcome.succeeded, outcome.reason, outcome.failed_pod), (False, FAILED, ("node-1", 7)))

    def test_restarts_in_place_may_not(self):
        job = world("OnFailure", backoff_limit=2)
        job.exit("node-0", 1)
        self.assertEqual(job.pods["node-0"].restart_count, 1)
        self.assertIsNone(job.operator.outcome)
        job.exit("node-1", 1)
        self.assertEqual(job.operator.outcome.reason, FAILED)
        job = world("OnFailure", backoff_limit=0)
        self.assertIsNone(job.operator.outcome)
        job.exit("node-0", 1)
        self.assertEqual(job.operator.outcome.reason, FAILED)

    def test_exit_codes_that_fail_the_job(self):
        job = world(pod_failure_rules=AS_DEPLOYED)
        job.again("node-1", 137)
        self.assertIsNone(job.operator.outcome)
        job.exit("node-1", 1)
        self.assertEqual((job.operator.outcome.reason, job.operator.outcome.failed_pod), (FAILED, ("node-1", 1)))
        what = "Pod default/mnist-node-1 failed with exit code 1, for which podFailurePolicy says FailJob"
        self.assertIn(f"PodFailurePolicy {what}", job.events)

    def test_drained_pods_count_unless_a_rule_ignores_them(self):
        job = world(backoff_limit=1)
        job.drain("node-0")
        self.assertIsNone(job.operator.outcome)
        job.drain("node-0")
        self.assertEqual(job.operator.outcome.reason, FAILED)
        job = world(backoff_limit=0, pod_failure_rules=AS_DEPLOYED)
        for _ in range(3):
            job.drain("node-0")
        self.assertIsNone(job.operator.outcome)
        self.assertEqual(job.pods.names(), ["node-0", "node-1"])

    def test_ignored_exit_codes_do_not_count(self):
        job = world(backoff_limit=0, pod_failure_rules=(PodFailureRule("Ignore", frozenset({42})),))
        job.again("node-0", 42)
        self.assertIsNone(job.operator.outcome)
        job.again("node-0", 43)
        self.assertEqual(job.operator.outcome.reason, FAILED)

    def test_deadline(self):
        job = world(active_deadline_seconds=60)
        job.after(59)
        self.assertIsNone(job.operator.outcome)
        job.after(1)
        self.assertIn("DeadlineExceeded Job was active longer than specified deadline", job.events)
        self.assertEqual((job.operator.outcome.reason, job.operator.outcome.failed_pod), (FAILED, None))

    def test_what_no_restart_mends(self):
        for policy in ("Never", "OnFailure"):
            job = world(policy, max_restarts=5)
            job.exit("node-1", 2)
            what = "TrainJob default/mnist has failed because node-1 exited with code 2, which no restart mends."
            self.assertEqual(job.operator.outcome.reason, what)

    def test_rules_for_that_code_win(self):
        job = world(pod_failure_rules=AS_DEPLOYED)
        job.exit("node-1", 2)
        self.assertEqual(job.operator.outcome.reason, FAILED)
        job = world(pod_failure_rules=(PodFailureRule("Ignore", frozenset({2})),))
        job.again("node-1", 2)
        self.assertIsNone(job.operator.outcome)
        job = world(max_restarts=1, pod_failure_rules=AS_DEPLOYED)
        job.exit("node-1", 2)
        self.assertIn("which no restart mends", job.operator.outcome.reason)

    def test_the_launchers_own_limit(self):
        job = world(rules=Rules.lenient(max_restarts=2), backoff_limit=20)
        job.again("node-1", 1)
        job.again("node-0", 1)
        job.again("node-1", 1)
        self.assertIsNone(job.operator.outcome)
        job.again("node-1", 1)
        what = "TrainJob default/mnist has failed because node-1 failed again after 2 restart(s)."
        self.assertEqual(job.operator.outcome.reason, what)


class JobSetTest(unittest.TestCase):
    """The failure of the Job, where the JobSet has a policy for it."""

    def restart(self, job):
        """What is left of the last attempt ends, and the next one runs."""
        job.reconcile()
        job.pods.vanish()
        job.reconcile()
        job.pods.run()
        job.reconcile()

    def test_all_nodes_start_anew(self):
        job = world(backoff_limit=0, max_restarts=1)
        before = {job.pods[name].uid for name in job.pods.names()}
        job.pods.exit("node-1", 1)
        job.reconcile()
        applied = f"applying RestartJobSet failure policy action {FIRST}"
        self.assertIn(f"RestartJobSetFailurePolicyAction {applied}", job.events)
        job.reconcile()
        self.assertEqual(job.pods.deleting(), ["node-0", "node-1"])
        # The first to end has no other in its place before all have.
        job.pods.vanish("node-1")
        job.reconcile()
        self.assertEqual(job.pods.names(), ["node-0"])
        self.restart(job)
        self.assertEqual(job.pods.names(), ["node-0", "node-1"])
        self.assertFalse(before & {job.pods[name].uid for name in job.pods.names()})
        job.exit("node-0", 1)
        self.assertEqual(job.status.condition("Failed").reason, "ReachedMaxRestarts")
        message = f"jobset failed due to reaching max number of restarts {FIRST}"
        self.assertEqual((job.operator.outcome.reason, job.operator.outcome.failed_pod), (message, ("node-0", 1)))

    def test_nodes_that_had_succeeded_start_anew_too(self):
        job = world(backoff_limit=0, max_restarts=1)
        job.exit("node-0", 0)
        job.pods.exit("node-1", 1)
        job.reconcile()
        self.restart(job)
        job.exit("node-1", 0)
        self.assertIsNone(job.operator.outcome)
        job.exit("node-0", 0)
        self.assertTrue(job.operator.outcome.succeeded)

    def test_rules_by_the_reason(self):
        rules = (
            JobFailureRule("FailJobSet", ("PodFailurePolicy",)),
            JobFailureRule("RestartJobSetAndIgnoreMaxRestarts", ("DeadlineExceeded",)),
        )
        parts = {"max_restarts": 0, "job_failure_rules": rules, "pod_failure_rules": AS_DEPLOYED}
        job = world(**parts)
        job.exit("node-0", 1)
        self.assertEqual(job.status.condition("Failed").reason, "FailJobSetFailurePolicyAction")
        self.assertEqual(job.operator.outcome.reason, f"applying FailJobSet failure policy action {FIRST}")
        job = world(active_deadline_seconds=60, **parts)
        for _ in range(2):
            job.after(60)
            self.restart(job)
            self.assertIsNone(job.operator.outcome)
        self.assertEqual(job.pods.alive(), ["node-0", "node-1"])

    def test_the_end_of_an_attempt_counts_in_no_other(self):
        job = world(backoff_limit=0, max_restarts=1)
        job.pods.exit("node-1", 1)
        job.reconcile()
        job.reconcile()
        # It was told to end, and that is how it ended.
        job.pods.exit("node-0", 143)
        self.restart(job)
        self.assertIsNone(job.operator.outcome)


class RequestsTest(unittest.TestCase):
    def test_suspend_and_resume(self):
        job = world()
        job.operator.suspend()
        job.reconcile()
        self.assertEqual(job.conditions(), ["Suspended"])
        self.assertEqual(job.message("Suspended"), "TrainJob is suspended")
        # The one that leads first, as its last snapshot needs the others.
        self.assertEqual(job.pods.deleting(), ["node-0"])
        job.pods.vanish()
        job.reconcile()
        job.pods.vanish()
        with self.assertRaisesRegex(ValueError, "job mnist is suspended already"):
            job.operator.suspend()
        job.operator.resume()
        job.reconcile()
        self.assertEqual((job.conditions(), job.message("Suspended")), (["!Suspended"], "TrainJob is resumed"))
        self.assertEqual(job.pods.names(), ["node-0", "node-1"])
        with self.assertRaisesRegex(ValueError, "job mnist is not suspended"):
            job.operator.resume()

    def test_a_job_may_begin_suspended(self):
        job = world(suspend=True)
        self.assertEqual((job.conditions(), job.pods.names()), (["Suspended"], []))
        self.assertEqual(job.status.to_document()["jobsStatus"][0]["suspended"], 1)

    def test_the_deadline_begins_with_the_resumption(self):
        job = world(active_deadline_seconds=60)
        job.operator.suspend()
        for _ in range(2):
            job.settle()
        job.now += 100
        job.operator.resume()
        job.reconcile()
        job.after(59)
        self.assertIsNone(job.operator.outcome)
        job.after(1)
        self.assertIsNotNone(job.operator.outcome)

    def test_the_number_of_nodes_is_fixed(self):
        with self.assertRaisesRegex(ValueError, "^Node: the number of a TrainJob's nodes is fixed once it is there$"):
            world().operator.scale({"Node": 3})

    def test_stopped(self):
        job = world()
        job.operator.stopped("stopped by SIGTERM")
        self.assertEqual(job.conditions(), ["!Running"])
        self.assertEqual(job.status.condition("Running").reason, "TrainJobStopped")
        self.assertEqual(job.message("Running"), "TrainJob default/mnist was stopped by SIGTERM.")

    def test_after_the_end_nothing_changes(self):
        job = world(nodes=1)
        job.exit("node-0", 0)
        for request in (job.operator.suspend, job.operator.resume):
            with self.assertRaisesRegex(ValueError, "job mnist has finished"):
                request()
        job.reconcile()
        self.assertEqual(job.pods["node-0"].phase, Phase.SUCCEEDED)


if __name__ == "__main__":
    unittest.main()
