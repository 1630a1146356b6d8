"""Compares values and gradients of every layer and every loss with PyTorch's of the same numbers, and with those of
keelson.torch.from_config.

Keelson computes in float32 on the CPU device, PyTorch in double. Skipped where Python has no PyTorch;
tests/interop/run.sh makes an environment that has it. Needs model_values, which is built with the tests, beside the
programs of $KEELSON_BINARY_DIR or build/release/bin.
"""

import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import unittest
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import programs

TIMEOUT_SECONDS = 60
HAS_TORCH = all(importlib.util.find_spec(name) is not None for name in ("torch", "numpy"))

if HAS_TORCH:
    import numpy as np
    import torch
    from torch_graph import BATCH, Graph

    sys.path.insert(0, f"{programs.REPOSITORY}/python")
    import keelson.torch as kt

# Of the greatest difference in an array to its greatest value. Rounding to float32 is 6e-8; single layers and losses,
# sums of up to a hundred products of both signs, stay below 1e-6. The gradient of what a batch norm takes away again,
# such as a constant, is a small difference of large terms: 3e-6.
TOLERANCE = 1e-5

# (kind, fields, shapes of the inputs); what needs more has a test of its own.
LAYERS: Sequence[Tuple[str, Dict[str, Any], Sequence[Sequence[int]]]] = (
    ("dense", {"units": 3}, [(5,)]),
    ("dense", {"units": 4, "no_bias": True}, [(7,)]),
    ("conv2d", {"filters": 4, "kernel_size": 3}, [(6, 5, 3)]),
    ("conv2d", {"filters": 2, "kernel_size": 3, "padding": "SAME", "no_bias": True}, [(4, 5, 2)]),
    ("conv2d", {"filters": 3, "kernel_size": 5, "stride": 2, "padding": "SAME"}, [(7, 6, 3)]),
    ("conv2d", {"filters": 2, "kernel_size": 2, "padding": "SAME"}, [(4, 3, 1)]),
    ("max_pool", {"size": 2}, [(4, 6, 3)]),
    ("max_pool", {"size": 3, "stride": 1}, [(5, 4, 2)]),
    ("max_pool", {"size": 3, "stride": 2, "padding": "SAME"}, [(5, 6, 2)]),
    ("avg_pool", {"size": 2}, [(4, 6, 3)]),
    ("avg_pool", {"size": 3, "stride": 1, "padding": "SAME"}, [(5, 4, 2)]),
    ("avg_pool", {"size": 3, "stride": 2, "padding": "SAME"}, [(5, 6, 2)]),
    ("flatten", {}, [(2, 3, 4)]),
    ("relu", {}, [(40,)]),
    ("tanh", {}, [(40,)]),
    ("sigmoid", {}, [(40,)]),
    ("gelu", {}, [(40,)]),
    ("silu", {}, [(40,)]),
    ("softmax", {}, [(9,)]),
    ("softmax", {}, [(4, 5)]),
    ("batch_norm", {}, [(5,)]),
    ("batch_norm", {"epsilon": 0.1}, [(3, 4, 2)]),
    ("batch_norm", {"no_scale": True}, [(5,)]),
    ("batch_norm", {"no_center": True}, [(3, 2, 3)]),
    ("layer_norm", {}, [(9,)]),
    ("layer_norm", {"epsilon": 0.1}, [(4, 5)]),
    ("layer_norm", {"no_scale": True}, [(3, 2, 4)]),
    ("layer_norm", {"no_center": True}, [(7,)]),
    ("add", {}, [(5,), (5,)]),
    ("add", {}, [(3, 4), (3, 4), (3, 4)]),
    ("multiply", {}, [(3, 4), (3, 4)]),
    ("concat", {}, [(3,), (1,), (4,)]),
    ("concat", {}, [(2, 3, 1), (2, 3, 4)]),
    ("slice", {"begin": 2, "size": 3}, [(7,)]),
    ("slice", {"begin": 1, "size": 2}, [(2, 3, 4)]),
    ("scale", {"factor": -0.75}, [(5,)]),
    ("global_average_pool", {}, [(3, 4, 5)]),
    ("global_average_pool", {}, [(6, 5)]),
    ("reshape", {"shape": (4, -1)}, [(2, 3, 4)]),
    ("transpose", {"axes": (2, 0, 1)}, [(2, 3, 4)]),
    ("transpose", {"axes": (1, 0)}, [(3, 4)]),
    ("cross", {}, [(5,), (5,)]),
    ("cross", {"rank": 3}, [(6,), (6,)]),
    ("cross", {"rank": 2, "no_bias": True}, [(4,), (4,)]),
    ("dot", {}, [(5,), (5,)]),
    ("cosine", {}, [(5,), (5,)]),
    ("cosine", {"epsilon": 0.1}, [(3,), (3,)]),
    ("factorization_machine", {}, [(4,), (4,)]),
    ("factorization_machine", {}, [(3,), (3,), (3,), (3,)]),
    ("dot_interaction", {}, [(4,), (4,), (4,)]),
    ("dot_interaction", {"diagonal": True}, [(5,), (5,), (5,), (5,)]),
)
# Where their functions are not nearly linear.
WIDE = ("relu", "tanh", "sigmoid", "gelu", "silu")

