"""What docs/python.md says under "When something dies", with a job's own programs; prints how long each took.

KEELSON_HOLD_SECONDS (default 4) is how long a script holds its interpreter, and stands in its debugger.
"""

import contextlib
import os
import signal
import time
import unittest

from real_job import RealJobTest
from script_cluster import ScriptCluster, await_true

LEASE_SECONDS = 3
# Of a program's start on a machine that has other work, and of what waits for it.
MOST_SECONDS = 40
HOLD_SECONDS = int(os.environ.get("KEELSON_HOLD_SECONDS", "4"))
# Worker 0 stands still in its third step, as long as the file "hold" is there, and does what other files tell it to.
SCRIPT = """
import ctypes, json, os, pdb, sys, time
import keelson

def told(what):
    return os.path.exists(os.path.join("DIRECTORY", what))

index = json.loads(os.environ.get("TF_CONFIG", "{}")).get("task", {}).get("index", 0)
count = 0
with keelson.join("line", variables={"w": [0.0]}, optimizer=keelson.Sgd(lr=1), records=16, batch_size=4, max_steps=1000000,
                  model_dir="MODEL") as job:
    for step in job.steps():
        print("begin", step.number, flush=True)
        while index == 0 and count >= 2 and told("hold"):
            time.sleep(0.005)
            if told("raise"):
                raise ValueError("as it was told")
        if index == 0 and count >= 2 and told("grab"):
            ctypes.PyDLL(None).sleep(SECONDS)  # PyDLL keeps the interpreter's lock.
        if index == 0 and count >= 2 and told("debug"):
            with open(os.path.join("DIRECTORY", "keys")) as keys:
                print("debugging", flush=True)
                pdb.Pdb(stdin=keys, stdout=sys.stdout, nosigint=True).set_trace()
                print("goes on", flush=True)
        print("counts" if step.push({"w": [1.0]}, loss=1.0) else "refused", step.number, flush=True)
        count += 1
        if told("end"):
            job.end("the test is over")
        time.sleep(0.002)
"""


