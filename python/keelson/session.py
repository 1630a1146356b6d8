"""The script's end of the connection with its agent: tickets come in, steps go out.

One thread uses it, that of the training loop. Between the slices of a wait `on_slice` looks whether something else has
happened (a signal, a program that ended), and may raise. When the agent is gone, `on_lost` may say better why, or that it had
nothing to do.
"""

from __future__ import annotations

import array
import socket
import time
from collections import deque
from dataclasses import dataclass
from typing import Callable, Deque, Dict, List, NamedTuple, Optional, Sequence, Tuple

from . import protocol
from .connection import SLICE_SECONDS, Connection
from .errors import AgentLost, Error, JoinError, exit_code_of_status, lost
from .rows import RowConnection

# For how long values count as new: others push meanwhile.
_NEW_SECONDS = 0.2
_ASK = 1  # A ticket's flag.


@dataclass
class Ticket:
    """A step that this script is to compute."""

    number: int
    step: int
    epoch: int
    must_ask: bool
    records: array.array[int]  # positions in the data


class Arrays(NamedTuple):
    """A variable's values and gradients, as bytes of float32."""

    shape: Tuple[int, ...]
    values: memoryview
    gradients: memoryview


@dataclass
class Model:
    # Shared with the agent: it stays mapped as long as anybody has a view.
    arrays: Dict[str, Arrays]
    max_steps: int
    # What the arrays are part of; None: each has its own.
    memory: Optional[memoryview] = None


