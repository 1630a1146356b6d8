"""Scripts, agents, processes of loaders, chief and server are killed in any order, and every record counts as often as it should.

KEELSON_STORM_KILLS (default 4) is how often, KEELSON_STORM_SEED draws another order.
"""

import os
import random
import signal
import unittest
from collections import Counter

import support
from real_job import RealJobTest
from script_cluster import ScriptCluster, await_true

import keelson

try:
    import torch

    import keelson.torch as kt
except ImportError:
    torch = None

KILLS = int(os.environ.get("KEELSON_STORM_KILLS", "4"))
SEED = int(os.environ.get("KEELSON_STORM_SEED", "1"))
RECORDS, BATCH, REPLICAS = 48, 4, 2
STEPS_IN_EPOCH = RECORDS // BATCH // REPLICAS
# Steps between two kills.
STRIDE = 4

# Each record has an element, which a gradient of its batch increases by one: the mean over two batches is half their sum.
# No step begins before the test lets it.
SCRIPT = """
import os, time
import keelson

def await_permission(step):
    while step >= int(open("PACE").read() or 0):
        time.sleep(0.002)

def gradient_of(records):
    counts = [0.0] * RECORDS
    for record in records:
        counts[record] -= REPLICAS
    return counts

arguments = dict(records=RECORDS, batch_size=BATCH, epochs=EPOCHS, seed=5, consistency=keelson.Sync(REPLICAS), model_dir="MODEL",
                 checkpoint=keelson.Checkpoint(save_steps=STRIDE))
"""
ARRAYS = """
with keelson.join("count", variables={"count": [0.0] * RECORDS}, optimizer=keelson.Sgd(lr=1), **arguments) as job:
    for step in job.steps():
        await_permission(step.number)
        records = step.records.tolist()
        print("push", step.number, *records, flush=True)
        step.push({"count": gradient_of(records)}, loss=1.0)
"""
# A row of a table in place of each element.
ROWS = """
with keelson.join("count", variables={"w": [0.0]}, tables={"count": keelson.Table(1, keelson.Sgd(lr=1), init=0)},
                  optimizer=keelson.Sgd(lr=1), **arguments) as job:
    for step in job.steps():
        await_permission(step.number)
        records = step.records.tolist()
        rows = step.rows("count", records)
        print("push", step.number, *records, flush=True)
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
        print("push", number, *records, flush=True)
        opt.step(1.0)
"""


class StormTest(RealJobTest):
    def run_storm(self, body, victims):
        """What each record's element is at the end."""
        self.pace = os.path.join(self.directory, "pace")
        epochs = -(-(KILLS + 1) * STRIDE // STEPS_IN_EPOCH)
        self.epochs, self.max_steps = epochs, epochs * STEPS_IN_EPOCH
        text = SCRIPT + body
        for name, value in (
            ("PACE", self.pace), ("MODEL", self.model_dir), ("RECORDS", RECORDS), ("BATCH", BATCH),
            ("REPLICAS", REPLICAS), ("EPOCHS", epochs), ("STRIDE", STRIDE),
        ):  # fmt: skip
            text = text.replace(name, str(value))
        chosen = random.Random(SEED)
        with ScriptCluster(self, self.write("count.py", text), 3, ["--lease=2"]) as cluster:
            self.cluster = cluster
            for kill in range(KILLS):
                self.let_steps_begin((kill + 1) * STRIDE)
                self.await_step((kill + 1) * STRIDE - 1)
                self.kill(chosen.choice(victims), chosen.randrange(3))
            self.let_steps_begin(self.max_steps)
            await_true(self.all_have_ended, cluster.logs)
        lines = [line.split() for n in range(3) for line in cluster.lines(n)]
        pushed = Counter(int(record) for words in lines for record in words[2:])
        state = keelson.load_state_dict(self.model_dir)
        self.assertEqual(state.step, self.max_steps)
        counts = counts_of(state)
        for record in range(RECORDS):
            self.assertLessEqual(counts[record], pushed[record])
        return counts

    def let_steps_begin(self, end):
        """Those below `end`."""
        with open(f"{self.pace}.new", "w", encoding="utf-8") as file:
            file.write(str(end))
        os.replace(f"{self.pace}.new", self.pace)

    def await_step(self, number):
        """Until the step has been computed by somebody."""
        def has_come():
            self.restart_dead()
            return any(line.startswith(f"push {number} ") for n in range(3) for line in self.cluster.lines(n))

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
        for role, index in (("chief", 0), ("ps", 0), *(("worker", n) for n in range(3))):
            code = self.cluster.exit_code(role, index)
            if code:
                self.assertNotEqual(code, 2, self.cluster.logs())
                self.cluster.start(role, index)

    def all_have_ended(self):
        self.restart_dead()
        return all(self.cluster.exit_code("worker", n) == 0 for n in range(3)) and self.cluster.exit_code("chief") == 0

    def test_every_record_counts_once_in_each_epoch(self):
        counts = self.run_storm(ARRAYS, ["worker", "agent", "chief"])
        self.assertEqual(counts, [self.epochs] * RECORDS)

    def test_rows_of_every_record_count_once_in_each_epoch(self):
        counts = self.run_storm(ROWS, ["worker", "agent", "chief"])
        self.assertEqual(counts, [self.epochs] * RECORDS)

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


def counts_of(state):
    """By record."""
    if "count" in state:
        return [int(count) for count in state["count"].elements()]
    keys, values = state.tables["count"]
    rows = dict(zip(keys.data.cast("q"), values.elements().tolist()))
    return [int(rows[record][0]) for record in range(RECORDS)]


if __name__ == "__main__":
    unittest.main()
