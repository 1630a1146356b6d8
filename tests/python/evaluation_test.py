"""Evaluations by a script, with an evaluator and a job that fake_programs play."""

import array
import json
import os
import struct
from unittest import mock

import support  # noqa: F401  (finds the package)
from fake_job import FakeJobTest

import keelson


def score(values, records):
    return [[values["w"][0], record] for record in records], [record % 2 for record in records]


class EvaluationTest(FakeJobTest):
    def evaluator(self, source, **changes):
        given = {"score": score, "records": 5, "classes": 2, "batch_size": 2}
        return keelson.Evaluator(source, **{**given, **changes})

    def told(self):
        with open(os.path.join(self.model_dir, "evaluations.json"), encoding="utf-8") as file:
            return json.load(file)

    def make_directory(self):
        os.makedirs(self.model_dir)
        with open(os.path.join(self.model_dir, "train_config.textproto"), "w", encoding="utf-8"):
            pass

    def test_each_snapshot_is_scored_batch_by_batch(self):
        self.make_directory()
        self.evaluator(self.model_dir).run()
        told = self.told()
        self.assertEqual(told["scoring"], [0, 2, 5, 2, 0, ""])
        labels = [0.0, 1.0, 0.0, 1.0, 0.0]
        for step, (of_step, scores, found) in zip((10, 20), told["evaluations"]):
            self.assertEqual((of_step, found), (step, labels))
            self.assertEqual(scores, [float(x) for record in range(5) for x in (step, record)])
        self.assertRegex(told["computes"], r"^python 3\.")
        self.assertIn("directory_only", told["flags"])
        self.assertIn("the page of the evaluation: http://127.0.0.1:6006/", self.stderr.getvalue())
        self.assertEqual(told["flags"]["dashboard_port"], "0")

    def predict(self, wanted, predict, scores=10, **changes):
        """What the evaluator is told of each."""
        self.make_directory()
        os.environ["EVALUATOR_PREDICTS"] = json.dumps(wanted)
        self.addCleanup(os.environ.pop, "EVALUATOR_PREDICTS")
        self.evaluator(self.model_dir, predict=predict, **changes).run()
        told = self.told()
        self.assertEqual([len(found) for _, found, _ in told["evaluations"]], [scores] * 2)  # It went on.
        return told

    def test_predicts_by_hand_between_batches(self):
        def predict(values, features):
            self.assertTrue(features.readonly)
            self.assertEqual(features.shape, (2, 1, 2))
            return [values["w"][0], sum(features.cast("B").cast("f"))]

        told = self.predict([[1, 2, 3, 4], [0, 0, 0, 0.5]], predict, input_shape=(2, 1, 2))
        self.assertEqual(told["predictions"], [[10, 10], [10, 0.5], [20, 10], [20, 0.5]])
        self.assertEqual(told["form"], [3, struct.pack("<QQQ", 2, 1, 2).hex()])

    def test_predicts_of_columns(self):
        columns = {"age": "number", "city": "text"}
        told = self.predict(
            [{"age": 3.5, "city": None}], lambda values, features: [features["age"], 1.0], columns=columns
        )
        self.assertEqual(told["predictions"], [[3.5, 1]] * 2)
        self.assertEqual(told["form"], [0, b"age\tnumber\ncity\ttext".hex()])

    def test_a_prediction_that_fails_is_told_in_a_line(self):
        def predict(values, features):
            if features["age"] == 0:
                raise KeyError("no such\nage")
            return [1.0]

        told = self.predict([{"age": 0}, {"age": 1}], predict, columns=["age"])
        self.assertEqual(told["predictions"][:2], [
            "KeyError: 'no such\\nage'", "ValueError: predict: expected [2], found [1]",
        ])  # fmt: skip

    def with_tables(self, **environment):
        """What the evaluator has."""
        for name, value in {"EVALUATOR_TABLES": json.dumps({"others": 1, "ids": 2}), **environment}.items():
            os.environ[name] = value
            self.addCleanup(os.environ.pop, name)

    def test_rows_of_tables_are_those_of_the_snapshot(self):
        def score(values, records):
            wide = evaluator.rows("ids", list(range(5000))).values  # More than the first memory has room for.
            self.assertEqual((wide.shape, wide[4999, 1]), ((5000, 2), values["w"][0] + 4999))
            for record in records:
                self.assertEqual(evaluator.rows("others", [record] * 3).values.tolist(), [[values["w"][0] + record]])
            rows = evaluator.rows("ids", [record // 2 for record in records])
            with self.assertRaises(TypeError):
                rows.values[0, 0] = 1.0
            return [rows.values.tolist()[position] for position in rows.positions], [0] * len(records)

        self.make_directory()
        self.with_tables()
        evaluator = self.evaluator(self.model_dir, score=score)
        evaluator.run()
        told = self.told()
        self.assertEqual([scores[::2] for _, scores, _ in told["evaluations"]], [[10, 10, 11, 11, 12], [20, 20, 21, 21, 22]])
        self.assertLessEqual(told["spaces"], 4)  # They are used again.
        self.assertIn("127.0.0.1:6007/", self.stderr.getvalue())

    def test_predictions_have_rows(self):
        def predict(values, features):
            rows = evaluator.rows("ids" if features[0] < 9 else "none", [int(features[0])])
            return rows.values.tolist()[0]

        self.make_directory()
        self.with_tables(EVALUATOR_PREDICTS="[[3], [9]]")
        evaluator = self.evaluator(self.model_dir, predict=predict, input_shape=[1])
        evaluator.run()
        error = "RuntimeError: rows: expected a table of ['others', 'ids'], found none"
        self.assertEqual(self.told()["predictions"], [[13, 13], error, [23, 23], error])

    def test_a_snapshot_whose_rows_cannot_be_read_is_passed_over(self):
        def score(values, records):
            return [evaluator.rows("ids", [1]).values.tolist()[0] for _ in records], [0] * len(records)

        self.make_directory()
        self.with_tables(EVALUATOR_UNREADABLE="10", EVALUATOR_PREDICTS="[[3]]")
        evaluator = self.evaluator(self.model_dir, score=score, input_shape=[1],
                                   predict=lambda values, features: evaluator.rows("ids", [1]).values.tolist()[0])  # fmt: skip
        evaluator.run()
        told = self.told()
        self.assertEqual(told["evaluations"][1][1], [21.0] * 10)
        self.assertEqual(told["predictions"],
                         ["UnreadableRows: rows of ids: expected a snapshot that can be read", [21, 21]])  # fmt: skip

    def test_without_an_evaluation_there_are_no_rows(self):
        with self.assertRaisesRegex(RuntimeError, "^rows: expected a call by score or predict, found one before"):
            self.evaluator(self.model_dir).rows("ids", [1])

    def test_of_a_number_one_is_enough(self):
        def score(values, records):
            return [0.0] * len(records), [0] * len(records)

        told = self.predict([[4.0]], lambda values, features: features[0] / 2, scores=5, input_shape=[1],
                            kind="regression", classes=None, score=score)  # fmt: skip
        self.assertEqual(told["predictions"], [[2.0]] * 2)

    def test_what_predictions_cannot_take_is_refused(self):
        def predict(values, features):
            return [0.0, 0.0]

        for changes, text in (
            ({"predict": predict}, "^predict: expected input_shape or columns with it, found neither$"),
            ({"predict": predict, "input_shape": [1], "columns": ["a"]}, "columns with it, found both$"),
            ({"input_shape": [1]}, "^predict: expected neither input_shape nor columns without it, found one$"),
            ({"predict": predict, "input_shape": [1, 0]}, "^input_shape: expected one to three whole numbers > 0, fou"),
            (
                {"predict": predict, "columns": {"a": "date"}},
                "^columns: expected names and number, integer, text, found",
            ),
            ({"predict": predict, "columns": []}, "^columns: expected one or more, found none$"),
        ):
            with self.assertRaisesRegex(ValueError, text):
                self.evaluator(self.model_dir, **changes)

    def test_in_a_cluster_it_is_the_evaluator(self):
        self.make_directory()
        os.environ["TF_CONFIG"] = '{"task": {"type": "evaluator", "index": 0}}'
        self.evaluator(self.model_dir, page=8080).run()
        flags = self.told()["flags"]
        self.assertNotIn("directory_only", flags)
        self.assertNotIn("dashboard_address", flags)
        self.assertEqual(flags["dashboard_port"], "8080")
        self.assertEqual(self.told()["tf_config"], os.environ["TF_CONFIG"])

    def test_as_a_process_in_place_of_a_pod_it_has_the_launchers_page_and_directories(self):
        self.make_directory()
        own = {"TF_CONFIG": '{"task": {"type": "evaluator"}}', "KEELSON_MOUNTS": json.dumps({"/model": self.model_dir})}
        for page, chosen, expected in (
            (6006, "7007", ("7007", "127.0.0.1")),
            (6006, "none", (None, None)),
            (None, "7007", (None, None)),
        ):
            with mock.patch.dict(os.environ, {**own, "KEELSON_PAGE_PORT": chosen}):
                self.evaluator("/model", page=page).run()
            flags = self.told()["flags"]
            self.assertEqual((flags.get("dashboard_port"), flags.get("dashboard_address")), expected)
            self.assertEqual(flags["model_dir"], self.model_dir)

    def test_a_pod_asks_for_metrics_of_its_evaluator(self):
        """That beside a script's own job is no pod's, and would want the port of the script's agent."""
        self.make_directory()
        with mock.patch.dict(os.environ, {"KEELSON_METRICS_PORT": "9090"}):
            self.evaluator(self.model_dir).run()
            self.assertEqual(self.told()["flags"]["metrics_port"], "9090")
            with self.join() as job:
                self.evaluator(job, page=None).start()
                list(job.steps())
            self.assertNotIn("metrics_port", self.told()["flags"])

    def test_beside_a_job_it_runs_in_another_process(self):
        with self.join() as job:
            self.evaluator(job, kind="binary", classes=["no", "yes"], probabilities=True, page=None,
                           score=lambda values, records: (array.array("f", [0.5] * len(records)),
                                                          array.array("q", [1] * len(records)))).start()  # fmt: skip
            for step in job.steps():
                step.push({"w": [-1.0, -2.0]}, loss=0.25)
        told = self.told()
        self.assertEqual(told["scoring"], [1, 1, 5, 2, 1, "no\nyes"])
        self.assertEqual(told["evaluations"][0], [10, [0.5] * 5, [1.0] * 5])
        self.assertNotIn("dashboard_port", told["flags"])
        cluster = json.loads(told["tf_config"])
        self.assertEqual(cluster["task"], {"type": "evaluator", "index": 0})
        self.assertEqual(sorted(cluster["cluster"]), ["chief", "ps", "worker"])
        self.assert_nothing_runs()

    def test_an_evaluation_that_cannot_begin_is_an_error_of_the_script(self):
        os.environ["EVALUATOR_FAILS"] = "evaluation.metrics[0]: expected another"
        self.addCleanup(os.environ.pop, "EVALUATOR_FAILS")
        with self.assertRaisesRegex(keelson.JoinError, r"^evaluation\.metrics\[0\]: expected another$"):
            with self.join() as job:
                self.evaluator(job).start()
        self.assert_nothing_runs()
        with self.assertRaisesRegex(keelson.JoinError, r"^evaluation\.metrics\[0\]: expected another$"):
            self.evaluator(self.model_dir).run()

    def test_of_a_job_that_is_done_nothing_is_evaluated(self):
        os.environ["EVALUATOR_HAS_NOTHING_TO_DO"] = "1"
        self.addCleanup(os.environ.pop, "EVALUATOR_HAS_NOTHING_TO_DO")
        with self.join() as job:
            self.evaluator(job).start()
        self.evaluator(self.model_dir).run()
        self.assertFalse(os.path.exists(os.path.join(self.model_dir, "evaluations.json")))
        self.assert_nothing_runs()

    def test_an_evaluation_ends_with_a_script_that_fails(self):
        def never(values, records):
            while True:
                os.sched_yield()

        with self.assertRaisesRegex(RuntimeError, "^mine$"):
            with self.join() as job:
                self.evaluator(job, score=never).start()
                raise RuntimeError("mine")
        self.assert_nothing_runs()

    def test_scores_of_another_shape_are_refused(self):
        self.make_directory()
        for bad, text in (
            (
                lambda values, records: ([1.0] * len(records), [0] * len(records)),
                r"^scores: expected \[2, 2\], found \[2\]$",
            ),
            (lambda values, records: ([[1.0, 2.0]] * len(records), [0]), r"^labels: expected \[2\], found \[1\]$"),
        ):
            with self.assertRaisesRegex(ValueError, text):
                self.evaluator(self.model_dir, score=bad).run()
        with self.assertRaisesRegex(TypeError, "^labels: expected an array of float32"):
            self.evaluator(self.model_dir, score=lambda values, records: ([[1.0, 2.0]] * len(records), None)).run()
        self.assert_nothing_runs()

    def test_what_there_can_be_no_scores_of_is_refused(self):
        for changes, text in (
            ({"kind": "ranking"}, "^kind: expected one of classification, binary, regression, found 'ranking'"),
            ({"classes": None}, "^classes: expected how many there are, 2 or more, or their names, found None"),
            ({"classes": ["one"]}, "^classes: expected how many"),
            ({"classes": ["a", ""]}, "^classes: expected names of one line each"),
            ({"kind": "binary", "classes": ["a", "b", "c"]}, "^classes: expected two names"),
            ({"kind": "regression", "classes": ["a", "b"]}, "^classes: expected none"),
            ({"records": 0}, "^records: expected a whole number > 0, found 0"),
            ({"batch_size": 1.5}, "^batch_size: expected a whole number > 0"),
        ):
            with self.assertRaisesRegex(ValueError, text):
                self.evaluator(self.model_dir, **changes)

    def test_a_job_and_a_directory_are_begun_in_their_own_ways(self):
        with self.assertRaisesRegex(TypeError, "^start: expected the job of this script"):
            self.evaluator(self.model_dir).start()
        with self.join() as job:
            with self.assertRaisesRegex(TypeError, "^run: expected a model directory"):
                self.evaluator(job).run()
