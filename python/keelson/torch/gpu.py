"""Parameters on GPUs: their gradients are copied to the memory that is shared with the agent, and its values back."""

from __future__ import annotations

import ctypes
import warnings
from typing import Any, Callable, Iterable, List

import torch

# Of cudaHostRegister: locked for all GPUs.
_PORTABLE = 1


class Copies:
    """Those to and from the GPUs that some tensors are on. copy_(…, non_blocking=True) only asks for them."""

    def __init__(self, tensors: Iterable[torch.Tensor]) -> None:
        self._devices: List[torch.device] = sorted({t.device for t in tensors if t.device.type == "cuda"}, key=str)

    def __bool__(self) -> bool:
        return bool(self._devices)

    def wait(self) -> None:
        """Until they are made: the agent may read and write the memory then."""
        for device in self._devices:
            torch.cuda.current_stream(device).synchronize()


def lock_pages(memory: memoryview, runtime: Any) -> Callable[[], None]:
    """Has GPUs copy to and from the memory without a detour; returns what ends that. Where it cannot be, a warning says so,
    and copies take the detour. `runtime`: torch.cuda.cudart()."""
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    error = int(runtime.cudaHostRegister(address, memory.nbytes, _PORTABLE))
    if error != 0:
        warnings.warn(
            f"page-locked memory: expected {memory.nbytes} bytes of it, found cudaError {error}: copies to and from GPUs "
            "are slower",
            RuntimeWarning,
            stacklevel=2,
        )
        return lambda: None

    def unlock() -> None:
        runtime.cudaHostUnregister(address)

    return unlock