# (kind, fields); each without and with weights of the records.
LOSSES: Sequence[Tuple[str, Dict[str, Any]]] = (
    ("SOFTMAX_CROSS_ENTROPY", {}),
    ("SIGMOID_CROSS_ENTROPY", {}),
    ("MEAN_SQUARED_ERROR", {}),
    ("HUBER", {}),
    ("HUBER", {"delta": 0.5}),
    ("IN_BATCH_SOFTMAX", {}),
    ("IN_BATCH_SOFTMAX", {"temperature": 0.25}),
    ("IN_BATCH_SOFTMAX", {"temperature": 0.5, "log_probability_label": "log_probability"}),
)


def tearDownModule() -> None:
    if Comparison.errors:
        models = {model for _, model, _ in Comparison.errors}
        error, model, array = max(Comparison.errors)
        print(f"PyTorch {torch.__version__}: {len(models)} models, {len(Comparison.errors)} arrays; ", end="")
        print(f"the greatest relative error is {error:.1e}, of {array} in {model}")


def program_path() -> str:
    return os.path.join(os.path.dirname(programs.BINARIES), "tests", "model_values")


def run_keelson(graph: "Graph") -> Dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        model, given, found = (os.path.join(folder, name) for name in ("model.textproto", "in.npz", "out.npz"))
        with open(model, "w", encoding="utf-8") as file:
            file.write(graph.config())
        np.savez(given, **graph.arrays)
        command = [program_path(), model, given, found]
        result = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False)
        if result.returncode != 0:
            raise AssertionError(f"{graph.name}: {result.stderr}\n{graph.config()}")
        with np.load(found) as arrays:
            return {name: arrays[name] for name in arrays}


def add_ends(graph: "Graph", layer: str) -> None:
    """Losses of the layer's output: its values become the scores, and each element has a gradient of its own."""
    size = graph.value_of(layer)[0].numel()
    y = graph.layer("flatten", layer, name="y")
    if size == 1:
        graph.loss("MEAN_SQUARED_ERROR", y, label=graph.label("target", graph.uniform((BATCH,))))
        return
    graph.loss("SOFTMAX_CROSS_ENTROPY", y, label=graph.label("class", graph.below(size)))
    score = graph.layer("dot", y, graph.numbers("direction", (size,)))
    graph.loss("MEAN_SQUARED_ERROR", score, label=graph.label("target", graph.uniform((BATCH,))))


def layer_graph(kind: str, fields: Dict[str, Any], shapes: Sequence[Sequence[int]]) -> "Graph":
    graph = Graph(f"{kind} {fields} of {shapes}")
    scale = 4 if kind in WIDE else 1
    inputs = [graph.trained_input(f"x{i}", shape, scale) for i, shape in enumerate(shapes)]
    add_ends(graph, graph.layer(kind, *inputs, name="layer", **fields))
    return graph


