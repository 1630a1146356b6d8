"""Embedding: rows of a table that is on the servers, where only those of a batch travel."""

from __future__ import annotations

import contextlib
import ctypes
from dataclasses import dataclass
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

import torch
import torch.nn.functional as F

from ..errors import BadGradient, JoinError
from ..evaluated_rows import EvaluatedRows
from ..optimizers import Optimizer
from ..rows import Part, RowSet
from ..snapshots import TableContent
from ..tables import Init, Table, Uniform, mean_of
from ..work import Work
from . import conversion
from .dense_rows import check_ids, make_weight

_MODES = (None, "sum", "mean")


class Embedding(torch.nn.Module):
    """As nn.Embedding, or with a mode as nn.EmbeddingBag, but every id of 64 bits has a row, the table `name` is on the
    servers, and its optimizer is its own (by default the job's). It has no parameters: state_dict() is without the rows.
    `rows`: there are so many, of the ids from 0 on, and they are a parameter, `weight`, that the servers have as any other.

    Look-ups with gradients are part of the step(); without (torch.no_grad()) they read the rows as they are. `init` and what
    follows is keelson.Table's; what bounds a table's rows does not go with `rows`. An id that is `padding_idx` has zeros, is
    left out of bags, and has no row. JoinError; in a look-up IndexError: an id is beyond `rows`."""

    def __init__(
        self,
        name: str,
        dim: int,
        optimizer: Optional[Optimizer] = None,
        init: Init = Uniform(),
        mode: Optional[str] = None,
        padding_idx: Optional[int] = None,
        max_rows: int = 0,
        evict: bool = False,
        expire_after: int = 0,
        admit_after: int = 0,
        rows: Optional[int] = None,
    ) -> None:
        super().__init__()
        if mode not in _MODES:
            raise JoinError(f"table {name}: mode: expected one of {_MODES}, found {mode!r}")
        self.name = name
        self.table = Table(dim, optimizer, init, max_rows, evict, expire_after, admit_after)
        self.mode = mode
        self.padding_idx = padding_idx
        self.weight = None if rows is None else make_weight(name, self.table, rows)
        self._tables: Union[Tables, SnapshotTables, StoredRows, DenseRows, None] = None if self.weight is None else DenseRows()

    def forward(
        self, ids: torch.Tensor, offsets: Optional[torch.Tensor] = None, weights: Optional[torch.Tensor] = None
    ) -> torch.Tensor:
        """`ids`: int64 of any shape, of which the result is [..., dim]. With a mode: bags [batch, ids], or a list of all
        ids with the offsets at which each bag begins; the result is [batch, dim]. `weights`: of each id, of sums alone."""
        if self.weight is None and ids.device.type != "cpu":  # The rows of tables are in the host's memory.
            ids_there, *others = (None if tensor is None else tensor.cpu() for tensor in (ids, offsets, weights))
            assert ids_there is not None
            return self.forward(ids_there, *others).to(ids.device)
        if self.mode is None:
            if offsets is not None or weights is not None:
                raise ValueError(f"table {self.name}: expected offsets and weights with a mode, found them without")
            return self._rows_of(ids)
        if offsets is None:
            if ids.dim() != 2:
                raise ValueError(f"table {self.name}: expected ids [batch, ids] or offsets, found {list(ids.shape)}")
            offsets = torch.arange(0, ids.numel(), ids.shape[1]) if ids.numel() else torch.zeros(len(ids)).long()
            offsets = offsets.to(ids.device)
        elif ids.dim() != 1:
            raise ValueError(f"table {self.name}: expected a list of ids with offsets, found {list(ids.shape)}")
        return self._sums_of(ids, offsets, weights)

    def _rows_of(self, ids: torch.Tensor) -> torch.Tensor:
        kept, mask = self.ids_of(ids)
        with self.tables.look_up(self, kept) as rows:
            found: torch.Tensor = F.embedding(rows.positions, rows.matrix)
        if mask is not None:
            found = found.new_zeros(ids.numel(), self.table.dim).index_put((mask,), found)
        return torch.reshape(found, [*ids.shape, self.table.dim])

    def _sums_of(self, ids: torch.Tensor, offsets: torch.Tensor, weights: Optional[torch.Tensor]) -> torch.Tensor:
        kept, mask = self.ids_of(ids)
        if weights is not None:
            weights = weights.reshape(-1)
        if mask is not None:
            before = torch.cat([mask.new_zeros(1, dtype=torch.int64), mask.cumsum(0)])
            offsets = before[offsets]
            weights = None if weights is None else weights[mask]
        with self.tables.look_up(self, kept) as rows:
            return F.embedding_bag(
                rows.positions, rows.matrix, offsets.int(), mode=self.mode or "sum", per_sample_weights=weights
            )

    def ids_of(self, ids: torch.Tensor) -> Tuple[torch.Tensor, Optional[torch.Tensor]]:
        """Those that have rows, as a list, and which these are, where some have not."""
        if ids.dtype not in (torch.int64, torch.int32):
            raise TypeError(f"table {self.name}: expected ids of int64, found {ids.dtype}")
        flat = ids.detach().reshape(-1).long().contiguous()
        if self.padding_idx is None:
            return flat, None
        mask = flat != self.padding_idx
        return flat[mask], mask

    def bind(self, tables: Union[Tables, SnapshotTables]) -> None:
        """For kt.Optimizer and kt.Evaluator: the job, or its snapshots, have the table."""
        self._tables = tables

    def load_rows(self, content: TableContent) -> None:
        """From now on look-ups are in these rows, those of keelson.load_state_dict(dir).tables[name], without a job. An id
        without a row has the mean of `init`."""
        if self.weight is not None:
            raise ValueError(f"table {self.name}: expected the rows in the model's state_dict, found those of a table")
        if content.values.shape[1:] != (self.table.dim,):
            raise ValueError(f"table {self.name}: expected rows of dim {self.table.dim}, found {content.values.shape}")
        self._tables = StoredRows(content, mean_of(self.table.init))

    @property
    def tables(self) -> Union[Tables, SnapshotTables, StoredRows, DenseRows]:
        if self._tables is None:
            raise RuntimeError(f"table {self.name}: expected a keelson.torch.Optimizer that has the model, found none")
        return self._tables

    def __getstate__(self) -> Dict[str, Any]:
        """A copy is of no job."""
        return {**self.__dict__, "_tables": None if isinstance(self._tables, (Tables, SnapshotTables)) else self._tables}

    def extra_repr(self) -> str:
        rows = "" if self.weight is None else f", rows={len(self.weight)}"
        return f"{self.name!r}, {self.table.dim}{rows}" + (f", mode={self.mode!r}" if self.mode else "")


