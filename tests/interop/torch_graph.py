"""Models as graphs that are written once, for Keelson and for PyTorch: a configuration, and the same in doubles.

A graph draws the numbers of its features, labels and variables, in float32. Both sides compute from those.
"""

import sys
import zlib
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np
import programs
import torch
from torch.nn import functional

sys.path.insert(0, f"{programs.REPOSITORY}/bench")

import torch_layers

BATCH = 6
Tensor = Any  # PyTorch's own types are not needed to check ours.
Fields = Dict[str, Any]

# Fields that say which variables there are; the others are arguments of torch_layers' functions.
OF_VARIABLES = ("units", "filters", "kernel_size", "no_bias", "no_scale", "no_center", "rank", "rows", "dim")
# Take [height, width, channels], which PyTorch has as [channels, height, width].
OF_IMAGES = ("conv2d", "max_pool", "avg_pool", "batch_norm", "global_average_pool")


class Layer(NamedTuple):
    name: str
    kind: str
    inputs: Tuple[str, ...]
    fields: Fields
    variables_of: str  # the layer's own name, or another's


class Loss(NamedTuple):
    kind: str
    inputs: Tuple[str, ...]
    fields: Fields


class Outcome(NamedTuple):
    loss: Tensor
    scores: Tensor
    # Mean and unbiased variance of the batch, by the names of the variables that are not trained.
    samples: Dict[str, Tensor]


def text_of(fields: Fields) -> str:
    """Those of a message. Words in capitals are enumerators, other strings are names."""
    parts = []
    for name, value in fields.items():
        if isinstance(value, str) and not value.isupper():
            value = f'"{value}"'
        elif isinstance(value, bool):
            value = str(value).lower()
        elif isinstance(value, tuple):
            value = list(value)
        parts.append(f"{name}: {value}")
    return " ".join(parts)


def to_channels_first(x: Tensor) -> Tensor:
    """Of images, and of [positions, channels] as images one position wide."""
    return x.permute(0, 3, 1, 2) if x.dim() == 4 else x.permute(0, 2, 1).unsqueeze(3)


def in_torch_layout(kind: str, part: str, value: Tensor) -> Tensor:
    if not part.endswith("kernel"):
        return value
    return value.permute(3, 2, 0, 1) if kind == "conv2d" else value.t()


