"""Phases, restarts in place and the end of a pod, with a clock of the test's own."""

import unittest

import support  # noqa: F401  (puts deploy/ on the path)
from tfjob_local.kubelet.backoff import Backoff
from tfjob_local.kubelet.plan import PodPlan, ProcessPlan
from tfjob_local.kubelet.pod_run import PodRun, PodTools
from tfjob_local.pods import Phase, Pod


class FakeContainer:
    def __init__(self, name):
        self.name = name
        self.exit_code = None
        self.killed = False
        self.terminations = 0

    def poll(self):
        return self.exit_code

    def terminate(self):
        self.terminations += 1

    def kill(self):
        self.killed = True


class PodRunTest(unittest.TestCase):
    def begin(self, policy="Never", init=(), backoff=None, start_at=0.0, grace=30.0, waits_for=""):
        self.now = 0.0
        self.started = []
        self.events = []
        processes = [ProcessPlan(name, ("x",), {}, "/") for name in (*init, "tensorflow")]
        plan = PodPlan(processes[-1], tuple(processes[:-1]), policy, grace, waits_for=waits_for)
        self.running = set()
        self.failed_inits = []
        tools = PodTools(
            lambda: self.now,
            backoff or Backoff.lenient(),
            self.events.append,
            lambda *names: self.failed_inits.append(names),
            lambda name: name in self.running,
        )
        self.pod = Pod("job-worker-1", "Worker", 1, 1)
        self.run_ = PodRun(self.pod, plan, self.start, tools, start_at)
        self.run_.step()

    def start(self, plan, is_init, again):
        name = ("init " if is_init else "") + plan.container + (" again" if again else "")
        self.started.append(FakeContainer(name))
        return self.started[-1]

    def end(self, code, after=1.0):
        self.now += after
        self.started[-1].exit_code = code
        self.assertTrue(self.run_.step())

    def state(self):
        return self.pod.phase, self.pod.exit_code, self.pod.restart_count

    def test_success(self):
        for policy in ("Never", "ExitCode", "OnFailure"):
            self.begin(policy)
            self.assertEqual(self.state(), (Phase.RUNNING, None, 0))
            self.assertFalse(self.run_.step())
            self.end(0)
            self.assertEqual(self.state(), (Phase.SUCCEEDED, 0, 0))
            self.assertFalse(self.run_.step())
            self.assertIsNone(self.run_.next_due())

    def test_it_waits_for_another_replica_before_its_first_container_alone(self):
        self.begin("OnFailure", init=("fetch",), waits_for="master-0")
        self.assertEqual((self.started, self.pod.phase), ([], Phase.PENDING))
        # The other's start is not a matter of time.
        self.assertIsNone(self.run_.next_due())
        self.now += 1000
        self.assertFalse(self.run_.step())
        self.running.add("master-0")
        self.assertTrue(self.run_.step())
        self.running.clear()
        self.end(0)
        self.run_.step()
        self.end(1)
        self.now += 100
        self.run_.step()
        names = [container.name for container in self.started]
        self.assertEqual(names, ["init fetch", "tensorflow", "tensorflow again"])

    def test_what_waits_can_be_deleted(self):
        self.begin(waits_for="master-0")
        self.run_.delete()
        self.assertTrue(self.run_.gone)

    def test_failure_without_restart_in_place(self):
        for policy in ("Never", "ExitCode"):
            for code in (1, 2, 137, 138):
                self.begin(policy)
                self.end(code)
                self.assertEqual(self.state(), (Phase.FAILED, code, 0))
                self.now += 1000
                self.assertFalse(self.run_.step())

    def test_restart_in_place(self):
        for policy, code in (("OnFailure", 1), ("OnFailure", 137), ("Always", 1), ("Always", 0)):
            self.begin(policy)
            self.end(code)
            self.assertEqual(self.state(), (Phase.RUNNING, code, 1))
            self.assertEqual((self.run_.running, self.run_.next_due()), (False, 1.25))
            self.assertFalse(self.run_.step())
            self.now = 1.25
            self.assertTrue(self.run_.step())
            self.assertTrue(self.run_.running)
            self.assertEqual(len(self.started), 2)

    def test_restarts_are_told(self):
        self.begin("OnFailure")
        self.end(137)
        self.now += 1
        self.run_.step()
        self.assertEqual(
            self.events,
            [
                "worker-1 ended with signal SIGKILL (exit code 137), back-off 0.25 s",
                "worker-1: restart 1 in its pod",
            ],
        )

    def test_restarts_count_when_they_begin_on_a_cluster(self):
        self.begin("OnFailure", backoff=Backoff.strict())
        self.end(1)
        self.assertEqual(self.state(), (Phase.RUNNING, 1, 0))
        self.run_.step()
        self.assertEqual(self.state(), (Phase.RUNNING, 1, 1))
        self.end(1)
        self.assertEqual((self.pod.restart_count, self.run_.next_due() - self.now), (1, 10.0))

    def test_back_off_grows_until_an_attempt_was_healthy(self):
        self.begin("Always")
        delays = []
        for lasted in (1, 1, 1, 60, 1, 1):
            self.end(1, after=lasted)
            delays.append(self.run_.next_due() - self.now)
            self.now = self.run_.next_due()
            self.run_.step()
        self.assertEqual(delays, [0.25, 0.5, 1.0, 0.25, 0.5, 1.0])

    def test_init_containers_run_one_after_another_first(self):
        self.begin(init=("a", "b"))
        self.assertEqual(self.pod.phase, Phase.PENDING)
        for _ in range(2):
            self.end(0)
            self.assertEqual(self.pod.phase, Phase.PENDING)
            self.assertTrue(self.run_.step())
        self.assertEqual([c.name for c in self.started], ["init a", "init b", "tensorflow"])
        self.assertEqual(self.failed_inits, [])
        self.assertEqual(self.state(), (Phase.RUNNING, None, 0))

    def test_failed_init_container_fails_the_pod(self):
        for policy in ("Never", "ExitCode"):
            self.begin(policy, init=("a",))
            self.end(138)
            # The container tensorflow has never run: its code is unknown.
            self.assertEqual(self.state(), (Phase.FAILED, None, 0))
            self.assertEqual(self.events, ["worker-1: init container a ended with exit code 138"])
            self.assertEqual(self.failed_inits, [("worker-1", "a")])

    def test_failed_init_container_is_tried_again(self):
        for policy in ("OnFailure", "Always"):
            self.begin(policy, init=("a",))
            self.end(1)
            self.assertEqual(self.state(), (Phase.PENDING, None, 1))
            self.assertEqual(
                self.events, ["worker-1: init container a ended with exit code 1, back-off 0.25 s"]
            )
            self.assertEqual(self.failed_inits, [("worker-1", "a")])
            self.now += 0.25
            self.run_.step()
            self.end(0)
            self.run_.step()
            # Its main container begins a row of its own, and a restart does not run it once more.
            self.end(1)
            self.assertEqual(self.run_.next_due() - self.now, 0.25)
            self.now += 0.25
            self.run_.step()
            self.assertEqual(
                [c.name for c in self.started],
                ["init a", "init a again", "tensorflow", "tensorflow again"],
            )
            self.assertEqual(self.pod.restart_count, 2)

    def test_new_pod_may_wait(self):
        self.begin(start_at=5.0)
        self.assertEqual((self.state(), self.started), ((Phase.PENDING, None, 0), []))
        self.assertEqual(self.run_.next_due(), 5.0)
        self.now = 5.0
        self.run_.step()
        self.assertEqual(self.pod.phase, Phase.RUNNING)

    def test_delete(self):
        self.begin(grace=7.0)
        self.run_.delete()
        self.assertEqual((self.pod.deleting, self.run_.gone), (True, False))
        self.assertEqual((self.started[0].terminations, self.run_.next_due()), (1, 7.0))
        self.end(0)
        self.assertEqual((self.state(), self.run_.gone), ((Phase.SUCCEEDED, 0, 0), True))
        self.assertFalse(self.started[0].killed)

    def test_delete_kills_after_the_grace_period(self):
        self.begin(grace=7.0)
        self.run_.delete()
        self.now = 6.9
        self.run_.step()
        self.assertFalse(self.started[0].killed)
        self.now = 7.0
        self.run_.step()
        self.assertTrue(self.started[0].killed)
        self.end(137)
        self.assertEqual((self.state(), self.run_.gone), ((Phase.FAILED, 137, 0), True))

    def test_second_delete_sends_no_second_sigterm(self):
        self.begin()
        self.run_.delete()
        self.run_.delete()
        self.assertEqual(self.started[0].terminations, 1)

    def test_deleted_pod_is_not_restarted(self):
        for init in ((), ("a",)):
            self.begin("Always", init=init)
            self.run_.delete()
            self.end(0)
            self.assertTrue(self.run_.gone)
            self.assertIsNone(self.run_.next_due())
            self.assertEqual(self.pod.phase, Phase.FAILED if init else Phase.SUCCEEDED)

    def test_delete_of_what_does_not_run(self):
        self.begin()
        self.end(0)
        self.run_.delete()
        self.assertTrue(self.run_.gone)
        self.begin("OnFailure")
        self.end(1)
        self.run_.delete()
        self.assertTrue(self.run_.gone)


class BackoffTest(unittest.TestCase):
    def test_the_kubelets(self):
        delays = [Backoff.strict().delay(n) for n in range(1, 9)]
        self.assertEqual(delays, [0, 10, 20, 40, 80, 160, 300, 300])

    def test_the_impatient_one(self):
        delays = [Backoff.lenient().delay(n) for n in range(1, 9)]
        self.assertEqual(delays, [0.25, 0.5, 1, 2, 4, 8, 10, 10])

    def test_any_number_of_ends(self):
        self.assertEqual(Backoff.strict().delay(100000), 300)
