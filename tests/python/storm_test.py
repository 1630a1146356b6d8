"""Scripts, agents, processes of loaders, chief and server are killed in any order, and every record counts as often as it should.
Likewise without servers, where scripts also stop, leave and stand still.

KEELSON_STORM_KILLS (default 4) is how often, KEELSON_STORM_SEED draws another order.
"""

import os
import random
import re
import signal
import time
import unittest
from collections import Counter

import support
from real_job import BINARIES, RealJobTest
from script_cluster import ScriptCluster, await_true

import keelson

try:
    import torch

    import keelson.torch as kt
except ImportError:
    torch = None

KILLS = int(os.environ.get("KEELSON_STORM_KILLS", "4"))
SEED = int(os.environ.get("KEELSON_STORM_SEED", "1"))
RECORDS, BATCH, SCRIPTS = 48, 4, 3
LEASE_SECONDS = 2
# What happens without servers: to a script or its agent, the signal that it gets (None: the script leaves), and the script's
# exit code (None: it goes on, as its agent does after more than a lease).
SCRIPT_IS_KILLED = ("script", signal.SIGKILL, -signal.SIGKILL)
AGENT_IS_KILLED = ("agent", signal.SIGKILL, 138)
SCRIPT_IS_STOPPED = ("script", signal.SIGTERM, 143)
SCRIPT_LEAVES = ("script", None, 0)
AGENT_STANDS_STILL = ("agent", signal.SIGSTOP, None)
EVENTS = [SCRIPT_IS_KILLED, AGENT_IS_KILLED, SCRIPT_IS_STOPPED, SCRIPT_LEAVES, AGENT_STANDS_STILL]

# Each record has an element, which a gradient of its batch increases by one: the mean over two batches is half their sum.
# There are several variables, each of which counts all, so that each shard has one.
# No step begins before the test lets it.
SCRIPT = """
import os, time
import keelson

def say(*words):
    os.write(1, (" ".join(map(str, words)) + "\\n").encode())  # A script that is killed leaves no part of a line.

def await_permission(step):
    say("begin", step)
    while True:
        end, seconds = open("PACE").read().split()
        if step < int(end):
            return time.sleep(float(seconds))
        time.sleep(0.002)

def gradient_of(records):
    counts = [0.0] * RECORDS
    for record in records:
        counts[record] -= REPLICAS
    return counts

arguments = dict(records=RECORDS, batch_size=BATCH, epochs=EPOCHS, seed=5, consistency=CONSISTENCY, model_dir="MODEL",
                 placement=PLACEMENT, checkpoint=keelson.Checkpoint(save_steps=STRIDE))
"""
ARRAYS = """
with keelson.join("count", variables={name: [0.0] * RECORDS for name in NAMES}, optimizer=keelson.Sgd(lr=1), **arguments) as job:
    for step in job.steps():
        await_permission(step.number)
        records = step.records.tolist()
        say("push", step.number, *records)
        step.push({name: gradient_of(records) for name in NAMES}, loss=1.0)
        if os.path.exists("PACE.leave-%s" % os.getpid()):
            break
"""
# A row of a table in place of each element.
ROWS = """
with keelson.join("count", variables={"w": [0.0]}, tables={"count": keelson.Table(1, keelson.Sgd(lr=1), init=0)},
                  optimizer=keelson.Sgd(lr=1), **arguments) as job:
    for step in job.steps():
        await_permission(step.number)
        records = step.records.tolist()
        rows = step.rows("count", records)
        say("push", step.number, *records)
        step.push({"w": [0.0], "count": [[-REPLICAS]] * len(records)}, loss=1.0)
"""
TENSORS = """
import torch
import keelson.torch as kt

class Count(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.count = torch.nn.Parameter(torch.zeros(RECORDS))

torch.set_num_threads(1)
model = Count()
with keelson.join("count", **arguments) as job:
    opt = kt.Optimizer(job, model, keelson.Sgd(lr=1))
    for batch in kt.Loader(job, range(RECORDS), num_workers=4):
        number, records = job.work.current.step, batch.tolist()
        await_permission(number)
        model.count.grad = torch.tensor(gradient_of(records))
        say("push", number, *records)
        opt.step(1.0)
"""


