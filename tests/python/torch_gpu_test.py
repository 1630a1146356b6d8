"""Parameters on a GPU. What needs none is tested everywhere; the rest where PyTorch finds one."""

import copy
import json
import os
import unittest
import warnings
from unittest import mock

import torch_test
from real_job import RealJobTest
from torch_test import BATCH, LR, Net, TorchFixture, loss_of, make_data, torch

import keelson

if torch is not None:
    import torch.nn as nn
    import torch.nn.functional as F

    import keelson.torch as kt
    from keelson.torch.gpu import Copies, lock_pages
    from keelson.torch.modules import Parts

setUpModule = torch_test.setUpModule


def needs_gpu(test):
    return unittest.skipUnless(torch is not None and torch.cuda.is_available(), "no GPU that PyTorch finds")(test)


class LockPagesTest(unittest.TestCase):
    def setUp(self):
        self.memory = memoryview(bytearray(100))
        self.runtime = mock.Mock()

    def test_the_memory_is_locked_once_and_let_go_at_the_end(self):
        self.runtime.cudaHostRegister.return_value = 0
        unlock = lock_pages(self.memory, self.runtime)
        (address, size, _), _ = self.runtime.cudaHostRegister.call_args
        self.assertEqual((size, self.runtime.cudaHostRegister.call_count), (100, 1))
        self.assertEqual(address, torch.frombuffer(self.memory, dtype=torch.uint8).data_ptr())
        self.runtime.cudaHostUnregister.assert_not_called()
        unlock()
        self.runtime.cudaHostUnregister.assert_called_once_with(address)

    def test_memory_that_cannot_be_locked_is_a_warning(self):
        self.runtime.cudaHostRegister.return_value = 801
        words = "^page-locked memory: expected 100 bytes of it, found cudaError 801: copies to and from GPUs are slower$"
        with self.assertWarnsRegex(RuntimeWarning, words):
            unlock = lock_pages(self.memory, self.runtime)
        unlock()
        self.runtime.cudaHostUnregister.assert_not_called()

    def test_tensors_of_the_host_are_not_waited_for(self):
        with mock.patch("torch.cuda.current_stream") as stream:
            Copies([torch.ones(1)]).wait()
        stream.assert_not_called()


class RefusalsTest(TorchFixture):
    def test_overlap_does_not_go_with_gpus(self):
        """Parts says where the model is, as it would of one on a GPU."""
        with mock.patch.object(Parts, "device", return_value="cuda"), self.join() as job, self.assertRaisesRegex(
            keelson.JoinError, "^overlap: expected parameters on the cpu, found them on cuda$"
        ):
            kt.Optimizer(job, nn.Linear(6, 2), keelson.Sgd(lr=LR), overlap=True)

    def test_an_evaluation_beside_the_training_has_no_gpu(self):
        """Of a device that is not the host's."""
        evaluator = kt.Evaluator("/nowhere", nn.Linear(6, 2, device="meta"), make_data(), None, classes=2)
        evaluator._is_beside_training = True
        threads = torch.get_num_threads()
        self.addCleanup(torch.set_num_threads, threads)
        with self.assertRaisesRegex(keelson.JoinError, "^model: expected .* on the cpu, found weight on meta: give it copy"):
            evaluator.prepare()


