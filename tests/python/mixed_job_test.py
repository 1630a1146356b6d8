"""Scripts beside C++ workers, on a model of Keelson's layers."""

import json
import os
import unittest

import support
from real_job import RealJobTest
from script_cluster import ScriptCluster

import keelson

RECORDS, BATCH, EPOCHS = 1000, 10, 3

# Each record counts itself: far from its target, HUBER has the gradient -1 whatever the value is, of the row of the record
# that is the id. Of a batch that is 1 / BATCH, which the rate takes back.
CONFIG = f"""
model {{
  name: "counts"
  features {{ name: "record" id {{}} }}
  layers {{ name: "count" embedding {{ rows: {RECORDS} dim: 1 }} }}
  loss {{ kind: HUBER }}
}}
initial_values {{ groups {{ variables: "*" constant {{}} }} }}
data {{
  csv {{}} train_files: "train.csv" eval_files: "train.csv"
  features {{ name: "record" columns {{ integer {{}} }} }}
}}
optimizer {{ sgd {{}} }}
learning_rate {{ base: {BATCH} }}
train {{ batch_size: {BATCH} epochs: {EPOCHS} seed: 4 max_loss: 1e30 }}
"""

# The first step waits until others have made one, unless steps need all.
SCRIPT = """
import array, json, os, time
import keelson
def others_work():
    if STATUS is None:
        return True
    if not os.path.exists(STATUS):
        return False
    with open(STATUS, encoding="utf-8") as file:
        return json.load(file).get("step", 0) > 0
steps = 0
with keelson.join(config=CONFIG, records=RECORDS, model_dir=MODEL_DIR, data_dir=DATA_DIR) as job:
    for step in job.steps():
        if steps == 0:
            print("first", flush=True)
        while steps == 0 and not others_work():
            time.sleep(0.01)
        gradient = array.array("f", bytes(4 * RECORDS))
        for record in step.records:
            gradient[record] = -1 / step.weight
        gradient = memoryview(gradient).cast("B").cast("f", [RECORDS, 1])
        steps += step.push({"count/embeddings": gradient}, loss=1.0)
print(steps, job.max_steps)
"""


class MixedJobTest(RealJobTest):
    def setUp(self):
        super().setUp()
        self.needs("worker")
        self.config = self.path_of("counts.textproto", CONFIG)
        self.path_of("train.csv", "record,label\n" + "".join(f"{n},1e9\n" for n in range(RECORDS)))

    def script(self, records=RECORDS, servers=True):
        status = os.path.join(self.model_dir, "status.json") if servers else None
        constants = {"CONFIG": self.config, "RECORDS": records, "MODEL_DIR": self.model_dir, "STATUS": status,
                     "DATA_DIR": None if servers else self.directory}  # fmt: skip
        return self.write("train.py", "".join(f"{name} = {value!r}\n" for name, value in constants.items()) + SCRIPT)

    def cluster(self, servers=True, **changes):
        script = self.script(servers=servers, **changes)
        return ScriptCluster(
            self, script, 1, config=self.config, data_dir=self.directory, workers=1, servers=servers
        )

    def test_each_record_counts_once_in_each_epoch(self):
        with self.cluster() as cluster:
            cluster.await_line(0, "first")
            cluster.start("worker", 1)
            codes = [cluster.wait(*task) for task in (("worker", 0), ("worker", 1), ("chief",), ("ps",))]
            self.assertEqual(codes, [0, 0, 0, 0], cluster.logs())
            steps, max_steps = map(int, cluster.lines()[-1].split())
        self.assertEqual(max_steps, EPOCHS * RECORDS // BATCH)
        self.assertGreater(steps, 0)
        self.assertLess(steps, max_steps)
        counts = keelson.load_state_dict(self.model_dir)["count/embeddings"].data.cast("f").tolist()
        self.assertEqual(sorted({round(count, 3) for count in counts}), [EPOCHS])

    def test_a_script_leads_a_cluster_of_a_worker_without_servers(self):
        with self.cluster(servers=False) as cluster:
            cluster.start("worker", 1)
            self.assertEqual([cluster.wait("worker", n) for n in range(2)], [0, 0], cluster.logs())
            steps, max_steps = map(int, cluster.lines()[-1].split())
        self.assertEqual(max_steps, EPOCHS * RECORDS // BATCH // 2)
        self.assertGreater(steps, 0)  # It computes the worker's batches, too, until that is there.
        counts = keelson.load_state_dict(self.model_dir)["count/embeddings"].data.cast("f").tolist()
        self.assertEqual(sorted({round(2 * count, 3) for count in counts}), [EPOCHS])

    def test_a_script_and_a_worker_hold_variables_beside_a_server(self):
        self.config = self.path_of("hybrid.textproto", CONFIG + 'placement { groups { variables: "*" on: WORKERS } }')
        with self.cluster() as cluster:
            cluster.start("worker", 1)  # Training begins when both are there.
            codes = [cluster.wait(*task) for task in (("worker", 0), ("worker", 1), ("chief",), ("ps",))]
            self.assertEqual(codes, [0, 0, 0, 0], cluster.logs())
        with open(os.path.join(self.model_dir, "placement.json"), encoding="utf-8") as file:
            shards = json.load(file)["shards"]
        self.assertEqual([shard.get("host") for shard in shards], [None, "worker-0", "worker-1"])
        self.assertEqual(shards[0]["bytes"], 0)
        counts = keelson.load_state_dict(self.model_dir)["count/embeddings"].data.cast("f").tolist()
        self.assertEqual(sorted({round(count, 3) for count in counts}), [EPOCHS])

    def test_a_script_with_other_records_is_refused(self):
        with self.cluster(records=RECORDS - 1) as cluster:
            self.assertEqual(cluster.wait("worker", 0), 2, cluster.logs())
            self.assertRegex(cluster.logs(), f"JoinError: records: expected {RECORDS}, as many as the job has, found "
                                             f"the script's {RECORDS - 1}\n")  # fmt: skip

    def test_a_script_alone_starts_what_the_job_needs(self):
        steps = 0
        given = {"config": self.config, "model_dir": self.model_dir, "data_dir": self.directory}
        with keelson.join(records=RECORDS, **given) as job:
            for step in job.steps():
                gradient = [float(record in set(step.records)) for record in range(RECORDS)]
                steps += step.push({"count/embeddings": [[-g / BATCH] for g in gradient]}, loss=1.0)
                if steps == 5:
                    job.end("enough")
            self.assertEqual(job.global_step, steps)
        self.assertEqual(sum(job.values["count/embeddings"].cast("B").cast("f")), steps * BATCH)
        self.assert_nothing_runs()
        # It is done.
        with keelson.join(records=RECORDS, **given) as job:
            self.assertEqual([step.number for step in job.steps()], [])
            self.assertEqual(sum(job.values["count/embeddings"].cast("B").cast("f")), steps * BATCH)

    def test_another_configuration_is_refused(self):
        with self.cluster() as cluster:
            other = self.path_of("other.textproto", CONFIG.replace("seed: 4", "seed: 5"))
            self.config = other
            cluster.kill("worker", 0)
            self.script()
            cluster.start("worker", 0)
            self.assertEqual(cluster.wait("worker", 0), 2, cluster.logs())
            self.assertIn("start all tasks of a job with the same --config and flags", cluster.logs())


if __name__ == "__main__":
    unittest.main()
