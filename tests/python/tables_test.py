"""Embedding tables of scripts without PyTorch, with programs of the tests' own."""

import array
import math
import unittest

from fake_job import FakeJobTest

import keelson
from keelson.arrays import ids_of
from keelson.config import config_text, propose


def config(optimizer, **tables):
    job = keelson.join("line", records=10, batch_size=2, max_steps=5)
    return config_text(job.settings, propose({"w": [0.0]}, tables), optimizer)


class TableConfigTest(unittest.TestCase):
    def test_a_table_has_its_own_optimizer_and_initial_values(self):
        table = keelson.Table(16, keelson.Adagrad(lr=0.05), keelson.Uniform(-0.5, 0.25), max_rows=9, evict=True,
                              expire_after=8, admit_after=7)  # fmt: skip
        text = config(keelson.AdamW(lr=0.1, groups=[keelson.Group("*", lr_factor=2)]), ids=table)
        self.assertIn(
            '  tables {\n    name: "ids"\n    dim: 16\n    max_rows: 9\n    at_limit: EVICT\n'
            "    expire_after_steps: 8\n    admit_after: 7\n  }\n", text
        )  # fmt: skip
        groups = text.split("  groups {\n")
        self.assertIn('variables: "ids"\n    adagrad {', groups[1])  # The first one that matches decides.
        self.assertIn("learning_rate: 0.05", groups[1])
        self.assertIn('variables: "*"\n    learning_rate_factor: 2.0', groups[2])
        self.assertIn('variables: "ids"\n    uniform {\n      low: -0.5\n      high: 0.25', groups[3])
        self.assertIn('variables: "*"\n    from {', groups[4])

    def test_by_default_it_has_the_jobs_optimizer(self):
        text = config(keelson.Adam(lr=0.25, schedule=keelson.Cosine()), ids=keelson.Table(4, init=0.5))
        group = text.split("  groups {\n")[1]
        self.assertIn("adam {", group)
        self.assertNotIn("corrected_epsilon", group)
        self.assertIn("learning_rate: 0.25", group)
        self.assertIn("constant {\n      value: 0.5", text)

    def test_initial_values_are_drawn(self):
        self.assertIn("    normal {", config(keelson.Sgd(lr=1.0), t=keelson.Table(4, init=keelson.Normal(0.0, 0.1))))
        drawn = keelson.Normal(stddev=0.1, truncated=True)
        self.assertIn("    truncated_normal {", config(keelson.Sgd(lr=1.0), t=keelson.Table(4, init=drawn)))
        table = keelson.Table(4, keelson.RowWiseAdagrad(lr=1.0))
        self.assertIn("row_wise_adagrad {", config(keelson.Sgd(lr=1.0), t=table))

    def test_what_cannot_be_a_table_is_named(self):
        scheduled = keelson.Sgd(lr=0.1, schedule=keelson.Cosine())
        for name, table, error in (
            ("a/b", keelson.Table(4), "table 'a/b': expected a name of letters"),
            ("w", keelson.Table(4), "table w: expected a name of its own, found a variable"),
            ("t", keelson.Table(0), "table t: dim: expected 1 to 1024, found 0"),
            ("t", 16, "table t: expected a keelson.Table, found 16"),
            ("t", keelson.Table(4, scheduled), "table t: optimizer: expected one without a schedule"),
        ):
            with self.assertRaisesRegex(keelson.JoinError, error):
                config(keelson.Sgd(lr=1.0), **{name: table})


