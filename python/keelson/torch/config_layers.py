"""Keelson's layers in PyTorch, by their kinds in a configuration, with the servers' layouts: images are [batch, height, width,
channels], the kernel of dense and cross [inputs, outputs], that of conv2d [kernel, kernel, channels, filters]."""

from __future__ import annotations

import math
from typing import Any, Callable, Dict, NamedTuple, Optional, Protocol, Sequence, Tuple

import torch
import torch.nn.functional as F

from ..text_proto_reader import Message
from .initial_values import NARROW, ONES, ZEROS, Initializer, kernel_initializer


class Bag(NamedTuple):
    """Any number of ids of each record, those of all records one after the other."""

    ids: torch.Tensor
    offsets: torch.Tensor  # [batch + 1]: where each record's begin
    weights: Optional[torch.Tensor] = None  # of each id


class Variables(Protocol):
    """Of one layer, or of the one whose variables it has. Made when a layer first asks for them."""

    training: bool

    def parameter(self, part: str, shape: Sequence[int], initializer: Initializer) -> torch.Tensor: ...

    def averages(self, channels: int, momentum: float) -> Tuple[torch.Tensor, torch.Tensor, float]:
        """The moving mean and variance, and how much of a new batch goes into them."""

    def rows(self, table: str, ids: Any) -> torch.Tensor:
        """Of an id feature's ids, or the weighted sums of a Bag's."""


Layer = Callable[[Message, Sequence[Any], Variables], Any]


def _images(x: torch.Tensor) -> torch.Tensor:
    if x.dim() != 4:
        raise ValueError(f"expected an input [height, width, channels], found {list(x.shape[1:])}")
    return x.permute(0, 3, 1, 2)


def _channels_last(x: torch.Tensor) -> torch.Tensor:
    return x.permute(0, 2, 3, 1)


def _same_padding(extent: int, window: int, stride: int) -> Tuple[int, int]:
    """TensorFlow's SAME: as many windows as strides begin, the odd one of the padding behind."""
    total = max(0, (math.ceil(extent / stride) - 1) * stride + window - extent)
    return total // 2, total - total // 2


def _padded(x: torch.Tensor, window: int, stride: int, padding: str, fill: float) -> Tuple[int, torch.Tensor]:
    """(p, x): p at each edge, as PyTorch's functions take it, or 0 and an x that is padded with `fill`."""
    if padding != "SAME":
        return 0, x
    rows, columns = (_same_padding(extent, window, stride) for extent in x.shape[2:])
    if rows[0] == rows[1] == columns[0] == columns[1] <= window // 2:
        return rows[0], x
    return 0, F.pad(x, columns + rows, value=fill)


def _dense(layer: Message, xs: Sequence[Any], variables: Variables) -> Any:
    units = layer.integer("units")
    kernel = _kernel(layer, "kernel", (xs[0].shape[-1], units), variables)
    bias = None if layer.flag("no_bias") else variables.parameter("bias", (units,), ZEROS)
    return F.linear(xs[0], kernel.t(), bias)


def _kernel(layer: Message, part: str, shape: Sequence[int], variables: Variables) -> torch.Tensor:
    name = layer.text("kernel_initializer", "GLOROT_UNIFORM")
    return variables.parameter(part, shape, kernel_initializer(name, shape))


def _conv2d(layer: Message, xs: Sequence[Any], variables: Variables) -> Any:
    x = _images(xs[0])
    size, filters, stride = layer.integer("kernel_size"), layer.integer("filters"), layer.integer("stride") or 1
    kernel = _kernel(layer, "kernel", (size, size, x.shape[1], filters), variables)
    bias = None if layer.flag("no_bias") else variables.parameter("bias", (filters,), ZEROS)
    edge, x = _padded(x, size, stride, layer.text("padding"), 0.0)
    return _channels_last(F.conv2d(x, kernel.permute(3, 2, 0, 1), bias, stride=stride, padding=edge))


def _pool_of(layer: Message) -> Tuple[int, int, str]:
    size = layer.integer("size")
    return size, layer.integer("stride") or size, layer.text("padding")