class Graph:
    def __init__(self, name: str) -> None:
        self.name = name
        self.layers: List[Layer] = []
        self.losses: List[Loss] = []
        # What model_values reads, and the same in doubles.
        self.arrays: Dict[str, Any] = {}
        self.tensors: Dict[str, Tensor] = {}
        self._features: List[str] = []
        self._random = np.random.default_rng(zlib.crc32(name.encode()))

    def uniform(self, shape: Sequence[int], low: float = -1, high: float = 1) -> Any:
        return self._random.uniform(low, high, shape).astype(np.float32)

    def below(self, bound: int, count: int = BATCH) -> Any:
        return self._random.integers(0, bound, count)

    def _add(self, name: str, values: Any) -> None:
        whole = values.dtype == np.int64
        self.arrays[name] = values
        self.tensors[name] = torch.tensor(values, dtype=torch.int64 if whole else torch.float64)

    def numbers(self, name: str, shape: Sequence[int]) -> str:
        self._features.append(f'features {{ name: "{name}" dense {{ shape: {list(shape)} }} }}')
        self._add(f"features/{name}", self.uniform((BATCH, *shape)))
        return name

    def ids(self, name: str, values: Any) -> str:
        self._features.append(f'features {{ name: "{name}" id {{}} }}')
        self._add(f"features/{name}", values)
        return name

    def bag(self, name: str, rows: int, weighted: bool) -> str:
        """Bags of none up to five ids, one of them twice; of those with weights one has the weight 0 alone."""
        sizes = np.array([3, 0, 5, 1, 2, 4])
        ids = self.below(rows, int(sizes.sum()))
        ids[4] = ids[3]
        self._features.append(f'features {{ name: "{name}" bag {{ weighted: {str(weighted).lower()} }} }}')
        self._add(f"features/{name}", ids)
        self._add(f"features/{name}/offsets", np.concatenate([[0], sizes.cumsum()]))
        if weighted:
            weights = self.uniform(ids.shape, 0.5, 1.5)
            weights[5], weights[8] = -0.75, 0
            self._add(f"features/{name}/weights", weights)
        return name

    def label(self, name: str, values: Any) -> str:
        self._add(f"labels/{name}", values.astype(np.float32))
        return name

    def layer(self, kind: str, *inputs: str, name: str = "", variables_of: str = "", **fields: Any) -> str:
        name = name or f"{kind}_{len(self.layers)}"
        self.layers.append(Layer(name, kind, inputs, fields, variables_of or name))
        return name

    def trained_input(self, name: str, shape: Sequence[int], scale: float = 1) -> str:
        """A variable's row for each record, so that the gradient of the variable is the input's."""
        if "features/row" not in self.arrays:
            self.ids("row", self._random.permutation(BATCH))
        size = int(np.prod(shape))
        self._add_variable(f"{name}/embeddings", self.uniform((BATCH, size), -scale, scale))
        rows = self.layer("embedding", "row", name=name, rows=BATCH, dim=size)
        return rows if len(shape) == 1 else self.layer("reshape", rows, shape=tuple(shape))

    def loss(self, kind: str, *inputs: str, **fields: Any) -> None:
        self.losses.append(Loss(kind, inputs, fields))

    def config(self) -> str:
        lines = list(self._features)
        for layer in self.layers:
            of = {"variables_of": layer.variables_of} if layer.variables_of != layer.name else {}
            inputs = " ".join(f'inputs: "{name}"' for name in layer.inputs)
            common = text_of({"name": layer.name, **of})
            lines.append(f"layers {{ {common} {inputs} {layer.kind} {{ {text_of(layer.fields)} }} }}")
        for loss in self.losses:
            names = ("queries", "items") if loss.kind == "IN_BATCH_SOFTMAX" else ("scores",)
            lines.append(f"losses {{ {text_of({'kind': loss.kind, **dict(zip(names, loss.inputs)), **loss.fields})} }}")
        return "\n".join(lines)

    def value_of(self, name: str) -> Tensor:
        """Of a layer, without training; draws the variables up to it."""
        return self._values({}, None, {})[name]

    def evaluate(self, masks: Optional[Dict[str, Tensor]]) -> Outcome:
        """In training `masks` has the elements that each dropout layer leaves; without training it is None."""
        samples: Dict[str, Tensor] = {}
        values = self._values({}, masks, samples)
        losses = [self._mean_loss(loss, values) for loss in self.losses]
        main = self.losses[0]
        scores = values[main.inputs[0]]
        if main.kind == "IN_BATCH_SOFTMAX":
            items = values[main.inputs[1]]
            scores = (scores * items).sum(1, keepdim=True) / main.fields.get("temperature", 1)
        return Outcome(sum(losses[1:], losses[0]), scores, samples)

    def _values(
        self, values: Dict[str, Tensor], masks: Optional[Dict[str, Tensor]], samples: Dict[str, Tensor]
    ) -> Dict[str, Tensor]:
        for layer in self.layers:
            xs = [values[name] if name in values else self.tensors[f"features/{name}"] for name in layer.inputs]
            values[layer.name] = self._output(layer, xs, masks, samples)
        return values

    def _output(
        self, layer: Layer, xs: List[Tensor], masks: Optional[Dict[str, Tensor]], samples: Dict[str, Tensor]
    ) -> Tensor:
        if layer.kind == "dropout":
            return xs[0] if masks is None else xs[0] * masks[layer.name] / (1 - layer.fields["rate"])
        variables = self._variables_of(layer, xs)
        fields = {name: value for name, value in layer.fields.items() if name not in OF_VARIABLES}
        if layer.kind == "embedding_bag":
            bag = f"features/{layer.inputs[0]}"
            fields.update(offsets=self.tensors[f"{bag}/offsets"], weights=self.tensors.get(f"{bag}/weights"))
        images = layer.kind in OF_IMAGES and xs[0].dim() > 2
        if images:
            xs = [to_channels_first(x) for x in xs]
        if layer.kind == "batch_norm":
            fields["training"] = masks is not None
            rows = xs[0].transpose(0, 1).flatten(1)
            samples[f"{layer.name}/moving_mean"] = rows.mean(1)
            samples[f"{layer.name}/moving_variance"] = rows.var(1, unbiased=True)
        y = torch_layers.LAYERS[layer.kind](xs, variables, **fields)
        return y.permute(0, 2, 3, 1) if images and y.dim() == 4 else y

    def _variables_of(self, layer: Layer, xs: List[Tensor]) -> Dict[str, Tensor]:
        variables = {}
        for part, shape in self._variable_shapes(layer, xs).items():
            name = f"{layer.variables_of}/{part}"
            if f"variables/{name}" not in self.tensors:
                low = 0.5 if part == "moving_variance" else -1
                self._add_variable(name, self.uniform(shape, low))
            variables[part] = in_torch_layout(layer.kind, part, self.tensors[f"variables/{name}"])
        return variables

    def _add_variable(self, name: str, values: Any) -> None:
        self._add(f"variables/{name}", values)
        self.tensors[f"variables/{name}"].requires_grad_("/moving_" not in name)

    def _variable_shapes(self, layer: Layer, xs: List[Tensor]) -> Dict[str, Tuple[int, ...]]:
        fields, features = layer.fields, xs[0].shape[-1]
        shapes: Dict[str, Tuple[int, ...]] = {}
        if layer.kind == "dense":
            shapes = {"kernel": (features, fields["units"]), "bias": (fields["units"],)}
        elif layer.kind == "conv2d":
            window = (fields["kernel_size"], fields["kernel_size"])
            shapes = {"kernel": (*window, features, fields["filters"]), "bias": (fields["filters"],)}
        elif layer.kind == "cross" and "rank" in fields:
            shapes = {"down_kernel": (features, fields["rank"]), "kernel": (fields["rank"], features)}
            shapes["bias"] = (features,)
        elif layer.kind == "cross":
            shapes = {"kernel": (features, features), "bias": (features,)}
        elif layer.kind in ("embedding", "embedding_bag"):
            shapes = {"embeddings": (fields["rows"], fields["dim"])}
        elif layer.kind in ("batch_norm", "layer_norm"):
            parts = ["gamma", "beta"]
            if layer.kind == "batch_norm":
                parts += ["moving_mean", "moving_variance"]
            shapes = {part: (features,) for part in parts}
        for field, part in (("no_bias", "bias"), ("no_scale", "gamma"), ("no_center", "beta")):
            if fields.get(field):
                del shapes[part]
        return shapes

    def _mean_loss(self, loss: Loss, values: Dict[str, Tensor]) -> Tensor:
        """Times its weight."""
        fields = loss.fields
        scores = values[loss.inputs[0]]
        if loss.kind == "IN_BATCH_SOFTMAX":
            scores = scores @ values[loss.inputs[1]].t() / fields.get("temperature", 1)
            if "log_probability_label" in fields:
                scores = scores - self.tensors[f"labels/{fields['log_probability_label']}"]
            losses = functional.cross_entropy(scores, torch.arange(BATCH), reduction="none")
        else:
            label = self.tensors[f"labels/{fields['label']}"]
            if loss.kind == "SOFTMAX_CROSS_ENTROPY":
                losses = functional.cross_entropy(scores, label.long(), reduction="none")
            elif loss.kind == "SIGMOID_CROSS_ENTROPY":
                losses = functional.binary_cross_entropy_with_logits(scores[:, 0], label, reduction="none")
            elif loss.kind == "MEAN_SQUARED_ERROR":
                losses = functional.mse_loss(scores[:, 0], label, reduction="none")
            else:
                losses = functional.huber_loss(scores[:, 0], label, reduction="none", delta=fields.get("delta", 1))
        if "weight_label" in fields:
            losses = losses * self.tensors[f"labels/{fields['weight_label']}"]
        return losses.mean() * fields.get("weight", 1)
