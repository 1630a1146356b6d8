"""Tests the order of the launcher's actions, with the real operator, scripted pods and a clock that only it
moves."""

import signal
import unittest
from types import SimpleNamespace

import support  # Sets the path that the next imports need.
from tfjob_api.model import Container, ReplicaSpec, RunPolicy, TrainingJob
from tfjob_api.operator_version import NEWEST, OperatorVersion
from tfjob_local.launcher import END_SECONDS, Launcher
from tfjob_local.tfjob_operator import Operator
from tfjob_local.operator_rules import Rules
from tfjob_local.pods import Phase, Pod


class FakeTime:
    """The clock and the signals: waiting moves the clock, and delivers what is due."""

    def __init__(self, stops=None):
        self.now = 0.0
        self._stops = sorted((stops or {}).items())

    def clock(self):
        return self.now

    def wait(self, timeout_seconds):
        self.now += max(0.01, timeout_seconds)
        if self._stops and self._stops[0][0] <= self.now:
            return self._stops.pop(0)[1]
        return None


class Script:
    """Each attempt of a replica ends by itself at its time with its code, or by the signals it obeys."""

    def __init__(self, *attempts, obeys=(signal.SIGTERM, signal.SIGKILL), grace_seconds=30.0):
        """`attempts`: (seconds after its start, or None for never; exit code), one after the other."""
        self.attempts = list(attempts)
        self.obeys = obeys
        self.grace_seconds = grace_seconds
        self.received = []


class FakeKubelet:
    """Restarts in place after a quarter of a second; every pod runs from its creation on."""

    def __init__(self, time, job, scripts):
        self._time = time
        self._job = job
        self._scripts = scripts
        self._pods = []
        self._start_at = {}
        self._ends = {}
        self._kill_at = {}
        self._records = {}
        self._uids = iter(range(1, 1000))

    def pods(self):
        return list(self._pods)

    def create(self, replica_type, index):
        pod = Pod(f"j-{replica_type.lower()}-{index}", replica_type, index, next(self._uids), Phase.RUNNING)
        self._pods.append(pod)
        self._records[pod.replica_name] = SimpleNamespace(name=pod.replica_name, exit_code=None, running=True)
        self._start(pod)

    def _start(self, pod):
        self._start_at.pop(pod.uid, None)
        self._records[pod.replica_name].running = True
        script = self._scripts[pod.replica_name]
        after, code = script.attempts.pop(0) if script.attempts else (None, 0)
        self._ends[pod.uid] = None if after is None else (self._time.now + after, code)

    def delete(self, pod):
        if pod.deleting:
            return
        pod.deleting = True
        if pod.phase.ended or pod.uid in self._start_at:
            self._pods.remove(pod)
            return
        self._kill_at[pod.uid] = self._time.now + self._scripts[pod.replica_name].grace_seconds
        self._send(pod, signal.SIGTERM)

    def _send(self, pod, number):
        script = self._scripts[pod.replica_name]
        script.received.append((round(self._time.now, 1), number.name))
        if number in script.obeys:
            self._ends[pod.uid] = (self._time.now, 128 + number)

    def poll(self):
        for pod in list(self._pods):
            if pod.phase.ended:
                continue
            if pod.uid in self._start_at:
                if self._time.now >= self._start_at[pod.uid]:
                    pod.restart_count += 1
                    self._start(pod)
                continue
            if self._time.now >= self._kill_at.get(pod.uid, float("inf")):
                self._send(pod, signal.SIGKILL)
            if self._ends[pod.uid] is not None and self._time.now >= self._ends[pod.uid][0]:
                self._ended(pod, self._ends[pod.uid][1])
        return True

    def _ended(self, pod, code):
        record = self._records[pod.replica_name]
        pod.exit_code = record.exit_code = code
        record.running = False
        policy = self._job.replica_specs[pod.replica_type].restart_policy
        if not pod.deleting and (policy == "Always" or (policy == "OnFailure" and code)):
            self._start_at[pod.uid] = self._time.now + 0.25
            return
        pod.phase = Phase.FAILED if code else Phase.SUCCEEDED
        if pod.deleting:
            self._pods.remove(pod)

    def next_due(self):
        return None

    def records(self):
        return list(self._records.values())

    def end_all(self):
        for pod in list(self._pods):
            self.delete(pod)

    def kill_all(self):
        for pod in list(self._pods):
            if not pod.phase.ended:
                self._send(pod, signal.SIGKILL)
        self.poll()


