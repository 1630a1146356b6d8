"""What the variables of a configuration's model start from, as the servers compute it: a function of the seed, the name and
the element (core/tensor/variable.h)."""

from __future__ import annotations

import itertools
import math
from typing import Any, Callable, Dict, NamedTuple, Sequence, Tuple

import torch

from ..errors import JoinError
from ..text_proto_reader import Message
from .tsv import stable_hash

Shape = Sequence[int]
_LOW = 0xFFFFFFFF
# Philox-4x32-10: Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", SC'11.
_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)
_ROUNDS = 10


class Initializer(NamedTuple):
    """a, b: of "constant" the value; of "uniform" low and high; of the others mean and standard deviation."""

    kind: str
    a: float = 0.0
    b: float = 0.0


ZEROS, ONES = Initializer("constant", 0.0), Initializer("constant", 1.0)
# Of embeddings.
NARROW = Initializer("uniform", -0.05, 0.05)


def kernel_initializer(name: str, shape: Shape) -> Initializer:
    """KernelInitializer of a layer. KeyError."""
    return _OF_KERNELS[name](shape)


def fill(tensor: torch.Tensor, name: str, seed: int, initializer: Initializer) -> None:
    """With the values that a variable of this name starts from."""
    if initializer.kind == "constant":
        tensor.fill_(initializer.a)
        return
    a, b = float32(initializer.a), float32(initializer.b)
    elements = torch.arange(tensor.numel())
    stream = stable_hash(name.encode())
    if initializer.kind == "uniform":
        bits = _philox(seed, stream, elements)
        low = torch.tensor(a, dtype=torch.float32)
        width = torch.tensor(b, dtype=torch.float32) - low
        values = low + width * _unit(bits[0])
    elif initializer.kind == "normal":
        bits = _philox(seed, stream, elements)
        values = (a + b * _normal(bits[0], bits[1])).float()
    else:
        values = (a + b * _truncated(seed, stream, elements)).float()
    tensor.copy_(values.view(tensor.shape))


def initializer_of(groups: Sequence[Message], name: str, shape: Shape, own: Initializer) -> Initializer:
    """As initial_values.groups have it, `own` where none decides. What a file has is not read here: the servers have it.
    JoinError, ValueError."""
    for group in groups:
        if matches(group.text("variables"), name):
            if "from" in group:
                continue
            return _of_group(group, name, shape)
    return own


def matches(pattern: str, name: str) -> bool:
    """As core/base/name_pattern.h: "*" stands for any characters."""
    first, *pieces = pattern.split("*")
    if not pieces:
        return pattern == name
    last = pieces.pop()
    if not name.startswith(first) or len(name) < len(first) + len(last) or not name.endswith(last):
        return False
    at, end = len(first), len(name) - len(last)
    for piece in pieces:
        found = name.find(piece, at, end)
        if found < 0:
            return False
        at = found + len(piece)
    return True


def float32(value: float) -> float:
    return float(torch.tensor(value, dtype=torch.float32))


def _of_group(group: Message, name: str, shape: Shape) -> Initializer:
    if "constant" in group:
        return Initializer("constant", group.message("constant").number("value"))
    if "uniform" in group:
        uniform = group.message("uniform")
        return Initializer("uniform", uniform.number("low"), uniform.number("high"))
    for kind in ("normal", "truncated_normal"):
        if kind in group:
            normal = group.message(kind)
            return Initializer(kind, normal.number("mean"), normal.number("stddev"))
    for kind, make in _BY_FANS.items():
        if kind in group:
            if len(shape) < 2:
                raise JoinError(f"{group.place}: {kind}: expected kernels, found {name} {list(shape)}")
            return make(shape)
    raise JoinError(f"{group.place}: initial_values.groups: expected a kind, found none")


def _fans(shape: Shape) -> Tuple[int, int]:
    """Of a kernel [inputs, outputs], or [..., inputs, outputs] of a convolution, whose window counts in both."""
    window = math.prod(shape[:-2])
    return window * shape[-2], window * shape[-1]


def _glorot_uniform(shape: Shape) -> Initializer:
    limit = math.sqrt(6 / sum(_fans(shape)))
    return Initializer("uniform", -limit, limit)


def _glorot_normal(shape: Shape) -> Initializer:
    return Initializer("normal", 0.0, math.sqrt(2 / sum(_fans(shape))))


def _he_uniform(shape: Shape) -> Initializer:
    limit = math.sqrt(6 / _fans(shape)[0])
    return Initializer("uniform", -limit, limit)


def _he_normal(shape: Shape) -> Initializer:
    return Initializer("normal", 0.0, math.sqrt(2 / _fans(shape)[0]))


_BY_FANS: Dict[str, Callable[[Shape], Initializer]] = {
    "glorot_uniform": _glorot_uniform,
    "glorot_normal": _glorot_normal,
    "he_uniform": _he_uniform,
    "he_normal": _he_normal,
}
_OF_KERNELS: Dict[str, Callable[[Shape], Initializer]] = {
    "KERNEL_INITIALIZER_UNSPECIFIED": _glorot_uniform,
    "GLOROT_UNIFORM": _glorot_uniform,
    "HE_NORMAL": _he_normal,
    "ZEROS": lambda shape: ZEROS,
}


def _philox(key: int, stream: int, counters: torch.Tensor) -> Sequence[torch.Tensor]:
    """Four times 32 bits of each counter, in int64."""
    x: Any = [
        counters & _LOW,
        counters >> 32 & _LOW,
        torch.full_like(counters, stream & _LOW),
        torch.full_like(counters, stream >> 32 & _LOW),
    ]
    k0, k1 = key & _LOW, key >> 32 & _LOW
    for _ in range(_ROUNDS):
        # They wrap as unsigned ones do, and have the same bits.
        p0, p1 = x[0] * _MULTIPLIERS[0], x[2] * _MULTIPLIERS[1]
        x = [(p1 >> 32 & _LOW) ^ x[1] ^ k0, p1 & _LOW, (p0 >> 32 & _LOW) ^ x[3] ^ k1, p0 & _LOW]
        k0, k1 = k0 + _WEYL[0] & _LOW, k1 + _WEYL[1] & _LOW
    found: Sequence[torch.Tensor] = x
    return found


def _unit(bits: torch.Tensor) -> torch.Tensor:
    """Uniform in [0, 1), of 24 bits."""
    return (bits >> 8).float() * 2.0**-24


def _normal(radius_bits: torch.Tensor, angle_bits: torch.Tensor) -> torch.Tensor:
    """In doubles. Box and Muller."""
    radius = torch.sqrt(-2.0 * torch.log(1.0 - _unit(radius_bits).double()))
    return radius * torch.cos(2.0 * math.pi * _unit(angle_bits).double())


def _truncated(seed: int, stream: int, elements: torch.Tensor) -> torch.Tensor:
    """Within two standard deviations; each draw of an element has a stream of its own."""
    values = torch.zeros(len(elements), dtype=torch.float64)
    open_ones = elements
    for draw in itertools.count():
        if len(open_ones) == 0:
            break
        bits = _philox(seed, stream + draw & (1 << 64) - 1, open_ones)
        for first in (0, 2):
            drawn = _normal(bits[first], bits[first + 1])
            fits = drawn.abs() <= 2
            values[open_ones[fits]] = drawn[fits]
            open_ones = open_ones[~fits]
            bits = [word[~fits] for word in bits]
    return values
