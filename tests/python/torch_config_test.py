"""from_config: the model of a configuration as a module, and jobs of it. tests/interop/layers_torch_test.py compares each layer
and loss with the workers'."""

import copy
import json
import os
import shutil
import struct
import subprocess
import unittest

import mixed_job_test
import support
from real_job import BINARIES, DEADLINE_SECONDS, RealJobTest
from script_cluster import ScriptCluster

import keelson

try:
    import torch

    import keelson.torch as kt
    from keelson.torch.config_layers import LAYERS
except ImportError:
    torch = None

CONFIGS = os.path.join(support.REPOSITORY, "configs")
# With each initial value that there is, but those of files.
VALUES = """
model {
  name: "values"
  input_shape: [6, 6, 2]
  layers { name: "conv" conv2d { filters: 4 kernel_size: 3 kernel_initializer: HE_NORMAL } }
  layers { batch_norm { momentum: 0.75 } }
  layers { tanh {} }
  layers { flatten {} }
  layers { name: "a" dense { units: 5 } }
  layers { name: "b" dense { units: 5 } }
  layers { name: "c" dense { units: 5 kernel_initializer: ZEROS } }
  layers { name: "d" dense { units: 5 } }
  layers { layer_norm {} }
  layers { name: "scores" dense { units: 3 } }
  loss { kind: SOFTMAX_CROSS_ENTROPY }
}
initial_values {
  groups { variables: "a/k*l" truncated_normal { mean: 0.25 stddev: 0.5 } }
  groups { variables: "b/*" uniform { low: -0.125 high: 0.5 } }
  groups { variables: "d/kernel" he_uniform {} }
  groups { variables: "d/bias" normal { mean: -1 stddev: 2 } }
  groups { variables: "*/kernel" glorot_normal {} }
  groups { variables: "scores/bias" constant { value: 0.5 } }
}
data { csv {} train_files: "train.csv" eval_files: "train.csv" features {
  name: "features" columns { column: "x" separator: " " number { size: 72 } } } }
optimizer { momentum { momentum: 0.5 } clip_global_norm: 0.5 }
learning_rate { base: 0.05 }
train { batch_size: 8 epochs: 4 seed: 123456789012345 }
"""
RECORDS = 40


def setUpModule():
    if torch is None:
        raise unittest.SkipTest("no package torch")
    torch.set_num_threads(1)


class Records(torch.utils.data.Dataset if torch else object):
    def __init__(self):
        generator = torch.Generator().manual_seed(1)
        self.features = torch.randn(RECORDS, 6, 6, 2, generator=generator)
        self.labels = torch.randint(0, 3, (RECORDS,), generator=generator)

    def __len__(self):
        return RECORDS

    def __getitem__(self, index):
        return self.features[index], self.labels[index], index


class ConfigTest(RealJobTest):
    def config(self, text, name="job.textproto"):
        return self.path_of(name, text)


