"""keelson.torch.Embedding, with an agent of the tests' own: it steps rows as SGD does. Row n starts with 1 / (1 + n)."""

import copy
import dataclasses
import json
import os
import pickle
import unittest
from unittest import mock

import support  # noqa: F401  (finds the package)
from fake_job import FakeJobTest

import keelson

try:
    import torch
    import torch.nn as nn
    import torch.nn.functional as F

    import keelson.torch as kt
    from keelson import snapshots
    from keelson.torch import conversion
    from keelson.torch.modules import Parts
except ImportError:
    torch = None

LR = 0.05
RECORDS, BATCH, IDS = 24, 4, 9


def setUpModule():
    if torch is None:
        raise unittest.SkipTest("no package torch")
    torch.set_num_threads(1)


def make_data():
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(IDS, (RECORDS, 3), generator=generator)
    return torch.utils.data.TensorDataset(ids, torch.randn(RECORDS, generator=generator))


def plain_table(dim):
    rows = torch.tensor([[1 / (1 + n)] * dim for n in range(IDS)])
    return nn.Embedding.from_pretrained(rows, freeze=False)


class Net(nn.Module if torch else object):
    def __init__(self, ids, others):
        super().__init__()
        torch.manual_seed(2)
        self.ids, self.others = ids, others
        self.top = nn.Linear(3 * 2 + 3, 1)

    def forward(self, ids):
        # Each table twice, once with the same ids.
        return self.top(torch.cat([self.ids(ids).flatten(1), self.others(ids[:, 0]) + self.others(ids[:, 1])], 1))[:, 0]