class FakeOutput:
    def __init__(self):
        self.said = []

    def update(self):
        pass

    def stopping(self, pods):
        self.said.append(("stopping", [pod.replica_name for pod in pods]))

    def ending(self, pods):
        self.said += [("ending", [pod.replica_name for pod in pods])] if pods else []

    def finished(self, pods, strict):
        self.said.append(("finished", [pod.replica_name for pod in pods]))


class LauncherOrderTest(unittest.TestCase):
    def run_job(self, time, strict=False, policy="Never", run_policy=RunPolicy(), foreign=(), **scripts):
        """run_job(time, chief_0=Script(...)): one replica of each type that is named. `foreign`: the replicas
        that do not know when their job is over."""
        names = {name.replace("_", "-"): script for name, script in scripts.items()}
        types = {name: {"ps": "PS"}.get(name[:-2], name[:-2].capitalize()) for name in names}
        specs = {t: ReplicaSpec(t, 1, policy, Container()) for t in types.values()}
        job = TrainingJob("j", "default", specs, run_policy)
        self.kubelet = FakeKubelet(time, job, names)
        rules = Rules.strict() if strict else Rules.lenient(3)
        operator = self.operator = Operator(
            job, self.kubelet, time.clock, OperatorVersion.parse(NEWEST), rules, lambda text: None
        )
        self.output = FakeOutput()
        def ends_by_itself(pod):
            return pod.replica_name not in foreign

        journal = SimpleNamespace(update=lambda: None)
        launcher = Launcher(operator, self.kubelet, time, self.output, journal, time.clock, strict, ends_by_itself)
        result = launcher.run()
        self.assertFalse([pod for pod in self.kubelet.pods() if not pod.phase.ended])
        return result


class SuccessTest(LauncherOrderTest):
    def test_others_have_15_seconds_after_success(self):
        time = FakeTime()
        quick, slow = Script((10, 0)), Script((None, 0))
        result = self.run_job(time, chief_0=Script((1, 0)), worker_0=quick, ps_0=slow)
        self.assertEqual((result.succeeded, result.exit_code), (True, 0))
        self.assertEqual(quick.received, [])
        self.assertEqual([name for _, name in slow.received], ["SIGTERM"])
        self.assertAlmostEqual(slow.received[0][0], 1 + END_SECONDS, delta=0.5)
        self.assertEqual(result.problems, ["ps-0 was still running 15 s after the job had succeeded"])
        self.assertEqual(self.output.said, [("finished", ["worker-0", "ps-0"]), ("ending", ["ps-0"])])

    def test_clean_pod_policy_does_not_shorten_their_time(self):
        time = FakeTime()
        evaluator = Script((10, 0))
        policy = RunPolicy(clean_pod_policy="Running", ttl_seconds_after_finished=0)
        result = self.run_job(time, run_policy=policy, chief_0=Script((1, 0)), evaluator_0=evaluator)
        self.assertEqual((evaluator.received, result.problems), ([], []))

    def test_clean_pod_policy_ends_what_would_serve_on(self):
        for name, ends in ((None, 16.0), ("None", 16.0), ("Running", 1.0), ("All", 1.0)):
            evaluator, ps = Script((10, 0)), Script((None, 0))
            result = self.run_job(
                FakeTime(),
                run_policy=RunPolicy(clean_pod_policy=name),
                foreign=("ps-0",),
                chief_0=Script((1, 0)),
                evaluator_0=evaluator,
                ps_0=ps,
            )
            self.assertEqual(evaluator.received, [])
            self.assertAlmostEqual(ps.received[0][0], ends, delta=0.5)
            problem = "ps-0 was still running 15 s after the job had succeeded"
            self.assertEqual(result.problems, [] if ends == 1.0 else [problem])

    def test_over_when_the_last_replica_has_ended(self):
        time = FakeTime()
        self.run_job(time, chief_0=Script((1, 0)), worker_0=Script((3, 0)))
        self.assertAlmostEqual(time.now, 3.0, delta=0.5)

    def test_bad_end_after_success_is_a_problem(self):
        result = self.run_job(FakeTime(), chief_0=Script((1, 0)), worker_0=Script((2, 138)))
        self.assertTrue(result.succeeded)
        self.assertEqual(result.problems, ["worker-0 ended with exit code 138"])

    def test_success_in_the_same_moment_as_a_failure(self):
        result = self.run_job(FakeTime(), worker_0=Script((1, 1)), chief_0=Script((1, 0)))
        self.assertTrue(result.succeeded)
        self.assertEqual(result.problems, ["worker-0 ended with exit code 1"])

    def test_whoever_ends_after_success_is_not_started_again(self):
        for policy, code, problems in (
            ("Always", 0, []),
            ("OnFailure", 1, ["worker-0 ended with exit code 1"]),
        ):
            time = FakeTime()
            worker = Script((3, code), (None, 0))
            chief = Script((1, 0))
            result = self.run_job_with_chief(time, chief, worker, policy)
            self.assertTrue(result.succeeded)
            self.assertLess(time.now, 10.0)
            self.assertEqual(result.problems, problems)

    def run_job_with_chief(self, time, chief, worker, worker_policy):
        specs = {
            "Chief": ReplicaSpec("Chief", 1, "Never", Container()),
            "Worker": ReplicaSpec("Worker", 1, worker_policy, Container()),
        }
        job = TrainingJob("j", "default", specs)
        kubelet = FakeKubelet(time, job, {"chief-0": chief, "worker-0": worker})
        operator = Operator(
            job, kubelet, time.clock, OperatorVersion.parse(NEWEST), Rules.lenient(3), lambda text: None
        )
        journal = SimpleNamespace(update=lambda: None)
        return Launcher(operator, kubelet, time, FakeOutput(), journal, time.clock).run()

    def test_stop_signal_after_success_ends_the_waiting(self):
        ps = Script((None, 0))
        result = self.run_job(FakeTime({3: signal.SIGTERM}), chief_0=Script((1, 0)), ps_0=ps)
        self.assertEqual((result.succeeded, result.exit_code, result.problems), (True, 0, []))
        self.assertAlmostEqual(ps.received[0][0], 3.0, delta=0.5)