class FromConfigTest(ConfigTest):
    def test_every_configuration_has_a_module(self):
        for name in sorted(os.listdir(CONFIGS)):
            with self.subTest(config=name):
                kt.from_config(os.path.join(CONFIGS, name))

    def test_names_and_layouts_are_the_servers(self):
        model = kt.from_config(os.path.join(CONFIGS, "mnist_cnn_batch_norm.textproto"))
        shapes = {name: list(value.shape) for name, value in model.state_dict().items()}
        self.assertEqual(shapes["conv_1/kernel"][2], 1)
        channels = shapes["conv_1/kernel"][3]
        self.assertEqual(shapes["batch_norm_1/moving_mean"], [channels])
        self.assertNotIn("batch_norm_1/moving_mean", dict(model.named_parameters()))

    def test_images_may_have_their_channels_first(self):
        model = kt.from_config(self.config(VALUES)).eval()
        images = torch.randn(3, 6, 6, 2)
        torch.testing.assert_close(model(images.permute(0, 3, 1, 2)), model(images))
        with self.assertRaisesRegex(ValueError, r"^features: expected \[batch, 6, 6, 2\], found \[3, 6, 6, 3\]$"):
            model(torch.randn(3, 6, 6, 3))

    def test_a_norm_of_one_record(self):
        model = kt.from_config(
            self.config(
                "model { input_shape: [3] layers { batch_norm { momentum: 0.5 } } "
                "layers { dense { units: 2 } } loss { kind: SOFTMAX_CROSS_ENTROPY } }"
            )
        )
        model(torch.tensor([[1.0, 2.0, 3.0]])).sum().backward()
        self.assertEqual(model.state_dict()["batch_norm_1/moving_mean"].tolist(), [0.5, 1.0, 1.5])
        self.assertEqual(model.state_dict()["batch_norm_1/moving_variance"].tolist(), [0.5, 0.5, 0.5])

    def test_dropout_is_of_training_alone(self):
        model = kt.from_config(
            self.config(
                "model { input_shape: [50] layers { dropout { rate: 0.5 } } "
                "layers { dense { units: 2 } } loss { kind: SOFTMAX_CROSS_ENTROPY } }"
            )
        )
        x = torch.ones(4, 50)
        self.assertFalse(torch.equal(model(x), model(x)))
        model.eval()
        self.assertTrue(torch.equal(model(x), model(x)))

    def test_several_features_and_losses(self):
        model = kt.from_config(os.path.join(CONFIGS, "two_towers.textproto"))
        user, item = torch.randn(5, 8), torch.randn(5, 8)
        torch.manual_seed(1)
        outputs = model(user, item)
        torch.manual_seed(1)
        named = model({"item": item, "user": user})
        for found, expected in zip(named, outputs):
            torch.testing.assert_close(found, expected)
        labels = {"clicked": torch.randint(0, 2, (5,)), "spent": torch.randn(5)}
        self.assertEqual(model.loss(outputs, labels).shape, ())
        with self.assertRaisesRegex(ValueError, "^labels: expected clicked, spent, found none of spent$"):
            model.loss(outputs, {"clicked": labels["clicked"]})
        with self.assertRaisesRegex(ValueError, "^labels: expected a mapping with clicked, spent, found one tensor$"):
            model.loss(outputs, labels["clicked"])
        with self.assertRaisesRegex(ValueError, "^expected user, item, found 1 features$"):
            model(user)

    def test_what_are_no_ids_and_no_bags(self):
        model = kt.from_config(os.path.join(CONFIGS, "clicks_embeddings.textproto"))
        ids, weights, offsets = torch.tensor([1, 2]), torch.ones(3), torch.tensor([0, 1, 3])
        bag = (torch.tensor([1, 2, 3]), offsets, weights)
        self.assertEqual(list(model(ids, ids, bag).shape), [2, 1])
        for features, expected in (
            ((ids.float(), ids, bag), r"^user: expected ids \[batch\], found \[2\] of torch.float32$"),
            ((ids, ids, ids), r"^history: expected \(ids, offsets\), found Tensor$"),
            ((ids, ids, bag[:2]), r"^history: expected \(ids, offsets, weights\), found 2 tensors$"),
            ((ids, ids, (ids, offsets, weights)), r"^history: expected offsets \[batch \+ 1\] up to 2, found tensor"),
            ((ids, None, bag), "^item: expected a tensor, found NoneType$"),
        ):
            with self.assertRaisesRegex(ValueError, expected):
                model(*features)

    def test_tables_have_the_rows_of_a_snapshot(self):
        model = kt.from_config(os.path.join(CONFIGS, "two_towers_pairs.textproto"))
        self.assertEqual({name: table.table.dim for name, table in model.tables.items()}, {"users": 16, "items": 16})
        with self.assertRaisesRegex(
            RuntimeError, "^table users: expected a keelson.torch.Optimizer that has the model"
        ):
            model(torch.tensor([1]), torch.tensor([2]))

    def assert_refused(self, expected, text):
        path = self.config(text)
        with self.assertRaises(keelson.JoinError) as raised:
            kt.from_config(path)
        self.assertEqual(str(raised.exception), expected.replace("FILE", path))

    def test_refuses_by_name_what_it_cannot_have(self):
        loss = "loss { kind: SOFTMAX_CROSS_ENTROPY }"
        dense = "layers { dense { units: 2 } }"
        self.assert_refused("FILE: model.layers: expected at least one, found none", f"model {{ {loss} }}")
        self.assert_refused(
            f"FILE:1:33: model.layers[0]: expected one of {', '.join(LAYERS)}, found lstm",
            "model { input_shape: 3 layers { lstm {} } " + loss + " }",
        )
        self.assert_refused(
            'FILE:1:33: model.layers[0].name: expected a name without ".", which PyTorch cannot have in one, found a.b',
            "model { input_shape: 3 layers { name: 'a.b' relu {} } " + loss + " }",
        )
        self.assert_refused(
            "FILE: layer dense_1: expected inputs that are there and no cycle, found x",
            "model { input_shape: 3 layers { inputs: 'x' dense { units: 2 } } " + loss + " }",
        )
        self.assert_refused(
            "FILE: layer conv, conv2d: expected an input [height, width, channels], found [3]",
            "model { input_shape: 3 layers { name: 'conv' conv2d { filters: 2 kernel_size: 1 } } " + loss + " }",
        )
        self.assert_refused(
            "FILE: layer other, dense: one/kernel: expected [2, 4], found [3, 2]",
            "model { input_shape: 3 layers { name: 'one' dense { units: 2 } } "
            "layers { name: 'other' dense { units: 4 } variables_of: 'one' } " + loss + " }",
        )
        self.assert_refused(
            "FILE: layer embedding_1, embedding: table: expected one of model.tables, found 'users'",
            "model { features { name: 'user' id {} } layers { embedding { table: 'users' } } " + loss + " }",
        )
        self.assert_refused(
            "FILE:1:60: kind: expected one of SOFTMAX_CROSS_ENTROPY, SIGMOID_CROSS_ENTROPY, MEAN_SQUARED_ERROR, HUBER, "
            "IN_BATCH_SOFTMAX, found none",
            f"model {{ input_shape: 3 {dense} loss {{}} }}",
        )
        self.assert_refused(
            "FILE: model.loss: expected the name of a layer, found 'x'",
            f"model {{ input_shape: 3 {dense} loss {{ kind: HUBER scores: 'x' }} }}",
        )


