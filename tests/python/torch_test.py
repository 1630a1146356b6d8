"""PyTorch on a job whose agent is the tests' own: it applies gradients as SGD does."""

import array
import dataclasses
import gzip
import json
import os
import struct
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
    from keelson.torch.modules import Parts
    from keelson.torch.translation import translate
except ImportError:
    torch = None

LR = 0.5
RECORDS, BATCH = 24, 4


def setUpModule():
    if torch is None:
        raise unittest.SkipTest("no package torch")
    torch.set_num_threads(1)


def make_data():
    generator = torch.Generator().manual_seed(1)
    features = torch.randn(RECORDS, 6, generator=generator)
    return torch.utils.data.TensorDataset(features, (features.sum(1) > 0).long(), torch.arange(RECORDS))


class Net(nn.Module if torch else object):
    """Has one of everything: batch norm, a parameter that two layers share, one that nothing uses, constants."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(2)
        self.first = nn.Linear(6, 6)
        self.norm = nn.BatchNorm1d(6, momentum=0.25)
        self.second = nn.Linear(6, 6)
        self.second.weight = self.first.weight
        self.unused = nn.Parameter(torch.ones(3))
        self.frozen = nn.Parameter(torch.full((6,), 0.5), requires_grad=False)
        self.register_buffer("offset", torch.full((6,), 0.25))
        self.last = nn.Linear(6, 2)

    def forward(self, x):
        return self.last(torch.tanh(self.second(self.norm(self.first(x))) * self.frozen + self.offset))


def loss_of(model, batch):
    return F.cross_entropy(model(batch[0]), batch[1])


class TorchFixture(FakeJobTest):
    """Jobs of Net, and what they are compared with."""

    def join(self, plan=None, **changes):
        steps = (plan or {}).get("steps", 2 * RECORDS // BATCH)
        self.plan(**{"records": RECORDS, "batch_size": BATCH, "steps": steps, "lr": LR, **(plan or {})})
        given = {"records": RECORDS, "batch_size": BATCH, "max_steps": steps, "model_dir": self.model_dir}
        return keelson.join("net", **{**given, **changes})

    def train(self, model, optimizer=None, plan=None, before_step=lambda: None, workers=0, dataset=None, overlap=False):
        records = []
        with self.join(plan) as job:
            opt = kt.Optimizer(job, model, optimizer or keelson.Sgd(lr=LR), overlap=overlap)
            for batch in kt.Loader(job, dataset or make_data(), num_workers=workers):
                records += batch[2].tolist()
                loss = loss_of(model, batch)
                opt.zero_grad()
                loss.backward()
                before_step()
                self.assertTrue(opt.step(loss))
        return records

    def plain(self, model, steps, before_step=lambda: None):
        data = make_data()
        opt = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=LR)
        for step in range(steps):
            batch = data[torch.arange(step * BATCH, (step + 1) * BATCH) % RECORDS]
            opt.zero_grad()
            loss_of(model, batch).backward()
            before_step()
            opt.step()
        return model

    def assert_same(self, found, expected):
        found, expected = found.state_dict(), expected.state_dict()
        self.assertEqual(list(found), list(expected))
        for name, value in expected.items():
            torch.testing.assert_close(found[name], value, rtol=1e-5, atol=1e-6, msg=lambda m, n=name: f"{n}: {m}")


class TorchJobTest(TorchFixture):
    def test_training_is_that_of_plain_pytorch(self):
        model = Net()
        records = self.train(model)
        self.assert_same(model, self.plain(Net(), 12))
        self.assertEqual(records, [*range(RECORDS)] * 2)
        self.assertEqual(model.norm.momentum, 0.25)
        self.assertRegex(self.events()["computes"], r"^python 3\.\d+, torch \S+ cpu$")

    def test_a_compiled_model_is_trained_as_any_other(self):
        """Compiled as a whole, or a function of it, before the job or in it. The names are those of the model's source."""
        if not hasattr(torch, "compile"):
            self.skipTest("no torch.compile")
        backend = os.environ.get("KEELSON_COMPILE_BACKEND", "aot_eager")  # inductor needs a compiler, and time.
        for begin_early, is_given in ((False, False), (True, True)):
            with self.subTest(begin_early=begin_early, is_given=is_given):
                torch._dynamo.reset()
                model = Net()
                compiled = torch.compile(model, backend=backend)
                if begin_early:
                    compiled.eval()(make_data()[:BATCH][0]).sum().backward()
                    compiled.train().zero_grad()
                with self.join() as job:
                    opt = kt.Optimizer(job, compiled if is_given else model, keelson.Sgd(lr=LR))
                    for batch in kt.Loader(job, make_data()):
                        loss = loss_of(compiled, batch)
                        opt.zero_grad()
                        loss.backward()
                        self.assertTrue(opt.step(loss))
                self.assert_same(model, self.plain(Net(), 12))
                self.assertGreater(torch._dynamo.utils.counters["frames"]["ok"], 0)
                os.remove(os.path.join(self.model_dir, "over"))

    def test_an_optimizer_of_torch_is_translated(self):
        model = Net()
        self.train(model, torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=LR))
        self.assert_same(model, self.plain(Net(), 12))

    def test_workers_of_the_data_loader(self):
        for plan in ({}, {"one_at_a_time": True, "ask": True, "steps": 4}):
            model = Net()
            records = self.train(model, plan=plan, workers=2)
            steps = plan.get("steps", 12)
            self.assertEqual(records, [n % RECORDS for n in range(steps * BATCH)])
            self.assert_same(model, self.plain(Net(), steps))
            os.remove(os.path.join(self.model_dir, "over"))

    def test_workers_of_the_data_loader_that_are_spawned(self):
        seen = []
        with self.join({"steps": 3}) as job:
            opt = kt.Optimizer(job, nn.Linear(6, 2), keelson.Sgd(lr=LR))
            for batch in kt.Loader(job, make_data(), num_workers=1, multiprocessing_context="spawn"):
                seen += batch[2].tolist()
                opt.step(0.0)
        self.assertEqual(seen, list(range(3 * BATCH)))
        self.assert_nothing_runs()

    def test_any_optimizer_of_torch_runs_in_the_script(self):
        rmsprop, adam = torch.optim.RMSprop, torch.optim.Adam
        for make, settings in (
            (rmsprop, {"lr": 0.01, "momentum": 0.9, "eps": 0.1}),
            (adam, {"lr": 0.01, "amsgrad": True, "eps": 0.1}),
        ):
            model, other = Net(), Net()
            optimizer, plain = (
                make([p for p in m.parameters() if p.requires_grad], **settings) for m in (model, other)
            )
            self.train_locally(model, optimizer, 12)
            self.make_steps(other, plain, range(12))
            self.assert_same(model, other)
            os.remove(os.path.join(self.model_dir, "over"))

    def train_locally(self, model, optimizer, steps, before_step=lambda opt: None, **plan):
        """With the servers' rate; the decay of batch norm's averages is the plan's as well."""
        with self.join({"lr": 1.0, "steps": steps, **plan}) as job:
            opt = kt.Optimizer(job, model, optimizer, where="worker")
            for batch in kt.Loader(job, make_data()):
                loss = loss_of(model, batch)
                opt.zero_grad()
                loss.backward()
                before_step(opt)
                opt.step(loss)

    def make_steps(self, model, optimizer, steps):
        data = make_data()
        for step in steps:
            optimizer.zero_grad()
            loss_of(model, data[torch.arange(step * BATCH, (step + 1) * BATCH) % RECORDS]).backward()
            optimizer.step()

    def test_the_state_of_an_optimizer_in_the_script_is_gone_on_with(self):
        model, other = nn.Linear(6, 2), nn.Linear(6, 2)
        other.load_state_dict(model.state_dict())
        plain = torch.optim.Adam(other.parameters(), lr=0.1)
        self.train_locally(model, torch.optim.Adam(model.parameters(), lr=0.1), 3)
        self.make_steps(other, plain, range(3))
        self.assert_same(model, other)
        kept = os.path.join(self.model_dir, "script", "optimizer-0.pt")
        self.assertTrue(os.path.exists(kept))
        # The fake agent has no snapshots: it begins with the initial values, at the step that it is told.
        os.remove(os.path.join(self.model_dir, "over"))
        plain.param_groups[0]["lr"] = 0.01
        self.train_locally(model, torch.optim.Adam(model.parameters(), lr=0.01), 2, first_step=3)
        self.make_steps(other, plain, range(2))
        self.assert_same(model, other)
        with self.join({"steps": 5, "first_step": 3}) as job, self.assertRaisesRegex(
            keelson.JoinError, "optimizer-0.pt: expected the state of SGD, found that of Adam"
        ):
            kt.Optimizer(job, model, torch.optim.SGD(model.parameters(), lr=1.0), where="worker")

    def test_the_state_of_an_optimizer_in_the_script_is_kept_with_a_snapshot(self):
        model = nn.Linear(6, 2)
        kept = os.path.join(self.model_dir, "script", "optimizer-0.pt")
        with self.join({"lr": 1.0, "steps": 2}) as job:
            opt = kt.Optimizer(job, model, torch.optim.Adam(model.parameters(), lr=0.1), where="worker")
            for batch in kt.Loader(job, make_data()):
                loss_of(model, batch).backward()
                opt.step(0.0)
                self.assertFalse(os.path.exists(kept))
                job.save()
                self.assertEqual(torch.load(kept)["step"], 1)
                break

    def test_a_step_in_the_script_that_does_not_count_is_undone(self):
        model = nn.Linear(6, 2)
        with self.join({"lr": 1.0, "steps": 2, "unwanted": [1]}) as job:
            opt = kt.Optimizer(job, model, torch.optim.SGD(model.parameters(), lr=LR), where="worker")
            for number, batch in enumerate(kt.Loader(job, make_data())):
                opt.zero_grad()
                loss_of(model, batch).backward()
                before = model.weight.detach().clone()
                gradient = model.weight.grad.clone()
                self.assertEqual(opt.step(0.0), number == 0)
                torch.testing.assert_close(model.weight.detach(), before - LR * gradient if number == 0 else before)

    def test_rates_of_an_optimizer_in_the_script_may_change(self):
        model, other = nn.Linear(6, 2), nn.Linear(6, 2)
        other.load_state_dict(model.state_dict())
        with self.join({"lr": 1.0, "steps": 3}) as job:
            opt = kt.Optimizer(job, model, torch.optim.SGD(model.parameters(), lr=LR), where="worker")
            schedule = torch.optim.lr_scheduler.StepLR(opt, 1, gamma=0.5)
            for batch in kt.Loader(job, make_data()):
                opt.zero_grad()
                loss_of(model, batch).backward()
                opt.step(0.0)
                schedule.step()
        plain = torch.optim.SGD(other.parameters(), lr=LR)
        schedule = torch.optim.lr_scheduler.StepLR(plain, 1, gamma=0.5)
        for step in range(3):
            self.make_steps(other, plain, [step])
            schedule.step()
        self.assert_same(model, other)

    def test_what_cannot_run_in_the_script_is_refused(self):
        model = nn.Linear(6, 2)
        with self.join() as job:
            for optimizer, where, error, words in (
                (keelson.Sgd(lr=1), "worker", TypeError, "expected one of torch.optim with where=\"worker\", found Sgd"),
                (keelson.Sgd(lr=1), "chief", ValueError, "where: expected \"server\" or \"worker\", found 'chief'"),
                (torch.optim.LBFGS(model.parameters()), "worker", keelson.JoinError, "takes no closure, found LBFGS"),
                (torch.optim.RMSprop([*model.parameters(), nn.Parameter(torch.ones(5))]), "worker", keelson.JoinError,
                 r"RMSprop: expected the model's parameters, found another one of \[5\]"),
            ):  # fmt: skip
                with self.assertRaisesRegex(error, words):
                    kt.Optimizer(job, model, optimizer, where=where)
            with self.assertRaisesRegex(ValueError, 'overlap: expected False with where="worker"'):
                kt.Optimizer(job, model, torch.optim.SGD(model.parameters(), lr=1.0), overlap=True, where="worker")

    def test_tables_have_their_own_optimizers_where_the_script_has_the_others(self):
        model = nn.Sequential(kt.Embedding("ids", dim=2), nn.Linear(2, 2))
        with self.join() as job, self.assertRaisesRegex(keelson.JoinError, "table ids: expected an optimizer of its own"):
            kt.Optimizer(job, model, torch.optim.SGD(model.parameters(), lr=LR), where="worker")

    def test_gradients_may_be_clipped(self):
        model, other = Net(), Net()
        self.train(model, before_step=lambda: nn.utils.clip_grad_norm_(model.parameters(), 0.1))
        self.plain(other, 12, lambda: nn.utils.clip_grad_norm_(other.parameters(), 0.1))
        self.assert_same(model, other)

    def test_gradients_are_accumulated_over_batches_that_are_skipped(self):
        for overlap in (False, True):
            model, other = nn.Linear(6, 2), nn.Linear(6, 2)
            other.load_state_dict(model.state_dict())
            with self.join({"steps": 8}) as job:
                opt = kt.Optimizer(job, model, keelson.Sgd(lr=LR), overlap=overlap)
                for number, batch in enumerate(kt.Loader(job, make_data())):
                    loss = loss_of(model, batch)
                    if number % 4 == 3:
                        loss.backward()
                        opt.step(loss)
                        opt.zero_grad()
                    else:
                        with opt.accumulate():
                            loss.backward()
            data = make_data()
            plain = torch.optim.SGD(other.parameters(), lr=LR)
            for number in range(8):
                loss_of(other, data[torch.arange(number * BATCH, (number + 1) * BATCH) % RECORDS]).backward()
                if number % 4 == 3:
                    plain.step()
                    plain.zero_grad()
            self.assert_same(model, other)
            kinds = [event[0] for event in self.events()["events"] if event[0] in ("step", "skip")]
            self.assertEqual(kinds, (["skip"] * 3 + ["step"]) * 2)
            os.remove(os.path.join(self.model_dir, "over"))

    def offered(self):
        return [tuple(event[1:]) for event in self.events()["events"] if event[0] == "offer"]

    def test_gradients_are_sent_while_backward_runs(self):
        """With a parameter that nothing uses, and one that two layers share."""
        with mock.patch("keelson.torch.overlap._OFFERED_BYTES", 1):
            model = Net()
            self.train(model, overlap=True, plan={"steps": 3})
        self.assert_same(model, self.plain(Net(), 3))
        names = [*Parts(model).parameters]
        for step in range(3):
            offered = [names[position] for ticket, position in self.offered() if ticket == step]
            self.assertEqual(sorted(offered), sorted(set(names) - {"unused"}))
            # The layers come in the order of backward; the shared weight when its first layer has its part too.
            self.assertLess(offered.index("last.weight"), offered.index("second.bias"))
            self.assertLess(offered.index("second.bias"), offered.index("first.weight"))

    def test_small_gradients_have_one_message(self):
        model = Net()
        self.train(model, overlap=True, plan={"steps": 2})
        self.assert_same(model, self.plain(Net(), 2))
        self.assertEqual(self.offered(), [])
        with mock.patch("keelson.torch.overlap._OFFERED_BYTES", 4 * 15):
            os.remove(os.path.join(self.model_dir, "over"))
            self.train(Net(), overlap=True, plan={"steps": 1})
        self.assertGreater(max(map(len, self.offered())), 2)

    def test_a_gradient_that_was_sent_may_not_change(self):
        def clip(model, loss):
            nn.utils.clip_grad_norm_(model.parameters(), 100.0)

        def clamp(model, loss):
            model.weight.grad.data.clamp_(-1e-3, 1e-3)

        def forget(model, loss):
            model.zero_grad(set_to_none=True)

        def go_back_again(model, loss):
            loss.backward()

        changed = "gradient of weight: expected it as backward left it, found it changed after it was sent"
        for change, words in (
            (clip, changed),
            (clamp, changed),
            (forget, changed),
            (go_back_again, "expected one backward for each step, found another one"),
        ):
            model = nn.Linear(6, 2)
            with self.join({"steps": 1}) as job, self.assertRaisesRegex(RuntimeError, words):
                opt = kt.Optimizer(job, model, keelson.Sgd(lr=LR), overlap=True)
                for batch in kt.Loader(job, make_data()):
                    loss = loss_of(model, batch)
                    loss.backward(retain_graph=True)
                    change(model, loss)
                    opt.step(loss)

    def test_a_batch_whose_gradients_were_sent_is_not_left_out(self):
        model = nn.Linear(6, 2)
        with mock.patch("keelson.torch.overlap._OFFERED_BYTES", 1), self.join() as job:
            opt = kt.Optimizer(job, model, keelson.Sgd(lr=LR), overlap=True)
            with self.assertRaisesRegex(RuntimeError, "whose gradients were sent during backward, found none"):
                for batch in kt.Loader(job, make_data()):
                    loss_of(model, batch).backward()
            self.assertIsNotNone(opt)

    def test_a_scaler_does_not_go_with_overlap(self):
        if not hasattr(torch.amp, "GradScaler"):
            self.skipTest("no torch.amp.GradScaler")
        model = nn.Linear(6, 2)
        with self.join() as job, self.assertRaisesRegex(RuntimeError, "gradient of weight: .*GradScaler.unscale_"):
            opt = kt.Optimizer(job, model, keelson.Sgd(lr=LR), overlap=True)
            scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
            for batch in kt.Loader(job, make_data()):
                scaler.scale(loss_of(model, batch)).backward()
                scaler.step(opt, 0.0)
                scaler.update()

    def test_tables_do_not_go_with_overlap(self):
        model = nn.Sequential(kt.Embedding("ids", dim=2), nn.Linear(2, 2))
        with self.join() as job, self.assertRaisesRegex(keelson.JoinError, "expected a model without tables, found ids"):
            kt.Optimizer(job, model, keelson.Sgd(lr=LR), overlap=True)

    def test_hooks_end_with_the_job(self):
        model = nn.Linear(6, 2)
        for _ in range(2):
            with self.join({"steps": 1}) as job:
                opt = kt.Optimizer(job, model, keelson.Sgd(lr=LR), overlap=True)
                for batch in kt.Loader(job, make_data()):
                    loss = loss_of(model, batch)
                    loss.backward()
                    opt.step(loss)
            loss_of(model, make_data()[:4]).backward()
            model.zero_grad()
            os.remove(os.path.join(self.model_dir, "over"))

    def test_a_dataset_may_make_batches_or_fetch_many_records(self):
        class MakesBatches(torch.utils.data.Dataset):
            def __len__(self):
                return RECORDS

            def batch(self, positions):
                return array.array("f", positions), torch.tensor(positions)

        class FetchesMany(torch.utils.data.Dataset):
            def __len__(self):
                return RECORDS

            def __getitems__(self, positions):
                return [(float(position), position) for position in positions]

        for dataset in (MakesBatches(), FetchesMany()):
            for workers in (0, 1):
                with self.subTest(dataset=type(dataset).__name__, workers=workers), self.join() as job:
                    opt = kt.Optimizer(job, nn.Linear(6, 2), keelson.Sgd(lr=LR))
                    seen = []
                    for floats, positions in kt.Loader(job, dataset, num_workers=workers):
                        self.assertEqual(list(floats), positions.tolist())
                        seen += positions.tolist()
                        opt.step(0.0)
                    self.assertEqual(len(seen), job.max_steps * BATCH)

    def test_one_step_for_each_batch(self):
        model = nn.Linear(6, 2)
        with self.join() as job:
            opt = kt.Optimizer(job, model, keelson.Sgd(lr=LR))
            with self.assertRaisesRegex(RuntimeError, "expected one for each batch"):
                opt.step(0.0)
            for batch in kt.Loader(job, make_data()):
                loss = loss_of(model, batch)
                loss.backward()
                for wrong in (None, lambda: loss):
                    with self.assertRaisesRegex(TypeError, "expected the batch's loss"):
                        opt.step(wrong)
                opt.step(loss)
                with self.assertRaisesRegex(RuntimeError, "expected one for each batch"):
                    opt.step(loss)

    def test_a_batch_of_another_worker_is_no_step(self):
        model = nn.Linear(6, 2)
        counted = []
        with self.join({"ask": True, "steps": 6, "invalid": [1], "unwanted": [3]}) as job:
            opt = kt.Optimizer(job, model, keelson.Sgd(lr=LR))
            for batch in kt.Loader(job, make_data(), num_workers=1):
                counted.append((int(batch[2][0]) // BATCH, opt.step(loss_of(model, batch))))
        self.assertEqual(counted, [(0, True), (2, True), (3, False), (4, True), (5, True)])

    def test_a_loop_that_was_left_is_gone_on_with(self):
        model, seen = nn.Linear(6, 2), []
        with self.join({"steps": 6}) as job:
            opt = kt.Optimizer(job, model, keelson.Sgd(lr=LR))
            loader = kt.Loader(job, make_data(), num_workers=2)
            for batch in loader:
                seen += batch[2].tolist()
                opt.step(loss_of(model, batch))
                if len(seen) == 2 * BATCH:
                    break
            for batch in loader:
                seen += batch[2].tolist()
                opt.step(loss_of(model, batch))
        self.assertEqual(seen, list(range(RECORDS)))

    def test_averages_are_there_for_evaluation(self):
        model, other = Net(), Net()
        with self.join({"steps": 3}) as job:
            opt = kt.Optimizer(job, model, keelson.Sgd(lr=LR))
            for steps, batch in enumerate(kt.Loader(job, make_data()), 1):
                loss = loss_of(model, batch)
                opt.zero_grad()
                loss.backward()
                opt.step(loss)
                self.plain(other := Net(), steps)
                torch.testing.assert_close(model.norm.running_var, other.norm.running_var)

    def test_a_changed_rate_or_a_scheduler_is_refused(self):
        model = nn.Linear(6, 2)
        with self.join() as job:
            opt = kt.Optimizer(job, model, keelson.Sgd(lr=LR))
            for number, batch in enumerate(kt.Loader(job, make_data())):
                if number == 0:
                    opt.param_groups[0]["lr"] = 0.1
                    with self.assertRaisesRegex(
                        RuntimeError, r"'lr'\]: expected 0.5 as at the beginning, found 0.1: .*Cosine"
                    ):
                        opt.step(loss_of(model, batch))
                    opt.param_groups[0]["lr"] = LR
                elif number == 1:
                    torch.optim.lr_scheduler.StepLR(opt, 10)
                    with self.assertRaisesRegex(RuntimeError, "expected no torch.optim.lr_scheduler, found one"):
                        opt.step(loss_of(model, batch))
                    break
            with self.assertRaisesRegex(RuntimeError, "expected all parameters from the beginning"):
                opt.add_param_group({"params": [nn.Parameter(torch.ones(1))]})

    def test_values_of_other_types_are_copied(self):
        model = nn.Linear(6, 2).to(torch.bfloat16)
        with self.join({"steps": 2}) as job:
            opt = kt.Optimizer(job, model, keelson.Sgd(lr=LR))
            for _ in kt.Loader(job, make_data()):
                model.bias.grad = torch.tensor([1.0, 2.0], dtype=torch.bfloat16)
                before = model.bias.detach().clone()
                opt.step(1.0)
                torch.testing.assert_close(model.bias.detach(), before - LR * model.bias.grad)
        self.assertEqual(model.bias.dtype, torch.bfloat16)

    def test_a_graph_of_values_that_have_changed_is_refused_by_autograd(self):
        model = nn.Linear(6, 2)
        with self.join({"steps": 1}) as job:
            opt = kt.Optimizer(job, model, keelson.Sgd(lr=LR))
            for batch in kt.Loader(job, make_data()):
                hidden = model(model(batch[0]).repeat(1, 3))
                opt.step(0.0)
                with self.assertRaisesRegex(RuntimeError, "modified by an inplace operation"):
                    hidden.sum().backward()

    def test_changes_of_parameters_are_found_on_request(self):
        """Views of the values, and copies of another type; by default they are lost."""
        for dtype in (torch.float32, torch.bfloat16):
            for debug in (False, True):
                model = nn.Sequential(nn.Linear(6, 2), nn.BatchNorm1d(2)).to(dtype)
                with self.join(debug=debug, model_dir=None) as job:
                    opt = kt.Optimizer(job, model, keelson.Sgd(lr=LR))
                    for number, batch in enumerate(kt.Loader(job, make_data())):
                        loss = F.cross_entropy(model(batch[0].to(dtype)).float(), batch[1])
                        opt.zero_grad()
                        loss.backward()
                        if number == 2:
                            with torch.no_grad():
                                model[0].weight.clamp_(0.01, 0.02)
                        if debug and number == 2:
                            with self.assertRaisesRegex(RuntimeError, "^0.weight: expected its values unchanged, found them cha"):
                                opt.step(loss)
                            break
                        self.assertTrue(opt.step(loss))

    def test_gradients_that_are_not_finite_are_refused(self):
        model = nn.Linear(6, 2)
        with self.join({"steps": 1}, transfer=keelson.Transfer(reject_non_finite=True)) as job:
            opt = kt.Optimizer(job, model, keelson.Sgd(lr=LR))
            for _ in kt.Loader(job, make_data()):
                model.bias.grad = torch.tensor([1.0, float("nan")])
                with self.assertRaisesRegex(keelson.BadGradient, "gradient of bias: expected finite elements"):
                    opt.step(1.0)

    def test_a_batch_whose_gradients_overflow_is_no_update(self):
        if not hasattr(torch.amp, "GradScaler"):
            self.skipTest("no torch.amp.GradScaler")
        model = nn.Linear(6, 2)
        with self.join({"steps": 3}) as job:
            opt = kt.Optimizer(job, model, keelson.Sgd(lr=LR))
            scaler = torch.amp.GradScaler("cpu", init_scale=8.0, backoff_factor=0.5)
            for number, batch in enumerate(kt.Loader(job, make_data())):
                before = model.bias.detach().clone()
                loss = loss_of(model, batch)
                opt.zero_grad()
                scaler.scale(loss).backward()
                gradient = model.bias.grad / scaler.get_scale()
                if number == 1:
                    model.bias.grad[0] = float("inf")
                    gradient.zero_()
                scaler.step(opt, loss)
                scaler.update()
                torch.testing.assert_close(model.bias.detach(), before - LR * gradient)
        kinds = [event[0] for event in self.events()["events"] if event[0] in ("step", "skip")]
        self.assertEqual(kinds, ["step", "skip", "step"])

    def test_constants_are_those_with_which_the_job_began(self):
        first = Net()
        self.train(first, plan={"steps": 1})
        with open(os.path.join(self.model_dir, "checkpoint"), "w", encoding="utf-8"):
            pass  # As if there were a snapshot.
        os.remove(os.path.join(self.model_dir, "over"))
        again = Net()
        with torch.no_grad():
            again.frozen.fill_(7.0)
        self.train(again, plan={"steps": 1})
        torch.testing.assert_close(again.frozen, first.frozen)

    def test_a_dataset_of_another_size_is_refused(self):
        with self.join() as job, self.assertRaisesRegex(ValueError, "expected the job's 24 records, found 3"):
            kt.Loader(job, [1, 2, 3])

    def test_a_saved_model_is_loaded_strictly(self):
        model = Net()
        self.train(model)
        exported = os.path.join(self.directory, "state.safetensors")
        names = [*Parts(model).parameters, *Parts(model).averages]
        state = model.state_dict()
        keelson.safetensors.write(
            exported, {name: kt.conversion.to_bytes(state[name]) for name in names}, {"global_step": "12"}
        )
        os.environ["KEELSON_TEST_STATE"] = exported
        self.addCleanup(os.environ.pop, "KEELSON_TEST_STATE")
        loaded = keelson.load_state_dict(self.model_dir)
        other = Net()
        with torch.no_grad():
            other.frozen.zero_()
        other.load_state_dict(kt.tensors(loaded), strict=True)
        self.assert_same(other, model)
        self.assertEqual(loaded.step, 12)


class PartsTest(unittest.TestCase):
    def test_what_goes_where(self):
        parts = Parts(Net())
        self.assertEqual(
            list(parts.parameters),
            [
                "unused",
                "first.weight",
                "first.bias",
                "norm.weight",
                "norm.bias",
                "second.bias",
                "last.weight",
                "last.bias",
            ],
        )
        self.assertEqual(
            {name: a.decay for name, a in parts.averages.items()}, {"norm.running_mean": 0.75, "norm.running_var": 0.75}
        )
        self.assertEqual(list(parts.constants), ["frozen", "offset"])
        self.assertEqual(parts.aliases, {"second.weight": "first.weight"})

    def test_what_cannot_be_trained_is_named(self):
        class Shared(nn.Module):
            def __init__(self):
                super().__init__()
                self.a = nn.Parameter(torch.ones(2))
                self.b = nn.Parameter(torch.ones(2))
                self.b.data = self.a.data

        frozen = nn.Linear(1, 1).requires_grad_(False)
        for model, words in (
            (nn.BatchNorm1d(3, momentum=None), "model: expected a momentum, found None"),
            (nn.Linear(2, 2).double(), "parameter weight: expected float32, float16 or bfloat16, found torch.float64"),
            (nn.LazyLinear(2), "parameter weight: expected a shape, found none yet"),
            (nn.Linear(2, 2, device="meta"), "parameter weight: expected it on the cpu or a GPU of CUDA, found it on meta"),
            (
                nn.DataParallel(nn.Linear(2, 2)),
                "expected a module that is not distributed otherwise, found DataParallel",
            ),
            (nn.ParameterDict({"a/b": nn.Parameter(torch.ones(1))}), "expected a name without"),
            (nn.Linear(0, 2), "parameter weight: expected elements, found none in"),
            (frozen, "expected a parameter that requires a gradient, found none"),
            (Shared(), "parameter b: expected memory of its own, found that of a"),
        ):
            with self.assertRaisesRegex(keelson.JoinError, words):
                Parts(model)


class TranslationTest(unittest.TestCase):
    def setUp(self):
        self.model = nn.Linear(2, 2)

    def translate(self, make, **settings):
        return translate(make(self.model.parameters(), **settings), Parts(self.model))

    def test_what_has_an_equal(self):
        for make, settings, expected in (
            (torch.optim.SGD, {"lr": 1, "weight_decay": 2}, keelson.Sgd(lr=1.0, weight_decay=2.0)),
            (torch.optim.SGD, {"lr": 1, "momentum": 0.5, "nesterov": True}, keelson.Momentum(lr=1.0, momentum=0.5, nesterov=True)),
            (torch.optim.Adam, {"betas": (0.8, 0.9), "eps": 1e-6, "weight_decay": 0.1},
             keelson.Adam(lr=1e-3, betas=(0.8, 0.9), eps=1e-6, weight_decay=0.1)),
            (torch.optim.AdamW, {}, keelson.AdamW(lr=1e-3)),
            (torch.optim.Adagrad, {"initial_accumulator_value": 0.5}, keelson.Adagrad(lr=1e-2, initial_accumulator=0.5)),
        ):  # fmt: skip
            self.assertEqual(self.translate(make, **settings), dataclasses.replace(expected, groups=[]))

    def test_groups_that_differ(self):
        groups = [{"params": [self.model.weight]}, {"params": [self.model.bias], "lr": 3, "weight_decay": 0}]
        found = translate(torch.optim.SGD(groups, lr=1, weight_decay=0.5), Parts(self.model))
        self.assertEqual(found.weight_decay, 0.5)
        self.assertEqual(found.groups, [keelson.Group("bias", keelson.Sgd(lr=3.0))])

    def test_what_has_none_is_named(self):
        used = torch.optim.Adam(self.model.parameters())
        self.model(torch.ones(1, 2)).sum().backward()
        used.step()
        scheduled = torch.optim.SGD(self.model.parameters(), lr=1)
        torch.optim.lr_scheduler.StepLR(scheduled, 1)
        foreign = torch.optim.SGD([*self.model.parameters(), nn.Parameter(torch.ones(5))], lr=1)
        for optimizer, words in (
            (
                torch.optim.RMSprop(self.model.parameters()),
                "SGD, Adam, AdamW, Adagrad, found RMSprop: keelson.RmsProp is",
            ),
            (torch.optim.LBFGS(self.model.parameters()), "found LBFGS"),
            (torch.optim.Adam(self.model.parameters(), amsgrad=True), "amsgrad: expected False, found True"),
            (
                torch.optim.SGD(self.model.parameters(), lr=1, momentum=0.9, dampening=0.1),
                "dampening: expected 0, found 0.1",
            ),
            (torch.optim.SGD(self.model.parameters(), lr=1, maximize=True), "maximize: expected False, found True"),
            (torch.optim.Adagrad(self.model.parameters(), lr_decay=0.1), "lr_decay: expected 0, found 0.1"),
            (used, "Adam: expected one that has made no step yet, found the state of 2 parameters"),
            (scheduled, "SGD: expected no torch.optim.lr_scheduler"),
            (foreign, r"SGD: expected the model's parameters, found another one of \[5\]"),
        ):
            with self.assertRaisesRegex(keelson.JoinError, words):
                translate(optimizer, Parts(self.model))


class IdxDatasetTest(FakeJobTest):
    def write(self, name, content, packed=False):
        opened = gzip.open if packed else open
        with opened(os.path.join(self.directory, name), "wb") as file:
            file.write(content)

    def test_pairs_of_images_and_labels(self):
        pixels = bytes(range(12))
        self.write("train-images-idx3-ubyte.gz", struct.pack(">4B3I", 0, 0, 8, 3, 2, 2, 3) + pixels, packed=True)
        self.write("train-labels-idx1-ubyte", struct.pack(">4BI", 0, 0, 8, 1, 2) + b"\x07\x03")
        data = kt.IdxDataset(self.directory, "train")
        self.assertEqual(len(data), 2)
        image, label = data[1]
        self.assertEqual((image.shape, label), ((1, 2, 3), 3))
        torch.testing.assert_close(image, torch.arange(6, 12).view(1, 2, 3).float() / 255)
        with mock.patch.dict(os.environ, {"KEELSON_MOUNTS": json.dumps({"/data": self.directory})}):
            self.assertEqual(len(kt.IdxDataset("/data", "train")), 2)

    def test_damaged_files_are_refused(self):
        self.write("a-images-idx3-ubyte", struct.pack(">4B3I", 0, 0, 8, 3, 2, 2, 3))
        self.write("b-images-idx3-ubyte", b"nothing")
        self.write("c-images-idx3-ubyte", struct.pack(">4B3I", 0, 0, 8, 3, 0, 2, 3))
        self.write("c-labels-idx1-ubyte", struct.pack(">4BI", 0, 0, 8, 1, 1) + b"\x07")
        for split, words in (
            ("a", "expected 28 bytes, found 16"),
            ("b", "expected an IDX file"),
            ("c", "expected 0 labels, found 1"),
        ):
            with self.assertRaisesRegex(ValueError, words):
                kt.IdxDataset(self.directory, split)


if __name__ == "__main__":
    unittest.main()
