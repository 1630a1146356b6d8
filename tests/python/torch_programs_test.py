"""PyTorch scripts on Keelson's own programs."""

import copy
import json
import os
import shutil
import struct
import unittest
from unittest import mock

import support
from real_job import DEADLINE_SECONDS, RealJobTest
from script_cluster import ScriptCluster, await_true

import keelson

try:
    import torch
    import torch.nn as nn
    import torch.nn.functional as F

    import keelson.torch as kt
except ImportError:
    torch = None

RECORDS = 40


def setUpModule():
    if torch is None:
        raise unittest.SkipTest("no package torch")
    torch.set_num_threads(1)


class Records(torch.utils.data.Dataset if torch else object):
    """With each record its number."""

    def __init__(self, count=RECORDS):
        generator = torch.Generator().manual_seed(1)
        self.features = torch.randn(count, 6, generator=generator)
        self.labels = (self.features.sum(1) > 0).long()

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.features[index], self.labels[index], index


def make_model():
    torch.manual_seed(2)
    return nn.Sequential(nn.Linear(6, 8, bias=False), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 2))


def loss_of(model, batch):
    return F.cross_entropy(model(batch[0]), batch[1])


def loss_of_branch(model, step, batch):
    return F.cross_entropy(model[step % 2](batch[0]), batch[1])


# One of two workers, which waits for the other: prints the records of each of its steps.
ONE_OF_TWO = """
import json, os, sys, time
sys.path.insert(0, os.path.join(sys.path[0], "..", "tests", "python"))
import torch_programs_test as own
import keelson
import keelson.torch as kt

os.chdir(os.path.dirname(__file__))
own.setUpModule()
model = own.MAKE()
with keelson.join("net", records=own.RECORDS, batch_size=5, max_steps=20, consistency=CONSISTENCY, seed=3,
                  model_dir=MODEL_DIR) as job:
    opt = kt.Optimizer(job, model, own.OPTIMIZER(model.parameters()))
    open(f"here-{json.loads(os.environ['TF_CONFIG'])['task']['index']}", "w").close()
    while not (os.path.exists("here-0") and os.path.exists("here-1")):
        time.sleep(0.005)
    for batch in kt.Loader(job, own.Records()):
        step = job.work.current.step
        loss = own.loss_of(model, batch)
        opt.zero_grad()
        loss.backward()
        if opt.step(loss):
            print(step, *batch[2].tolist(), flush=True)
"""


def make_plain_model():
    torch.manual_seed(2)
    return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 2))


def momentum(parameters):
    return torch.optim.SGD(parameters, lr=0.1, momentum=0.9)


def adam(parameters):
    return torch.optim.Adam(parameters, lr=0.01, eps=1e-3)