class ConfigJobTest(ConfigTest):
    """On Keelson's own programs."""

    def setUp(self):
        super().setUp()
        self.path = self.config(VALUES)
        self.path_of("train.csv", "x,label\n" + f"{' '.join('0' * 72)},0\n" * RECORDS)
        self.given = {"config": self.path, "records": RECORDS, "model_dir": self.model_dir, "data_dir": self.directory}

    def test_a_job_is_trained_as_by_pytorch(self):
        """From the same initial values, with batch norm, momentum and a norm that is clipped."""
        model, data = kt.from_config(self.path), Records()
        own = copy.deepcopy(model)
        opt_of_own = torch.optim.SGD(own.parameters(), lr=0.05, momentum=0.5)
        steps = 0
        with keelson.join(**self.given) as job:
            opt = kt.Optimizer(job, model)
            for name, value in own.state_dict().items():
                self.assertTrue(torch.equal(model.state_dict()[name], value), name)
            for features, labels, _ in kt.Loader(job, data):
                loss = model.loss(model(features), labels)
                opt.zero_grad()
                loss.backward()
                self.assertTrue(opt.step(loss))
                own_loss = own.loss(own(features), labels)
                torch.testing.assert_close(loss, own_loss, rtol=1e-5, atol=1e-6)
                opt_of_own.zero_grad()
                own_loss.backward()
                norm = torch.cat([p.grad.flatten() for p in own.parameters()]).double().norm().item()
                for parameter in own.parameters():
                    parameter.grad *= min(1, 0.5 / norm)
                opt_of_own.step()
                steps += 1
        self.assertEqual(steps, 20)
        self.assert_same(model.state_dict(), own.state_dict())
        # The same names are in the snapshot, and those of a job that is done.
        stored = kt.from_config(self.path)
        stored.load_state_dict(kt.tensors(keelson.load_state_dict(self.model_dir)), strict=True)
        self.assert_same(stored.state_dict(), own.state_dict())
        again = kt.from_config(self.path)
        with keelson.join(**self.given) as job:
            kt.Optimizer(job, again)
            self.assertEqual(list(kt.Loader(job, data)), [])
        self.assert_same(again.state_dict(), own.state_dict())
        self.assert_nothing_runs()

    def assert_same(self, found, expected):
        self.assertEqual(list(found), list(expected))
        for name, value in expected.items():
            torch.testing.assert_close(found[name], value, rtol=1e-5, atol=1e-6, msg=lambda m, n=name: f"{n}: {m}")

    def test_gradients_may_be_sent_during_backward(self):
        with keelson.join(**self.given) as job:
            with self.assertRaisesRegex(
                keelson.JoinError,
                r"optimizer.clip_global_norm: expected 0 \(or no overlap\) where a script is a worker, found 0.5$",
            ):
                kt.Optimizer(job, kt.from_config(self.path), overlap=True)
        path = self.config(VALUES.replace(" clip_global_norm: 0.5", ""), "unclipped.textproto")
        model, data = kt.from_config(path), Records()
        own = copy.deepcopy(model)
        opt_of_own = torch.optim.SGD(own.parameters(), lr=0.05, momentum=0.5)
        with keelson.join(**{**self.given, "config": path, "model_dir": f"{self.model_dir}-unclipped"}) as job:
            opt = kt.Optimizer(job, model, overlap=True)
            for features, labels, _ in kt.Loader(job, data):
                for each, of in ((model, opt), (own, opt_of_own)):
                    loss = each.loss(each(features), labels)
                    of.zero_grad()
                    loss.backward()
                    of.step(loss) if each is model else of.step()
        self.assert_same(model.state_dict(), own.state_dict())

    def test_refuses_an_optimizer_and_other_models(self):
        model = kt.from_config(self.path)
        with keelson.join(**self.given) as job:
            with self.assertRaisesRegex(
                TypeError, "^optimizer: expected none, since the job's config has it, found Sgd"
            ):
                kt.Optimizer(job, model, keelson.Sgd(lr=0.1))
            with self.assertRaisesRegex(TypeError, 'the job\'s config has it, found where="worker"$'):
                kt.Optimizer(job, model, where="worker")
        wrong = "^model: expected keelson.torch.from_config of the job's configuration, with "
        for other, expected in (
            (torch.nn.Linear(2, 2), wrong + r"conv/kernel \[3, 3, 2, 4\], found none$"),
            (kt.from_config(self.config(VALUES.replace("units: 3", "units: 4"), "other.textproto")),
             wrong + r"scores/kernel \[5, 3\], found \[5, 4\]$"),
            (kt.from_config(self.config(VALUES.replace("layers { tanh {} }", "layers { name: 'more' batch_norm {} }"),
                                        "more.textproto")), wrong + r"more/gamma \(none\), found \[4\]$"),
        ):  # fmt: skip
            with keelson.join(**self.given) as job, self.assertRaisesRegex(keelson.JoinError, expected):
                kt.Optimizer(job, other)
        with keelson.join("own", records=RECORDS, batch_size=8, epochs=1) as job:
            with self.assertRaisesRegex(
                TypeError, "^optimizer: expected one of keelson's or of torch.optim, found none$"
            ):
                kt.Optimizer(job, model)
            with self.assertRaisesRegex(keelson.JoinError, "^parameter 'conv/kernel': expected a name without"):
                kt.Optimizer(job, model, keelson.Sgd(lr=0.1))