class FailuresTest(RealJobTest):
    def setUp(self):
        super().setUp()
        text = SCRIPT.replace("DIRECTORY", self.directory).replace("MODEL", self.model_dir)
        self.script = self.write("line.py", text.replace("SECONDS", str(HOLD_SECONDS)))
        self.counts, self.since = [], 0.0
        self.cluster = ScriptCluster(self, self.script, 2, [f"--lease={LEASE_SECONDS}"])

    def tell(self, what):
        self.path_of(what, "")

    def untell(self, what):
        with contextlib.suppress(FileNotFoundError):
            os.remove(os.path.join(self.directory, what))

    def await_hold(self, lines_before=0):
        """The number of the step in which worker 0 stands still."""

        def begun():
            lines = self.cluster.lines(0)[lines_before:]
            return sum(line.startswith("begin") for line in lines) == 3 and lines[-1]

        await_true(begun, self.cluster.logs)
        return self.cluster.lines(0)[-1].split()[1]

    def report(self, event, seconds, least, most):
        print(f"{event}: {seconds:.2f} s")
        self.assertGreaterEqual(seconds, least)
        self.assertLess(seconds, most)

    def finish(self):
        self.tell("end")
        codes = [self.cluster.wait(role, index) for role, index in (("worker", 0), ("worker", 1), ("chief", 0))]
        self.assertEqual(codes, [0, 0, 0], self.cluster.logs())

    def test_the_steps_of_a_script_that_ends_go_to_others(self):
        def kill():
            self.cluster.kill("worker", 0)

        def fail():
            self.tell("raise")

        def kill_agent():
            os.kill(self.cluster.agent(0), signal.SIGKILL)
            self.untell("hold")

        at_once = (0, LEASE_SECONDS * 0.5)
        with self.cluster as cluster:
            for event, end, code, bounds in (
                ("a script is killed", kill, -signal.SIGKILL, at_once),
                ("a script raises", fail, 1, at_once),
                ("an agent is killed", kill_agent, 138, (1, LEASE_SECONDS + 3)),
            ):
                with self.subTest(event=event):
                    self.untell("raise")
                    self.tell("hold")
                    lines_before = len(cluster.lines(0))
                    if cluster.exit_code("worker", 0) is not None:
                        cluster.start("worker", 0)
                    held = self.await_hold(lines_before)
                    others = len(cluster.lines(1))
                    ended = time.monotonic()
                    end()
                    self.assertEqual(cluster.wait("worker", 0), code, cluster.logs())
                    taken = cluster.await_line(1, f"begin {held}", others)
                    self.report(f"{event}, until another script has its step", taken - ended, *bounds)
            self.untell("hold")
            cluster.start("worker", 0)
            self.await_lines(0, 10)
            stopping = time.monotonic()
            os.kill(cluster.pid("worker", 0), signal.SIGTERM)
            self.assertEqual(cluster.wait("worker", 0), 143, cluster.logs())
            self.report("a script is asked to stop, until it has ended", time.monotonic() - stopping, 0, MOST_SECONDS)
            cluster.start("worker", 0)
            self.finish()

    def test_a_frozen_agent_and_a_script_that_holds_its_interpreter(self):
        with self.cluster as cluster:
            self.tell("hold")
            held = self.await_hold()
            agent, others = cluster.agent(0), len(cluster.lines(1))
            frozen = time.monotonic()
            os.kill(agent, signal.SIGSTOP)
            taken = cluster.await_line(1, f"begin {held}", others)
            self.report("an agent is frozen, until another script has its step", taken - frozen, 1, LEASE_SECONDS + 3)
            os.kill(agent, signal.SIGCONT)
            self.untell("hold")
            waking = time.monotonic()
            back = cluster.await_line(0, f"refused {held}")
            self.report("it wakes up, until its script goes on", back - waking, 0, LEASE_SECONDS)
            # The heartbeats are the agent's.
            lines = len(cluster.lines(0))
            self.tell("grab")
            await_true(lambda: len(cluster.lines(0)) >= lines + 6, cluster.logs)
            self.untell("grab")
            last = cluster.lines(0)[lines:]
            self.assertEqual([line for line in last if line.startswith("refused")], [])
            self.assertEqual(agent, cluster.agent(0))
            self.finish()

    def test_a_script_stands_in_its_debugger(self):
        os.mkfifo(os.path.join(self.directory, "keys"))
        with self.cluster as cluster:
            self.await_lines(0, 10)
            agent, lines = cluster.agent(0), len(cluster.lines(0))
            self.tell("debug")
            with open(os.path.join(self.directory, "keys"), "w", encoding="utf-8") as keys:  # Waits for who reads.
                cluster.await_line(0, "debugging", lines)
                self.untell("debug")
                standing = time.monotonic()
                await_true(lambda: time.monotonic() - standing > HOLD_SECONDS, seconds=HOLD_SECONDS + 1)
                keys.write("p 'step', step.number\nc\n")
            going_on = time.monotonic()
            self.await_lines(0, 10)
            print(f"a script stood in its debugger for {going_on - standing:.2f} s")
            self.report("its debugger lets go, until the script goes on", time.monotonic() - going_on, 0, MOST_SECONDS)
            told = cluster.lines(0)[lines:]
            (at,) = (number for number, line in enumerate(told) if line.startswith("(Pdb) ('step', "))
            number = told[at].split()[-1].rstrip(")")
            self.assertEqual(told[at + 1 : at + 3], ["(Pdb) goes on", f"counts {number}"])
            self.assertEqual([line for line in told if line.startswith("refused")], [])
            self.assertEqual(agent, cluster.agent(0))
            self.finish()

    def test_a_server_and_the_chief_are_away(self):
        with self.cluster as cluster:
            self.await_lines(0, 10)
            self.await_lines(1, 10)
            cluster.kill("chief")
            away = time.monotonic()
            # The rest of their leases is done, and then they wait.
            await_true(lambda: self.all_wait(), cluster.logs)
            cluster.start("chief")
            starting = time.monotonic()
            for index in (0, 1):
                self.await_lines(index, 10)
            print(f"the chief was away for {starting - away:.2f} s")
            self.report("the chief is back, until both scripts go on", time.monotonic() - starting, 0, MOST_SECONDS)

            cluster.kill("ps")
            await_true(lambda: self.all_wait(), cluster.logs)
            interrupted = time.monotonic()
            os.kill(cluster.pid("worker", 0), signal.SIGINT)
            self.assertEqual(cluster.wait("worker", 0), -signal.SIGINT, cluster.logs())
            self.report("Ctrl-C while the server is away, until the script has ended", time.monotonic() - interrupted, 0, 15)
            cluster.start("ps")
            starting = time.monotonic()
            self.await_lines(1, 10)
            self.report("the server is back, until the script goes on", time.monotonic() - starting, 0, MOST_SECONDS)
            cluster.start("worker", 0)
            self.await_lines(0, 10)
            self.finish()

    def await_lines(self, index, count):
        before = len(self.cluster.lines(index))
        await_true(lambda: len(self.cluster.lines(index)) >= before + count, self.cluster.logs)

    def all_wait(self):
        """Nothing was printed in half a second."""
        counts = [len(self.cluster.lines(n)) for n in range(2)]
        if counts != self.counts:
            self.counts, self.since = counts, time.monotonic()
        return time.monotonic() - self.since > 0.5

    def test_another_model_is_refused_by_the_chief(self):
        with self.cluster as cluster:
            self.await_lines(1, 2)
            self.await_lines(0, 2)
            cluster.kill("worker", 0)
            # Its files are not in sight of this one.
            with open(self.script, encoding="utf-8") as file:
                text = file.read()
            elsewhere = os.path.join(self.directory, "elsewhere")
            self.path_of("line.py", text.replace('{"w": [0.0]}', '{"w": [0.0, 0.0]}').replace(self.model_dir, elsewhere))
            cluster.start("worker", 0)
            self.assertEqual(cluster.wait("worker", 0), 2)
            self.assertRegex(cluster.logs(), "JoinError: variable 1: expected .*, found .*: all scripts of a job describe the same one")
            self.path_of("line.py", text)
            cluster.start("worker", 0)
            self.finish()


if __name__ == "__main__":
    unittest.main()