class TorchProgramsTest(RealJobTest):
    def train(self, model, optimizer, max_steps, workers=0, how=None, **changes):
        """The records of each step. `how`: what kt.Optimizer is told."""
        batches = []
        given = {"records": RECORDS, "batch_size": 8, "max_steps": max_steps, "model_dir": self.model_dir, "seed": 3}
        with keelson.join("net", **{**given, **changes}) as job:
            opt = kt.Optimizer(job, model, optimizer, **(how or {}))
            self.first_step = job.global_step
            for batch in kt.Loader(job, Records(), num_workers=workers):
                batches.append(batch[2].tolist())
                loss = loss_of(model, batch)
                opt.zero_grad()
                loss.backward()
                self.assertTrue(opt.step(loss))
            self.last_step = job.global_step
        return batches

    def test_a_model_is_evaluated_beside_its_training(self):
        self.needs("evaluator")

        def score(model, batch):
            self.assertFalse(model.training)
            return model(batch[0]), batch[1]

        model, data = make_model(), Records()
        given = {"records": RECORDS, "batch_size": 8, "max_steps": 30, "model_dir": self.model_dir}
        with keelson.join("net", evaluation=keelson.Evaluation(metrics=["accuracy", "top_2"]), **given) as job:
            opt = kt.Optimizer(job, model, keelson.Adam(lr=0.05))
            kt.Evaluator(job, model, data, score, classes=["down", "up"], batch_size=16).start()
            for batch in kt.Loader(job, data):
                loss = loss_of(model, batch)
                opt.zero_grad()
                loss.backward()
                opt.step(loss)
        told = self.assert_evaluated(score, model, data)
        os.rename(os.path.join(self.model_dir, "eval"), os.path.join(self.model_dir, "eval-before"))
        # Another model with the same modules, in the terminal.
        kt.Evaluator(self.model_dir, make_model(), data, score, classes=2, batch_size=7, page=None).run()
        self.assertAlmostEqual(self.assert_evaluated(score, model, data)["loss"], told["loss"], delta=1e-6)
        with self.assertRaisesRegex(keelson.JoinError, r"^model: expected 0.weight of \[8, 6\], .* found \[8, 5\]$"):
            other = nn.Sequential(nn.Linear(5, 8, bias=False), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 2))
            os.rename(os.path.join(self.model_dir, "eval"), os.path.join(self.model_dir, "eval-again"))
            kt.Evaluator(self.model_dir, other, data, score, classes=2, page=None).run()
        self.assert_nothing_runs()

    def assert_evaluated(self, score, model, data):
        model.load_state_dict(kt.tensors(keelson.load_state_dict(self.model_dir)))
        model.eval()
        with torch.no_grad():
            scores, labels = score(model, (data.features, data.labels))
        with open(os.path.join(self.model_dir, "eval", "metrics.jsonl"), encoding="utf-8") as file:
            told = [json.loads(line) for line in file][-1]
        self.assertEqual((told["step"], told["examples"], told["top_2"]), (30, RECORDS, 1.0))
        self.assertAlmostEqual(told["loss"], F.cross_entropy(scores, labels).item(), delta=1e-5)
        self.assertAlmostEqual(told["accuracy"], (scores.argmax(1) == labels).float().mean().item(), delta=1e-6)
        return told

    def assert_same(self, found, expected):
        found, expected = found.state_dict(), expected.state_dict()
        self.assertEqual(list(found), list(expected))
        for name, value in expected.items():
            torch.testing.assert_close(found[name], value, rtol=1e-5, atol=1e-6, msg=lambda m, n=name: f"{n}: {m}")

    def test_the_servers_optimizers_are_those_of_pytorch(self):
        sgd, adam = torch.optim.SGD, torch.optim.Adam
        for make, settings in (
            (sgd, {"lr": 0.1, "weight_decay": 0.01}),
            (sgd, {"lr": 0.05, "momentum": 0.9, "nesterov": True}),
            (adam, {"lr": 0.01, "eps": 1e-3}),
            (torch.optim.AdamW, {"lr": 0.01, "weight_decay": 0.1}),
            (torch.optim.Adagrad, {"lr": 0.1}),
        ):
            with self.subTest(make=make, settings=settings):
                model = make_model()
                batches = self.train(model, make(model.parameters(), **settings), 100, model_dir=None)
                self.assertEqual(len(batches), 100)
                self.assert_same(model, self.train_plainly(make, settings, batches))

    def train_plainly(self, make, settings, batches):
        model = make_model()
        self.train_on(model, make(model.parameters(), **settings), batches)
        return model

    def train_on(self, model, optimizer, batches):
        data = Records()
        for records in batches:
            optimizer.zero_grad()
            loss_of(model, data[records]).backward()
            optimizer.step()

    def test_two_scripts_are_one_with_larger_batches(self):
        """But for batch norm, whose statistics are of each script's own batch, as with DistributedDataParallel."""
        directory = self.directory
        for make, optimizer, servers in (
            (make_plain_model, momentum, True),
            (make_plain_model, adam, True),
            (make_model, momentum, True),
            (make_plain_model, adam, False),
            (make_model, momentum, False),
        ):
            with self.subTest(make=make.__name__, optimizer=optimizer.__name__, servers=servers):
                self.model_dir = os.path.join(directory, f"{make.__name__}-{optimizer.__name__}-{servers}")
                halves = self.train_with_two_scripts(make, optimizer, servers)
                self.assertEqual([len(own) for step in halves for own in step], [5, 5] * 20)
                found, plain = make(), make()
                found.load_state_dict(kt.tensors(keelson.load_state_dict(self.model_dir)), strict=True)
                if make is make_model:
                    self.train_with_norms(plain, optimizer(plain.parameters()), halves)
                else:
                    self.train_on(plain, optimizer(plain.parameters()), [sum(step, []) for step in halves])
                self.assert_same(found, plain)

    def train_with_two_scripts(self, make, optimizer, servers):
        """The records of each step, of both. Without servers such steps are the default."""
        text = ONE_OF_TWO.replace("MAKE", make.__name__).replace("OPTIMIZER", optimizer.__name__)
        text = text.replace("CONSISTENCY", "keelson.Sync(2)" if servers else "None")
        text = text.replace("MODEL_DIR", repr(self.model_dir))
        self.directory = self.model_dir + "-files"
        os.mkdir(self.directory)
        with ScriptCluster(self, self.write("net.py", text), 2, servers=servers) as cluster:
            self.assertEqual([cluster.wait("worker", n) for n in range(2)], [0, 0], cluster.logs())
            lines = [list(map(int, line.split())) for n in range(2) for line in cluster.lines(n)]
            others = ("ps", "chief") if servers else ()
            self.assertEqual([cluster.wait(role) for role in others], [0 for _ in others], cluster.logs())
        return [[records for step, *records in lines if step == number] for number in range(20)]

    def train_with_norms(self, model, optimizer, halves):
        """With the mean of both gradients, and of both batches' statistics."""
        data, norm = Records(), model[1]
        decay, norm.momentum = 1 - norm.momentum, 1.0
        averages = {name: value.clone() for name, value in norm.named_buffers() if value.dim() > 0}
        for step in halves:
            optimizer.zero_grad()
            samples = []
            for records in step:
                (loss_of(model, data[records]) / len(step)).backward()
                samples.append({name: value.clone() for name, value in norm.named_buffers()})
            optimizer.step()
            for name, value in averages.items():
                value.mul_(decay).add_(sum(sample[name] for sample in samples) / len(step), alpha=1 - decay)
        norm.load_state_dict({**norm.state_dict(), **averages, "num_batches_tracked": torch.tensor(len(halves))})

    def test_gradients_that_are_sent_early_and_steps_in_the_script_are_those_of_pytorch(self):
        for make, settings, how in (
            (torch.optim.SGD, {"lr": 0.05, "momentum": 0.9}, {"overlap": True}),
            (torch.optim.RMSprop, {"lr": 0.01, "eps": 0.1}, {"where": "worker"}),
        ):
            with self.subTest(how=how), mock.patch("keelson.torch.overlap._OFFERED_BYTES", 1):
                model = make_model()
                batches = self.train(model, make(model.parameters(), **settings), 50, how=how, model_dir=None)
                self.assert_same(model, self.train_plainly(make, settings, batches))

    def test_a_parameter_without_a_gradient_stands_still_and_has_zeros_in_a_mean(self):
        """Two branches, each in every second step."""
        for how, given in (({}, {}), ({"where": "worker"}, {}), ({"overlap": True}, {}), ({}, {"consistency": keelson.Sync(1)})):
            with self.subTest(how=how, **given):
                model, plain = (nn.ModuleList([make_plain_model(), make_plain_model()]) for _ in range(2))
                batches = self.train_branches(model, how, given)
                if given:  # The last round's values come with the next step, which there is not.
                    model.load_state_dict(kt.tensors(keelson.load_state_dict(self.model_dir)))
                self.train_branches_plainly(plain, batches, has_zeros=bool(given))
                self.assert_same(model, plain)

    def train_branches(self, model, how, given):
        batches, data = [], Records()
        model_dir = self.model_dir if given else None
        settings = {"records": RECORDS, "batch_size": 8, "max_steps": 100, "model_dir": model_dir, "debug": True}
        with keelson.join("net", **settings, **given) as job:
            opt = kt.Optimizer(job, model, torch.optim.Adam(model.parameters(), lr=0.05, eps=1e-3), **how)
            for step, batch in enumerate(kt.Loader(job, data)):
                batches.append(batch[2].tolist())
                loss = loss_of_branch(model, step, batch)
                opt.zero_grad(set_to_none=True)
                loss.backward()
                self.assertTrue(opt.step(loss))
        return batches

    def train_branches_plainly(self, model, batches, has_zeros):
        opt, data = torch.optim.Adam(model.parameters(), lr=0.05, eps=1e-3), Records()
        for step, records in enumerate(batches):
            opt.zero_grad(set_to_none=True)
            loss_of_branch(model, step, data[records]).backward()
            for parameter in model.parameters() if has_zeros else ():
                parameter.grad = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
            opt.step()

    def test_every_record_once_in_each_epoch(self):
        batches = self.train(make_model(), keelson.Sgd(lr=0.1), None, epochs=3, workers=2, batch_size=7)
        self.assertEqual([len(b) for b in batches], [7, 7, 7, 7, 7, 5] * 3)
        epochs = [sum(batches[6 * n : 6 * n + 6], []) for n in range(3)]
        for epoch in epochs:
            self.assertEqual(sorted(epoch), list(range(RECORDS)))
        self.assertNotEqual(epochs[0], epochs[1])
        self.assert_nothing_runs()

    def test_a_job_is_gone_on_with(self):
        model = make_model()
        self.train(model, keelson.Momentum(lr=0.1), 10)
        self.assertEqual((self.first_step, self.last_step), (0, 10))
        # It is done: the model has its values, and no step is made.
        other = make_model()
        nn.init.zeros_(other[0].weight)
        self.assertEqual(self.train(other, keelson.Momentum(lr=0.1), 10), [])
        self.assert_same(other, model)
        self.assertEqual(len(self.train(make_model(), keelson.Momentum(lr=0.05), 15)), 5)
        self.assertEqual((self.first_step, self.last_step), (10, 15))
        state = keelson.load_state_dict(self.model_dir)
        self.assertEqual(state.step, 15)
        loaded = make_model()
        loaded.load_state_dict(kt.tensors(state), strict=True)
        self.assertEqual(keelson.load_state_dict(self.model_dir, step=10).step, 10)
        with self.assertRaises(keelson.Error):
            keelson.load_state_dict(self.model_dir, step=11)

    def test_a_state_comes_back_bit_by_bit(self):
        """From the job, from its snapshot, from safetensors made of that, and from another job that began with those."""
        model = make_model()
        self.train(model, keelson.Adam(lr=0.1), 20)
        state = keelson.load_state_dict(self.model_dir)
        self.assert_bits(kt.tensors(state), model.state_dict())
        file = os.path.join(self.directory, "state.safetensors")
        keelson.safetensors.write(file, dict(state))
        again = make_model()
        with torch.no_grad():
            for parameter in again.parameters():
                parameter.zero_()
        with keelson.join("net", records=RECORDS, batch_size=8, max_steps=1, model_dir=None, initial=file) as job:
            opt = kt.Optimizer(job, again, keelson.Sgd(lr=1.0))
            for _ in kt.Loader(job, Records()):
                self.assert_bits({name: tensor.detach() for name, tensor in again.named_parameters()}, kt.tensors(state))
                opt.zero_grad()
                opt.step(0.0)
        odd = torch.tensor([float("nan"), float("-inf"), -0.0, 1e-45, 3.4028235e38, 1 / 3])
        keelson.save(os.path.join(self.directory, "odd"), {"odd": odd, "empty name": odd[:1]}, step=7)
        loaded = keelson.load_state_dict(os.path.join(self.directory, "odd"))
        self.assertEqual(loaded.step, 7)
        self.assert_bits(kt.tensors(loaded), {"odd": odd, "empty name": odd[:1]})

    def assert_bits(self, found, expected):
        for name, value in found.items():
            self.assertEqual(kt.conversion.to_bytes(value), kt.conversion.to_bytes(expected[name]), name)

    def test_a_job_is_gone_on_with_and_its_best_snapshot_is_used(self):
        """With another rate; `initial` is for a job without snapshots."""
        self.needs("evaluator")
        model, data = make_model(), Records()
        given = {"records": RECORDS, "batch_size": 8, "model_dir": self.model_dir,
                 "evaluation": keelson.Evaluation(metrics=["accuracy"], keep_best="accuracy")}  # fmt: skip
        for before, steps, rate, initial in ((0, 10, 0.05, None), (10, 30, 0.02, "is not read.safetensors")):
            with keelson.join("net", max_steps=steps, initial=initial, **given) as job:
                opt = kt.Optimizer(job, model, keelson.Adam(lr=rate))
                self.assertEqual(job.global_step, before)
                kt.Evaluator(job, model, data, lambda m, batch: (m(batch[0]), batch[1]), classes=2).start()
                for batch in kt.Loader(job, data):
                    loss = loss_of(model, batch)
                    opt.zero_grad()
                    loss.backward()
                    opt.step(loss)
                self.assertEqual(job.save(), steps)
        with open(os.path.join(self.model_dir, "eval", "metrics.jsonl"), encoding="utf-8") as file:
            lines = list(map(json.loads, file))
        told = {line["step"]: line["accuracy"] for line in lines}
        losses = {line["step"]: line["loss"] for line in lines}
        best = keelson.load_state_dict(self.model_dir, step="best")
        kept = os.path.join(self.model_dir, "export", "best")
        self.assertEqual(os.listdir(kept), [str(best.step)])
        self.assertEqual(told[best.step], max(told.values()))
        loaded = make_model().eval()
        loaded.load_state_dict(kt.tensors(best), strict=True)
        with torch.no_grad():
            right = (loaded(data.features).argmax(1) == data.labels).float().mean().item()
        self.assertAlmostEqual(right, told[best.step], delta=1e-6)
        os.mkdir(os.path.join(kept, "7"))
        several = f"expected one snapshot, as of an evaluation with keep_best, found those of the steps 7, {best.step}: load "
        with self.assertRaisesRegex(keelson.Error, several):
            keelson.load_state_dict(self.model_dir, step="best")
        shutil.rmtree(kept)
        lost = min(told, key=lambda step: losses[step])
        self.assertEqual(keelson.load_state_dict(self.model_dir, step="best").step, lost)
        self.assert_nothing_runs()
        # Another model is not.
        with self.assertRaises(keelson.Error):
            self.train(nn.Sequential(nn.Linear(6, 2)), keelson.Momentum(lr=0.1), 20)
        self.assert_nothing_runs()

    def test_tables_are_trained_as_dense_embeddings(self):
        """Each row with its own optimizer, from values that a snapshot shows, by look-ups of every form."""
        for optimizer, make in (
            (keelson.Sgd(lr=0.1), lambda p: torch.optim.SGD(p, lr=0.1)),
            (keelson.Adagrad(lr=0.1), lambda p: torch.optim.Adagrad(p, lr=0.1)),
        ):
            with self.subTest(optimizer=optimizer):
                data = IdRecords()
                model = IdNet(
                    kt.Embedding("ids", 4, optimizer, init=0.25), kt.Embedding("bags", 3, optimizer, 0.5, mode="mean")
                )
                plain = IdNet(nn.Embedding(IDS, 4), nn.EmbeddingBag(IDS, 3, mode="mean"))
                nn.init.constant_(plain.ids.weight, 0.25)
                nn.init.constant_(plain.bags.weight, 0.5)
                opt_ids = make([plain.ids.weight, plain.bags.weight])
                opt_rest = torch.optim.AdamW(plain.top.parameters())
                given = {"records": RECORDS, "batch_size": 8, "max_steps": 60, "model_dir": self.model_dir}
                with keelson.join("tables", **given) as job:
                    opt = kt.Optimizer(job, model, keelson.AdamW(lr=1e-3))
                    for batch in kt.Loader(job, data, num_workers=1, prefetch=lambda b: {model.ids: b[0]}):
                        loss = F.mse_loss(model(*batch[:2]), batch[2])
                        opt.zero_grad()
                        loss.backward()
                        self.assertTrue(opt.step(loss))
                        expected = F.mse_loss(plain(*batch[:2]), batch[2])
                        opt_ids.zero_grad()
                        opt_rest.zero_grad()
                        expected.backward()
                        opt_ids.step()
                        opt_rest.step()
                        torch.testing.assert_close(loss, expected, rtol=1e-5, atol=1e-6)
                state = keelson.load_state_dict(self.model_dir)
                model.load_state_dict(kt.tensors(state), strict=True)
                for name, dense in (("ids", plain.ids), ("bags", plain.bags)):
                    content = state.tables[name]
                    keys, values = (torch.frombuffer(bytearray(t.data), dtype=d).view(t.shape)
                                    for t, d in zip(content, (torch.int64, torch.float32)))  # fmt: skip
                    self.assertEqual(sorted(keys.tolist()), list(range(IDS)))
                    torch.testing.assert_close(values, dense.weight.detach()[keys], rtol=1e-5, atol=1e-6)
                    getattr(model, name).load_rows(content)
                torch.testing.assert_close(model(data.ids, data.bags), plain(data.ids, data.bags), rtol=1e-5, atol=1e-6)
                shutil.rmtree(self.model_dir)
        self.assert_nothing_runs()

    def test_embeddings_with_a_number_of_rows_are_those_of_pytorch(self):
        """With the optimizer of the one in place of the model's, also where that is PyTorch's."""
        for give in (lambda model: keelson.AdamW(lr=0.01), lambda model: torch.optim.AdamW(model.parameters(), lr=0.01)):
            own = keelson.Adagrad(lr=0.1)
            model = IdNet(kt.Embedding("ids", 4, own, rows=IDS), kt.Embedding("bags", 3, rows=IDS, mode="sum"))
            plain = IdNet(nn.Embedding(IDS, 4), nn.EmbeddingBag(IDS, 3, mode="sum"))
            plain.load_state_dict(model.state_dict())
            batches, data = [], IdRecords()
            with keelson.join("ids", records=RECORDS, batch_size=8, max_steps=30, model_dir=None) as job:
                opt = kt.Optimizer(job, model, give(model))
                for ids, bags, targets, numbers in kt.Loader(job, Numbered(data)):
                    batches.append(numbers)
                    loss = F.mse_loss(model(ids, bags), targets)
                    opt.zero_grad()
                    loss.backward()
                    self.assertTrue(opt.step(loss))
            rest = [parameter for name, parameter in plain.named_parameters() if name != "ids.weight"]
            opts = [torch.optim.Adagrad([plain.ids.weight], lr=0.1), torch.optim.AdamW(rest, lr=0.01)]
            for numbers in batches:
                plain.zero_grad()
                F.mse_loss(plain(data.ids[numbers], data.bags[numbers]), data.targets[numbers]).backward()
                for opt in opts:
                    opt.step()
            self.assert_same(model, plain)
        self.assert_nothing_runs()

    def test_rows_start_as_the_configuration_has_them(self):
        model, found = kt.Embedding("ids", 8, init=keelson.Uniform(-0.01, 0.01)), []
        given = {"records": RECORDS, "batch_size": 8, "max_steps": 2, "consistency": keelson.Sync(1), "seed": 3}
        for _ in range(2):
            with keelson.join("initial", model_dir=None, **given) as job:
                opt = kt.Optimizer(job, model, keelson.Sgd(lr=0.1))
                for batch in kt.Loader(job, Records(), prefetch=lambda b: {model: b[2]}):
                    with torch.no_grad():
                        found.append(model(torch.tensor([-1, 1 << 62])))
                    loss = model(batch[2]).sum()
                    loss.backward()
                    self.assertTrue(opt.step(loss))
        self.assertLessEqual(float(found[0].abs().max()), 0.01)
        self.assertEqual(len(set(found[0].flatten().tolist())), 16)
        for again in found[1:]:
            self.assertTrue(torch.equal(again, found[0]))

    def make_clicks(self, count, ids_of_column=20):
        generator = torch.Generator().manual_seed(count)
        path = os.path.join(self.directory, f"criteo-{count}.tsv")
        with open(path, "w", encoding="utf-8") as file:
            for _ in range(count):
                ids = torch.randint(ids_of_column, (26,), generator=generator).tolist()
                label = int(sum(one % 2 for one in ids[:3]) >= 2)
                numbers = [str(n) if n else "" for n in torch.randint(9, (13,), generator=generator).tolist()]
                file.write("\t".join([str(label), *numbers, *(f"{one:08x}" for one in ids)]) + "\n")
        return path

    def ctr_example(self):
        with open(os.path.join(support.PACKAGES, "examples", "ctr.py"), encoding="utf-8") as file:
            return file.read()

    def test_models_with_tables_are_evaluated_as_their_training_has_them(self):
        """The example's model, and one with bags, half way and at the end: with rows that the servers have, and of ids that they
        have never seen."""
        self.needs("evaluator")
        example = {}
        exec(self.ctr_example().partition("model, data =")[0], example)
        clicks = kt.TsvDataset(self.make_clicks(240), label=0, dense=13, ids=26)
        others = kt.TsvDataset(self.make_clicks(200, ids_of_column=30), label=0, dense=13, ids=26)
        bags = IdRecords()
        bags.targets = (bags.targets > 0).float()
        more = copy.deepcopy(bags)
        more.ids[::3] += IDS
        more.bags[::2] += IDS
        for model, data, shown in (
            (example["Ctr"](), clicks, others),
            (IdNet(kt.Embedding("ids", 4, keelson.Adagrad(lr=0.1)), kt.Embedding("bags", 3, mode="sum")), bags, more),
        ):
            self.assert_evaluated_as_trained(model, data, shown)
            shutil.rmtree(self.model_dir)
        self.assert_nothing_runs()

    def assert_evaluated_as_trained(self, model, data, shown):
        def score(model, batch):
            return model(*batch[:2]), batch[2]

        def told():
            path = os.path.join(self.model_dir, "eval", "metrics.jsonl")
            if not os.path.exists(path):
                return {}
            with open(path, encoding="utf-8") as file:
                return {record["step"]: record for record in map(json.loads, file)}

        batch = torch.utils.data.default_collate([shown[i] for i in range(len(shown))])
        own, steps = {}, 12
        with keelson.join("ctr", records=len(data), batch_size=20, max_steps=steps, model_dir=self.model_dir, seed=3,
                          evaluation=keelson.Evaluation(metrics=["auc"])) as job:  # fmt: skip
            opt = kt.Optimizer(job, model, keelson.AdamW(lr=1e-2))
            kt.Evaluator(job, model, shown, score, kind="binary", batch_size=70, page=None).start()
            for dense, ids, labels in kt.Loader(job, data):
                loss = F.binary_cross_entropy_with_logits(model(dense, ids), labels)
                opt.zero_grad()
                loss.backward()
                opt.step(loss)
                if job.global_step == steps // 2:
                    with torch.no_grad():
                        scores, labels = score(model, batch)
                    loss = F.binary_cross_entropy_with_logits(scores.double(), labels.double())
                    own = {"loss": loss.item(), "auc": auc_of(scores, labels)}
                    self.assertEqual(job.save(), steps // 2)
                    await_true(lambda: steps // 2 in told())
        self.assertEqual(sorted(told()), [0, steps // 2, steps])
        for name, value in own.items():
            self.assertAlmostEqual(told()[steps // 2][name], value, delta=1e-6, msg=name)
        self.assertNotAlmostEqual(told()[0]["loss"], own["loss"], delta=1e-3)

    def test_the_example_learns_clicks(self):
        """The script of docs/python.md, on fewer records."""
        path, text = self.make_clicks(6000), self.ctr_example()
        for before, after in (
            ('"/data/criteo.tsv"', repr(path)),
            ("batch_size=1024, epochs=1", "batch_size=100, epochs=2"),
        ):
            self.assertEqual(text.count(before), 1)
            text = text.replace(before, after)
        text = text.replace("model, data =", "losses = []\nmodel, data =")
        text += "        losses.append(float(loss))\nprint(sum(losses[:5]) / 5, sum(losses[-5:]) / 5)\n"
        with self.start(self.write("ctr.py", text)) as process:
            output, errors = process.communicate(timeout=DEADLINE_SECONDS)
        self.assertEqual(process.returncode, 0, errors)
        first, last = map(float, output.split())
        self.assertGreater(first, 0.6)
        self.assertLess(last, 0.3)

    def test_the_example_learns_digits(self):
        train, test = make_digits(2000, 0), make_digits(500, 1)
        write_idx(self.directory, "train", *train)
        with open(os.path.join(support.PACKAGES, "examples", "train.py"), encoding="utf-8") as file:
            text = file.read()
        for before, after in (
            ('"/data"', repr(self.directory)),
            ('"/model"', repr(self.model_dir)),
            ("epochs=5", "epochs=4"),
        ):
            self.assertEqual(text.count(before), 1)
            text = text.replace(before, after)
        script = self.write("train.py", text)
        with self.start(script) as process:
            output, errors = process.communicate(timeout=DEADLINE_SECONDS)
        self.assertEqual(process.returncode, 0, errors)
        self.assertRegex(output, r"^100 \d")
        namespace = {"__name__": "example"}
        exec(compile(text, script, "exec"), namespace)
        model = namespace["make_model"]()
        model.load_state_dict(kt.tensors(keelson.load_state_dict(self.model_dir)), strict=True)
        self.check_digits(model, test)
        self.resume_the_example(model)
        self.check_digits(model, test)

    def resume_the_example(self, model):
        """Which the third script of the guide does, for two more epochs; the model has what it saved then."""
        saved = os.path.join(self.directory, "mnist.pt")
        with open(os.path.join(support.PACKAGES, "examples", "resume.py"), encoding="utf-8") as file:
            text = file.read()
        for before, after, count in (
            ('"/model"', repr(self.model_dir), 2),
            ('"mnist.pt"', repr(saved), 1),
            ("epochs=20", "epochs=6", 1),
        ):
            self.assertEqual(text.count(before), count)
            text = text.replace(before, after)
        with self.start(self.write("resume.py", text)) as process:
            output, errors = process.communicate(timeout=DEADLINE_SECONDS)
        self.assertEqual(process.returncode, 0, errors)
        self.assertEqual(output, "step 128 of 192, epoch 4.1\n")
        self.assertIn("no snapshot that is there was evaluated", errors)
        self.assertEqual(keelson.load_state_dict(self.model_dir).step, 192)
        model.load_state_dict(torch.load(saved), strict=True)

    def check_digits(self, model, test):
        model.eval()
        images, labels = test
        with torch.no_grad():
            right = (model(images.unsqueeze(1).float() / 255).argmax(1) == labels).float().mean()
        self.assertGreaterEqual(float(right), 0.97)


IDS = 12


class IdRecords(torch.utils.data.Dataset if torch else object):
    """Ids, bags of ids, and a number."""

    def __init__(self):
        generator = torch.Generator().manual_seed(1)
        self.ids = torch.randint(IDS, (RECORDS, 2), generator=generator)
        self.bags = torch.randint(IDS, (RECORDS, 3), generator=generator)
        self.targets = torch.randn(RECORDS, generator=generator)

    def __len__(self):
        return RECORDS

    def __getitem__(self, index):
        return self.ids[index], self.bags[index], self.targets[index]


class Numbered(torch.utils.data.Dataset if torch else object):
    """With each record its number."""

    def __init__(self, records):
        self.records = records

    def __len__(self):
        return len(self.records)

    def __getitem__(self, index):
        return (*self.records[index], index)


class IdNet(nn.Module if torch else object):
    def __init__(self, ids, bags):
        super().__init__()
        torch.manual_seed(2)
        self.ids, self.bags = ids, bags
        self.top = nn.Linear(2 * 4 + 2 * 3, 1)

    def forward(self, ids, bags):
        return self.top(torch.cat([self.ids(ids).flatten(1), self.bags(bags), self.bags(ids)], 1)).squeeze(1)


def auc_of(scores, labels):
    """The share of pairs of a 1 and a 0 that are in order."""
    ones, zeros = scores[labels == 1].double(), scores[labels == 0].double()
    difference = ones[:, None] - zeros
    return ((difference > 0).double().mean() + (difference == 0).double().mean() / 2).item()


def make_digits(count, seed):
    """Ten shapes at random places, in noise."""
    shapes = torch.rand(10, 14, 14, generator=torch.Generator().manual_seed(100)) > 0.6
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(10, (count,), generator=generator)
    images = torch.randint(0, 60, (count, 28, 28), generator=generator, dtype=torch.uint8)
    places = torch.randint(6, 9, (count, 2), generator=generator)
    for image, label, (row, column) in zip(images, labels, places.tolist()):
        image[row : row + 14, column : column + 14] += shapes[label].to(torch.uint8) * 150
    return images, labels


def write_idx(directory, split, images, labels):
    with open(os.path.join(directory, f"{split}-images-idx3-ubyte"), "wb") as file:
        file.write(struct.pack(">4B3I", 0, 0, 8, 3, *images.shape) + bytes(images.flatten().tolist()))
    with open(os.path.join(directory, f"{split}-labels-idx1-ubyte"), "wb") as file:
        file.write(struct.pack(">4BI", 0, 0, 8, 1, len(labels)) + bytes(labels.tolist()))


if __name__ == "__main__":
    unittest.main()