class Storm(RealJobTest):
    # Steps between two kills.
    stride = 4

    def start_storm(self, body, replicas, consistency, names=("count",), placement=None, **more):
        """The cluster of a job whose length is that of its kills."""
        self.pace = os.path.join(self.directory, "pace")
        self.names = names
        steps_in_epoch = RECORDS // BATCH // replicas
        self.epochs = -(-(KILLS + 1) * self.stride // steps_in_epoch)
        self.max_steps = self.epochs * steps_in_epoch
        self.let_steps_begin(0)
        text = SCRIPT + body
        for name, value in (
            ("PACE", self.pace), ("MODEL", self.model_dir), ("RECORDS", RECORDS), ("BATCH", BATCH), ("REPLICAS", replicas),
            ("CONSISTENCY", consistency), ("EPOCHS", self.epochs), ("STRIDE", self.stride), ("NAMES", names),
            ("PLACEMENT", placement),
        ):  # fmt: skip
            text = text.replace(name, str(value))
        self.cluster = ScriptCluster(self, self.write("count.py", text), SCRIPTS, **more)
        return self.cluster

    def let_steps_begin(self, end, seconds=0.0):
        """Those below `end`; a script takes so long for one."""
        with open(f"{self.pace}.new", "w", encoding="utf-8") as file:
            file.write(f"{end} {seconds}")
        os.replace(f"{self.pace}.new", self.pace)

    def counts(self):
        """What each record's element is at the end, of each name."""
        lines = [line.split() for n in range(SCRIPTS) for line in self.cluster.lines(n) if line.startswith("push")]
        pushed = Counter(int(record) for words in lines for record in words[2:])
        state = keelson.load_state_dict(self.model_dir)
        self.assertEqual(state.step, self.max_steps)
        counts = [counts_of(state, name) for name in self.names]
        for record in range(RECORDS):
            self.assertLessEqual(counts[0][record], pushed[record])
        return counts


class StormTest(Storm):
    def run_storm(self, body, victims, **more):
        """What each record's element is at the end."""
        chosen = random.Random(SEED)
        flags = [f"--lease={LEASE_SECONDS}"]
        with self.start_storm(body, 2, "keelson.Sync(2)", chief_flags=flags, **more) as cluster:
            for kill in range(KILLS):
                self.let_steps_begin((kill + 1) * self.stride)
                self.await_step((kill + 1) * self.stride - 1)
                self.kill(chosen.choice(victims), chosen.randrange(SCRIPTS))
            self.let_steps_begin(self.max_steps)
            await_true(self.all_have_ended, cluster.logs)
        return self.counts()[0]

    def await_step(self, number):
        """Until the step has been computed by somebody."""
        def has_come():
            self.restart_dead()
            return any(line.startswith(f"push {number} ") for n in range(SCRIPTS) for line in self.cluster.lines(n))

        await_true(has_come, self.cluster.logs)

    def kill(self, victim, index):
        """A script has no agent while it starts."""
        cluster = self.cluster
        if victim == "agent":
            await_true(lambda: self.restart_dead() or cluster.agent(index) is not None, cluster.logs)
            os.kill(cluster.agent(index), signal.SIGKILL)
        elif victim == "loader":
            await_true(lambda: self.restart_dead() or cluster.loaders(index), cluster.logs)
            os.kill(cluster.loaders(index)[0], signal.SIGKILL)
        else:
            cluster.kill(victim, index if victim == "worker" else 0)
        self.restart_dead()

    def restart_dead(self):
        for role, index in (("chief", 0), ("ps", 0), *(("worker", n) for n in range(SCRIPTS))):
            code = self.cluster.exit_code(role, index)
            if code:
                self.assertNotEqual(code, 2, self.cluster.logs())
                self.cluster.start(role, index)

    def all_have_ended(self):
        self.restart_dead()
        return all(self.cluster.exit_code("worker", n) == 0 for n in range(SCRIPTS)) and self.cluster.exit_code("chief") == 0

    def test_every_record_counts_once_in_each_epoch(self):
        counts = self.run_storm(ARRAYS, ["worker", "agent", "chief"])
        self.assertEqual(counts, [self.epochs] * RECORDS)

    def test_rows_of_every_record_count_once_in_each_epoch(self):
        counts = self.run_storm(ROWS, ["worker", "agent", "chief"])
        self.assertEqual(counts, [self.epochs] * RECORDS)

    def test_rows_on_the_server_count_likewise_where_agents_hold_the_rest(self):
        counts = self.run_storm(ROWS, ["worker", "agent", "chief"], placement={"*": "workers"})
        self.assertEqual(counts, [self.epochs] * RECORDS)

    def test_variables_of_agents_lose_at_most_what_came_after_a_snapshot(self):
        """Both holders of a shard may be killed one after the other."""
        counts = self.run_storm(ARRAYS, ["worker", "agent", "chief"], placement={"*": "workers"})
        self.assertLessEqual(max(counts), self.epochs)
        self.assertGreater(sum(counts), 0)

    def test_a_killed_server_loses_what_came_after_its_snapshot_and_nothing_counts_twice(self):
        counts = self.run_storm(ARRAYS, ["ps", "worker", "agent", "chief"])
        self.assertLessEqual(max(counts), self.epochs)
        self.assertGreater(sum(counts), 0)

    def test_a_script_that_was_one_for_ddp_learns_while_it_is_killed(self):
        if torch is None:
            self.skipTest("no package torch")
        path = os.path.join(support.PACKAGES, "examples", "from_ddp.py")
        with open(path, encoding="utf-8") as file:
            text = file.read()
        for before, after in (("= 10, 32,", "= 80, 32,"), ('"/model"', repr(self.model_dir)), ("% 64", "% 8")):
            self.assertEqual(text.count(before), 1)
            text = text.replace(before, after)
        script = self.write("from_ddp.py", text)
        with ScriptCluster(self, script, 2) as cluster:
            for kill in range(3):
                known = len(cluster.lines(kill % 2))
                await_true(lambda w=kill % 2, n=known: len(cluster.lines(w)) > n, cluster.logs)
                self.assertIsNone(cluster.exit_code("worker", kill % 2), "the job is longer than its kills")
                cluster.kill("worker", kill % 2)
                cluster.start("worker", kill % 2)
            self.assertEqual([cluster.wait("worker", n) for n in range(2)], [0, 0], cluster.logs())
            self.assertEqual(cluster.wait("chief"), 0, cluster.logs())
        namespace = {"__name__": "example"}
        exec(compile(text, script, "exec"), namespace)
        model = namespace["make_model"]()
        model.load_state_dict(kt.tensors(keelson.load_state_dict(self.model_dir)), strict=True)
        features, targets = namespace["make_data"]().tensors
        with torch.no_grad():
            loss = float(torch.nn.functional.mse_loss(model(features), targets))
        self.assertLess(loss, 0.05)

    def test_loaders_with_forked_workers(self):
        if torch is None:
            self.skipTest("no package torch")
        counts = self.run_storm(TENSORS, ["worker", "agent", "loader", "chief"])
        self.assertEqual(counts, [self.epochs] * RECORDS)


class StormWithoutServersTest(Storm):
    """Something happens to one process after the other, since a shard is lost with both of its holders. Where a script takes
    little time for a step, the others run out of those that they may begin, as if each took longer than all that happens."""

    stride = 100

    def setUp(self):
        """Scripts find an agent with a short lease."""
        super().setUp()
        programs = os.path.join(self.directory, "programs")
        os.mkdir(programs)
        agent = os.path.join(BINARIES, "keelson_agent")
        path = self.path_of("programs/keelson_agent", f'#!/bin/sh\nexec {agent} --lease={LEASE_SECONDS} "$@"\n')
        os.chmod(path, 0o700)
        self.environment["KEELSON_BINARY_DIR"] = programs

    def run_storm(self, victims, first=()):
        """`first`: what happens at first, and to whom. Then each event comes once before one comes again."""
        chosen = random.Random(SEED)
        planned = list(first)
        with self.start_storm(ARRAYS, SCRIPTS, None, ("count", "second", "third"), servers=False) as cluster:
            for n in range(SCRIPTS):
                self.await_begin(n)
            await_true(lambda: self.is_settled(0), cluster.logs)
            for number in range(KILLS):
                planned = planned or [(event, chosen.choice(victims)) for event in chosen.sample(EVENTS, len(EVENTS))]
                end = (number + 1) * self.stride
                self.let_steps_begin(end, chosen.choice([0.002, 0.02, 0.02, 0.02]))
                time.sleep(chosen.uniform(0, 0.1))
                event, index = planned.pop(0)
                self.let_happen(*event, index, end)
            self.let_steps_begin(self.max_steps)
            self.assertEqual([cluster.wait("worker", n) for n in range(SCRIPTS)], [0] * SCRIPTS, cluster.logs())
        self.assert_nothing_runs()
        self.assertEqual(self.counts(), [[self.epochs] * RECORDS] * len(self.names))
        self.assertNotIn("from the snapshot", "".join(map(cluster.log, range(SCRIPTS))))

    def let_happen(self, whom, sent, code, index, end):
        """Returns when the process is in the job again, others have gone on to a step beyond, or to `end`, and each shard has
        its replica."""
        cluster = self.cluster
        log_start, next_step = len(cluster.log(0)), min(self.newest_step() + 2, end)
        pid = cluster.agent(index) if whom == "agent" else cluster.pid("worker", index)
        if sent is None:
            self.path_of(f"pace.leave-{pid}", "")
        else:
            os.kill(pid, sent)
        if code is None:
            time.sleep(LEASE_SECONDS + 1)
        else:
            self.assertEqual(cluster.wait("worker", index), code, cluster.logs())
        if index != 0:
            await_true(lambda: self.newest_step() >= next_step, cluster.logs)
        lines = len(cluster.lines(index))
        if code is None:
            os.kill(pid, signal.SIGCONT)
        else:
            cluster.start("worker", index)
        await_true(lambda: self.newest_step() >= next_step, cluster.logs)
        self.await_begin(index, lines)
        has_moved = index != 0 or code is not None
        await_true(lambda: self.is_settled(index, log_start if has_moved else 0), cluster.logs)

    def newest_step(self):
        """That somebody has begun. The last line may be a part of one."""
        last = [line for n in range(SCRIPTS) for line in self.cluster.lines(n)[-2:]]
        return max(int(number) for line in last for number in re.findall(r"^\w+ (\d+)", line))

    def await_begin(self, index, start=0):
        """Until a script has a step, behind the first `start` lines."""
        def has_begun():
            return any(line.startswith("begin") for line in self.cluster.lines(index)[start:])

        await_true(has_begun, self.cluster.logs)

    def is_settled(self, index, start=0):
        """Whether each shard has a replica and is where it was at first, as the leader's log says; that of the process, or all
        of them where it leads, behind so many characters."""
        log = self.cluster.log(0)
        for shard in range(SCRIPTS):
            told = list(re.finditer(rf"shard-{shard} of worker-(.) (.*) shard-{shard} of worker-(.)", log))
            if not told or (index in (0, shard) and told[-1].start() < start):
                return False
            before, what, after = told[-1].groups()
            if (what, before) != ("has a replica at", str(shard)) and (what, after) != ("is from now on", str(shard)):
                return False
        return True

    def test_every_record_counts_once_in_each_epoch_and_no_shard_is_lost(self):
        self.run_storm([1, 2])

    def test_likewise_where_the_leader_is_one_of_them(self):
        self.run_storm([0, 1, 2], [(SCRIPT_IS_KILLED, 0), (AGENT_IS_KILLED, 0)])


def counts_of(state, name):
    """By record."""
    if name in state:
        return [int(count) for count in state[name].elements()]
    keys, values = state.tables[name]
    rows = dict(zip(keys.data.cast("q"), values.elements().tolist()))
    return [int(rows[record][0]) for record in range(RECORDS)]


if __name__ == "__main__":
    unittest.main()