class FailureTest(LauncherOrderTest):
    def test_ends_the_others_with_a_grace_period(self):
        stubborn, polite = Script((None, 0), obeys=(signal.SIGKILL,)), Script((None, 0))
        result = self.run_job(FakeTime(), ps_0=stubborn, chief_0=polite, worker_0=Script((1, 1)))
        self.assertEqual((result.succeeded, result.exit_code, result.failed), (False, 1, "worker-0"))
        self.assertEqual(
            result.reason,
            "worker-0 ended with exit code 1: TFJob default/j has failed because 1 Worker replica(s) failed.",
        )
        self.assertEqual([name for _, name in polite.received], ["SIGTERM"])
        self.assertEqual([name for _, name in stubborn.received], ["SIGTERM", "SIGKILL"])
        self.assertAlmostEqual(stubborn.received[1][0] - stubborn.received[0][0], 30.0, delta=0.5)

    def test_exit_code_is_that_of_the_replica(self):
        self.assertEqual(
            self.run_job(FakeTime(), chief_0=Script((None, 0)), worker_0=Script((1, 77))).exit_code, 77
        )

    def test_exit_code_1_where_no_replica_failed(self):
        policy = RunPolicy(active_deadline_seconds=5)
        result = self.run_job(FakeTime(), run_policy=policy, chief_0=Script((None, 0)))
        self.assertEqual((result.exit_code, result.failed), (1, ""))
        self.assertEqual(
            result.reason, "Job j has failed because it was active longer than specified deadline"
        )

    def test_exit_code_1_where_the_replica_had_ended_well_too_often(self):
        chief, worker = Script((None, 0)), Script(*[(1, 0)] * 9)
        result = self.run_job(FakeTime(), policy="Always", chief_0=chief, worker_0=worker)
        self.assertEqual((result.exit_code, result.failed), (1, "worker-0"))