def _max_pool(layer: Message, xs: Sequence[Any], variables: Variables) -> Any:
    size, stride, padding = _pool_of(layer)
    edge, x = _padded(_images(xs[0]), size, stride, padding, -math.inf)
    return _channels_last(F.max_pool2d(x, size, stride, padding=edge))


def _avg_pool(layer: Message, xs: Sequence[Any], variables: Variables) -> Any:
    size, stride, padding = _pool_of(layer)
    whole = _images(xs[0])
    edge, x = _padded(whole, size, stride, padding, 0.0)
    if x is whole:
        return _channels_last(F.avg_pool2d(x, size, stride, padding=edge, count_include_pad=False))
    _, inside = _padded(torch.ones_like(whole), size, stride, padding, 0.0)
    return _channels_last(F.avg_pool2d(x, size, stride) / F.avg_pool2d(inside, size, stride))


def _batch_norm(layer: Message, xs: Sequence[Any], variables: Variables) -> Any:
    x = xs[0]
    channels = x.shape[-1]
    epsilon = layer.number("epsilon", 0.001)
    gamma = None if layer.flag("no_scale") else variables.parameter("gamma", (channels,), ONES)
    beta = None if layer.flag("no_center") else variables.parameter("beta", (channels,), ZEROS)
    mean, variance, share = variables.averages(channels, 1 - layer.number("momentum", 0.99))
    rows = x.reshape(-1, channels)
    if variables.training and len(rows) == 1:
        return _norm_of_one(rows, gamma, beta, mean, variance, share).view(x.shape)
    y = F.batch_norm(rows, mean, variance, gamma, beta, variables.training, share, epsilon)
    return y.view(x.shape)


def _norm_of_one(row: Any, gamma: Any, beta: Any, mean: Any, variance: Any, share: float) -> Any:
    """Which is its own mean; its variance is 0."""
    with torch.no_grad():
        mean.lerp_(row[0], share)
        variance.mul_(1 - share)
    y = row - row
    y = y if gamma is None else y * gamma
    return y if beta is None else y + beta


def _layer_norm(layer: Message, xs: Sequence[Any], variables: Variables) -> Any:
    shape = xs[0].shape[-1:]
    gamma = None if layer.flag("no_scale") else variables.parameter("gamma", shape, ONES)
    beta = None if layer.flag("no_center") else variables.parameter("beta", shape, ZEROS)
    return F.layer_norm(xs[0], shape, gamma, beta, layer.number("epsilon", 0.00001))


def _dropout(layer: Message, xs: Sequence[Any], variables: Variables) -> Any:
    return F.dropout(xs[0], layer.number("rate"), variables.training)


def _concat(layer: Message, xs: Sequence[Any], variables: Variables) -> Any:
    return torch.cat(list(xs), -1)


def _slice(layer: Message, xs: Sequence[Any], variables: Variables) -> Any:
    return xs[0].narrow(-1, layer.integer("begin"), layer.integer("size"))


def _cross(layer: Message, xs: Sequence[Any], variables: Variables) -> Any:
    features, rank = xs[0].shape[-1], layer.integer("rank")
    x = xs[1]
    if rank > 0:
        x = x @ _kernel(layer, "down_kernel", (features, rank), variables)
    kernel = _kernel(layer, "kernel", (rank or features, features), variables)
    bias = None if layer.flag("no_bias") else variables.parameter("bias", (features,), ZEROS)
    return xs[0] * F.linear(x, kernel.t(), bias) + xs[1]


def _embedding(layer: Message, xs: Sequence[Any], variables: Variables) -> Any:
    ids = xs[0]
    if not isinstance(ids, torch.Tensor):
        raise ValueError(f"expected ids, found {type(ids).__name__}")
    if "table" in layer:
        return variables.rows(layer.text("table"), ids)
    shape = (layer.integer("rows"), layer.integer("dim"))
    return F.embedding(ids.long(), variables.parameter("embeddings", shape, NARROW))


def _embedding_bag(layer: Message, xs: Sequence[Any], variables: Variables) -> Any:
    bag = xs[0]
    if not isinstance(bag, Bag):
        raise ValueError(f"expected a bag, found {type(bag).__name__}")
    if "table" in layer:
        sums = variables.rows(layer.text("table"), bag)
    else:
        shape = (layer.integer("rows"), layer.integer("dim"))
        matrix = variables.parameter("embeddings", shape, NARROW)
        sums = F.embedding_bag(
            bag.ids, matrix, bag.offsets, mode="sum", per_sample_weights=bag.weights, include_last_offset=True
        )
    combiner = layer.text("combiner", "MEAN")
    return sums if combiner == "SUM" else _divided(sums, bag, combiner)


