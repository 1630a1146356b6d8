"""The script's end of the connection with the evaluator: asked for scores, it computes them."""

from __future__ import annotations

import json
import socket
from collections import deque
from typing import Any, Callable, Deque, Dict, NamedTuple, Optional, Tuple, Union

from . import protocol
from .connection import Connection
from .errors import AgentLost, JoinError, exit_code_of_status
from .rows import RowConnection
from .scoring import KINDS, Form, Scoring

_PROBABILITIES = 1  # A flag of SCORING.


def _scoring_message(scoring: Scoring) -> bytes:
    flags = _PROBABILITIES if scoring.probabilities else 0
    numbers = (KINDS.index(scoring.kind), scoring.outputs, scoring.records, scoring.batch_size, flags)
    return protocol.message(protocol.SCORING, "QQQQQ", *numbers, text="\n".join(scoring.class_names).encode())


class Request(NamedTuple):
    """The scores of these records are wanted, with the values of the snapshot of this step."""

    step: int
    first: int
    records: int


class PredictionRequest(NamedTuple):
    """The scores of one record by hand are wanted: of these numbers, or of these columns."""

    step: int
    number: int
    numbers: memoryview  # bytes of float32
    columns: Dict[str, Any]


def _form_message(form: Form) -> bytes:
    shape = form.input_shape
    columns = "\n".join(f"{name}\t{kind}" for name, kind in form.columns.items())
    return protocol.message(protocol.FORM, f"Q{len(shape)}Q", len(shape), *shape, text=columns.encode())


class EvaluationSession(RowConnection):
    """One thread uses it. `on_slice` is called about every 0.2 s of a wait, and may raise."""

    def __init__(
        self,
        connection: socket.socket,
        on_slice: Callable[[], None] = lambda: None,
        on_page: Callable[[int], None] = lambda port: None,
    ) -> None:
        self._connection = Connection(connection, "evaluator", on_slice)
        self._on_page = on_page
        self._has_begun = False
        # What came while an answer about rows was awaited: their kinds and fields.
        self._held: Deque[Tuple[int, memoryview]] = deque()
        # Dims, in the order of the configuration.
        self.tables: Dict[str, int] = {}
        # By variable: its shape, and its values as bytes of float32.
        self.values: Dict[str, Tuple[Tuple[int, ...], memoryview]] = {}
        self._scores = self._labels = self._memory = memoryview(b"")
        self._input_bytes = 0

    def begin(self, computes: str, scoring: Scoring, form: Optional[Form] = None) -> None:
        """JoinError: the evaluator cannot evaluate that. AgentLost: it is gone."""
        self.send(protocol.hello(computes))
        if form is not None:
            self.send(_form_message(form))
            self._input_bytes = 4 * form.elements
        self.send(_scoring_message(scoring))
        kind, body = self._wait()
        told = protocol.EvaluationMessage.read(body)
        descriptors = len(self._connection.descriptors)
        if kind != protocol.EVALUATION or told.protocol != protocol.VERSION or descriptors != 1:
            raise JoinError(f"evaluator: expected protocol {protocol.VERSION} and memory, found message {kind} of "
                            f"{told.protocol}: package and programs are of different versions")  # fmt: skip
        memory = self.take_memory(told.memory_bytes)
        for variable in protocol.read_directory(memory[: told.directory_bytes]):
            begin = variable.values_offset
            self.values[variable.name] = (variable.shape, memory[begin : begin + variable.byte_count])
        self.tables = told.tables
        self._memory = memory
        labels_bytes = 4 * scoring.batch_size
        scores = memory[told.scores_offset : told.scores_offset + labels_bytes * scoring.outputs]
        self._scores = scores
        self._labels = memory[told.labels_offset : told.labels_offset + labels_bytes]
        self._has_begun = True

    def next_request(self) -> Union[Request, PredictionRequest, None]:
        """None: the job is over, and all is evaluated. AgentLost."""
        while True:
            kind, body = self._held.popleft() if self._held else self._wait()
            if kind == protocol.BYE:
                return None
            if kind == protocol.PAGE:
                self._on_page(*protocol.unpack("Q", body))
            elif kind == protocol.SCORE:
                return Request(*protocol.unpack("qQQ", body))
            elif kind == protocol.PREDICT:
                step, number, begin = protocol.unpack("qQQ", body)
                text = bytes(body[3 * 8 :])
                numbers = memoryview(bytes(self._memory[begin : begin + self._input_bytes]))
                return PredictionRequest(step, number, numbers, json.loads(text) if text else {})
            else:
                raise AgentLost(f"evaluator: expected a message that this package knows, found {kind}")

    def answer(self, request: Request, scores: memoryview, labels: memoryview) -> None:
        """Both as bytes of float32, of the request's records."""
        self._scores[: scores.nbytes] = scores
        self._labels[: labels.nbytes] = labels
        self.give_up(request)

    def give_up(self, request: Request) -> None:
        """Likewise, without any: the evaluator has said that rows cannot be read, and expects none."""
        self.send(protocol.message(protocol.SCORES, "Q", request.first))

    def predict(self, request: PredictionRequest, scores: memoryview) -> None:
        """Likewise, of the one record."""
        self._scores[: scores.nbytes] = scores
        self.send(protocol.message(protocol.PREDICTED, "Q", request.number))

    def refuse(self, request: PredictionRequest, reason: str) -> None:
        """There are none, for a reason that the page shows."""
        self.send(protocol.not_predicted(request.number, reason))

    def take_memory(self, byte_count: int) -> memoryview:
        return self._connection.take_memory(byte_count)

    def row_answer(self, kind: int) -> memoryview:
        """To a prediction that was given up SCORE may come before."""
        while True:
            found, body = self._wait()
            if found == kind:
                return body
            self._held.append((found, memoryview(bytes(body))))

    def close(self) -> None:
        self._connection.close()

    def send(self, packet: bytes) -> None:
        self._connection.send(packet)  # What it said before it went is received next.

    def _wait(self) -> Tuple[int, memoryview]:
        while True:
            packet = self._connection.receive()
            if packet:
                return self._checked(packet)
            self._connection.on_slice()
            if packet is not None:
                raise AgentLost("evaluator: the connection has ended")

    def _checked(self, packet: memoryview) -> Tuple[int, memoryview]:
        try:
            kind, body = protocol.parse(packet)
            if kind != protocol.FAILED:
                return kind, body
            (code,) = protocol.unpack("Q", body)
        except protocol.Malformed as error:
            raise AgentLost(f"evaluator: {error}: package and programs are of different versions") from error
        text = bytes(body[8:]).decode(errors="replace")
        if not self._has_begun and exit_code_of_status(code) == JoinError.exit_code:
            raise JoinError(text)
        raise AgentLost(text, exit_code_of_status(code))
