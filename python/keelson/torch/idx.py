"""Images and labels in IDX files, as MNIST, Fashion-MNIST and EMNIST have them."""

from __future__ import annotations

import gzip
import os
import struct
from typing import Tuple, Union

import torch
import torch.utils.data

from ..pod_paths import local_path

_UNSIGNED_BYTE = 8


class IdxDataset(torch.utils.data.Dataset):  # type: ignore[type-arg]
    """Of DIR/SPLIT-images-idx3-ubyte and DIR/SPLIT-labels-idx1-ubyte, plain or ".gz": pairs of an image, [1, height, width]
    from 0 to 1, and its label. ValueError: a file is damaged, or they do not fit each other."""

    def __init__(self, directory: Union[str, os.PathLike[str]], split: str = "train") -> None:
        directory = local_path(directory)
        self._images = _read(os.path.join(directory, f"{split}-images-idx3-ubyte"), 3)
        self._labels = _read(os.path.join(directory, f"{split}-labels-idx1-ubyte"), 1)
        if len(self._images) != len(self._labels):
            raise ValueError(f"{directory}: expected {len(self._images)} labels, found {len(self._labels)}")

    def __len__(self) -> int:
        return len(self._images)

    def __getitem__(self, index: int) -> Tuple[torch.Tensor, int]:
        return self._images[index].unsqueeze(0).float() / 255, int(self._labels[index])


def _read(path: str, dimensions: int) -> torch.Tensor:
    packed = f"{path}.gz"
    if not os.path.exists(path) and os.path.exists(packed):
        with gzip.open(packed, "rb") as file:
            content = bytearray(file.read())
    else:
        with open(path, "rb") as file:
            content = bytearray(file.read())
    begin = 4 + 4 * dimensions
    if len(content) < begin or content[:4] != bytes((0, 0, _UNSIGNED_BYTE, dimensions)):
        raise ValueError(f"{path}: expected an IDX file of bytes in {dimensions} dimensions")
    shape = struct.unpack(f">{dimensions}I", content[4:begin])
    expected = begin
    count = 1
    for extent in shape:
        count *= extent
    expected += count
    if len(content) != expected:
        raise ValueError(f"{path}: expected {expected} bytes, found {len(content)}")
    if count == 0:
        return torch.empty(shape, dtype=torch.uint8)
    return torch.frombuffer(content, dtype=torch.uint8, offset=begin).view(shape)