class TablesTest(FakeJobTest):
    def join(self, tables, plan=None, **changes):
        self.plan(**(plan or {}))
        given = {"records": 10, "batch_size": 2, "max_steps": 5, "model_dir": self.model_dir}
        return keelson.join("line", variables={"w": [1.0, 2.0]}, tables=tables, optimizer=keelson.Sgd(lr=1.0),
                            **{**given, **changes})  # fmt: skip

    def test_steps_ask_for_rows_and_push_their_gradients(self):
        # Row n starts with 1 / (1 + n) and gets the gradient 1 for each time that it is asked for.
        times = dict.fromkeys(range(3), 0)
        with self.join({"ids": keelson.Table(2)}) as job:
            for step in job.steps():
                ids = [step.number % 3, 1, step.number % 3]
                rows = step.rows("ids", ids)
                gradient = [[0.0, 0.0] for _ in range(rows.values.shape[0])]
                for one, position in zip(ids, rows.positions):
                    for value in rows.values.tolist()[position]:
                        self.assertAlmostEqual(value, 1 / (1 + one) - times[one], places=5)
                    gradient[position] = [x + 1 for x in gradient[position]]
                self.assertEqual(len(gradient), len(set(ids)))
                self.assertTrue(step.push({"w": [0.0, 0.0], "ids": gradient}, loss=0.5))
                for one in ids:
                    times[one] += 1
        self.assertEqual(times, {0: 4, 1: 9, 2: 2})

    def test_rows_that_get_no_gradient_are_only_read(self):
        with self.join({"ids": keelson.Table(2)}) as job:
            for step in job.steps():
                rows = step.rows("ids", array.array("q", [4, -1]))
                self.assertAlmostEqual(rows.values.tolist()[rows.positions[0]][0], 0.2)
                with self.assertRaises(TypeError):
                    rows.values[0, 0] = 1.0
                step.push({"w": [0.0, 0.0]}, loss=0.5)

    def test_no_ids_have_no_rows(self):
        with self.join({"ids": keelson.Table(2)}) as job:
            for step in job.steps():
                rows = step.rows("ids", [] if step.number % 2 else array.array("q"))
                self.assertEqual((rows.values.shape, rows.values.format, rows.values.tolist()), ((0, 2), "f", []))
                self.assertEqual((rows.positions.format, rows.positions.tolist()), ("i", []))
                with self.assertRaisesRegex(keelson.BadGradient, r"gradient of ids: expected \[0, 2\], found \[1, 2\]"):
                    step.push({"w": [1.0, 0.0], "ids": [[1.0, 2.0]]}, loss=0.5)
                self.assertTrue(step.push({"w": [1.0, 0.0], "ids": [] if step.number % 2 else rows.values}, loss=0.5))
        self.assertEqual(job.values["w"].tolist(), [-4.0, 2.0])

    def test_a_table_is_asked_once_in_a_step(self):
        with self.join({"ids": keelson.Table(2)}) as job:
            for step in job.steps():
                step.rows("ids", [1])
                for name in ("ids", "others"):
                    with self.assertRaisesRegex(RuntimeError, f"expected a table of .*, found {name}"):
                        step.rows(name, [1])
                with self.assertRaisesRegex(keelson.BadGradient, r"gradient of ids: expected \[1, 2\], found \[2\]"):
                    step.push({"w": [0.0, 0.0], "ids": [1.0, 2.0]}, 0.5)
                step.push({"w": [0.0, 0.0]}, 0.5)
                with self.assertRaisesRegex(RuntimeError, "expected one push"):
                    step.rows("ids", [1])

    def test_gradients_of_rows_are_finite(self):
        transfer = keelson.Transfer(reject_non_finite=True)
        with self.join({"ids": keelson.Table(1)}, transfer=transfer) as job:
            for step in job.steps():
                step.rows("ids", [1])
                with self.assertRaisesRegex(keelson.BadGradient, "gradient of ids: expected finite elements"):
                    step.push({"w": [0.0, 0.0], "ids": [[math.nan]]}, 0.5)
                step.push({"w": [0.0, 0.0]}, 0.5)

    def test_memory_grows_with_what_is_asked_for(self):
        with self.join({"ids": keelson.Table(64)}) as job:
            for step in job.steps():
                ids = list(range(10 ** (step.number % 4)))
                rows = step.rows("ids", ids)
                gradient = array.array("f", [1.0]) * (64 * len(ids))
                shaped = memoryview(gradient).cast("B").cast("f", (len(ids), 64))
                self.assertTrue(step.push({"w": [0.0, 0.0], "ids": shaped}, 0.5))
                self.assertEqual(rows.values.shape, (len(ids), 64))

    def test_a_job_of_tables_alone(self):
        self.plan()
        with keelson.join("line", tables={"ids": keelson.Table(1)}, optimizer=keelson.Sgd(lr=1.0), records=10,
                          batch_size=2, max_steps=5, model_dir=self.model_dir) as job:  # fmt: skip
            for step in job.steps():
                step.rows("ids", [3])
                self.assertTrue(step.push({"ids": [[1.0]]}, 0.5))


class IdsTest(unittest.TestCase):
    def test_ids_of_64_bits(self):
        self.assertEqual(ids_of([1, -1]).cast("Q").tolist(), [1, 2**64 - 1])
        self.assertEqual(ids_of(array.array("q", [-2])).cast("q").tolist(), [-2])
        strided = memoryview(array.array("q", range(6)))[::2]
        self.assertEqual(ids_of(strided).cast("q").tolist(), [0, 2, 4])
        for none in ([], (), array.array("Q"), strided[:0]):
            self.assertEqual((ids_of(none).format, ids_of(none).nbytes), ("B", 0))
        with self.assertRaisesRegex(TypeError, "expected an array of int64, found the format 'i'"):
            ids_of(array.array("i", [1]))


if __name__ == "__main__":
    unittest.main()
