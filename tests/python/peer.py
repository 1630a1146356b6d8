"""The agent's end of the connection, played by a test: hands out tickets, applies gradients as SGD does, and misbehaves as
it is told to. As docs/agent-protocol.md has it, and checks the script's side of that."""

from __future__ import annotations

import array
import contextlib
import dataclasses
import mmap
import os
import socket
import struct
from typing import Any, Dict, List, Sequence, Tuple

HELLO, NEXT, BEGIN, STEP, SKIP, END_TRAINING, LEAVE, SAVE, LOG = range(1, 10)
ROW_SPACE, ROWS, ROWS_AHEAD, ROW_MEMORY, ROWS_READY = 20, 21, 22, 120, 121
OFFER = 30
MODEL, TICKET, NO_MORE, READY, RESULT, FAILED, BYE, SAVED = range(101, 109)
_HEADER = struct.Struct("<II")
RECORDS_IN_MESSAGE = 4096
PROTOCOL = 3


@dataclasses.dataclass
class Plan:
    """What the peer does."""

    # Name, shape, values to begin with, and the decay of a moving average or None.
    variables: Sequence[Tuple[str, Sequence[int], Sequence[float], Any]] = (("w", [2], [1.0, 2.0], None),)
    # Dims of tables, whose rows start with 1 / (1 + id) and are stepped as variables are.
    tables: Sequence[int] = ()
    records: int = 10
    batch_size: int = 2
    steps: int = 5
    lr: float = 1.0
    first_step: int = 0  # The job's, when the script comes.
    ask: bool = False  # Each ticket has the flag.
    one_at_a_time: bool = False  # A ticket comes when the one before is finished.
    invalid: Sequence[int] = ()  # Tickets that are another's by BEGIN.
    unwanted: Sequence[int] = ()  # Tickets whose gradients are not wanted.
    die_at: int = -1  # At the STEP of this ticket.
    fail_at: int = -1
    stuck_at: int = -1  # Answers nothing from the STEP of this ticket on, as while a server is away.
    fail_join: bool = False
    fail_code: int = 14
    fail_text: str = "ps-0 is away"
    holds_values: bool = False  # Takes offers.
    save_code: int = 0  # Of the answer to SAVE.
    silent: bool = False  # Never says MODEL.
    is_done: bool = False  # The job, before the script comes.
    says_nothing_of_the_end: bool = False  # To chief and server, of fake_programs.
    ends_at_once: bool = False  # With 0, as the agent of such a job does.


class Died(Exception):
    """As the plan has it."""