class StopTest(LauncherOrderTest):
    def test_first_signal_ends_with_a_grace_period(self):
        chief = Script((None, 0), obeys=(signal.SIGKILL,), grace_seconds=7.0)
        result = self.run_job(FakeTime({5: signal.SIGTERM}), chief_0=chief, worker_0=Script((None, 0)))
        self.assertEqual((result.succeeded, result.exit_code), (False, 143))
        self.assertEqual((result.reason, result.stopped), ("stopped by SIGTERM", True))
        running = self.operator.status.condition("Running")
        self.assertEqual((running.status, running.reason), (False, "TFJobStopped"))
        self.assertEqual(running.message, "TFJob default/j was stopped by SIGTERM.")
        self.assertEqual([name for _, name in chief.received], ["SIGTERM", "SIGKILL"])
        self.assertAlmostEqual(chief.received[1][0], 12.0, delta=0.5)

    def test_the_chief_ends_before_the_others(self):
        """Its snapshot needs the parameter servers."""
        for strict, ps_ends in ((False, 9.0), (True, 5.0)):
            time = FakeTime({5: signal.SIGTERM})
            chief, ps = Script((9, 0), obeys=()), Script((None, 0))
            result = self.run_job(time, strict, chief_0=chief, ps_0=ps)
            self.assertEqual((result.exit_code, result.reason), (143, "stopped by SIGTERM"))
            self.assertAlmostEqual(chief.received[0][0], 5.0, delta=0.5)
            self.assertAlmostEqual(ps.received[0][0], ps_ends, delta=0.5)

    def test_second_signal_kills_at_once(self):
        chief = Script((None, 0), obeys=(signal.SIGKILL,))
        result = self.run_job(
            FakeTime({5: signal.SIGINT, 7: signal.SIGHUP}), chief_0=chief, worker_0=Script((None, 0))
        )
        self.assertEqual((result.exit_code, result.reason), (130, "stopped by SIGINT"))
        self.assertEqual([name for _, name in chief.received], ["SIGTERM", "SIGKILL"])
        self.assertAlmostEqual(chief.received[1][0], 7.0, delta=0.5)

    def test_nothing_is_replaced_while_the_job_is_being_ended(self):
        chief = Script((None, 0), obeys=(signal.SIGKILL,), grace_seconds=5.0)
        worker = Script((None, 0))
        self.run_job(FakeTime({5: signal.SIGINT}), policy="ExitCode", chief_0=chief, worker_0=worker)
        self.assertEqual([name for _, name in worker.received], ["SIGTERM"])


class StrictTest(LauncherOrderTest):
    def test_clean_pod_policy_none_leaves_the_others_running_until_they_end(self):
        time = FakeTime()
        ps = Script((100, 0))
        result = self.run_job(time, strict=True, chief_0=Script((1, 0)), ps_0=ps)
        self.assertEqual((ps.received, result.succeeded, result.problems), ([], True, []))
        self.assertAlmostEqual(time.now, 100.0, delta=0.5)

    def test_until_their_time_to_live_is_over(self):
        ps = Script((None, 0))
        policy = RunPolicy(ttl_seconds_after_finished=20)
        result = self.run_job(FakeTime(), strict=True, run_policy=policy, chief_0=Script((1, 0)), ps_0=ps)
        self.assertAlmostEqual(ps.received[0][0], 21.0, delta=0.5)
        self.assertTrue(result.succeeded)

    def test_until_ctrl_c(self):
        ps = Script((None, 0))
        result = self.run_job(FakeTime({50: signal.SIGINT}), strict=True, chief_0=Script((1, 0)), ps_0=ps)
        self.assertAlmostEqual(ps.received[0][0], 50.0, delta=0.5)
        self.assertEqual((result.succeeded, result.exit_code), (True, 0))

    def test_after_failure_too(self):
        ps = Script((30, 0))
        result = self.run_job(FakeTime(), strict=True, chief_0=Script((1, 5)), ps_0=ps)
        self.assertEqual((ps.received, result.exit_code), ([], 5))

    def test_clean_pod_policy_running_ends_them_at_once(self):
        evaluator = Script((10, 0))
        policy = RunPolicy(clean_pod_policy="Running")
        result = self.run_job(
            FakeTime(), strict=True, run_policy=policy, chief_0=Script((1, 0)), evaluator_0=evaluator
        )
        self.assertAlmostEqual(evaluator.received[0][0], 1.0, delta=0.5)
        self.assertEqual(result.problems, [])