@dataclass(eq=False)
class LookUp:
    """The rows of some ids of a table."""

    table: str
    ids: torch.Tensor
    positions: torch.Tensor  # int32, of each id
    matrix: torch.Tensor  # [rows, dim]; a leaf, which may get a gradient
    gradients: torch.Tensor  # where this is sent from


@dataclass(eq=False)
class _Fetched:
    """What one request has brought."""

    rows: RowSet
    look_ups: List[LookUp]

    def has_gradients(self) -> bool:
        return any(look_up.matrix.grad is not None for look_up in self.look_ups)


class Tables:
    """The embeddings of a job's model, and the rows that its steps have looked up."""

    def __init__(self, work: Work, modules: Sequence[Embedding], reject_non_finite: bool) -> None:
        self._work = work
        self._reject_non_finite = reject_non_finite
        # Of the values that are there now.
        self._current: List[_Fetched] = []
        # Of batches before, whose gradients wait for a step.
        self._waiting: List[_Fetched] = []
        for module in modules:
            module.bind(self)

    def take_prefetched(self, ids: Mapping[str, torch.Tensor]) -> None:
        """The rows that have come for the batch that begins, and of what table and ids they are."""
        rows = self._work.prefetched()
        if rows is not None:
            self._current.append(_fetched(rows, ids))

    @contextlib.contextmanager
    def look_up(self, module: Embedding, ids: torch.Tensor) -> Iterator[LookUp]:
        """The context reads the rows; what has no part in a step's gradients is forgotten behind it."""
        found = self._find(module.name, ids)
        if found is not None:
            yield found
            return
        rows = None if self._work.is_over else self._work.rows.fetch({module.name: bytes_of(ids)})
        if rows is None:
            raise RuntimeError(f"rows of {module.name}: expected a job that is under way, found its end")
        fetched = _fetched(rows, {module.name: ids})
        if torch.is_grad_enabled() and self._work.current is not None:
            self._current.append(fetched)
            yield fetched.look_ups[0]
            return
        try:
            yield fetched.look_ups[0]
        finally:
            self._work.rows.release([rows])

    def write_gradients(self) -> List[RowSet]:
        """Of all look-ups since the step before. Returns the rows that have some. BadGradient."""
        fetched = [one for one in self._waiting + self._current if one.has_gradients()]
        for look_up in (look_up for one in fetched for look_up in one.look_ups):
            gradient = look_up.matrix.grad
            if gradient is None:
                look_up.gradients.zero_()
                continue
            if self._reject_non_finite and not torch.isfinite(gradient).all():
                raise BadGradient(f"gradient of {look_up.table}: expected finite elements, found one that is not")
            look_up.gradients.copy_(gradient)
        return [one.rows for one in fetched]

    def note_new_values(self) -> None:
        """What was looked up is old, but its gradients count."""
        current, self._current = self._current, []
        self._waiting += [one for one in current if one.has_gradients()]
        self._release([one for one in current if not one.has_gradients()])

    def note_step(self) -> None:
        """All gradients were sent."""
        waiting, self._waiting = self._waiting, []
        self._release(waiting)

    def zero_grad(self) -> None:
        for look_up in (look_up for one in self._current for look_up in one.look_ups):
            look_up.matrix.grad = None
        self.note_step()

    def _find(self, table: str, ids: torch.Tensor) -> Optional[LookUp]:
        for look_up in (look_up for one in self._current for look_up in one.look_ups):
            if look_up.table == table and torch.equal(look_up.ids, ids):
                return look_up
        return None

    def _release(self, fetched: Sequence[_Fetched]) -> None:
        self._work.rows.release([one.rows for one in fetched])