def loss_graph(kind: str, fields: Dict[str, Any], weighted: bool) -> "Graph":
    graph = Graph(f"{kind} {fields}{' weighted' if weighted else ''}")
    fields = {"label": "label", **fields}
    if weighted:
        fields["weight_label"] = graph.label("trust", graph.uniform((BATCH,), 0, 2) * (graph.below(4) > 0))
    if kind == "IN_BATCH_SOFTMAX":
        inputs = [graph.trained_input(name, (4,), 2) for name in ("query", "item")]
        if "log_probability_label" in fields:
            graph.label("log_probability", graph.uniform((BATCH,), -5, 0))
    elif kind == "SOFTMAX_CROSS_ENTROPY":
        inputs = [graph.trained_input("scores", (5,), 4)]
        graph.label("label", graph.below(5))
    else:
        inputs = [graph.trained_input("scores", (1,), 2)]
        binary = kind == "SIGMOID_CROSS_ENTROPY"
        graph.label("label", graph.below(2) if binary else graph.uniform((BATCH,)))
    graph.loss(kind, *inputs, **fields)
    return graph


def module_of(graph: "Graph") -> Any:
    """keelson.torch.from_config's, in doubles, with the graph's variables."""
    with tempfile.NamedTemporaryFile("w", suffix=".textproto") as file:
        file.write(f"model {{ {graph.config()} }}")
        file.flush()
        module = kt.from_config(file.name).double()
    variables = {name.split("/", 1)[1]: v for name, v in graph.tensors.items() if name.startswith("variables/")}
    module.load_state_dict({name: variable.detach() for name, variable in variables.items()}, strict=True)
    for norm in module.modules():
        if hasattr(norm, "momentum"):
            norm.momentum = 1.0  # The averages are the batch's sample then.
    return module


def outcome_of_module(graph: "Graph", is_trained: bool) -> Dict[str, Any]:
    features: Dict[str, Any] = {}
    for name, values in graph.tensors.items():
        kind, feature, *part = name.split("/")
        if kind == "features" and not part:
            bag = [graph.tensors.get(f"{name}/{more}") for more in ("offsets", "weights")]
            features[feature] = values if bag[0] is None else (values, *(more for more in bag if more is not None))
    labels = {name.split("/")[1]: values for name, values in graph.tensors.items() if name.startswith("labels/")}
    module = module_of(graph)
    with torch.no_grad():
        scores = module.eval()(features)
    main = graph.losses[0]
    scores = scores[0] if len(graph.losses) > 1 else scores
    if main.kind == "IN_BATCH_SOFTMAX":
        scores = (scores[0] * scores[1]).sum(1, keepdim=True) / main.fields.get("temperature", 1)
    if not is_trained:
        return {"scores": scores}
    loss = module.loss(module.train()(features), labels)
    loss.backward()
    gradients = {f"gradients/{name}": parameter.grad for name, parameter in module.named_parameters()}
    samples = {f"gradients/{name}": buffer for name, buffer in module.named_buffers()}
    return {"loss": loss, "scores": scores, **gradients, **samples}


class Comparison(unittest.TestCase):
    errors: List[Tuple[float, str, str]] = []  # of all tests, each with its model and array

    def compare(self, graph: "Graph", masks_of: Optional[Callable[[Dict[str, Any]], Dict[str, Any]]] = None) -> None:
        """`masks_of`: the elements that each dropout layer left, from what Keelson computed."""
        with torch.no_grad():
            scores = graph.evaluate(None).scores
        found = run_keelson(graph)
        outcome = graph.evaluate(masks_of(found) if masks_of else {})
        outcome.loss.backward()
        expected = {"loss": outcome.loss, "scores": scores}
        for name, variable in graph.tensors.items():
            if name.startswith("variables/"):
                name = name.split("/", 1)[1]
                expected[f"gradients/{name}"] = outcome.samples.get(name, variable.grad)
        self.assert_close(graph, found, expected)
        self.assert_close(graph, found, outcome_of_module(graph, is_trained=masks_of is None), "from_config: ")

    def assert_close(self, graph: "Graph", found: Dict[str, Any], expected: Dict[str, Any], who: str = "") -> None:
        if "loss" in expected:
            self.assertEqual(sorted(found), sorted(expected), who + graph.name)
        for name, tensor in expected.items():
            with self.subTest(model=graph.name, array=who + name):
                error = self.error_of(found[name], tensor.detach().numpy())
                self.errors.append((error, graph.name, who + name))
                self.assertLess(error, TOLERANCE, f"\nfound    {found[name]}\nexpected {tensor}")

    def error_of(self, found: Any, expected: Any) -> float:
        self.assertEqual(found.shape, expected.shape)
        self.assertGreater(np.abs(expected).max(), 0, "there is nothing to compare")
        return float(np.abs(found - expected).max() / np.abs(expected).max())


