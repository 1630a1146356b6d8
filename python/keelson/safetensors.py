"""Reads and writes files of tensors: 8 bytes with the length of a JSON object that describes them, that, and the data."""

from __future__ import annotations

import math
import os
import struct
from typing import IO, Any, Dict, Mapping, NamedTuple, Optional, Tuple

# The dtypes' names, and the bytes of an element.
ELEMENT_BYTES = {
    "F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U8": 1, "BOOL": 1,
    "U16": 2, "U32": 4, "U64": 8,
}  # fmt: skip
_MAX_HEADER_BYTES = 100_000_000


class Tensor(NamedTuple):
    """In C order."""

    dtype: str
    shape: Tuple[int, ...]
    data: memoryview  # of bytes

    def elements(self) -> memoryview[float]:
        """Of floats in the tensor's shape; of F32 only."""
        if self.dtype != "F32":
            raise ValueError(f"expected a tensor of F32, found one of {self.dtype}")
        return self.data.cast("f", self.shape)


class Tensors(NamedTuple):
    tensors: Dict[str, Tensor]
    metadata: Dict[str, str]


def write(path: str, tensors: Mapping[str, Tensor], metadata: Optional[Mapping[str, str]] = None) -> None:
    """Replaces the file at once, as a whole. OSError."""
    unfinished = f"{path}.{os.getpid()}"
    try:
        with open(unfinished, "wb") as file:
            write_to(file, tensors, metadata)
        os.replace(unfinished, path)
    except BaseException:
        if os.path.exists(unfinished):
            os.unlink(unfinished)
        raise


def write_to(file: IO[bytes], tensors: Mapping[str, Tensor], metadata: Optional[Mapping[str, str]] = None) -> None:
    """OSError."""
    import json  # Here, as it takes long, and `import keelson` has this module.

    header: Dict[str, object] = {"__metadata__": dict(metadata)} if metadata else {}
    offset = 0
    for name, tensor in tensors.items():
        end = offset + tensor.data.nbytes
        header[name] = {"dtype": tensor.dtype, "shape": list(tensor.shape), "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    file.write(struct.pack("<Q", len(text)))
    file.write(text)
    for tensor in tensors.values():
        file.write(tensor.data)


def read(path: str) -> Tensors:
    """ValueError: it is no such file, or damaged. OSError."""
    import json  # As in write_to().

    with open(path, "rb") as file:
        content = memoryview(bytearray(file.read()))
    begin = 8 + struct.unpack("<Q", content[:8])[0] if len(content) >= 8 else 0
    if not 8 <= begin <= min(len(content), 8 + _MAX_HEADER_BYTES):
        raise ValueError(f"{path}: expected a safetensors file, found {len(content)} bytes that are none")
    try:
        header = json.loads(bytes(content[8:begin]))
        metadata = header.pop("__metadata__", {})
        tensors = {name: _tensor(entry, content[begin:]) for name, entry in header.items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path}: expected a safetensors file, found a header that is none: {error}") from error
    return Tensors(tensors, metadata)


def _tensor(entry: Mapping[str, Any], data: memoryview) -> Tensor:
    dtype, shape = str(entry["dtype"]), tuple(entry["shape"])
    begin, end = entry["data_offsets"]
    elements = math.prod(shape)
    if dtype not in ELEMENT_BYTES or not 0 <= begin <= end <= len(data):
        raise ValueError(f"dtype {dtype} with the data {begin}..{end} of {len(data)}")
    if end - begin != elements * ELEMENT_BYTES[dtype]:
        raise ValueError(f"{end - begin} bytes for {elements} elements of {dtype}")
    return Tensor(dtype, shape, data[begin:end])