class SnapshotTables:
    """Those of the snapshot that is being evaluated; its evaluator has them."""

    def __init__(self, rows: EvaluatedRows) -> None:
        self._rows = rows

    @contextlib.contextmanager
    def look_up(self, module: Embedding, ids: torch.Tensor) -> Iterator[LookUp]:
        rows = self._rows.fetch(module.name, bytes_of(ids))
        try:
            yield _look_up(module.name, ids, rows.parts[module.name])
        finally:
            self._rows.release(rows)

    def take_prefetched(self, ids: Mapping[str, torch.Tensor]) -> None:
        raise RuntimeError("prefetch: expected embeddings of a job, found one that is evaluated")


class StoredRows:
    """Rows of a snapshot."""

    def __init__(self, content: TableContent, absent: float) -> None:
        keys = conversion.from_bytes(content.keys)
        order = keys.argsort()
        self._keys = keys[order]
        values = conversion.from_bytes(content.values)
        self._values = torch.cat([values[order], torch.full((1, values.shape[1]), absent)])

    @contextlib.contextmanager
    def look_up(self, module: Embedding, ids: torch.Tensor) -> Iterator[LookUp]:
        count = len(self._keys)
        at = torch.searchsorted(self._keys, ids)
        if count > 0:
            at[self._keys[at.clamp(max=count - 1)].ne(ids)] = count
        yield LookUp(module.name, ids, at.int(), self._values, self._values)

    def take_prefetched(self, ids: Mapping[str, torch.Tensor]) -> None:
        raise RuntimeError("prefetch: expected embeddings of a job, found one whose rows were loaded")


class DenseRows:
    """Those of a module's own weight."""

    @contextlib.contextmanager
    def look_up(self, module: Embedding, ids: torch.Tensor) -> Iterator[LookUp]:
        assert module.weight is not None
        check_ids(module.name, ids, len(module.weight))
        yield LookUp(module.name, ids, ids.int(), module.weight, module.weight)

    def take_prefetched(self, ids: Mapping[str, torch.Tensor]) -> None:
        """They are there."""


def of_tables(ids: Mapping[Embedding, torch.Tensor]) -> Dict[Embedding, torch.Tensor]:
    """Without embeddings whose rows are there anyway."""
    return {module: own for module, own in ids.items() if getattr(module, "weight", None) is None}


def ids_by_table(ids: Mapping[Embedding, torch.Tensor]) -> Dict[str, torch.Tensor]:
    """Of embeddings with one table the first one's."""
    by_table: Dict[str, torch.Tensor] = {}
    for module, own in ids.items():
        if not isinstance(module, Embedding):
            raise TypeError(f"prefetch: expected keelson.torch.Embedding -> ids, found {type(module).__name__}")
        by_table.setdefault(module.name, module.ids_of(own.cpu())[0])
    return by_table


def bytes_of(ids: torch.Tensor) -> memoryview:
    """Of int64 in C order; as long as the tensor lives."""
    if ids.numel() == 0:
        return memoryview(b"")
    return memoryview((ctypes.c_char * (8 * ids.numel())).from_address(ids.data_ptr())).cast("B")


def _fetched(rows: RowSet, ids: Mapping[str, torch.Tensor]) -> _Fetched:
    return _Fetched(rows, [_look_up(name, own, rows.parts[name]) for name, own in ids.items()])


def _look_up(table: str, ids: torch.Tensor, part: Part) -> LookUp:
    if part.count == 0:
        none = torch.zeros(0, part.dim)
        return LookUp(table, ids, ids.int(), none.clone().requires_grad_(), none)
    # Autograd keeps the positions longer than the memory has them.
    positions = torch.frombuffer(part.positions, dtype=torch.int32).clone()
    shape = (part.count, part.dim)
    values = conversion.view_of_floats(part.values, shape).requires_grad_()
    return LookUp(table, ids, positions, values, conversion.view_of_floats(part.gradients, shape))