def _divided(sums: torch.Tensor, bag: Bag, combiner: str) -> torch.Tensor:
    """Zeros of a bag whose divisor is 0."""
    records = len(bag.offsets) - 1
    weights = torch.ones(len(bag.ids), dtype=sums.dtype) if bag.weights is None else bag.weights
    terms = weights * weights if combiner == "SQRTN" else weights
    owners = torch.repeat_interleave(torch.arange(records), bag.offsets.diff())
    divisors = torch.zeros(records, dtype=sums.dtype).index_add(0, owners, terms).unsqueeze(1)
    divisors = divisors.sqrt() if combiner == "SQRTN" else divisors
    return torch.where(divisors == 0, torch.zeros_like(sums), sums / divisors.masked_fill(divisors == 0, 1))


def _dot(layer: Message, xs: Sequence[Any], variables: Variables) -> Any:
    return (xs[0] * xs[1]).sum(-1, keepdim=True)


def _cosine(layer: Message, xs: Sequence[Any], variables: Variables) -> Any:
    epsilon = layer.number("epsilon", 0.000001)
    a, b = xs
    products = [(left * right).sum(-1, keepdim=True) for left, right in ((a, b), (a, a), (b, b))]
    return products[0] / ((products[1] + epsilon) * (products[2] + epsilon)).sqrt()


def _factorization_machine(layer: Message, xs: Sequence[Any], variables: Variables) -> Any:
    stacked = torch.stack(list(xs), 1)
    return 0.5 * (stacked.sum(1).square() - stacked.square().sum(1)).sum(1, keepdim=True)


def _dot_interaction(layer: Message, xs: Sequence[Any], variables: Variables) -> Any:
    stacked = torch.stack(list(xs), 1)
    rows, columns = torch.triu_indices(len(xs), len(xs), 0 if layer.flag("diagonal") else 1)
    return torch.bmm(stacked, stacked.transpose(1, 2))[:, rows, columns]


def _global_average_pool(layer: Message, xs: Sequence[Any], variables: Variables) -> Any:
    return xs[0].flatten(1, -2).mean(1)


def _reshape(layer: Message, xs: Sequence[Any], variables: Variables) -> Any:
    return xs[0].reshape(len(xs[0]), *layer.integers("shape"))


def _transpose(layer: Message, xs: Sequence[Any], variables: Variables) -> Any:
    return xs[0].permute(0, *(1 + axis for axis in layer.integers("axes")))


def _of_one(function: Callable[[Any], Any]) -> Layer:
    return lambda layer, xs, variables: function(xs[0])


LAYERS: Dict[str, Layer] = {
    "dense": _dense,
    "conv2d": _conv2d,
    "max_pool": _max_pool,
    "avg_pool": _avg_pool,
    "flatten": _of_one(lambda x: x.flatten(1)),
    "relu": _of_one(torch.relu),
    "tanh": _of_one(torch.tanh),
    "sigmoid": _of_one(torch.sigmoid),
    "dropout": _dropout,
    "batch_norm": _batch_norm,
    "add": lambda layer, xs, variables: sum(xs[1:], xs[0]),
    "multiply": lambda layer, xs, variables: xs[0] * xs[1],
    "concat": _concat,
    "slice": _slice,
    "scale": lambda layer, xs, variables: xs[0] * layer.number("factor"),
    "gelu": _of_one(F.gelu),
    "silu": _of_one(F.silu),
    "softmax": _of_one(lambda x: torch.softmax(x, -1)),
    "layer_norm": _layer_norm,
    "global_average_pool": _global_average_pool,
    "reshape": _reshape,
    "cross": _cross,
    "embedding": _embedding,
    "embedding_bag": _embedding_bag,
    "dot": _dot,
    "cosine": _cosine,
    "factorization_machine": _factorization_machine,
    "dot_interaction": _dot_interaction,
    "transpose": _transpose,
}