class Session(RowConnection):
    """Closing it tells the agent that the script has left."""

    def __init__(
        self,
        connection: socket.socket,
        on_slice: Callable[[], None] = lambda: None,
        on_lost: Callable[[], bool] = lambda: False,
    ) -> None:
        self._connection = Connection(connection, "keelson_agent", on_slice)
        self._on_lost = on_lost
        self._has_ended = False
        self._model_message: Optional[protocol.ModelMessage] = None
        self._tickets: Deque[Ticket] = deque()
        self._parts: Dict[int, Ticket] = {}  # whose records are not all here yet
        self._requested = 0
        self._answer: Optional[memoryview] = None
        self._row_answers: Deque[Tuple[int, memoryview]] = deque()
        self._is_unanswered = False
        self._values_are_new_until = 0.0
        self._saved: Optional[memoryview] = None
        self._said_bye = False
        self._joined = False
        self.no_more = False
        # How often the values in the memory have become others.
        self.values_version = 0
        self.step = 0

    def join(self, computes: str) -> Optional[Model]:
        """Returns when the job takes the script in; None: the job is done. JoinError: what the agent could not do.
        AgentLost."""
        self.send(protocol.hello(computes))
        while self._model_message is None:
            if self.no_more:
                return None
            self._receive()
        told = self._model_message
        descriptors = len(self._connection.descriptors)
        if told.protocol != protocol.VERSION or descriptors != 1:
            raise JoinError(
                f"keelson_agent: expected protocol {protocol.VERSION} and memory, found {told.protocol} and "
                f"{descriptors} descriptors: package and programs are of different versions"
            )
        memory = self.take_memory(told.memory_bytes)
        self._joined = True
        variables = protocol.read_directory(memory[: told.directory_bytes])
        return Model({variable.name: _arrays(variable, memory) for variable in variables}, told.max_steps, memory)

    @property
    def is_over(self) -> bool:
        """No ticket is there, and none will come."""
        return self.no_more and not self._tickets

    def take(self, patience: Optional[float] = None) -> Optional[Ticket]:
        """The next ticket; None: the job has no more (`no_more`), or none came within `patience` seconds."""
        self._connection.on_slice()  # Steps may follow each other without a wait that lasts a slice.
        deadline = None if patience is None else time.monotonic() + patience
        while not self._tickets and not self.no_more:
            self._request()
            self._receive(deadline)
            if deadline is not None and time.monotonic() >= deadline:
                break
        if not self._tickets:
            return None
        return self._tickets.popleft()

    def _request(self) -> None:
        """Asks for a ticket, unless one is asked for."""
        if self._request_with_step():
            self.send(protocol.message(protocol.NEXT, "Q", 1))

    def _request_with_step(self) -> int:
        """How many more tickets are to be asked for, of which the message that it is part of tells the agent: the next one
        comes while a step is made."""
        if self._requested > 0 or self._tickets or self.no_more:
            return 0
        self._requested = 1
        return 1

    def has_values_for(self, ticket: Ticket) -> bool:
        """begin() need not ask for them."""
        return time.monotonic() < self._values_are_new_until and not ticket.must_ask

    def begin(self, ticket: Ticket) -> bool:
        """Has the values ready that its gradients are to be computed from; False: the ticket is another's now."""
        return self.has_values_for(ticket) or self.ask_values(ticket)

    def ask_values(self, ticket: Ticket) -> bool:
        """Likewise, however new they are."""
        valid, self.step = self._ask(protocol.READY, ticket, protocol.message(protocol.BEGIN, "Q", ticket.number), "Qq")
        self._note_values(bool(valid))
        return bool(valid)

    def offer(self, ticket: Ticket, variables: Sequence[int]) -> None:
        """Their gradients are in the memory, and stay as they are until the push."""
        self.send(protocol.message(protocol.OFFER, f"Q{len(variables)}Q", ticket.number, *variables))

    def push(
        self,
        ticket: Ticket,
        loss: float,
        compute_seconds: float,
        input_seconds: float,
        spaces: Sequence[int] = (),
        absent: Sequence[int] = (),
    ) -> bool:
        """Its gradients are in the memory, but for these variables that have none, by their positions, and those of rows in
        these spaces; False: they were not wanted any more."""
        counted = (self._request_with_step(), len(spaces), *spaces, *absent)
        numbers = (ticket.number, loss, compute_seconds, input_seconds, *counted)
        request = protocol.message(protocol.STEP, f"Qddd{len(counted)}Q", *numbers)
        return self._finish(ticket, request)

    def skip(self, ticket: Ticket, loss: float) -> bool:
        """It is done without gradients."""
        numbers = (ticket.number, loss, self._request_with_step())
        return self._finish(ticket, protocol.message(protocol.SKIP, "QdQ", *numbers))

    def end_training(self, reason: str) -> None:
        self.send(protocol.end_training(reason))

    def take_memory(self, byte_count: int) -> memoryview:
        return self._connection.take_memory(byte_count)

    def row_answer(self, kind: int) -> memoryview:
        self._is_unanswered = True
        while not self._row_answers:
            if self._has_ended:
                raise AgentLost("keelson_agent: expected rows, found its end")
            self._receive()
        self._is_unanswered = False
        found, body = self._row_answers.popleft()
        if found != kind:
            raise AgentLost(f"keelson_agent: expected an answer {kind}, found {found}")
        return body

    def log(self, name: str, step: int, value: float) -> None:
        if not self._has_ended:
            self.send(protocol.message(protocol.LOG, "qd", step, value, text=name.encode()))

    def save(self) -> int:
        """Has a snapshot written; returns its step. Error: why there is none."""
        self.send(protocol.message(protocol.SAVE))
        self._saved = None
        while self._saved is None and not self._has_ended:
            self._receive()
        if self._saved is None:
            return self.step  # The job was done before.
        code, step = protocol.unpack("Qq", self._saved)
        if code != 0:
            raise Error(bytes(self._saved[16:]).decode(errors="replace"))
        return step

    def leave(self, patience: float) -> None:
        """Gives back what is not finished. An agent that owes an answer may wait for a server, and hears the end of the
        connection alone."""
        if self._has_ended or self._is_unanswered:
            return
        self.send(protocol.message(protocol.LEAVE))
        deadline = time.monotonic() + patience
        while not self._said_bye and time.monotonic() < deadline:
            self._receive(deadline)

    def close(self) -> None:
        self._connection.close()

    def _finish(self, ticket: Ticket, request: bytes) -> bool:
        counts, step, _ = self._ask(protocol.RESULT, ticket, request, "Qqq")
        self.step = max(self.step, step)
        self._note_values(bool(counts) and not ticket.must_ask)
        return bool(counts)

    def _note_values(self, are_new: bool) -> None:
        self._values_are_new_until = time.monotonic() + _NEW_SECONDS if are_new else 0.0
        self.values_version += are_new

    def _ask(self, kind: int, ticket: Ticket, request: bytes, fields: str) -> List[int]:
        """The answer's fields behind the ticket."""
        self._is_unanswered = True
        self.send(request)
        self._answer = None
        while self._answer is None:
            self._receive()
        self._is_unanswered = False
        answered, _, number, *rest = protocol.unpack(f"IIQ{fields}", self._answer)
        if (answered, number) != (kind, ticket.number):
            expected = f"an answer {kind} of ticket {ticket.number}"
            raise AgentLost(f"keelson_agent: expected {expected}, found {answered} of {number}")
        return rest

    def send(self, packet: bytes) -> None:
        if self._connection.send(packet):
            return
        while not self._has_ended:  # What the agent said before it went comes first.
            self._receive()

    def _receive(self, deadline: Optional[float] = None) -> None:
        """Takes in one message, or waits a slice, or until the deadline."""
        packet = self._connection.receive(SLICE_SECONDS if deadline is None else deadline - time.monotonic())
        if packet is None:
            self._connection.on_slice()
        elif not packet:
            self._lost()
        else:
            try:
                self._take_in(packet)
            except protocol.Malformed as error:
                raise AgentLost(f"keelson_agent: {error}: package and programs are of different versions") from error

    def _take_in(self, packet: memoryview) -> None:
        kind, body = protocol.parse(packet)
        if kind == protocol.TICKET:
            self._take_in_ticket(protocol.TicketPart.read(body))
        elif kind in (protocol.READY, protocol.RESULT):
            self._answer = memoryview(bytes(packet))
        elif kind in (protocol.ROW_MEMORY, protocol.ROWS_READY):
            self._row_answers.append((kind, memoryview(bytes(body))))
        elif kind == protocol.NO_MORE:
            self.no_more = True
            self.step = max(self.step, *protocol.unpack("q", body))
        elif kind == protocol.MODEL:
            self._model_message = protocol.ModelMessage.read(body)
            self.step = self._model_message.step
        elif kind == protocol.FAILED:
            (code,) = protocol.unpack("Q", body)
            self._failed(exit_code_of_status(code), bytes(body[8:]).decode(errors="replace"))
        elif kind == protocol.SAVED:
            self._saved = memoryview(bytes(body))
        elif kind == protocol.BYE:
            self._said_bye = True
        else:
            raise protocol.Malformed(f"expected a kind of message that this package knows, found {kind}")

    def _take_in_ticket(self, part: protocol.TicketPart) -> None:
        ticket = self._parts.pop(part.ticket, None)
        if ticket is None:
            ticket = Ticket(part.ticket, part.step, part.epoch, bool(part.flags & _ASK), array.array("q"))
        if part.first != len(ticket.records):
            raise protocol.Malformed(f"expected records from {len(ticket.records)} on, found {part.first}")
        ticket.records.extend(part.records)
        if len(ticket.records) < part.end - part.begin:
            self._parts[ticket.number] = ticket
            return
        self._tickets.append(ticket)
        self._requested = max(0, self._requested - 1)

    def _failed(self, exit_code: int, text: str) -> None:
        if not self._joined and exit_code == JoinError.exit_code:
            raise JoinError(text)
        raise lost(text, exit_code)

    def _lost(self) -> None:
        has_nothing_to_do = self._on_lost()
        if self._joined or not has_nothing_to_do:
            raise AgentLost("keelson_agent: the connection has ended")
        self.no_more = self._has_ended = True


def _arrays(variable: protocol.Variable, memory: memoryview) -> Arrays:
    values, gradients = (
        memory[offset : offset + variable.byte_count] for offset in (variable.values_offset, variable.gradients_offset)
    )
    return Arrays(variable.shape, values, gradients)
