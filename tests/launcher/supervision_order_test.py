"""What the supervisor does when, with replicas that are scripted and a clock that only it moves."""

import io
import signal
import unittest

import support  # Sets the path that the next imports need.
from tfjob_local.command import ReplicaCommand
from tfjob_local.console import Console
from tfjob_local.job import Container, ReplicaSpec, TFJob
from tfjob_local.replica import Replica
from tfjob_local.supervisor import Supervisor


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


class FakeReplica(Replica):
    """Each attempt ends by itself at its time with its code, or by the signals it obeys."""

    def __init__(self, time, replica_type, attempts, policy="Never", obeys=(signal.SIGTERM, signal.SIGKILL)):
        """`attempts`: (seconds after its start or None for never, exit code), one after the other."""
        command = ReplicaCommand(f"{replica_type.lower()}-0", replica_type, 0, (), {}, "/", policy)
        super().__init__(command, "/logs", time.clock)
        self._attempts = list(attempts)
        self._obeys = obeys
        self._alive = False
        self.starts = []
        self.received = []

    @property
    def running(self):
        return self._alive

    def start(self):
        if self.starts:
            self.restarts += 1
        self.restart_at = None
        self.starts.append(self._clock())
        self._started_at = self._clock()
        self._alive = True
        after, self._code = self._attempts.pop(0)
        self._ends_at = None if after is None else self._clock() + after

    def poll(self):
        if not self._alive or self._ends_at is None or self._clock() < self._ends_at:
            return None
        self._alive = False
        self.exit_code = self._code
        return self._code

    def send(self, signal_number):
        if self._alive:
            self.received.append((round(self._clock(), 1), signal.Signals(signal_number).name))
            if signal_number in self._obeys:
                self._ends_at, self._code = self._clock(), 128 + signal_number


class NoProgress:
    def update(self):
        pass


class SupervisionOrderTest(unittest.TestCase):
    def run_job(self, time, *replicas, max_restarts=10):
        specs = {r.command.type: ReplicaSpec(r.command.type, 1, "Never", Container()) for r in replicas}
        self.output = io.StringIO()
        supervisor = Supervisor(
            TFJob("job", "default", specs), replicas, time, Console(self.output), NoProgress(), time.clock, max_restarts
        )
        return supervisor.run()

    def test_others_have_15_seconds_after_success(self):
        time = FakeTime()
        chief = FakeReplica(time, "Chief", [(1, 0)])
        quick = FakeReplica(time, "Worker", [(10, 0)])
        slow = FakeReplica(time, "PS", [(None, 0)])
        outcome = self.run_job(time, chief, quick, slow)
        self.assertTrue(outcome.succeeded)
        self.assertEqual(outcome.exit_code, 0)
        self.assertEqual(quick.received, [])
        self.assertEqual([name for _, name in slow.received], ["SIGTERM"])
        self.assertAlmostEqual(slow.received[0][0], 16.0, delta=0.5)
        self.assertEqual(outcome.problems, ["ps-0 was still running 15 s after the job had succeeded"])

    def test_bad_end_after_success_is_a_problem(self):
        time = FakeTime()
        outcome = self.run_job(
            time, FakeReplica(time, "Chief", [(1, 0)]), FakeReplica(time, "Worker", [(2, 138)], policy="ExitCode")
        )
        self.assertTrue(outcome.succeeded)
        self.assertEqual(outcome.problems, ["worker-0 ended with exit code 138"])

    def test_success_in_the_same_moment_as_a_failure(self):
        time = FakeTime()
        outcome = self.run_job(time, FakeReplica(time, "Worker", [(1, 1)]), FakeReplica(time, "Chief", [(1, 0)]))
        self.assertTrue(outcome.succeeded)
        self.assertEqual(outcome.problems, ["worker-0 ended with exit code 1"])

    def test_delays_double_up_to_ten_seconds(self):
        time = FakeTime()
        worker = FakeReplica(time, "Worker", [(0, 138)] * 10, policy="ExitCode")
        self.run_job(time, FakeReplica(time, "Chief", [(None, 0)]), worker, max_restarts=8)
        gaps = [round(b - a) for a, b in zip(worker.starts, worker.starts[1:])]
        self.assertEqual(gaps[2:], [1, 2, 4, 8, 10, 10])

    def test_long_attempt_begins_anew_with_the_shortest_delay(self):
        time = FakeTime()
        worker = FakeReplica(time, "Worker", [(0, 138), (0, 138), (100, 138), (1, 0)], policy="ExitCode")
        self.run_job(time, FakeReplica(time, "Chief", [(200, 0)]), worker)
        self.assertIn("restart 3 in 0.25 s", self.output.getvalue())

    def test_others_go_on_while_one_waits_for_its_restart(self):
        time = FakeTime()
        ps = FakeReplica(time, "PS", [(150, 0)])
        worker = FakeReplica(time, "Worker", [(1, 137), (1, 0)], policy="ExitCode")
        outcome = self.run_job(time, FakeReplica(time, "Chief", [(100, 0)]), ps, worker)
        self.assertTrue(outcome.succeeded)
        self.assertEqual(len(worker.starts), 2)
        self.assertAlmostEqual(worker.starts[1], 1.45, delta=0.5)

    def test_failure_ends_the_others_with_a_grace_period(self):
        time = FakeTime()
        stubborn = FakeReplica(time, "PS", [(None, 0)], obeys=(signal.SIGKILL,))
        polite = FakeReplica(time, "Chief", [(None, 0)])
        worker = FakeReplica(time, "Worker", [(1, 1)])
        outcome = self.run_job(time, stubborn, polite, worker)
        self.assertFalse(outcome.succeeded)
        self.assertIs(outcome.failed, worker)
        self.assertEqual([name for _, name in polite.received], ["SIGTERM"])
        self.assertEqual(stubborn.received[0][1], "SIGTERM")
        self.assertEqual(stubborn.received[-1][1], "SIGKILL")
        self.assertAlmostEqual(stubborn.received[-1][0] - stubborn.received[0][0], 30.0, delta=0.5)
        self.assertTrue(stubborn.killed)
        self.assertFalse(polite.killed)

    def test_second_stop_signal_kills_at_once(self):
        time = FakeTime(stops={5: signal.SIGINT, 7: signal.SIGINT})
        chief = FakeReplica(time, "Chief", [(None, 0)], obeys=(signal.SIGKILL,))
        outcome = self.run_job(time, chief, FakeReplica(time, "Worker", [(None, 0)]))
        self.assertEqual(outcome.exit_code, 130)
        self.assertEqual(outcome.reason, "stopped by SIGINT")
        self.assertAlmostEqual(chief.received[1][0], 7.0, delta=0.5)
        self.assertEqual([name for _, name in chief.received], ["SIGTERM", "SIGKILL"])

    def test_stop_signal_after_success_ends_the_waiting(self):
        time = FakeTime(stops={3: signal.SIGTERM})
        ps = FakeReplica(time, "PS", [(None, 0)])
        outcome = self.run_job(time, FakeReplica(time, "Chief", [(1, 0)]), ps)
        self.assertTrue(outcome.succeeded)
        self.assertAlmostEqual(ps.received[0][0], 3.0, delta=0.5)

    def test_nothing_is_left_when_a_start_fails(self):
        time = FakeTime()
        first = FakeReplica(time, "PS", [(None, 0)])
        second = FakeReplica(time, "Chief", [])
        with self.assertRaises(IndexError):
            self.run_job(time, first, second)
        self.assertFalse(first.running)
        self.assertEqual([name for _, name in first.received], ["SIGKILL"])


if __name__ == "__main__":
    unittest.main()
