"""Text files of columns with tabs between them, as Criteo's click logs are."""

from __future__ import annotations

import array
import functools
import math
import mmap
import os
from typing import Any, Dict, List, Sequence, Tuple, Union

import torch
import torch.utils.data

from ..pod_paths import local_path

# The file has the place of every so-many-th line in memory; those between are found by their ends.
_LINES_PER_PLACE = 16
_WORD = 8
_MASK = (1 << 64) - 1
_MIX = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)

Record = Tuple[torch.Tensor, torch.Tensor, torch.Tensor]


class TsvDataset(torch.utils.data.Dataset):  # type: ignore[type-arg]
    """Of lines with a label, 0 or 1, in the column `label`, and in the other columns first `dense` whole numbers, then `ids`
    texts: triples of the numbers [dense], each log(1 + x), of negative and missing ones 0; the ids [ids], int64, hashes of
    the texts and their columns' numbers; and the label. Numbers and ids are those that data.criteo has of such a file.

    The file is mapped, not read: memory has half a byte for each line. ValueError: "FILE:LINE: expected …, found …"."""

    def __init__(self, path: Union[str, os.PathLike[str]], label: int = 0, dense: int = 13, ids: int = 26) -> None:
        self._path = local_path(path)
        self._columns = 1 + dense + ids
        if not 0 <= label < self._columns:
            raise ValueError(f"label: expected a column from 0 to {self._columns - 1}, found {label}")
        self._label, self._dense = label, dense
        salts = [stable_hash(f"c{k + 1}".encode()) for k in range(ids)]
        self._salts = salts
        # By how long a text is: the hash of its length and its column.
        self._starts = torch.tensor(
            [[_signed(_mix(length, salt)) for salt in salts] for length in range(_WORD + 1)]
        ).reshape(_WORD + 1, ids)
        self._open()
        self._places = array.array("Q")
        self._count = self._find_lines()

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int) -> Record:
        dense, ids, labels = self.batch([index])
        return dense[0], ids[0], labels[0]

    def batch(self, positions: Sequence[int]) -> Record:
        """All of these records' at once, which is faster: kt.Loader asks for them so."""
        labels: List[float] = []
        numbers: List[float] = []
        texts: List[bytes] = []
        for position in positions:
            fields = self._fields(position)
            try:
                labels.append(_LABELS[fields.pop(self._label)])
                numbers += [_logarithm(field) for field in fields[: self._dense]]
            except (KeyError, ValueError) as error:
                found = error.args[0].decode(errors="replace")
                raise ValueError(
                    f"{self._path}:{position + 1}: expected 0 or 1 as the label, and whole numbers or nothing, "
                    f"found {found!r}"
                ) from None
            texts += fields[self._dense :]
        shape = (len(positions), len(self._salts))
        dense = torch.tensor(numbers, dtype=torch.float32).view(len(positions), self._dense)
        return dense, self._hashes(texts).view(shape), torch.tensor(labels)

    def __getstate__(self) -> Dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_file"}

    def __setstate__(self, state: Dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._open()

    def _open(self) -> None:
        with open(self._path, "rb") as file:
            if os.fstat(file.fileno()).st_size == 0:
                raise ValueError(f"{self._path}: expected lines, found an empty file")
            self._file = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)

    def _find_lines(self) -> int:
        find, size = self._file.find, len(self._file)
        at = count = 0
        while at < size:
            if count % _LINES_PER_PLACE == 0:
                self._places.append(at)
            end = find(b"\n", at)
            at = size if end < 0 else end + 1
            count += 1
        return count

    def _fields(self, position: int) -> List[bytes]:
        if not 0 <= position < self._count:
            raise IndexError(f"{self._path}: expected one of {self._count} records, found {position}")
        find = self._file.find
        at = self._places[position // _LINES_PER_PLACE]
        for _ in range(position % _LINES_PER_PLACE):
            at = find(b"\n", at) + 1
        end = find(b"\n", at)
        fields = self._file[at : end if end >= 0 else len(self._file)].split(b"\t")
        if len(fields) != self._columns:
            raise ValueError(f"{self._path}:{position + 1}: expected {self._columns} columns, found {len(fields)}")
        return fields

    def _hashes(self, texts: List[bytes]) -> torch.Tensor:
        """Of texts of all columns in turn."""
        if not texts:
            return torch.empty(0, dtype=torch.int64)
        lengths = torch.tensor([len(text) for text in texts])
        words = bytearray(b"".join([text[:_WORD].ljust(_WORD, b"\0") for text in texts]))
        columns = torch.arange(len(self._salts)).repeat(len(texts) // len(self._salts))
        starts = self._starts[lengths.clamp(max=_WORD), columns]
        hashes: torch.Tensor = _mixed(torch.frombuffer(words, dtype=torch.int64) ^ starts)
        hashes = torch.where(lengths.eq(0), starts, hashes)
        for at in lengths.gt(_WORD).nonzero().flatten().tolist():
            hashes[at] = _signed(_hash(texts[at], self._salts[at % len(self._salts)]))
        return hashes


_LABELS = {b"0": 0.0, b"1": 1.0}


@functools.lru_cache(maxsize=1 << 16)
def _logarithm(field: bytes) -> float:
    """Most counts are small."""
    if not field:
        return 0.0
    if not (field[1:] if field.startswith(b"-") else field).isdigit():
        raise ValueError(field)
    return math.log1p(max(int(field), 0))


# The functions of core/table/row_id.h and core/data/columns/value_hash.h.


def stable_hash(text: bytes) -> int:
    value = 0xCBF29CE484222325
    for byte in text:
        value = (value ^ byte) * 0x100000001B3 & _MASK
    return value


def _mix(value: int, salt: int) -> int:
    mix = value ^ salt
    mix = (mix ^ mix >> 30) * _MIX[0] & _MASK
    mix = (mix ^ mix >> 27) * _MIX[1] & _MASK
    return mix ^ mix >> 31


def _hash(text: bytes, salt: int) -> int:
    value = _mix(len(text), salt)
    for at in range(0, len(text), _WORD):
        value = _mix(int.from_bytes(text[at : at + _WORD].ljust(_WORD, b"\0"), "little"), value)
    return value


def _mixed(mix: Any) -> Any:
    """Of a tensor, as _mix of what is combined already; int64 has the same products, but shifts of its own."""
    for shift, factor in ((30, _MIX[0]), (27, _MIX[1])):
        mix = (mix ^ (mix >> shift & (1 << 64 - shift) - 1)) * _signed(factor)
    return mix ^ (mix >> 31 & (1 << 33) - 1)


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value
