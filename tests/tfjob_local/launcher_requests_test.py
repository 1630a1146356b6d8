"""Tests which requests of other terminals are accepted, and which are refused."""

import unittest

import support  # Sets the path that the next imports need.
from tfjob_api.model import Container, ReplicaSpec, TrainingJob
from tfjob_api.operator_version import NEWEST, OperatorVersion
from tfjob_local.job_requests import JobRequests
from tfjob_local.kubelet.plan import PlanError
from tfjob_local.tfjob_operator import Operator
from tfjob_local.operator_rules import Rules
from tfjob_local.pods import Phase, Pod


class FakeKubelet:
    def __init__(self):
        self.asked = []
        self.running = [
            Pod("j-chief-0", "Chief", 0, 1, Phase.RUNNING),
            Pod("j-worker-0", "Worker", 0, 2, Phase.RUNNING),
        ]

    def pods(self):
        return self.running

    def create(self, replica_type, index):
        raise AssertionError("nothing is missing")

    def delete(self, pod):
        self.asked.append(("delete", pod.replica_name))

    def kill(self, name):
        if name == "chief-0":
            raise ValueError("chief-0 does not run at the moment")
        self.asked.append(("kill", name))

    def evict(self, name):
        self.asked.append(("evict", name))


class RequestTest(unittest.TestCase):
    def setUp(self):
        specs = {t: ReplicaSpec(t, 1, "Never", Container()) for t in ("Chief", "PS", "Worker")}
        self.kubelet = FakeKubelet()
        self.operator = Operator(
            TrainingJob("j", "default", specs),
            self.kubelet,
            lambda: 0.0,
            OperatorVersion.parse(NEWEST),
            Rules.lenient(),
            lambda text: None,
        )
        self.checked = []
        self.stops = 0
        self.servers_are_keelsons = False
        self.requests = JobRequests(
            self.operator,
            self.kubelet,
            self.check,
            lambda: self.servers_are_keelsons,
            lambda: {"job": "j"},
            self.count_stop,
        )

    def check(self, job):
        self.checked.append({t: spec.replicas for t, spec in job.replica_specs.items()})
        if job.replicas("Worker") > 9:
            raise PlanError("worker-10: no room")

    def count_stop(self):
        self.stops += 1

    def ask(self, command, **arguments):
        return self.requests.handle({"command": command, **arguments})

    def refused(self, command, **arguments):
        reply = self.ask(command, **arguments)
        self.assertFalse(reply["ok"], reply)
        return reply["error"]

    def test_status(self):
        self.assertEqual(self.ask("status"), {"ok": True, "view": {"job": "j"}})

    def test_unknown_command(self):
        self.assertEqual(
            self.refused("pause"),
            "command: expected one of status, scale, kill, delete, suspend, resume, stop; found 'pause'",
        )
        self.assertIn("found None", self.requests.handle({})["error"])

    def test_scale(self):
        reply = self.ask("scale", replicas={"WORKER": 4, "ps": 2})
        self.assertEqual(reply, {"ok": True, "text": "job j scaled: worker 4, ps 2"})
        self.assertEqual(self.checked, [{"Chief": 1, "PS": 2, "Worker": 4}])
        self.assertEqual((self.operator.job.replicas("Worker"), self.operator.job.replicas("PS")), (4, 2))

    def test_number_of_keelsons_servers(self):
        self.servers_are_keelsons = True
        self.assertEqual(
            self.refused("scale", replicas={"worker": 2, "ps": 2}),
            "ps: expected 1, as each server holds its part of the model while the job runs, found 2; suspend the "
            "job, scale, and resume",
        )
        self.assertEqual(self.operator.job.replicas("Worker"), 1)
        self.assertTrue(self.ask("scale", replicas={"worker": 2, "ps": 1})["ok"])
        self.assertTrue(self.ask("suspend")["ok"])
        self.assertTrue(self.ask("scale", replicas={"ps": 2})["ok"])
        self.assertTrue(self.ask("resume")["ok"])
        self.assertEqual(self.operator.job.replicas("PS"), 2)

    def test_scale_is_all_or_nothing(self):
        self.assertEqual(
            self.refused("scale", replicas={"worker": 3, "chief": 2}), "Chief: expected 1 replica, found 2"
        )
        self.assertEqual(self.operator.job.replicas("Worker"), 1)

    def test_scale_to_what_cannot_be_run(self):
        self.assertEqual(self.refused("scale", replicas={"worker": 11}), "worker-10: no room")
        self.assertEqual(self.operator.job.replicas("Worker"), 1)

    def test_bad_numbers(self):
        expected = 'replicas: expected numbers by role, such as {"worker": 4}'
        for replicas in (None, {}, 4):
            self.assertEqual(self.refused("scale", replicas=replicas), expected)
        for number in (-1, 1.5, "2", True):
            self.assertEqual(
                self.refused("scale", replicas={"worker": number}),
                f"worker: expected a whole number >= 0, found {number!r}",
            )
        self.assertIn(
            'no replica type "x"; expected one of chief, ps, worker', self.refused("scale", replicas={"x": 1})
        )

    def test_kill_and_delete(self):
        self.assertTrue(self.ask("kill", replica="worker-0")["ok"])
        self.assertTrue(self.ask("delete", replica="chief-0")["ok"])
        self.assertEqual(self.kubelet.asked, [("kill", "worker-0"), ("evict", "chief-0")])
        self.assertEqual(self.refused("kill", replica="chief-0"), "chief-0 does not run at the moment")
        self.assertEqual(
            self.refused("delete", replica="ps-0"), 'no replica "ps-0"; expected one of chief-0, worker-0'
        )
        self.kubelet.running = []
        self.assertEqual(self.refused("kill", replica="ps-0"), 'no replica "ps-0"; there are none now')

    def test_stop(self):
        self.assertTrue(self.ask("stop")["ok"])
        self.assertEqual(self.stops, 1)

    def test_a_finished_job_cannot_be_changed(self):
        self.kubelet.running = [
            Pod(f"j-{t.lower()}-0", t, 0, n, Phase.SUCCEEDED, 0)
            for n, t in enumerate(("Chief", "PS", "Worker"))
        ]
        self.operator.reconcile()
        self.assertTrue(self.operator.finished)
        for command, arguments in (("scale", {"replicas": {"worker": 2}}), ("suspend", {}), ("resume", {})):
            self.assertEqual(self.refused(command, **arguments), "job j has finished")
        self.assertTrue(self.ask("stop")["ok"])