class Peer:
    """serve() returns when the script has left or closed its end. Broken rules are AssertionErrors."""

    def __init__(self, connection: socket.socket, plan: Plan) -> None:
        self._connection = connection
        self._plan = plan
        self.events: List[Tuple[Any, ...]] = []
        self.computes = ""
        self._memory = memoryview(b"")
        self._places: Dict[str, Tuple[int, int, int]] = {}
        self._descriptor = -1
        self._step = plan.first_step
        self._given = 0
        self._wanted = 0
        self._unfinished: List[int] = []
        self._begun = -1
        self._offered: Dict[str, bytes] = {}  # Gradients of the oldest ticket.
        self._said_no_more = False
        self._is_stopped = False
        self.rows: Dict[Tuple[int, int], List[float]] = {}  # by table and id
        self._spaces: Dict[int, memoryview] = {}
        self._delivered: Dict[int, List[Tuple[int, List[int], int]]] = {}  # by space: table, ids, offset of the gradients
        self._ahead: Any = None

    def serve(self) -> None:
        try:
            while self._serve_one():
                pass
        finally:
            self._connection.close()
            if self._descriptor >= 0:
                os.close(self._descriptor)

    def values(self, name: str) -> List[float]:
        begin, _, count = self._places[name]
        return self._memory[begin : begin + 4 * count].cast("f").tolist()

    def _serve_one(self) -> bool:
        try:
            packet = self._connection.recv(1 << 17)
        except ConnectionResetError:
            packet = b""
        if not packet:
            self.events.append(("closed",))
            return False
        kind, length = _HEADER.unpack_from(packet)
        assert length == len(packet) - _HEADER.size, "the length is that of the fields"
        body = packet[_HEADER.size :]
        if kind == HELLO:
            (version,) = struct.unpack_from("<Q", body)
            assert version == PROTOCOL
            self.computes = body[8:].decode()
            return self._join()
        if kind == NEXT:
            self._wanted += struct.unpack("<Q", body)[0]
            self._hand_out()
            return True
        if kind == BEGIN:
            self._begin(struct.unpack("<Q", body)[0])
            return True
        if kind == OFFER:
            ticket, *variables = struct.unpack(f"<{length // 8}Q", body)
            self._offer(ticket, variables)
            return True
        if kind == STEP:
            ticket, loss, compute, waiting, wanted, count, *numbers = struct.unpack(f"<Qddd{len(body) // 8 - 4}Q", body)
            spaces, absent = numbers[:count], numbers[count:]
            self._wanted += wanted
            if ticket == self._plan.stuck_at:
                while self._connection.recv(1 << 17):
                    pass
                self.events.append(("closed",))
                return False
            assert compute >= 0 and waiting >= 0
            assert all(space in self._delivered for space in spaces) and len(set(spaces)) == len(spaces)
            self._finish(ticket, loss, True, spaces, absent)
            return True
        if kind == ROW_SPACE:
            self._make_space(*struct.unpack("<QQ", body))
            return True
        if kind in (ROWS, ROWS_AHEAD):
            space, *numbers = struct.unpack(f"<{len(body) // 8}Q", body)
            wanted = (space, list(zip(numbers[::3], numbers[1::3], numbers[2::3])))
            self.events.append(("rows" if kind == ROWS else "ahead", [count for _, _, count in wanted[1]]))
            if kind == ROWS:
                self._deliver(*wanted, came=not self._said_no_more or bool(self._unfinished))
            else:
                self._ahead = wanted
            return True
        if kind == SKIP:
            ticket, loss, wanted = struct.unpack("<QdQ", body)
            self._wanted += wanted
            self._finish(ticket, loss, False)
            return True
        if kind == END_TRAINING:
            self.events.append(("end", body.decode()))
            self._is_stopped = True
            self._hand_out()
            return True
        if kind == SAVE:
            code = self._plan.save_code
            self._send(SAVED, struct.pack("<Qq", code, self._step) + (b"the disk is full" if code else b""))
            return True
        if kind == LOG:
            step, value = struct.unpack_from("<qd", body)
            self.events.append(("log", body[16:].decode(), step, value))
            return True
        assert kind == LEAVE, kind
        self.events.append(("leave",))
        self._send(BYE, b"")
        return False

    def _join(self) -> bool:
        plan = self._plan
        if plan.fail_join:
            self._fail()
            return False
        if plan.ends_at_once:
            return False
        if plan.is_done:
            self._send(NO_MORE, struct.pack("<Q", 0))
            self._said_no_more = True
            return True
        if plan.silent:
            return True
        self._make_memory()
        fields = struct.pack(
            "<QQQqqq", PROTOCOL, len(self._memory), self._directory_bytes, plan.records, plan.steps, self._step
        )
        packet = _HEADER.pack(MODEL, len(fields)) + fields
        socket.send_fds(self._connection, [packet], [self._descriptor])
        return True

    def _make_memory(self) -> None:
        entries, offset = [], 1 << 14
        for name, shape, values, _ in self._plan.variables:
            size = 4 * len(values)
            gradients = offset + (size + 63) // 64 * 64
            self._places[name] = (offset, gradients, len(values))
            encoded = name.encode()
            entries.append(struct.pack("<Q", len(encoded)) + encoded + bytes(-len(encoded) % 8))
            entries.append(struct.pack(f"<{1 + len(shape)}Q", len(shape), *shape))
            entries.append(struct.pack("<QQ", offset, gradients))
            offset = gradients + (size + 63) // 64 * 64
        directory = struct.pack("<Q", len(entries) // 3) + b"".join(entries)
        self._directory_bytes = len(directory)
        assert len(directory) <= 1 << 14
        self._descriptor = os.memfd_create("peer")
        os.ftruncate(self._descriptor, offset)
        self._memory = memoryview(mmap.mmap(self._descriptor, offset))
        self._memory[: len(directory)] = directory
        for name, _, values, _ in self._plan.variables:
            begin, _, count = self._places[name]
            self._memory[begin : begin + 4 * count] = array.array("f", values).tobytes()

    def _hand_out(self) -> None:
        plan = self._plan
        while self._wanted > 0 and not self._said_no_more:
            if self._given == plan.steps or self._is_stopped:
                self._said_no_more = True
                self._send(NO_MORE, struct.pack("<Q", self._step))
                return
            if plan.one_at_a_time and self._unfinished:
                return
            begin = self._given * plan.batch_size
            positions = [position % plan.records for position in range(begin, begin + plan.batch_size)]
            for first in range(0, len(positions), RECORDS_IN_MESSAGE):
                part = positions[first : first + RECORDS_IN_MESSAGE]
                fields = (self._given, self._given, begin // plan.records, begin, begin + plan.batch_size)
                head = struct.pack("<QqqqqQQ", *fields, int(plan.ask), first)
                self._send(TICKET, head + array.array("q", part).tobytes())
            self._unfinished.append(self._given)
            self._given += 1
            self._wanted -= 1

    def _begin(self, ticket: int) -> None:
        assert self._unfinished and self._unfinished[0] == ticket, "tickets are begun in their order"
        self.events.append(("begin", ticket))
        valid = ticket not in self._plan.invalid
        if valid:
            self._begun = ticket
        else:
            self._unfinished.pop(0)
        self._send(READY, struct.pack("<QQq", ticket, int(valid), self._step))
        self._deliver_ahead(True)
        self._hand_out()

    def _offer(self, ticket: int, variables: Sequence[int]) -> None:
        assert self._plan.holds_values, "only an agent that holds values back takes offers"
        assert self._unfinished and self._unfinished[0] == ticket, "the oldest ticket has offers"
        self.events.append(("offer", ticket, *variables))
        for name in (self._plan.variables[v][0] for v in variables):
            assert name not in self._offered, "a variable is offered once"
            self._offered[name] = self._gradient_of(name)

    def _gradient_of(self, name: str) -> bytes:
        _, begin, count = self._places[name]
        return bytes(self._memory[begin : begin + 4 * count])

    def _finish(
        self, ticket: int, loss: float, has_gradients: bool, spaces: Sequence[int] = (), absent: Sequence[int] = ()
    ) -> None:
        assert self._unfinished and self._unfinished[0] == ticket, "tickets are finished in their order"
        for name, gradient in self._offered.items():
            assert has_gradients and gradient == self._gradient_of(name), "an offered gradient does not change"
        self._offered = {}
        assert not self._plan.ask or self._begun == ticket, "a ticket with the flag is begun"
        if ticket == self._plan.die_at:
            raise Died()
        if ticket == self._plan.fail_at:
            self._fail()
            raise Died()
        counts = ticket not in self._plan.unwanted
        self.events.append(("step" if has_gradients else "skip", ticket, loss))
        self._unfinished.pop(0)
        if counts:
            self._step += 1
            if has_gradients:
                self._apply(absent)
                self._apply_rows(spaces)
        self._send(RESULT, struct.pack("<QQqq", ticket, int(counts), self._step, 0))
        self._deliver_ahead(counts and not self._plan.ask)
        self._hand_out()

    def _apply(self, absent: Sequence[int]) -> None:
        for position, (name, _, _, decay) in enumerate(self._plan.variables):
            if position in absent:
                continue
            value_at, gradient_at, count = self._places[name]
            values = self._memory[value_at : value_at + 4 * count].cast("f")
            gradients = self._memory[gradient_at : gradient_at + 4 * count].cast("f")
            for i in range(count):
                if decay is None:
                    values[i] -= self._plan.lr * gradients[i]
                else:
                    values[i] = decay * values[i] + (1 - decay) * gradients[i]

    def _make_space(self, space: int, size: int) -> None:
        descriptor = os.memfd_create("rows")
        os.ftruncate(descriptor, size)
        self._spaces[space] = memoryview(mmap.mmap(descriptor, size))
        fields = struct.pack("<QQ", space, size)
        socket.send_fds(self._connection, [_HEADER.pack(ROW_MEMORY, len(fields)) + fields], [descriptor])
        os.close(descriptor)

    def _deliver_ahead(self, came: bool) -> None:
        if self._ahead is not None:
            wanted, self._ahead = self._ahead, None
            self._deliver(*wanted, came=came)

    def _deliver(self, space: int, parts: Sequence[Tuple[int, int, int]], came: bool) -> None:
        memory = self._spaces[space]
        at = 0

        def place(size: int) -> int:
            nonlocal at
            begin = (at + 63) // 64 * 64
            at = begin + size
            assert at <= len(memory), "the space has room"
            return begin

        delivered, counts = [], []
        for table, dim, count in parts:
            assert dim == self._plan.tables[table], "the table's dim"
            ids_at, positions_at, values_at, gradients_at = map(place, (8 * count, 4 * count, *[4 * count * dim] * 2))
            ids = memory[ids_at : ids_at + 8 * count].cast("Q").tolist()
            distinct = sorted(set(ids), key=hash)
            positions = array.array("i", [distinct.index(one) for one in ids])
            memory[positions_at : positions_at + 4 * count] = positions.tobytes()
            for row, one in enumerate(distinct):
                values = array.array("f", self.row(table, one)).tobytes()
                memory[values_at + row * len(values) : values_at + (row + 1) * len(values)] = values
            delivered.append((table, distinct, gradients_at))
            counts.append(len(distinct))
        self._delivered.pop(space, None)
        if came:
            self._delivered[space] = delivered
        self._send(ROWS_READY, struct.pack(f"<QQ{len(counts)}Q", space, int(came), *counts))

    def row(self, table: int, one: int) -> List[float]:
        return self.rows.setdefault((table, one), [1 / (1 + one)] * self._plan.tables[table])

    def _apply_rows(self, spaces: Sequence[int]) -> None:
        for space in spaces:
            for table, distinct, begin in self._delivered[space]:
                dim = self._plan.tables[table]
                gradients = self._spaces[space][begin : begin + 4 * dim * len(distinct)].cast("f").tolist()
                for row, one in enumerate(distinct):
                    values = self.row(table, one)
                    for i in range(dim):
                        values[i] -= self._plan.lr * gradients[row * dim + i]

    def _fail(self) -> None:
        self._send(FAILED, struct.pack("<Q", self._plan.fail_code) + self._plan.fail_text.encode())

    def _send(self, kind: int, body: bytes) -> None:
        # A script may end while a ticket is on its way to it.
        with contextlib.suppress(BrokenPipeError):
            self._connection.send(_HEADER.pack(kind, len(body)) + body)