@needs_gpu
class GpuTest(TorchFixture):
    def setUp(self):
        super().setUp()
        caught = warnings.catch_warnings()
        caught.__enter__()
        self.addCleanup(caught.__exit__, None, None, None)
        warnings.simplefilter("error")  # The memory is locked.

    def on_gpu(self, model, dtype=None):
        return model.to("cuda", dtype)

    def train_there(self, model, optimizer, plan=None, **how):
        with self.join(plan) as job:
            opt = kt.Optimizer(job, model, optimizer, **how)
            for batch in kt.Loader(job, make_data(), num_workers=1):
                batch = [tensor.cuda() for tensor in batch]
                loss = loss_of(model, batch)
                opt.zero_grad()
                loss.backward()
                self.assertTrue(opt.step(loss))

    def assert_same_there(self, found, expected):
        for name, value in found.state_dict().items():
            self.assertEqual(value.device.type, "cuda", name)
        self.assert_same(copy.deepcopy(found).cpu(), expected)

    def test_training_is_that_of_plain_pytorch(self):
        """Batch norm, a shared parameter, one that nothing uses, and constants among it."""
        model = self.on_gpu(Net())
        self.train_there(model, keelson.Sgd(lr=LR))
        self.assert_same_there(model, self.plain(Net(), 12))
        self.assertRegex(self.events()["computes"], r"^python 3\.\d+, torch \S+ cuda$")

    def test_an_optimizer_in_the_script(self):
        model, plain = self.on_gpu(Net()), Net()
        make = torch.optim.RMSprop
        self.train_there(model, make([p for p in model.parameters() if p.requires_grad], lr=0.01, eps=0.1), {"lr": 1.0},
                         where="worker")  # fmt: skip
        opt = make([p for p in plain.parameters() if p.requires_grad], lr=0.01, eps=0.1)
        data = make_data()
        for step in range(12):
            opt.zero_grad()
            loss_of(plain, data[torch.arange(step * BATCH, (step + 1) * BATCH) % len(data)]).backward()
            opt.step()
        self.assert_same_there(model, plain)

    def test_values_of_other_types(self):
        model = self.on_gpu(nn.Linear(6, 2), torch.bfloat16)
        with self.join({"steps": 2}) as job:
            opt = kt.Optimizer(job, model, keelson.Sgd(lr=LR))
            for _ in kt.Loader(job, make_data()):
                model.bias.grad = torch.tensor([1.0, 2.0], dtype=torch.bfloat16, device="cuda")
                before = model.bias.detach().clone()
                opt.step(1.0)
                torch.testing.assert_close(model.bias.detach(), before - LR * model.bias.grad)

    def test_gradients_that_are_not_finite_are_refused(self):
        model = self.on_gpu(nn.Linear(6, 2))
        with self.join({"steps": 1}, transfer=keelson.Transfer(reject_non_finite=True)) as job:
            opt = kt.Optimizer(job, model, keelson.Sgd(lr=LR))
            for _ in kt.Loader(job, make_data()):
                model.bias.grad = torch.tensor([1.0, float("nan")], device="cuda")
                with self.assertRaisesRegex(keelson.BadGradient, "gradient of bias: expected finite elements"):
                    opt.step(1.0)

    def test_rows_of_tables_are_in_the_hosts_memory(self):
        ids = torch.tensor([[1, 2], [3, 1]])
        table = kt.Embedding("ids", 2)
        table.load_rows(keelson.snapshots.TableContent(kt.conversion.to_bytes(torch.arange(4)),
                                                       kt.conversion.to_bytes(torch.arange(8.0).view(4, 2))))  # fmt: skip
        found = table(ids.cuda())
        self.assertEqual(found.device.type, "cuda")
        self.assertTrue(torch.equal(found.cpu(), table(ids)))
        for mode, padding in ((None, None), ("sum", None), ("mean", 3)):
            dense = kt.Embedding("dense", 2, rows=4, mode=mode, padding_idx=padding)
            expected = dense(ids).detach()
            torch.testing.assert_close(dense.cuda()(ids.cuda()).cpu(), expected)
        with self.assertRaisesRegex(IndexError, "expected ids from 0 to 3, found 4$"):
            dense.cuda()(torch.tensor([[4]]).cuda())


@needs_gpu
class GpuProgramsTest(RealJobTest):
    """With Keelson's own programs."""

    def test_a_network_learns(self):
        torch.manual_seed(1)
        features = torch.randn(400, 8)
        data = torch.utils.data.TensorDataset(features, (features[:, 0] * features[:, 1] > 0).long())
        model = nn.Sequential(nn.Linear(8, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 2)).cuda()
        with keelson.join("xor", records=400, batch_size=40, epochs=40, model_dir=self.model_dir) as job:
            opt = kt.Optimizer(job, model, keelson.Adam(lr=0.01))
            for inputs, labels in kt.Loader(job, data, num_workers=2):
                loss = F.cross_entropy(model(inputs.cuda()), labels.cuda())
                opt.zero_grad()
                loss.backward()
                opt.step(loss)
        host = copy.deepcopy(model).cpu()
        host.load_state_dict(kt.tensors(keelson.load_state_dict(self.model_dir)), strict=True)
        host.eval()
        with torch.no_grad():
            right = (host(features).argmax(1) == data.tensors[1]).float().mean()
        self.assertGreater(float(right), 0.95)
        self.assert_nothing_runs()
        # A second script scores the snapshots there.
        self.needs("evaluator")

        def score(model, batch):
            return model(batch[0].cuda()), batch[1]

        kt.Evaluator(self.model_dir, copy.deepcopy(model), data, score, classes=2, page=None).run()
        with open(os.path.join(self.model_dir, "eval", "metrics.jsonl"), encoding="utf-8") as file:
            told = {line["step"]: line for line in map(json.loads, file)}
        self.assertAlmostEqual(told[400]["accuracy"], float(right), delta=0.006)  # A record may lie on the border.

    def test_a_compiled_model_learns(self):
        if not hasattr(torch, "compile"):
            self.skipTest("no torch.compile")
        data = torch.utils.data.TensorDataset(torch.randn(40, 8), torch.zeros(40).long())
        model, losses = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 2)).cuda(), []
        compiled = torch.compile(model, backend="aot_eager")
        with keelson.join("net", records=40, batch_size=8, epochs=10, model_dir=self.model_dir) as job:
            opt = kt.Optimizer(job, compiled, keelson.Momentum(lr=0.1))
            for inputs, labels in kt.Loader(job, data):
                loss = F.cross_entropy(compiled(inputs.cuda()), labels.cuda())
                opt.zero_grad()
                loss.backward()
                opt.step(loss)
                losses.append(float(loss.detach()))
        self.assertLess(losses[-1], 0.1 * losses[0])


if __name__ == "__main__":
    unittest.main()