DIGITS = """
model {
  name: "digits"
  input_shape: [8, 8, 1]
  layers { name: "conv" conv2d { filters: 8 kernel_size: 3 padding: SAME no_bias: true } }
  layers { batch_norm { momentum: 0.9 } }
  layers { relu {} }
  layers { max_pool { size: 2 } }
  layers { flatten {} }
  layers { dropout { rate: 0.1 } }
  layers { name: "scores" dense { units: 4 } }
  loss { kind: SOFTMAX_CROSS_ENTROPY }
}
optimizer { momentum {} }
learning_rate { base: 0.02 }
train { batch_size: 16 epochs: 4 seed: 1 }
"""

MIXED = """
import json, os, time
import torch
import keelson
import keelson.torch as kt
torch.set_num_threads(1)
def others_work():
    if not os.path.exists(STATUS):
        return False
    with open(STATUS, encoding="utf-8") as file:
        return json.load(file).get("step", 0) > 0
data, steps = kt.IdxDataset(DATA_DIR), 0
model = kt.from_config(CONFIG)
with keelson.join(config=CONFIG, records=len(data), model_dir=MODEL_DIR) as job:
    opt = kt.Optimizer(job, model)
    for images, labels in kt.Loader(job, data):
        if steps == 0:
            print("first", flush=True)
        while steps == 0 and not others_work():
            time.sleep(0.01)
        loss = model.loss(model(images), labels)
        opt.zero_grad()
        loss.backward()
        steps += opt.step(loss)
print(steps, job.max_steps)
"""


