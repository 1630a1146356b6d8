"""Tensors as bytes, and bytes as tensors."""

from __future__ import annotations

import ctypes
from typing import Dict, Sequence

import torch

from ..safetensors import Tensor
from ..snapshots import State

_NAMES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}
_TYPES = {name: dtype for dtype, name in _NAMES.items()}
_MEAN, _VARIANCE, _COUNT = "running_mean", "running_var", "num_batches_tracked"


def tensors(state: State) -> Dict[str, torch.Tensor]:
    """For model.load_state_dict(…, strict=True): what keelson.load_state_dict has read, and for batch norm the count of
    batches, which is the snapshot's step."""
    loaded = {name: from_bytes(tensor).clone() for name, tensor in state.items()}
    for name in state:
        base = name[: -len(_MEAN)]
        if name.endswith(_MEAN) and base + _VARIANCE in state:
            loaded.setdefault(base + _COUNT, torch.tensor(state.step))
    return loaded


def knows(dtype: torch.dtype) -> bool:
    return dtype in _NAMES


def to_bytes(tensor: torch.Tensor) -> Tensor:
    """A copy."""
    whole = tensor.detach().cpu().contiguous()
    data = ctypes.string_at(whole.data_ptr(), whole.numel() * whole.element_size())
    return Tensor(_NAMES[tensor.dtype], tuple(tensor.shape), memoryview(data))


def from_bytes(tensor: Tensor) -> torch.Tensor:
    """A view of the bytes, where they can be written to."""
    dtype = _TYPES[tensor.dtype]
    if tensor.data.nbytes == 0:
        return torch.empty(tensor.shape, dtype=dtype)
    data = bytearray(tensor.data) if tensor.data.readonly else tensor.data
    return torch.frombuffer(data, dtype=dtype).view(tensor.shape)


def view_of_floats(data: memoryview, shape: Sequence[int]) -> torch.Tensor:
    return torch.frombuffer(data, dtype=torch.float32).view(tuple(shape))


def are_equal(floats: torch.Tensor, others: torch.Tensor) -> bool:
    """Of two of float32, bit by bit: NaN equals itself."""
    return torch.equal(floats.view(torch.int32), others.view(torch.int32))