@unittest.skipUnless(HAS_TORCH, "needs PyTorch and numpy: see tests/interop/run.sh")
class LayersTest(Comparison):
    def test_each_kind(self) -> None:
        for kind, fields, shapes in LAYERS:
            self.compare(layer_graph(kind, fields, shapes))

    def test_relu_has_no_gradient_at_zero(self) -> None:
        graph = Graph("relu at zero")
        x = graph.trained_input("x", (6,))
        graph.arrays["variables/x/embeddings"][:, ::2] = 0
        graph.tensors["variables/x/embeddings"].data[:, ::2] = 0
        add_ends(graph, graph.layer("relu", x))
        self.compare(graph)

    def test_dropout(self) -> None:
        """What it leaves is its own choice, which the input's gradient shows."""
        graph = Graph("dropout")
        x = graph.trained_input("x", (100,))
        add_ends(graph, graph.layer("dropout", x, name="dropout", rate=0.25))
        shares = []

        def masks_of(found: Dict[str, Any]) -> Dict[str, Any]:
            mask = torch.tensor(found["gradients/x/embeddings"] != 0)[graph.tensors["features/row"]]
            shares.append(mask.double().mean().item())
            return {"dropout": mask}

        self.compare(graph, masks_of)
        # 600 choices: five standard deviations.
        self.assertAlmostEqual(shares[0], 0.75, delta=0.09)

    def test_embedding_of_ids_that_come_again(self) -> None:
        graph = Graph("embedding")
        ids = graph.ids("user", np.array([4, 0, 4, 6, 0, 4]))
        add_ends(graph, graph.layer("embedding", ids, rows=7, dim=3))
        self.compare(graph)

    def test_bags(self) -> None:
        for combiner in ("SUM", "MEAN", "SQRTN"):
            for weighted in (False, True):
                graph = Graph(f"embedding_bag {combiner}{' weighted' if weighted else ''}")
                bag = graph.bag("tags", 7, weighted)
                add_ends(graph, graph.layer("embedding_bag", bag, rows=7, dim=3, combiner=combiner))
                self.compare(graph)

    def test_every_kind_is_compared(self) -> None:
        reference = programs.run("keelson_ctl", "explain", "--layers")
        compared = {kind for kind, _, _ in LAYERS} | {"dropout", "embedding", "embedding_bag"}
        self.assertEqual(set(re.findall(r"^\| \[(\w+)\]", reference, re.MULTILINE)), compared)


@unittest.skipUnless(HAS_TORCH, "needs PyTorch and numpy: see tests/interop/run.sh")
class LossesTest(Comparison):
    def test_each_kind(self) -> None:
        for kind, fields in LOSSES:
            for weighted in (False, True):
                self.compare(loss_graph(kind, fields, weighted))

    def test_far_from_zero(self) -> None:
        """Where exponentials of the scores are no floats."""
        for kind, outputs in (("SOFTMAX_CROSS_ENTROPY", 5), ("SIGMOID_CROSS_ENTROPY", 1)):
            graph = Graph(f"{kind} far from zero")
            scores = graph.trained_input("scores", (outputs,), 500)
            graph.loss(kind, scores, label=graph.label("label", graph.below(max(2, outputs))))
            self.compare(graph)

    def test_every_kind_is_compared(self) -> None:
        reference = programs.run("keelson_ctl", "explain", "model.loss.kind")
        self.assertEqual(set(re.findall(r"^  ([A-Z_]+):", reference, re.MULTILINE)), {kind for kind, _ in LOSSES})


