"""The kubelet with real processes: what the operator and the launcher's user see of its pods."""

import os
import stat
import time

import support
from support import process_exists, wait_until
from tfjob_local.kubelet.backoff import Backoff
from tfjob_local.kubelet.keeper import Keeper
from tfjob_local.kubelet.kubelet import Kubelet
from tfjob_local.kubelet.plan import LocalDirectory, PlanError, PodPlan, ProcessPlan
from tfjob_local.pods import Phase

AT_ONCE = Backoff(0.0, 0.0, 0.0, 60.0, delays_new_pods=False, counts_early=True)


class KubeletTest(support.TemporaryDirectoryTest):
    """Scripts run in the test's directory; each replica's is in self.scripts."""

    def setUp(self):
        super().setUp()
        os.mkdir(self.path("logs"))
        self.scripts = {}
        self.policy = "Never"
        self.grace = 30.0
        self.init = ()
        self.directories = ()
        # Replica -> the one that it waits for.
        self.waits = {}
        self.events = []
        keeper = Keeper(self.path("logs"), grace_seconds=0.1)
        self.addCleanup(keeper.close)
        self.keeper = keeper
        self.kubelet = self.make_kubelet(AT_ONCE)

    def make_kubelet(self, backoff, clock=time.monotonic):
        kubelet = Kubelet(
            self.plan, "job", self.path("logs"), clock, backoff, (), self.keeper, self.events.append
        )
        self.addCleanup(self.end, kubelet)
        return kubelet

    def end(self, kubelet):
        kubelet.kill_all()
        self.poll_until(lambda: not kubelet.pods(), "all are gone", kubelet)

    def plan(self, replica_type, index):
        name = f"{replica_type.lower()}-{index}"
        script = self.scripts.get(name)
        if script is None:
            raise PlanError(f"{replica_type}: no script")
        init = tuple(self.process(container, text) for container, text in self.init)
        main = self.process("tensorflow", script)
        waits_for = self.waits.get(name, "")
        return PodPlan(main, init, self.policy, self.grace, self.directories, waits_for=waits_for)

    def process(self, name, script):
        return ProcessPlan(name, ("/bin/sh", "-c", script), {}, self.directory)

    def poll_until(self, condition, what, kubelet=None):
        def poll():
            (kubelet or self.kubelet).poll()
            return condition()

        wait_until(poll, what)

    def create(self, script, replica_type="Worker", index=1):
        self.scripts[f"{replica_type.lower()}-{index}"] = script
        self.kubelet.create(replica_type, index)

    def pod(self):
        return self.kubelet.pods()[0]

    def until_ended(self):
        self.poll_until(lambda: self.pod().phase.ended, "the pod has ended")
        return self.pod()

    def record(self):
        return self.kubelet.records()[0]

    def until_written(self, name):
        self.poll_until(lambda: os.path.exists(self.path(name)), name)

    def test_a_pod_waits_until_another_ones_main_container_runs(self):
        self.waits["worker-1"] = "master-0"
        self.create("sleep 100")
        for _ in range(3):
            self.kubelet.poll()
        self.assertEqual((self.pod().phase, self.record().pid), (Phase.PENDING, None))
        self.init = (("prepare", "while [ ! -e go ]; do sleep 0.01; done"),)
        self.create("sleep 100", "Master", 0)
        for _ in range(3):
            self.kubelet.poll()
        # The master's init container is not what peers wait for.
        self.assertEqual([pod.phase for pod in self.kubelet.pods()], [Phase.PENDING, Phase.PENDING])
        self.write("go", "")
        self.poll_until(
            lambda: [pod.phase for pod in self.kubelet.pods()] == [Phase.RUNNING, Phase.RUNNING], "both run"
        )

    def test_pods_are_sorted_and_named(self):
        for replica_type, index in (("Worker", 10), ("Worker", 2), ("PS", 0), ("Chief", 0)):
            self.create("exit 0", replica_type, index)
        names = [pod.name for pod in self.kubelet.pods()]
        self.assertEqual(names, ["job-chief-0", "job-ps-0", "job-worker-2", "job-worker-10"])
        self.assertEqual(len({pod.uid for pod in self.kubelet.pods()}), 4)
        self.assertEqual([record.name for record in self.kubelet.records()],
                         ["chief-0", "ps-0", "worker-2", "worker-10"])

    def test_a_pod_to_its_end(self):
        self.create("echo hello; exit 3")
        self.assertEqual((self.pod().phase, self.pod().exit_code), (Phase.PENDING, None))
        self.assertLessEqual(self.kubelet.next_due(), time.monotonic())
        self.assertTrue(self.kubelet.poll())
        self.assertEqual(self.pod().phase, Phase.RUNNING)
        pod = self.until_ended()
        self.assertEqual((pod.phase, pod.exit_code), (Phase.FAILED, 3))
        self.assertFalse(self.kubelet.poll())
        record = self.record()
        self.assertEqual((record.exit_code, record.restarts), (3, 0))
        self.assertEqual((record.running, record.killed), (False, False))
        self.assertEqual(record.log_path, self.path("logs", "worker-1.log"))
        self.assertEqual(self.read("logs", "worker-1.log"), "hello\n")

    def test_logs_of_restarts_in_place(self):
        self.policy = "OnFailure"
        self.create('echo x >> count; n=$(wc -l < count); echo "attempt $n"; [ "$n" -ge 3 ]')
        self.assertEqual(self.until_ended().restart_count, 2)
        self.assertEqual(self.read("logs", "worker-1.log"), "attempt 1\n")
        self.assertEqual(self.read("logs", "worker-1.restart-2.log"), "attempt 3\n")
        record = self.record()
        self.assertEqual((record.restarts, record.exit_code), (2, 0))
        self.assertEqual(record.log_path, self.path("logs", "worker-1.restart-2.log"))

    def test_a_new_pod_counts_on(self):
        self.policy = "OnFailure"
        self.create("echo x >> count; [ $(wc -l < count) -ge 2 ]")
        first = self.until_ended()
        self.kubelet.delete(first)
        self.assertEqual(self.kubelet.pods(), [])
        self.create("echo new")
        second = self.until_ended()
        self.assertEqual((second.restart_count, self.record().restarts), (0, 2))
        self.assertGreater(second.uid, first.uid)
        self.assertEqual(self.read("logs", "worker-1.restart-2.log"), "new\n")
        # An old pod is not taken for the new one of its name.
        self.kubelet.delete(first)
        self.assertEqual(self.kubelet.pods(), [second])

    def test_logs_of_init_containers(self):
        self.policy = "OnFailure"
        self.init = (("fill", "echo x >> count; echo filled; [ $(wc -l < count) -ge 2 ]"),)
        self.create("echo main")
        self.until_ended()
        for name, content in (
            ("worker-1.init-fill.log", "filled\n"),
            ("worker-1.init-fill.restart-1.log", "filled\n"),
            ("worker-1.log", "main\n"),
        ):
            self.assertEqual(self.read("logs", name), content)
        self.assertEqual(self.record().restarts, 1)

    def test_record_of_a_failed_init_container(self):
        self.init = (("fill", "exit 4"),)
        self.create("exit 0")
        self.assertEqual((self.until_ended().exit_code, self.record().exit_code), (None, 4))
        self.assertEqual(self.record().log_path, self.path("logs", "worker-1.init-fill.log"))

    def test_program_that_cannot_be_started(self):
        self.scripts["worker-1"] = ""
        self.process = lambda name, script: ProcessPlan(name, ("/no/such",), {}, self.directory)
        self.kubelet.create("Worker", 1)
        self.assertEqual(self.until_ended().exit_code, 127)
        self.assertEqual((self.record().pid, self.record().exit_code), (None, 127))

    def test_delete_waits_for_the_processes(self):
        self.create("trap 'exit 0' TERM; : > up; sleep 600 & wait")
        self.until_written("up")
        pod = self.pod()
        self.kubelet.delete(pod)
        self.assertEqual(self.kubelet.pods(), [pod])
        self.assertTrue(pod.deleting)
        self.poll_until(lambda: not self.kubelet.pods(), "the pod is gone")
        self.assertEqual((pod.phase, self.record().exit_code), (Phase.SUCCEEDED, 0))

    def test_grace_period(self):
        self.grace = 0.1
        self.create("trap '' TERM; : > up; exec sleep 600")
        self.until_written("up")
        self.kubelet.delete(self.pod())
        self.assertIsNotNone(self.kubelet.next_due())
        self.poll_until(lambda: not self.kubelet.pods(), "the pod is gone")
        self.assertEqual((self.record().exit_code, self.record().killed), (137, True))

    def test_kill(self):
        self.policy = "OnFailure"
        self.create("echo x >> count; : > up; [ $(wc -l < count) -ge 2 ] || exec sleep 600")
        self.until_written("up")
        self.kubelet.kill("worker-1")
        pod = self.until_ended()
        self.assertEqual((pod.phase, pod.restart_count), (Phase.SUCCEEDED, 1))
        with self.assertRaisesRegex(ValueError, "^worker-1 does not run at the moment$"):
            self.kubelet.kill("worker-1")
        with self.assertRaisesRegex(ValueError, '^there is no pod of "worker-2"$'):
            self.kubelet.kill("worker-2")

    def test_evicted_pod_terminates_and_is_gone(self):
        self.create("trap 'exit 5' TERM; : > up; sleep 600 & wait")
        self.until_written("up")
        self.kubelet.evict("worker-1")
        (pod,) = self.kubelet.pods()
        self.assertEqual((pod.phase, pod.deleting), (Phase.RUNNING, True))
        self.poll_until(lambda: not self.kubelet.pods(), "it is gone")
        self.assertEqual((self.record().exit_code, self.record().killed), (5, False))
        with self.assertRaisesRegex(ValueError, '^there is no pod of "worker-1"$'):
            self.kubelet.evict("worker-1")

    def test_end_all_and_kill_all(self):
        self.create("trap 'exit 5' TERM; : > up1; sleep 600 & wait", index=0)
        self.create("trap '' TERM; : > up2; exec sleep 600", index=1)
        self.until_written("up1")
        self.until_written("up2")
        self.kubelet.end_all()
        self.poll_until(lambda: len(self.kubelet.pods()) == 1, "the first is gone")
        self.kubelet.kill_all()
        self.poll_until(lambda: not self.kubelet.pods(), "both are gone")
        self.assertEqual([(r.exit_code, r.killed) for r in self.kubelet.records()], [(5, False), (137, True)])

    def test_kill_all_starts_nothing_any_more(self):
        self.create("echo > up")
        self.kubelet.kill_all()
        self.kubelet.poll()
        self.assertEqual((self.kubelet.pods(), os.path.exists(self.path("up"))), ([], False))

    def test_new_pods_after_failures_wait(self):
        now = 100.0
        self.kubelet = self.make_kubelet(Backoff.lenient(), clock=lambda: now)
        waits = []
        for script in ("exit 1", "exit 1", "exit 0", "exit 0"):
            self.create(script)
            waits.append(self.kubelet.next_due() - now)
            now += waits[-1]
            self.until_ended()
            self.kubelet.delete(self.pod())
        # The last one takes the place of a pod that had succeeded.
        self.assertEqual(waits, [0.0, 0.25, 0.5, 0.0])
        self.assertIn("worker-1: new pod, back-off 0.25 s", self.events)

    def test_restart_that_never_began(self):
        now = 0.0
        self.kubelet = self.make_kubelet(Backoff.lenient(), clock=lambda: now)
        self.policy = "OnFailure"
        self.create("exit 1")
        self.poll_until(lambda: self.pod().restart_count == 1, "it has ended")
        self.kubelet.end_all()
        self.assertEqual((self.kubelet.pods(), self.record().restarts), ([], 0))

    def test_plan_errors_reach_the_caller(self):
        with self.assertRaises(PlanError):
            self.kubelet.create("PS", 0)
        self.assertEqual((self.kubelet.pods(), self.kubelet.records()), ([], []))

    def test_directories(self):
        kept, own, secret = self.path("kept"), self.path("own"), self.path("a", "secret")
        self.directories = (
            LocalDirectory(kept),
            LocalDirectory(own, self.directory, fresh=True, files={"sub/f": b"new"}),
            LocalDirectory(secret, self.directory, fresh=True, files={"key": b"k"}, private=True),
        )
        self.write("kept/old", "old")
        self.write("own/old", "old")
        self.create("cat own/sub/f a/secret/key kept/old; echo x > own/made")
        self.until_ended()
        self.assertEqual(self.read("logs", "worker-1.log"), "newkold")
        self.assertFalse(os.path.exists(self.path("own", "old")))
        self.assertEqual(stat.S_IMODE(os.stat(secret).st_mode), 0o700)
        self.assertEqual(stat.S_IMODE(os.stat(os.path.join(secret, "key")).st_mode), 0o600)
        self.kubelet.delete(self.pod())
        self.create("ls own")
        self.until_ended()
        self.assertEqual(self.read("logs", "worker-1.restart-1.log"), "sub\n")

    def test_links_in_volumes_are_not_followed(self):
        os.makedirs(self.path("elsewhere"))
        os.symlink(self.path("elsewhere"), self.path("link"))
        self.directories = (LocalDirectory(self.path("link", "x"), self.directory),)
        with self.assertRaises(OSError) as caught:
            self.create("exit 0")
        self.assertEqual(caught.exception.filename, self.path("link"))
        self.directories = ()
        os.symlink(self.path("elsewhere", "log"), self.path("logs", "worker-1.log"))
        self.create("exit 0")
        with self.assertRaises(OSError):
            self.kubelet.poll()
        self.assertEqual(os.listdir(self.path("elsewhere")), [])

    def test_volumes_outlive_a_restart_in_place(self):
        self.directories = (LocalDirectory(self.path("own"), self.directory, fresh=True),)
        self.policy = "OnFailure"
        self.create("echo x >> own/count; [ $(wc -l < own/count) -ge 2 ]")
        self.assertEqual(self.until_ended().restart_count, 1)

    def test_seconds_of_all_attempts(self):
        now = 0.0
        self.kubelet = self.make_kubelet(AT_ONCE, clock=lambda: now)
        self.policy = "OnFailure"
        self.create("echo x >> count; while [ ! -e go ]; do sleep 0.02; done; [ $(wc -l < count) -ge 2 ]")
        self.until_written("count")
        now = 5.0
        self.assertEqual((self.record().seconds, self.record().running), (5.0, True))
        self.write("go", "")
        self.poll_until(lambda: self.record().restarts == 1, "restarted")
        self.until_ended()
        self.assertEqual(self.record().seconds, 5.0)
