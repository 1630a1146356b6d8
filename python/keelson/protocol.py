"""The messages between a script and its agent, as docs/agent-protocol.md describes them."""

from __future__ import annotations

import array
import struct
from typing import Dict, List, NamedTuple, Tuple

VERSION = 3
# Of one packet: a TICKET with 4096 records is the longest.
MAX_BYTES = 1 << 17

HELLO, NEXT, BEGIN, STEP, SKIP, END_TRAINING, LEAVE, SAVE, LOG = 1, 2, 3, 4, 5, 6, 7, 8, 9
ROW_SPACE, ROWS, ROWS_AHEAD = 20, 21, 22
OFFER = 30
SCORING, SCORES, FORM, PREDICTED, NOT_PREDICTED = 40, 41, 42, 43, 44
MODEL, TICKET, NO_MORE, READY, RESULT, FAILED, BYE, SAVED = 101, 102, 103, 104, 105, 106, 107, 108
ROW_MEMORY, ROWS_READY = 120, 121
EVALUATION, SCORE, PAGE, PREDICT = 140, 141, 142, 143

_HEADER = struct.Struct("<II")
_MAX_NAME_BYTES, _MAX_REASON_BYTES = 200, 1000


def message(kind: int, fields: str = "", *values: object, text: bytes = b"") -> bytes:
    """`fields`: as struct has them, "Qd"."""
    body = struct.pack(f"<{fields}", *values) + text
    return _HEADER.pack(kind, len(body)) + body


def hello(computes: str) -> bytes:
    return message(HELLO, "Q", VERSION, text=_cut(computes, _MAX_NAME_BYTES))


def end_training(reason: str) -> bytes:
    return message(END_TRAINING, text=_cut(" ".join(reason.split()), _MAX_REASON_BYTES))


def not_predicted(number: int, reason: str) -> bytes:
    return message(NOT_PREDICTED, "Q", number, text=_cut(" ".join(reason.split()), _MAX_REASON_BYTES))


def _cut(text: str, limit: int) -> bytes:
    return text.encode()[:limit].decode(errors="ignore").encode()


class Malformed(Exception):
    """A message that is none: the agent is of another version."""


def parse(packet: memoryview) -> Tuple[int, memoryview]:
    """The kind and the fields."""
    if len(packet) < _HEADER.size:
        raise Malformed(f"expected a header of {_HEADER.size} bytes, found {len(packet)}")
    kind, length = _HEADER.unpack_from(packet)
    if length != len(packet) - _HEADER.size:
        raise Malformed(f"expected {length} bytes behind the header, found {len(packet) - _HEADER.size}")
    return kind, packet[_HEADER.size :]


def unpack(fields: str, body: memoryview) -> Tuple[int, ...]:
    try:
        return struct.unpack_from(f"<{fields}", body)
    except struct.error as error:
        raise Malformed(str(error)) from error


class ModelMessage(NamedTuple):
    protocol: int
    memory_bytes: int
    directory_bytes: int
    records: int
    max_steps: int
    step: int

    @classmethod
    def read(cls, body: memoryview) -> ModelMessage:
        return cls(*unpack("QQQqqq", body))


class EvaluationMessage(NamedTuple):
    protocol: int
    memory_bytes: int
    directory_bytes: int
    scores_offset: int
    labels_offset: int
    tables: Dict[str, int]  # dims, in the order of the configuration

    @classmethod
    def read(cls, body: memoryview) -> EvaluationMessage:
        version, memory, directory, scores, labels, count = unpack("6Q", body)
        dims = unpack(f"{count}Q", body[6 * 8 :])
        names = bytes(body[(6 + count) * 8 :]).decode().split("\n")
        return cls(version, memory, directory, scores, labels, dict(zip(names, dims)))


class TicketPart(NamedTuple):
    """All of a ticket's records, or some of them."""

    ticket: int
    step: int
    epoch: int
    begin: int
    end: int
    flags: int
    first: int
    records: array.array[int]

    @classmethod
    def read(cls, body: memoryview) -> TicketPart:
        ticket, step, epoch, begin, end, flags, first = unpack("QqqqqQQ", body)
        records = array.array("q")
        records.frombytes(body[7 * 8 :])
        return cls(ticket, step, epoch, begin, end, flags, first, records)


class Variable(NamedTuple):
    """Where an array of float32 lies."""

    name: str
    shape: Tuple[int, ...]
    values_offset: int
    gradients_offset: int

    @property
    def byte_count(self) -> int:
        count = 4
        for extent in self.shape:
            count *= extent
        return count


def read_directory(memory: memoryview) -> List[Variable]:
    """`memory`: of the directory's bytes."""
    position = 0

    def number() -> int:
        nonlocal position
        (value,) = unpack("Q", memory[position:])
        position += 8
        return value

    variables: Dict[str, Variable] = {}
    for _ in range(number()):
        length = number()
        name = bytes(memory[position : position + length]).decode()
        position += (length + 7) // 8 * 8
        shape = tuple(number() for _ in range(number()))
        variables[name] = Variable(name, shape, number(), number())
    return list(variables.values())