class TorchTablesTest(FakeJobTest):
    def join(self, plan=None, **changes):
        steps = 12
        self.plan(**{"records": RECORDS, "batch_size": BATCH, "steps": steps, "lr": LR, **(plan or {})})
        given = {"records": RECORDS, "batch_size": BATCH, "max_steps": steps, "model_dir": self.model_dir}
        return keelson.join("net", **{**given, **changes})

    def train(self, model, data=None, plan=None, prefetch=None, loss_of=None, **changes):
        """Returns the losses, and what the rows were asked for with."""
        losses = []
        with self.join(plan, **changes) as job:
            opt = kt.Optimizer(job, model, keelson.Sgd(lr=LR))
            for batch in kt.Loader(job, data or make_data(), prefetch=prefetch):
                loss = (loss_of or self.loss_of)(model, batch)
                opt.zero_grad()
                loss.backward()
                self.assertTrue(opt.step(loss))
                losses.append(float(loss))
        return losses, [event[0] for event in self.events()["events"] if event[0] in ("rows", "ahead")]

    def plain(self, model, data=None, loss_of=None):
        data, losses = data or make_data(), []
        opt = torch.optim.SGD(model.parameters(), lr=LR)
        for step in range(12):
            batch = data[torch.arange(step * BATCH, (step + 1) * BATCH) % RECORDS]
            loss = (loss_of or self.loss_of)(model, batch)
            opt.zero_grad()
            loss.backward()
            opt.step()
            losses.append(float(loss))
        return losses

    @staticmethod
    def loss_of(model, batch):
        return F.mse_loss(model(batch[0]), batch[1])

    def assert_close(self, found, expected):
        torch.testing.assert_close(torch.tensor(found), torch.tensor(expected), rtol=1e-5, atol=1e-6)

    def test_training_is_that_of_plain_pytorch(self):
        model = Net(kt.Embedding("ids", 2), kt.Embedding("others", 3))
        losses, asked = self.train(model)
        self.assert_close(losses, self.plain(Net(plain_table(2), plain_table(3))))
        self.assertEqual(asked, ["rows"] * 12 * 3)
        self.assertEqual(list(model.state_dict()), ["top.weight", "top.bias"])
        self.assertEqual(repr(model.ids), "Embedding('ids', 2)")

    def test_prefetched_rows_come_with_the_step_before(self):
        model = Net(kt.Embedding("ids", 2), kt.Embedding("others", 3))

        def prefetch(batch):
            return {model.ids: batch[0]}

        with mock.patch("keelson.session._NEW_SECONDS", 1e9):
            losses, asked = self.train(model, prefetch=prefetch)
        self.assert_close(losses, self.plain(Net(plain_table(2), plain_table(3))))
        # The first ones come with the first values.
        self.assertEqual(asked.count("ahead"), 12)
        self.assertEqual(asked.count("rows"), 12 * 2)

    def test_prefetched_rows_of_a_round_come_with_its_values(self):
        model = Net(kt.Embedding("ids", 2), kt.Embedding("others", 3))
        losses, asked = self.train(
            model, plan={"ask": True, "one_at_a_time": True},
            prefetch=lambda batch: {model.ids: batch[0], model.others: batch[0][:, 0]},
        )  # fmt: skip
        self.assert_close(losses, self.plain(Net(plain_table(2), plain_table(3))))
        self.assertEqual(asked, ["ahead", "rows"] * 12)

    def test_a_batch_that_is_not_wanted_needs_its_rows_again(self):
        model = Net(kt.Embedding("ids", 2), kt.Embedding("others", 3))
        with self.join({"unwanted": [3], "invalid": [5]}) as job:
            opt = kt.Optimizer(job, model, keelson.Sgd(lr=LR))
            counts = []
            for batch in kt.Loader(job, make_data(), prefetch=lambda batch: {model.ids: batch[0]}):
                loss = self.loss_of(model, batch)
                opt.zero_grad()
                loss.backward()
                counts.append(opt.step(loss))
        self.assertEqual(counts, [n != 3 for n in range(12)])

    def test_bags_are_those_of_pytorch(self):
        data = make_data()
        offsets, order = torch.tensor([0, 2, 2, 9]), torch.tensor([0, 1, 2, 3])
        weights = torch.linspace(0.5, 2, 12)
        for mode in ("sum", "mean"):
            for weighs in (False, True) if mode == "sum" else (False,):
                model, other = kt.Embedding("ids", 2, mode=mode), nn.EmbeddingBag(IDS, 2, mode=mode)
                other.weight.data.copy_(plain_table(2).weight)

                def loss_of(bag, batch, weighs=weighs):
                    flat = batch[0].flatten()
                    per_id = weights if weighs else None
                    keyword = "weights" if isinstance(bag, kt.Embedding) else "per_sample_weights"
                    sums = bag(flat, offsets, **{keyword: per_id}) + bag(batch[0])[order]
                    return (sums * batch[1][:, None]).sum()

                losses, _ = self.train(model, data, loss_of=loss_of)
                self.assert_close(losses, self.plain(other, data, loss_of))
                os.remove(os.path.join(self.model_dir, "over"))

    def test_padding_has_zeros_and_no_row(self):
        data, model = make_data(), Net(kt.Embedding("ids", 2, padding_idx=0), kt.Embedding("bags", 3, padding_idx=0))
        others = Net(plain_table(2), plain_table(3))
        for table in (others.ids, others.others):
            table.padding_idx = 0
            table.weight.data[0] = 0
        losses, _ = self.train(model, data)
        self.assert_close(losses, self.plain(others, data))
        bag = kt.Embedding("ids", 2, mode="mean", padding_idx=3)
        plain = nn.EmbeddingBag(IDS, 2, mode="mean", padding_idx=3)
        plain.weight.data.copy_(plain_table(2).weight)
        plain.weight.data[3] = 0
        with self.join(model_dir=None) as job:
            kt.Optimizer(job, bag, keelson.Sgd(lr=LR))
            for batch in kt.Loader(job, data):
                self.assert_close(bag(batch[0]).tolist(), plain(batch[0]).tolist())
                self.assert_close(bag(batch[0][0], torch.tensor([0, 1])).tolist(),
                                  plain(batch[0][0], torch.tensor([0, 1])).tolist())  # fmt: skip
                break

    def test_no_ids_are_looked_up_as_any_others(self):
        """In a step whose only gradients are those of no rows, and with rows that are wanted ahead."""
        none, shapes = torch.zeros(0, 3, dtype=torch.int64), []

        def loss_of(model, batch):
            shapes.append((model["ids"](none).shape, model["bags"](none).shape))
            bags = model["bags"](none.flatten(), torch.tensor([0, 0]))
            return model["ids"](none).sum() + model["bags"](none).sum() + bags.sum() + batch[1].sum()

        for ahead in (False, True):
            model = nn.ModuleDict({"ids": kt.Embedding("ids", 2), "bags": kt.Embedding("bags", 3, mode="mean")})
            prefetch = (lambda batch, m=model: {m["ids"]: none}) if ahead else None
            losses, asked = self.train(model, loss_of=loss_of, prefetch=prefetch)
            self.assertEqual((len(losses), "ahead" in asked), (12, ahead))
            self.assertEqual(shapes.pop(), ((0, 3, 2), (0, 3)))
            os.remove(os.path.join(self.model_dir, "over"))

    def test_gradients_of_skipped_batches_add_up(self):
        model, plain = Net(kt.Embedding("ids", 2), kt.Embedding("others", 3)), Net(plain_table(2), plain_table(3))
        data = make_data()
        with self.join({"steps": 8}) as job:
            opt = kt.Optimizer(job, model, keelson.Sgd(lr=LR))
            for number, batch in enumerate(kt.Loader(job, data)):
                loss = self.loss_of(model, batch)
                loss.backward()
                if number % 4 == 3:
                    opt.step(loss)
                    opt.zero_grad()
            last = float(loss)
        other = torch.optim.SGD(plain.parameters(), lr=LR)
        for number in range(8):
            loss = self.loss_of(plain, data[torch.arange(number * BATCH, (number + 1) * BATCH) % RECORDS])
            loss.backward()
            if number % 4 == 3:
                other.step()
                other.zero_grad()
        self.assertAlmostEqual(last, float(loss), places=5)

    def test_without_gradients_rows_are_read(self):
        model = Net(kt.Embedding("ids", 2), kt.Embedding("others", 3))
        with self.join() as job:
            opt = kt.Optimizer(job, model, keelson.Sgd(lr=LR))
            loader = kt.Loader(job, make_data())
            for batch in loader:
                with torch.no_grad():
                    self.assertEqual(model.ids(torch.tensor([[8]])).shape, (1, 1, 2))
                    self.assertFalse(model(batch[0]).requires_grad)
                    self.assertEqual(model.ids(torch.zeros(0, 3, dtype=torch.int64)).shape, (0, 3, 2))
                loss = self.loss_of(model, batch)
                opt.zero_grad()
                loss.backward()
                opt.step(loss)
                if job.global_step < 12:
                    self.assertFalse(torch.isnan(model.ids(batch[0]).detach()).any())  # Between two steps.
            with self.assertRaisesRegex(RuntimeError, "rows of ids: expected a job that is under way, found its end"):
                model.ids(batch[0])
        self.assertLessEqual(len(job.work.rows._free), 8)
        self.assertEqual(job.work.rows._made, len(job.work.rows._free))

    def test_a_dataset_may_make_the_batches(self):
        class Whole(torch.utils.data.Dataset):
            def __len__(self):
                return RECORDS

            def batch(self, positions):
                return make_data()[torch.tensor(positions)]

        for workers in (0, 2):
            model = Net(kt.Embedding("ids", 2), kt.Embedding("others", 3))
            losses = []
            with self.join(model_dir=None) as job:
                opt = kt.Optimizer(job, model, keelson.Sgd(lr=LR))
                loader = kt.Loader(job, Whole(), num_workers=workers, prefetch=lambda batch, m=model: {m.ids: batch[0]})
                for batch in loader:
                    loss = self.loss_of(model, batch)
                    opt.zero_grad()
                    loss.backward()
                    opt.step(loss)
                    losses.append(float(loss))
            self.assert_close(losses, self.plain(Net(plain_table(2), plain_table(3))))

    def test_wrong_uses_are_named(self):
        table = kt.Embedding("ids", 2)
        with self.assertRaisesRegex(RuntimeError, "table ids: expected a keelson.torch.Optimizer that has the model"):
            table(torch.tensor([1]))
        with self.assertRaisesRegex(TypeError, "table ids: expected ids of int64, found torch.float32"):
            table(torch.tensor([1.0]))
        with self.assertRaisesRegex(ValueError, "expected offsets and weights with a mode"):
            table(torch.tensor([1]), torch.tensor([0]))
        bag = kt.Embedding("ids", 2, mode="sum")
        for ids, offsets in ((torch.tensor([1]), None), (torch.tensor([[1]]), torch.tensor([0]))):
            with self.assertRaisesRegex(ValueError, "table ids: expected"):
                bag(ids, offsets)
        with self.assertRaisesRegex(keelson.JoinError, "table ids: mode: expected one of"):
            kt.Embedding("ids", 2, mode="max")
        with self.join() as job, self.assertRaisesRegex(keelson.JoinError, "table ids: expected Table.*found Table"):
            kt.Optimizer(job, nn.ModuleList([table, kt.Embedding("ids", 3)]), keelson.Sgd(lr=LR))

    def test_rows_of_a_snapshot_are_looked_up_without_a_job(self):
        keys, values = torch.tensor([5, -3, 7]), torch.arange(6.0).view(3, 2)
        content = snapshots.TableContent(conversion.to_bytes(keys), conversion.to_bytes(values))
        model = kt.Embedding("ids", 2, init=keelson.Uniform(0, 0.5))
        model.load_rows(content)
        found = model(torch.tensor([[7, 5], [-3, 9], [6, -9]]))
        self.assertEqual(found.tolist(), [[[4, 5], [0, 1]], [[2, 3], [0.25, 0.25]], [[0.25, 0.25]] * 2])
        self.assertEqual(copy.deepcopy(model)(keys).tolist(), values.tolist())
        for init, mean in ((keelson.Normal(0.5, 1), 0.5), (2.0, 2.0)):
            model.table = dataclasses.replace(model.table, init=init)
            model.load_rows(content)
            self.assertEqual(model(torch.tensor([8])).tolist(), [[mean, mean]])
        with self.assertRaisesRegex(ValueError, r"table ids: expected rows of dim 3, found \(3, 2\)"):
            kt.Embedding("ids", 3).load_rows(content)

    def test_with_a_number_of_rows_they_are_a_parameter(self):
        def with_rows():
            """The same numbers as in plain_table."""
            model = Net(kt.Embedding("ids", 2, rows=IDS), kt.Embedding("others", 3, rows=IDS, mode="sum"))
            model.forward = lambda ids: model.top(torch.cat([model.ids(ids).flatten(1), model.others(ids[:, :2])], 1))[:, 0]
            with torch.no_grad():
                for module in (model.ids, model.others):
                    module.weight.copy_(plain_table(module.table.dim).weight)
            return model

        model = with_rows()
        losses, asked = self.train(model, prefetch=lambda batch: {model.ids: batch[0]})
        plain = Net(plain_table(2), plain_table(3))
        self.assert_close(losses, self.plain(plain))
        self.assertEqual(asked, [])
        torch.testing.assert_close(model.ids.weight, plain.ids.weight, rtol=1e-5, atol=1e-6)
        self.assertEqual(list(model.state_dict()), ["ids.weight", "others.weight", "top.weight", "top.bias"])
        self.assertEqual(repr(model.ids), "Embedding('ids', 2, rows=9)")
        # Without a job, and a copy.
        other = pickle.loads(pickle.dumps(model.ids))
        self.assertTrue(torch.equal(other(torch.tensor([1, 8])), model.ids.weight[[1, 8]]))
        padded = kt.Embedding("padded", 2, rows=3, padding_idx=7, init=1.0)
        self.assertEqual(padded(torch.tensor([7, 2])).tolist(), [[0.0, 0.0], [1.0, 1.0]])
        self.assertEqual(padded(torch.zeros(0, dtype=torch.int64)).shape, (0, 2))

    def test_rows_that_are_a_parameter_begin_as_init_says(self):
        for init, least, most in ((keelson.Uniform(2, 3), 2, 3), (keelson.Normal(5, 0.5, truncated=True), 4, 6), (0.5, 0.5, 0.5)):
            weight = kt.Embedding("ids", 4, rows=500, init=init).weight
            self.assertGreaterEqual(float(weight.min()), least)
            self.assertLessEqual(float(weight.max()), most)
        self.assertAlmostEqual(float(kt.Embedding("ids", 4, rows=5000, init=keelson.Normal(5, 0.5)).weight.std()), 0.5, delta=0.05)

    def test_wrong_uses_of_a_number_of_rows_are_named(self):
        for settings, words in (
            ({"rows": 0}, r"^table ids: rows: expected 1 to 2147483647, found 0$"),
            ({"rows": 2.0}, r"^table ids: rows: expected 1 to 2147483647, found 2\.0$"),
            ({"rows": 3, "evict": True}, r"^table ids: evict: expected none with rows, found True$"),
            ({"rows": 3, "max_rows": 5}, r"^table ids: max_rows: expected none with rows, found 5$"),
        ):
            with self.assertRaisesRegex(keelson.JoinError, words):
                kt.Embedding("ids", 2, **settings)
        own = kt.Embedding("ids", 2, rows=9)
        for ids, found in (([0, 9], 9), ([-1], -1), ([1 << 40], 1 << 40)):
            with self.assertRaisesRegex(IndexError, f"^table ids: expected ids from 0 to 8, found {found}$"):
                own(torch.tensor(ids))
        with self.assertRaisesRegex(ValueError, "^table ids: expected the rows in the model's state_dict, found those of"):
            own.load_rows(None)
        for other in (kt.Embedding("ids", 2, rows=9), kt.Embedding("ids", 2)):
            with self.assertRaisesRegex(keelson.JoinError, "^table ids: expected one module of the name with rows, found two"):
                Parts(nn.Sequential(own, other))
        local = nn.Sequential(kt.Embedding("ids", 2, keelson.Adagrad(lr=1), rows=9))
        with self.join() as job, self.assertRaisesRegex(
            keelson.JoinError, '^0.weight: expected no optimizer of its own with where="worker", found Adagrad'
        ):
            kt.Optimizer(job, local, torch.optim.SGD(local.parameters(), lr=1), where="worker")

    def evaluator(self, model, data, score, **changes):
        """Of the tests' own evaluator, in whose snapshots row n has step + n; it asks for a prediction of 4."""
        os.makedirs(self.model_dir, exist_ok=True)
        with open(os.path.join(self.model_dir, "train_config.textproto"), "w", encoding="utf-8"):
            pass
        model.w = nn.Parameter(torch.zeros(2))  # The variable that it has.
        tables = {"EVALUATOR_TABLES": '{"ids": 2, "bags": 3}', "EVALUATOR_PREDICTS": "[[4]]"}
        patch = mock.patch.dict(os.environ, tables)
        patch.start()
        self.addCleanup(patch.stop)
        return kt.Evaluator(self.model_dir, model, data, score, **{"kind": "regression", "batch_size": 5, **changes})

    def test_an_evaluated_model_has_the_snapshots_rows(self):
        """Of look-ups of every form."""
        data = make_data()
        model = nn.ModuleDict({
            "ids": kt.Embedding("ids", 2, padding_idx=0), "bags": kt.Embedding("bags", 3, mode="sum"),
            "means": kt.Embedding("bags", 3, mode="mean", padding_idx=1), "own": kt.Embedding("own", 1, init=2.0, rows=IDS),
        })  # fmt: skip

        def numbers(ids, step):
            rows, weights = step + ids.float(), torch.arange(1.0, ids.numel() + 1).view(ids.shape)
            kept = (ids != 1).float()
            means = (rows * kept).sum(1) / kept.sum(1).clamp(min=1)
            return ((rows * (ids != 0)).sum(1) * 2 + (rows * weights).sum(1) + means + 2).tolist()

        def compute(model, ids):
            self.assertFalse(torch.is_grad_enabled())
            offsets, weights = torch.arange(0, ids.numel(), ids.shape[1]), torch.arange(1.0, ids.numel() + 1)
            bags = model["bags"](ids.flatten(), offsets, weights=weights)
            return model["ids"](ids).sum((1, 2)) + bags[:, 0] + model["means"](ids)[:, 2] + model["own"](ids[:, 0])[:, 0]

        self.evaluator(model, data, lambda model, batch: (compute(model, batch[0]), batch[1]), input_shape=[1],
                       predict=lambda model, one: compute(model, one.long()[None])).run()  # fmt: skip
        with open(os.path.join(self.model_dir, "evaluations.json"), encoding="utf-8") as file:
            told = json.load(file)
        for (step, scores, _), predicted in zip(told["evaluations"], told["predictions"]):
            batches = torch.split(data.tensors[0], 5)
            self.assert_close(scores, [number for batch in batches for number in numbers(batch, step)])
            self.assert_close(predicted, numbers(torch.tensor([[4]]), step))
        self.assertIsNone(copy.deepcopy(model["ids"])._tables)
        with self.assertRaisesRegex(RuntimeError, "prefetch: expected embeddings of a job, found one that is evaluated"):
            model["ids"].tables.take_prefetched({})

    def test_batches_of_an_evaluation_are_made_as_those_of_training(self):
        class Whole(torch.utils.data.Dataset):
            def __len__(self):
                return RECORDS

            def batch(self, positions):
                return torch.tensor(positions), make_data()[torch.tensor(positions)][1]

        for workers in (0, 2):
            model = nn.ModuleDict({"ids": kt.Embedding("ids", 2), "bags": kt.Embedding("bags", 3)})
            self.evaluator(model, Whole(), lambda model, batch: (batch[0], batch[1]), num_workers=workers).run()
            with open(os.path.join(self.model_dir, "evaluations.json"), encoding="utf-8") as file:
                told = json.load(file)
            self.assertGreater(len(told["evaluations"]), 1)
            for _, scores, labels in told["evaluations"]:
                self.assertEqual(scores, list(range(RECORDS)))
                self.assert_close(labels, make_data().tensors[1].tolist())

    def test_an_evaluated_model_has_the_jobs_tables(self):
        for modules, words in (
            ([kt.Embedding("ids", 2)], "table bags of dim 3, as the job has it, found none"),
            ([kt.Embedding("ids", 4), kt.Embedding("bags", 3)], "table ids of dim 2, as the job has it, found 4"),
            ([kt.Embedding("ids", 2), kt.Embedding("bags", 3), kt.Embedding("x", 1)],
             "table x of dim none, as the job has it, found 1"),
        ):  # fmt: skip
            evaluator = self.evaluator(nn.ModuleList(modules), make_data(), None)
            with self.assertRaisesRegex(keelson.JoinError, f"^model: expected {words}$"):
                evaluator.run()

    def test_a_copy_is_of_no_job(self):
        model = kt.Embedding("ids", 2)
        with self.join() as job:
            kt.Optimizer(job, model, keelson.Sgd(lr=LR))
            for copied in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
                self.assertEqual(copied.table, model.table)
                self.assertIsNone(copied._tables)


if __name__ == "__main__":
    unittest.main()
