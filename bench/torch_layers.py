"""Keelson's layers in PyTorch, each by its kind in the configuration, with the fields of that as arguments.

A layer takes its inputs and its variables (by the last part of their names) and returns its output. All have PyTorch's
layouts: images are [batch, channels, height, width], the kernel of dense and cross [outputs, inputs], that of conv2d
[filters, channels, height, width]. bench/compare_layers.py measures them; tests/interop/layers_torch_test.py compares
their values and gradients with Keelson's.
"""

import math
from typing import Any, Callable, Dict, Optional, Sequence, Tuple

import torch
from torch.nn import functional

Tensor = Any  # PyTorch's own types are not needed to check ours.
Variables = Dict[str, Tensor]


def same_padding(extent: int, window: int, stride: int) -> Tuple[int, int]:
    """What TensorFlow's SAME puts before and after: as many windows as strides begin, the odd one after."""
    total = max(0, (math.ceil(extent / stride) - 1) * stride + window - extent)
    return total // 2, total - total // 2


def padded(x: Tensor, window: int, stride: int, padding: str, fill: float) -> Tuple[int, Tensor]:
    """(p, x): p at each edge, as PyTorch's functions take it, or 0 and an x that is padded with `fill`."""
    if padding == "VALID":
        return 0, x
    rows, columns = (same_padding(extent, window, stride) for extent in x.shape[2:])
    if rows[0] == rows[1] == columns[0] == columns[1]:
        return rows[0], x
    return 0, functional.pad(x, columns + rows, value=fill)


def dense(xs: Sequence[Tensor], variables: Variables) -> Tensor:
    return functional.linear(xs[0], variables["kernel"], variables.get("bias"))


def conv2d(xs: Sequence[Tensor], variables: Variables, stride: int = 1, padding: str = "VALID") -> Tensor:
    kernel = variables["kernel"]
    edge, x = padded(xs[0], kernel.shape[2], stride, padding, 0)
    return functional.conv2d(x, kernel, variables.get("bias"), stride=stride, padding=edge)


def max_pool(xs: Sequence[Tensor], variables: Variables, size: int, stride: int = 0, padding: str = "VALID") -> Tensor:
    edge, x = padded(xs[0], size, stride or size, padding, -math.inf)
    return functional.max_pool2d(x, size, stride or size, padding=edge)


def avg_pool(xs: Sequence[Tensor], variables: Variables, size: int, stride: int = 0, padding: str = "VALID") -> Tensor:
    stride = stride or size
    edge, x = padded(xs[0], size, stride, padding, 0)
    if x is xs[0]:
        return functional.avg_pool2d(x, size, stride, padding=edge, count_include_pad=False)
    _, inside = padded(torch.ones_like(xs[0]), size, stride, padding, 0)
    return functional.avg_pool2d(x, size, stride) / functional.avg_pool2d(inside, size, stride)


def batch_norm(xs: Sequence[Tensor], variables: Variables, epsilon: float = 0.001, training: bool = True) -> Tensor:
    """Without `training` by the moving averages, which are left as they are in any case."""
    averages = () if training else (variables["moving_mean"], variables["moving_variance"])
    mean, variance = averages or (None, None)
    gamma, beta = variables.get("gamma"), variables.get("beta")
    return functional.batch_norm(xs[0], mean, variance, gamma, beta, training=training, eps=epsilon)


def layer_norm(xs: Sequence[Tensor], variables: Variables, epsilon: float = 0.00001) -> Tensor:
    gamma, beta = variables.get("gamma"), variables.get("beta")
    return functional.layer_norm(xs[0], xs[0].shape[-1:], gamma, beta, eps=epsilon)


def concat(xs: Sequence[Tensor], variables: Variables) -> Tensor:
    return torch.cat(list(xs), -1)


def transpose(xs: Sequence[Tensor], variables: Variables, axes: Sequence[int]) -> Tensor:
    return xs[0].permute(0, *(1 + axis for axis in axes)).contiguous()


def cross(xs: Sequence[Tensor], variables: Variables) -> Tensor:
    x = functional.linear(xs[1], variables["down_kernel"]) if "down_kernel" in variables else xs[1]
    return xs[0] * functional.linear(x, variables["kernel"], variables.get("bias")) + xs[1]