class MixedDigitsTest(ConfigTest):
    """A C++ worker and a script learn digits together, from the same files."""

    def setUp(self):
        super().setUp()
        self.needs("worker")
        self.data_dir = os.path.join(self.directory, "data")
        os.mkdir(self.data_dir)
        for split, count in (("train", 1600), ("t10k", 160)):
            self.write_digits(split, count)

    def write_digits(self, split, count):
        """A bright quarter, which is the class."""
        generator = torch.Generator().manual_seed(count)
        labels = torch.randint(0, 4, (count,), generator=generator)
        images = torch.randint(0, 120, (count, 8, 8), generator=generator)
        for image, label in zip(images, labels.tolist()):
            image[label // 2 * 4 :][:4, label % 2 * 4 :][:, :4] += 60
        for name, dims, values in (("images-idx3", (count, 8, 8), images), ("labels-idx1", (count,), labels)):
            with open(os.path.join(self.data_dir, f"{split}-{name}-ubyte"), "wb") as file:
                file.write(struct.pack(f">4B{len(dims)}I", 0, 0, 8, len(dims), *dims))
                file.write(bytes(values.flatten().tolist()))

    def test_both_take_part_and_the_model_learns(self):
        config = self.config(DIGITS)
        constants = {"CONFIG": config, "DATA_DIR": self.data_dir, "MODEL_DIR": self.model_dir,
                     "STATUS": os.path.join(self.model_dir, "status.json")}  # fmt: skip
        script = self.write("train.py", "".join(f"{name} = {value!r}\n" for name, value in constants.items()) + MIXED)
        with ScriptCluster(self, script, 1, config=config, data_dir=self.data_dir, workers=1) as cluster:
            cluster.await_line(0, "first")
            cluster.start("worker", 1)
            codes = [cluster.wait(*task) for task in (("worker", 0), ("worker", 1), ("chief",), ("ps",))]
            self.assertEqual(codes, [0, 0, 0, 0], cluster.logs())
            steps, max_steps = map(int, cluster.lines()[-1].split())
        self.assertEqual(max_steps, 400)
        self.assertGreater(steps, 0)
        self.assertLess(steps, max_steps)
        model = kt.from_config(config).eval()
        model.load_state_dict(kt.tensors(keelson.load_state_dict(self.model_dir)), strict=True)
        data = kt.IdxDataset(self.data_dir, "t10k")
        images, labels = torch.stack([data[n][0] for n in range(160)]), torch.tensor([data[n][1] for n in range(160)])
        with torch.no_grad():
            accuracy = (model(images).argmax(1) == labels).float().mean().item()
        self.assertGreater(accuracy, 0.9)
        self.assert_evaluators_agree(config, data)

    def assert_evaluators_agree(self, config, data):
        """On the last snapshot, the C++ evaluator with the layers and a script with their modules."""
        self.needs("evaluator")
        flags = [f"--config={config}", f"--model_dir={self.model_dir}", f"--data_dir={self.data_dir}", "--directory_only"]
        subprocess.run([os.path.join(BINARIES, "evaluator"), *flags], check=True, capture_output=True, timeout=DEADLINE_SECONDS)
        theirs = self.take_evaluations()
        own = kt.Evaluator(self.model_dir, kt.from_config(config), data, lambda model, batch: (model(batch[0]), batch[1]),
                           classes=4, page=None)  # fmt: skip
        own.run()
        self.assertEqual([metrics["step"] for metrics, _ in theirs], [0, 400])
        self.assert_alike(self.take_evaluations(), theirs)

    def take_evaluations(self):
        """The metrics and the report of each snapshot, whose places are free then."""
        folder, found = os.path.join(self.model_dir, "eval"), []
        with open(os.path.join(folder, "metrics.jsonl"), encoding="utf-8") as file:
            for metrics in map(json.loads, file):
                with open(os.path.join(folder, "reports", f"{metrics['step']}.json"), encoding="utf-8") as report:
                    found.append([metrics, json.load(report)])
        shutil.rmtree(folder)
        return found

    def assert_alike(self, found, expected, where="evaluations"):
        """But for when it was, and the images that the report of a model of layers has."""
        if isinstance(expected, dict):
            self.assertEqual(set(found), set(expected) - {"input"}, where)
            for name in set(found) - {"wall_time", "time", "seconds"}:
                self.assert_alike(found[name], expected[name], f"{where}.{name}")
        elif isinstance(expected, list):
            self.assertEqual(len(found), len(expected), where)
            for n, one in enumerate(expected):
                self.assert_alike(found[n], one, f"{where}[{n}]")
        elif isinstance(expected, float):
            self.assertAlmostEqual(found, expected, delta=1e-6 * max(1, abs(expected)), msg=where)
        else:
            self.assertEqual(found, expected, where)


# Of each record a row in either table counts it, as in mixed_job_test.py.
COUNTS = mixed_job_test.CONFIG.replace(
    f"""  features {{ name: "record" id {{}} }}
  layers {{ name: "count" embedding {{ rows: {mixed_job_test.RECORDS} dim: 1 }} }}
""",
    """  features { name: "record" id {} }
  features { name: "records" bag {} }
  tables { name: "by_id" dim: 1 }
  tables { name: "by_bag" dim: 1 }
  layers { name: "id" inputs: "record" embedding { table: "by_id" } }
  layers { name: "bag" inputs: "records" embedding_bag { table: "by_bag" } }
  layers { add {} inputs: "id" inputs: "bag" }
""",
).replace("data {", 'data {\n  features { name: "records" columns { column: "record" integer {} } }')

COUNTING = """
import json, os, time
import torch
import keelson
import keelson.torch as kt
torch.set_num_threads(1)
def others_work():
    if not os.path.exists(STATUS):
        return False
    with open(STATUS, encoding="utf-8") as file:
        return json.load(file).get("step", 0) > 0
data, steps = torch.arange(RECORDS), 0
model = kt.from_config(CONFIG)
def wanted(ids):
    return {model.tables["by_id"]: ids, model.tables["by_bag"]: ids}
with keelson.join(config=CONFIG, records=RECORDS, model_dir=MODEL_DIR) as job:
    opt = kt.Optimizer(job, model)
    for ids in kt.Loader(job, data, prefetch=wanted):
        if steps == 0:
            print("first", flush=True)
        while steps == 0 and not others_work():
            time.sleep(0.01)
        bag = (ids, torch.arange(len(ids) + 1))
        loss = model.loss(model(ids, bag), torch.full([len(ids)], 1e9))
        opt.zero_grad()
        loss.backward()
        steps += opt.step(loss)
print(steps, job.max_steps)
"""


class MixedTablesTest(ConfigTest):
    def test_each_record_counts_once_in_each_epoch_in_its_rows(self):
        self.needs("worker")
        records, epochs = mixed_job_test.RECORDS, mixed_job_test.EPOCHS
        config = self.config(COUNTS)
        self.path_of("train.csv", "record,label\n" + "".join(f"{n},1e9\n" for n in range(records)))
        constants = {"CONFIG": config, "RECORDS": records, "MODEL_DIR": self.model_dir,
                     "STATUS": os.path.join(self.model_dir, "status.json")}  # fmt: skip
        text = "".join(f"{name} = {value!r}\n" for name, value in constants.items()) + COUNTING
        given = {"config": config, "data_dir": self.directory, "workers": 1}
        with ScriptCluster(self, self.write("train.py", text), 1, **given) as cluster:
            cluster.await_line(0, "first")
            cluster.start("worker", 1)
            codes = [cluster.wait(*task) for task in (("worker", 0), ("worker", 1), ("chief",), ("ps",))]
            self.assertEqual(codes, [0, 0, 0, 0], cluster.logs())
            steps, max_steps = map(int, cluster.lines()[-1].split())
        self.assertGreater(steps, 0)
        self.assertLess(steps, max_steps)
        state = keelson.load_state_dict(self.model_dir)
        for name in ("by_id", "by_bag"):
            values = kt.from_config(config).tables[name]
            values.load_rows(state.tables[name])
            ids = torch.arange(records)
            found = values(ids) if name == "by_id" else values(ids, torch.arange(records))
            self.assertEqual({round(value, 3) for value in found.flatten().tolist()}, {epochs}, name)


if __name__ == "__main__":
    unittest.main()
