"""The rows of tables that a script has: what it asks its agent for, and the memory in which they come.

A space is memory that the agent makes and both map; each request has one. It has, for each of the request's tables, the ids
that the script writes, the position of each id's row, which the agent writes, and the rows with their gradients, each id's
once. When nobody needs a request's rows any more, its space is used again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable, Dict, List, Mapping, Optional, Sequence, Tuple

from . import protocol
from .errors import AgentLost

_ALIGNMENT = 64
_MOST_SPACES = 256
_SMALLEST_SPACE = 1 << 16
# What is wanted: the name of a table -> ids, as bytes of 64-bit integers.
Wanted = Mapping[str, memoryview]


@dataclass(frozen=True)
class Part:
    """The rows of one table, as bytes."""

    positions: memoryview  # int32, by id
    count: int  # of rows
    dim: int
    values: memoryview  # float32 [count, dim]
    gradients: memoryview

    @property
    def shape(self) -> Tuple[int, int]:
        return (self.count, self.dim)


@dataclass
class Space:
    number: int
    memory: memoryview


@dataclass
class RowSet:
    """The rows of one request."""

    space: Space
    parts: Dict[str, Part]


class RowConnection:
    """What of a session rows need."""

    def send(self, packet: bytes) -> None:
        raise NotImplementedError

    def row_answer(self, kind: int) -> memoryview:
        """Waits for a message about rows; its fields."""
        raise NotImplementedError

    def take_memory(self, byte_count: int) -> memoryview:
        """That which came last."""
        raise NotImplementedError

    def make_space(self, number: int, byte_count: int) -> memoryview:
        self.send(protocol.message(protocol.ROW_SPACE, "QQ", number, byte_count))
        self.row_answer(protocol.ROW_MEMORY)
        return self.take_memory(byte_count)

    def rows_answer(self) -> Tuple[int, List[int]]:
        """Waits for ROWS_READY: the space, and how many rows of each table are there; none: they have not come."""
        body = self.row_answer(protocol.ROWS_READY)
        number, came, *counts = protocol.unpack(f"{len(body) // 8}Q", body)
        return number, counts if came else []


class Rows:
    """`tables`: their dims, in the order of the configuration."""

    def __init__(self, connection: RowConnection, tables: Mapping[str, int]) -> None:
        self._connection = connection
        self._tables = {name: (number, dim) for number, (name, dim) in enumerate(tables.items())}
        self._made = 0
        self._free: List[Space] = []

    def fetch(self, wanted: Wanted) -> Optional[RowSet]:
        """None: the job is over, and nobody has them."""
        return self._finish(self._ask(protocol.ROWS, wanted), wanted)

    def want_ahead(self, wanted: Wanted) -> Callable[[], Optional[RowSet]]:
        """They come with the next values. Returns what waits for them, to be called behind the message that brings these;
        that returns None where they have not come."""
        space = self._ask(protocol.ROWS_AHEAD, wanted)
        return lambda: self._finish(space, wanted)

    def release(self, sets: Sequence[RowSet]) -> None:
        """Nobody looks at them any more."""
        self._free += [rows.space for rows in sets]

    def _ask(self, kind: int, wanted: Wanted) -> Space:
        places = self._places(wanted)
        space = self._space(places[-1][-1] if places else 1)
        numbers = [space.number]
        for (name, ids), place in zip(wanted.items(), places):
            space.memory[place[0] : place[0] + ids.nbytes] = ids
            numbers += [*self._tables[name], ids.nbytes // 8]
        self._connection.send(protocol.message(kind, f"{len(numbers)}Q", *numbers))
        return space

    def _finish(self, space: Space, wanted: Wanted) -> Optional[RowSet]:
        number, counts = self._connection.rows_answer()
        if number != space.number or len(counts) not in (0, len(wanted)):
            raise AgentLost(f"keelson_agent: expected rows in space {space.number}, found them in {number}")
        if not counts:
            self._free.append(space)
            return None
        parts: Dict[str, Part] = {}
        for (name, ids), place, count in zip(wanted.items(), self._places(wanted), counts):
            _, positions, values, gradients, _ = place
            dim = self._tables[name][1]
            size = 4 * count * dim
            parts[name] = Part(
                space.memory[positions : positions + ids.nbytes // 2],
                count,
                dim,
                space.memory[values : values + size],
                space.memory[gradients : gradients + size],
            )
        return RowSet(space, parts)

    def _places(self, wanted: Wanted) -> List[Tuple[int, int, int, int, int]]:
        """Where each table's ids, positions, values and gradients begin, and where the last end."""
        places = []
        at = 0
        for name, ids in wanted.items():
            count, dim = ids.nbytes // 8, self._tables[name][1]
            own = []
            for size in (8 * count, 4 * count, 4 * count * dim, 4 * count * dim):
                at = (at + _ALIGNMENT - 1) // _ALIGNMENT * _ALIGNMENT
                own.append(at)
                at += size
            places.append((own[0], own[1], own[2], own[3], at))
        return places

    def _space(self, byte_count: int) -> Space:
        """A free one that is large enough, or one that is made."""
        for space in self._free:
            if space.memory.nbytes >= byte_count:
                self._free.remove(space)
                return space
        size = _SMALLEST_SPACE
        while size < byte_count:
            size *= 2
        if self._free:
            number = self._free.pop().number  # whose memory is too small
        else:
            if self._made == _MOST_SPACES:
                raise RuntimeError(f"rows: expected at most {_MOST_SPACES} look-ups between two steps, found more")
            number, self._made = self._made, self._made + 1
        return Space(number, self._connection.make_space(number, size))