@unittest.skipUnless(HAS_TORCH, "needs PyTorch and numpy: see tests/interop/run.sh")
class GraphsTest(Comparison):
    """Layers that several others take, variables that several layers have, and several losses."""

    def test_one_layer_is_the_input_of_many(self) -> None:
        graph = Graph("one input of many layers")
        x = graph.layer("tanh", graph.trained_input("x", (5,)))
        square = graph.layer("multiply", x, x)
        three = graph.layer("add", x, square, x)
        add_ends(graph, graph.layer("concat", three, x, square, graph.layer("dot", x, three)))
        self.compare(graph)

    def test_layers_share_variables(self) -> None:
        graph = Graph("shared variables")
        towers = []
        for name, of in (("left", ""), ("right", "left")):
            x = graph.trained_input(f"x_{name}", (4,))
            towers.append(graph.layer("dense", x, name=name, variables_of=of, units=3))
        item = graph.layer("embedding", graph.ids("shown", graph.below(7)), name="item", rows=7, dim=3)
        bag = graph.bag("seen", 7, True)
        seen = graph.layer("embedding_bag", bag, variables_of="item", rows=7, dim=3, combiner="MEAN")
        add_ends(graph, graph.layer("dot_interaction", *towers, item, seen, diagonal=True))
        self.compare(graph)

    def test_convolutions_share_variables(self) -> None:
        graph = Graph("shared convolution")
        x = graph.trained_input("x", (4, 5, 2))
        for of in ("", "conv"):
            name = "again" if of else "conv"
            x = graph.layer("conv2d", x, name=name, variables_of=of, filters=2, kernel_size=3, padding="SAME")
        add_ends(graph, x)
        self.compare(graph)

    def test_residual_block_with_batch_norm(self) -> None:
        graph = Graph("residual block")
        x = graph.trained_input("x", (5, 4, 3))
        y = x
        for _ in range(2):
            y = graph.layer("conv2d", y, filters=3, kernel_size=3, padding="SAME", no_bias=True)
            y = graph.layer("batch_norm", y)
            y = graph.layer("silu", y)
        pooled = graph.layer("global_average_pool", graph.layer("add", x, y))
        add_ends(graph, graph.layer("dense", pooled, units=4))
        self.compare(graph)

    def test_cross_network(self) -> None:
        graph = Graph("cross network")
        x0 = graph.trained_input("x", (6,))
        x = graph.layer("cross", x0, x0)
        x = graph.layer("cross", x0, x, rank=2)
        add_ends(graph, graph.layer("layer_norm", x))
        self.compare(graph)

    def test_two_towers_with_two_losses(self) -> None:
        graph = Graph("two towers")
        trust = graph.label("trust", graph.uniform((BATCH,), 0, 2))
        user = graph.layer("embedding", graph.ids("user", graph.below(4)), rows=4, dim=5)
        history = graph.layer("embedding_bag", graph.bag("history", 9, False), rows=9, dim=5, combiner="SQRTN")
        query = graph.layer("dense", graph.layer("concat", user, history), units=4)
        item = graph.layer("gelu", graph.trained_input("item", (4,)))
        graph.label("log_probability", graph.uniform((BATCH,), -5, 0))
        of_batch = {"temperature": 0.5, "log_probability_label": "log_probability", "weight_label": trust}
        graph.loss("IN_BATCH_SOFTMAX", query, item, label="found", **of_batch)
        price = graph.label("price", graph.uniform((BATCH,), -2, 2))
        nearness = graph.layer("cosine", query, item)
        graph.loss("HUBER", nearness, label=price, weight=0.25, delta=0.5, weight_label=trust)
        clicked = graph.label("clicked", graph.below(2))
        graph.loss("SIGMOID_CROSS_ENTROPY", graph.layer("dot", query, item), label=clicked, weight=2.0)
        self.compare(graph)


if __name__ == "__main__":
    unittest.main()
