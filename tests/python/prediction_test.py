""""Try it" of a script's model, on Keelson's own evaluator and its page's API."""

import json
import os
import time
import unittest
import urllib.error
import urllib.request
from unittest import mock

from real_job import DEADLINE_SECONDS, RealJobTest, free_ports
from script_cluster import await_true

import keelson

try:
    import torch

    import keelson.torch as kt
except ImportError:
    torch = None


def score(values, records):
    return [[values["w"][0], values["w"][1]] for _ in records], [0 for _ in records]


def predict(values, features):
    if features[0] < 0:
        raise ValueError(f"expected no less than 0, found {features[0]}")
    return [features[0] * values["w"][0], features[1] * values["w"][1]]


def finish(job):
    for step in job.steps():
        step.push({"w": [-1.0, 0.0]}, loss=0.5)


class PredictionTest(RealJobTest):
    def setUp(self):
        super().setUp()
        self.needs("evaluator")
        (self.port,) = free_ports(1)

    def ask(self, path, body=None):
        """The status and the JSON of an answer of the run's."""
        url = f"http://127.0.0.1:{self.port}/api/v1/runs/model{path}"
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(url, data, {"Content-Type": "application/json"} if data else {})
        try:
            with urllib.request.urlopen(request, timeout=DEADLINE_SECONDS) as response:
                return response.status, json.load(response)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error)

    def predict(self, features):
        return self.ask("/predict", {"features": features})

    def join(self):
        return keelson.join("line", variables={"w": [1.0, 1.0]}, optimizer=keelson.Sgd(lr=1.0), records=8, batch_size=2,
                            max_steps=4, model_dir=self.model_dir)  # fmt: skip

    def test_the_page_predicts_with_the_script_while_it_scores(self):
        with self.join() as job:
            keelson.Evaluator(job, score, records=4, classes=["left", "right"], predict=predict, input_shape=[2],
                              page=self.port).start()  # fmt: skip
            await_true(lambda: self.ask("")[1].get("task", {}).get("kind") == "classification")
            task = self.ask("")[1]["task"]
            self.assertEqual((task["input_shape"], task["classes"]), ([2], ["left", "right"]))
            await_true(lambda: self.predict([0, 0])[0] == 200)
            status, found = self.predict([0, 2])
            self.assertEqual(status, 200)
            self.assertEqual((found["step"], found["kind"], found["predicted"], found["class"]),
                             (0, "classification", 1, "right"))  # fmt: skip
            self.assertAlmostEqual(found["probabilities"][1], 0.8808, places=4)
            self.assertEqual(self.predict([-1, 0]),
                             (503, {"error": "the script: ValueError: expected no less than 0, found -1.0"}))  # fmt: skip
            self.assertEqual(self.predict([1]), (400, {"error": "features: expected 2 numbers for [2], found 1"}))
            self.assertEqual(self.predict([0, 2])[0], 200)
            finish(job)
        # What failed was a prediction, and no evaluation.
        with open(os.path.join(self.model_dir, "eval", "metrics.jsonl"), encoding="utf-8") as file:
            self.assertEqual([json.loads(line)["step"] for line in file], [0, 4])
        self.assert_nothing_runs()

    def test_of_columns_the_page_has_a_form(self):
        def predict_columns(values, features):
            return features["age"] * (2 if features["city"] == "Oslo" else 1)

        with self.join() as job:
            keelson.Evaluator(job, lambda values, records: ([0.0] * len(records), [0] * len(records)), records=4,
                              kind="regression", predict=predict_columns, columns={"age": "number", "city": "text"},
                              page=self.port).start()  # fmt: skip
            await_true(lambda: self.ask("/form")[0] == 200)
            self.assertEqual([column["name"] for column in self.ask("/form")[1]["columns"]], ["age", "city"])
            await_true(lambda: self.ask("/predict", {"columns": {"age": 1}})[0] == 200)
            status, found = self.ask("/predict", {"columns": {"age": "2.5", "city": "Oslo"}})
            self.assertEqual((status, found["prediction"]), (200, 5))
            self.assertEqual(self.ask("/predict", {"columns": {"age": "old"}}),
                             (400, {"error": 'columns.age: expected a number, found "old"'}))  # fmt: skip
            status, found = self.ask("/predict", {"columns": {}})
            self.assertEqual((status, found["error"][:23]), (503, "the script: TypeError: "))
            finish(job)

    def test_scores_and_predictions_have_the_snapshots_rows(self):
        def score(values, records):
            rows = evaluator.rows("ids", [1, 2, 99, 1])
            return [rows.values.tolist()[position][1] for position in rows.positions], [0.0] * 4

        def predict(values, features):
            rows = evaluator.rows("ids" if features[0] >= 0 else "others", [int(features[0])])
            return rows.values.tolist()[0][0]

        tables = {"ids": keelson.Table(2, keelson.Sgd(lr=1.0), init=0.5)}
        with keelson.join("rows", variables={"w": [0.0]}, tables=tables, optimizer=keelson.Sgd(lr=1.0), records=8, batch_size=2,
                          max_steps=4, model_dir=self.model_dir) as job:  # fmt: skip
            evaluator = keelson.Evaluator(job, score, records=4, kind="regression", predict=predict, input_shape=[1],
                                          page=self.port)  # fmt: skip
            evaluator.start()
            await_true(lambda: self.predict([1])[0] == 200)
            self.assertEqual(self.predict([1])[1]["prediction"], 0.5)
            self.assertEqual(self.predict([-1]), (503, {
                "error": "the script: RuntimeError: rows: expected a table of ['ids'], found others"
            }))  # fmt: skip
            for step in job.steps():
                positions = step.rows("ids", [1, 2]).positions
                gradient = [[0.0, 0.0], [0.0, 0.0]]
                for one in (1, 2):
                    gradient[positions[one - 1]] = [0.0, -float(one)]
                step.push({"w": [0.0], "ids": gradient}, loss=0.5)
        with open(os.path.join(self.model_dir, "eval", "metrics.jsonl"), encoding="utf-8") as file:
            told = {record["step"]: record["loss"] for record in map(json.loads, file)}
        self.assertEqual(told, {0: 0.25, 4: (4.5**2 + 8.5**2 + 0.5**2 + 4.5**2) / 4})
        self.assert_nothing_runs()

    @unittest.skipIf(torch is None, "no package torch")
    def test_a_module_predicts_with_a_snapshots_values(self):
        torch.set_num_threads(1)
        data = torch.utils.data.TensorDataset(torch.ones(8, 2), torch.zeros(8))
        model = torch.nn.Linear(2, 1, bias=False)
        torch.nn.init.ones_(model.weight)

        def predict_one(model, features):
            self.assertFalse(model.training or torch.is_grad_enabled())
            return model(features.flatten()[None])

        given = {"records": 8, "batch_size": 2, "max_steps": 4, "model_dir": self.model_dir}
        with keelson.join("net", checkpoint=keelson.Checkpoint(save_steps=1), **given) as job:
            opt = kt.Optimizer(job, model, keelson.Sgd(lr=1.0))
            kt.Evaluator(job, model, data, lambda model, batch: (model(batch[0]), batch[1]), kind="regression",
                         predict=predict_one, input_shape=[1, 2, 1], page=self.port).start()  # fmt: skip
            await_true(lambda: self.predict([1, 2])[1].get("prediction") == 3)
            for features, _ in kt.Loader(job, data):
                opt.zero_grad()
                model(features).mean().backward()  # Each weight becomes less by 1.
                opt.step(0.5)
                await_true(lambda: self.predict([1, 2])[1].get("step") == job.global_step or job.global_step == 4)
                if job.global_step < 4:
                    self.assertEqual(self.predict([1, 2])[1]["prediction"], 3 - 3 * job.global_step)

    def test_the_evaluation_ends_at_once_with_a_script_that_leaves_early(self):
        with mock.patch("keelson.evaluation._END_SECONDS", 60.0):
            with self.join() as job:
                keelson.Evaluator(job, score, records=4, classes=2, page=None).start()
                began = time.monotonic()
            self.assertLess(time.monotonic() - began, 30)
        self.assert_nothing_runs()

    def test_without_predict_there_is_none(self):
        with self.join() as job:
            keelson.Evaluator(job, score, records=4, classes=2, page=self.port).start()
            await_true(lambda: "task" in self.ask("")[1])
            self.assertNotIn("kind", self.ask("")[1]["task"])
            expected = {"error": "the model is a script's: nothing is predicted here"}
            self.assertEqual(self.predict([0, 2]), (404, expected))
            finish(job)


if __name__ == "__main__":
    unittest.main()