def embedding(xs: Sequence[Tensor], variables: Variables) -> Tensor:
    return functional.embedding(xs[0], variables["embeddings"])


def embedding_bag(
    xs: Sequence[Tensor],
    variables: Variables,
    offsets: Optional[Tensor] = None,
    weights: Optional[Tensor] = None,
    combiner: str = "MEAN",
) -> Tensor:
    """Of ids [batch, ids], or of those of all bags with their offsets [batch + 1]."""
    sums = functional.embedding_bag(
        xs[0], variables["embeddings"], offsets, mode="sum", per_sample_weights=weights,
        include_last_offset=offsets is not None,
    )
    if combiner == "SUM":
        return sums
    if offsets is None:
        raise ValueError("embedding_bag: expected offsets")
    w = torch.ones(len(xs[0]), dtype=sums.dtype) if weights is None else weights
    bags = torch.repeat_interleave(torch.arange(len(offsets) - 1), offsets[1:] - offsets[:-1])
    terms = w if combiner == "MEAN" else w * w
    divisors = torch.zeros(len(offsets) - 1, dtype=sums.dtype).index_add(0, bags, terms)
    divisors = divisors if combiner == "MEAN" else divisors.sqrt()
    zero = (divisors == 0).unsqueeze(1)
    return torch.where(zero, torch.zeros_like(sums), sums / divisors.unsqueeze(1).masked_fill(zero, 1))


def cosine(xs: Sequence[Tensor], variables: Variables, epsilon: float = 0.000001) -> Tensor:
    a, b = xs
    products = [(left * right).sum(-1, keepdim=True) for left, right in ((a, b), (a, a), (b, b))]
    return products[0] / ((products[1] + epsilon) * (products[2] + epsilon)).sqrt()


def factorization_machine(xs: Sequence[Tensor], variables: Variables) -> Tensor:
    stacked = torch.stack(list(xs), 1)
    return 0.5 * (stacked.sum(1).square() - stacked.square().sum(1)).sum(1, keepdim=True)


def dot_interaction(xs: Sequence[Tensor], variables: Variables, diagonal: bool = False) -> Tensor:
    stacked = torch.stack(list(xs), 1)
    rows, columns = torch.triu_indices(len(xs), len(xs), 0 if diagonal else 1)
    return torch.bmm(stacked, stacked.transpose(1, 2))[:, rows, columns]


LAYERS: Dict[str, Callable[..., Tensor]] = {
    "dense": dense,
    "conv2d": conv2d,
    "max_pool": max_pool,
    "avg_pool": avg_pool,
    "flatten": lambda xs, variables: xs[0].flatten(1),
    "relu": lambda xs, variables: torch.relu(xs[0]),
    "tanh": lambda xs, variables: torch.tanh(xs[0]),
    "sigmoid": lambda xs, variables: torch.sigmoid(xs[0]),
    "dropout": lambda xs, variables, rate: functional.dropout(xs[0], rate),
    "batch_norm": batch_norm,
    "add": lambda xs, variables: sum(xs[1:], xs[0]),
    "multiply": lambda xs, variables: xs[0] * xs[1],
    "concat": concat,
    "slice": lambda xs, variables, begin, size: xs[0][..., begin : begin + size].contiguous(),
    "scale": lambda xs, variables, factor: xs[0] * factor,
    "gelu": lambda xs, variables: functional.gelu(xs[0]),
    "silu": lambda xs, variables: functional.silu(xs[0]),
    "softmax": lambda xs, variables: torch.softmax(xs[0], -1),
    "layer_norm": layer_norm,
    "global_average_pool": lambda xs, variables: xs[0].mean((2, 3)),
    "reshape": lambda xs, variables, shape: xs[0].reshape(len(xs[0]), *shape),
    "cross": cross,
    "embedding": embedding,
    "embedding_bag": embedding_bag,
    "dot": lambda xs, variables: (xs[0] * xs[1]).sum(-1, keepdim=True),
    "cosine": cosine,
    "factorization_machine": factorization_machine,
    "dot_interaction": dot_interaction,
    "transpose": transpose,
}
