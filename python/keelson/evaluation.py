"""Evaluates the snapshots of a job with a model of the script's own."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from typing import TYPE_CHECKING, Any, Callable, Iterator, List, Mapping, NoReturn, Optional, Sequence, Tuple, Union

from .arrays import floats_of, ids_of
from .cluster_environment import cluster_variables, in_cluster
from .errors import AgentLost, Error, JoinError, install_exit_codes
from .evaluated_rows import EvaluatedRows, UnreadableRows
from .job import Job, TableRows
from .pod_paths import local_path, metrics_flags, page_of
from .rows import RowSet
from .scoring import make_form, make_scoring
from .signals import TermSignal

if TYPE_CHECKING:  # What `import keelson` need not wait for.
    import socket

    from .evaluation_session import EvaluationSession, PredictionRequest, Request
    from .programs import Child

_CONFIG = "train_config.textproto"
_PR_SET_PDEATHSIG = 1
_READY = b"+"
_WHOLE = ("?", *"bBhHiIlLqQ")  # Formats of memoryviews.
_LOOK_SECONDS = 0.2
# How long the evaluation may go on after the job that it belongs to has ended.
_END_SECONDS = 10.0

# What computes: the values of a snapshot by their names, and positions in the evaluation's data -> scores and labels.
Score = Callable[[Mapping[str, "memoryview[float]"], range], Tuple[Any, Any]]
# The values, and one record's numbers as a read-only array, or its columns -> its scores.
Predict = Callable[[Mapping[str, "memoryview[float]"], Any], Any]


class Evaluator:
    """Has each snapshot of a job scored by `score`, and the evaluator, which adds up and writes what the evaluator of any other
    job does: metrics, reports, the page.

    `source`: the job of this script, whose evaluation runs beside it in a process of its own, start(); or a model directory,
    whose job is another script's or a cluster's, run(). `score` gets the values of a snapshot by their names, as Job.values
    has them, and the positions of records, range(first, first + n); it returns their scores and labels, as anything with the
    buffer protocol or DLPack, or lists:

    "classification"  [n, classes] logits, and the number of the class
    "binary"          [n] logits, and 0 or 1
    "regression"      [n] predictions, and what they should be

    `predict(values, features)` returns the scores of one record, for "Try it" on the page, which asks for numbers of
    `input_shape` (an image [height, width, 1 or 3] is drawn), or for `columns`: name -> "number", "integer" or "text", or names of
    texts. `features` are these numbers, a read-only array of float32, or name -> value, None where it is missing.

    `probabilities`: they are in place of logits. `classes`: how many, or their names. `page`: the port of the dashboard's page;
    0: any free one; None: no page."""

    def __init__(
        self,
        source: Union[Job, str, os.PathLike[str]],
        score: Score,
        *,
        records: int,
        kind: str = "classification",
        classes: Union[int, Sequence[str], None] = None,
        batch_size: int = 500,
        probabilities: bool = False,
        page: Optional[int] = 0,
        predict: Optional[Predict] = None,
        input_shape: Optional[Sequence[int]] = None,
        columns: Union[Mapping[str, str], Sequence[str], None] = None,
    ) -> None:
        self._source = source
        self._predict = predict
        self._form = make_form(predict is not None, input_shape, columns)
        self._score = score
        self._scoring = make_scoring(kind, classes, records, batch_size, probabilities)
        self._page = page
        self._tables: Optional[EvaluatedRows] = None
        self._looked_up: List[RowSet] = []  # of the batch, or of the prediction
        self.computes = f"python {'.'.join(map(str, sys.version_info[:3]))}"
        # Called in the process that evaluates, before it begins.
        self.prepare: Callable[[], None] = lambda: None

    def rows(self, table: str, ids: Any) -> TableRows:
        """For `score` and `predict`: the rows of these ids, which are 64-bit integers, any number of times the same, of the
        snapshot whose values they have; read them before these return. What the snapshot has no row of has the table's
        initial values. RuntimeError: there is no such table, or nothing is being evaluated."""
        if self._tables is None:
            raise RuntimeError("rows: expected a call by score or predict, found one before the evaluation")
        found = self._tables.fetch(table, ids_of(ids))
        self._looked_up.append(found)
        return TableRows(found.parts[table])

    def run(self) -> None:
        """Evaluates until the job is over and its last snapshot is scored. JoinError, AgentLost."""
        if isinstance(self._source, Job):
            raise TypeError(
                "run: expected a model directory; the evaluation of this script's job is begun with start()"
            )
        install_exit_codes()
        signals = TermSignal()
        signals.open()
        try:
            self._run(os.path.abspath(local_path(self._source)), {}, None, signals.check)
        finally:
            signals.close()

    def start(self) -> None:
        """Evaluates in another process, until the job has ended; returns when that has begun. In a cluster nothing is done:
        there an Evaluator replica is to run(). JoinError: the evaluation cannot begin."""
        if not isinstance(self._source, Job):
            raise TypeError("start: expected the job of this script; run() evaluates the one in a model directory")
        membership = self._source.membership
        cluster = membership.cluster
        if cluster is None:
            return
        environment, log_path = cluster.environment("evaluator"), cluster.log_path("evaluator")
        child = _Fork(lambda ready: self._run(membership.model_dir, environment, log_path, lambda: None, ready))
        self._source.at_end(lambda: child.end(_END_SECONDS if membership.is_over else 0.0))

    def _run(
        self,
        model_dir: str,
        environment: Mapping[str, str],
        log_path: Optional[str],
        check_signal: Callable[[], None],
        ready: Callable[[], None] = lambda: None,
    ) -> None:
        from .evaluation_session import EvaluationSession

        config = _await_config(model_dir, check_signal)
        self.prepare()
        with _connected(model_dir, config, environment, log_path, self._page) as (connection, child):

            def look_around() -> None:
                check_signal()
                code = child.exit_code()
                if code:
                    raise AgentLost(child.last_words(), code)

            session = EvaluationSession(connection, look_around, _tell_page)
            try:
                session.begin(self.computes, self._scoring, self._form)
                self._take_tables(EvaluatedRows(session, session.tables))
                ready()
                self._serve(session)
            except AgentLost as error:
                code = child.wait(_END_SECONDS)
                if code == 0:
                    return  # As one does that has nothing to do.
                raise AgentLost(child.last_words() if code and log_path else str(error), error.exit_code) from error

    def _take_tables(self, tables: EvaluatedRows) -> None:
        """Those of the job, before anything is scored."""
        self._tables = tables

    def _serve(self, session: EvaluationSession) -> None:
        from .evaluation_session import PredictionRequest

        values = _Values(session.values)
        request = session.next_request()
        while request is not None:
            if isinstance(request, PredictionRequest):
                self._serve_prediction(session, values, request)
            else:
                self._serve_scores(session, values, request)
            self._drop_rows()
            request = session.next_request()

    def _drop_rows(self) -> None:
        """Nobody reads them any more."""
        assert self._tables is not None
        for rows in self._looked_up:
            self._tables.release(rows)
        self._looked_up.clear()

    def _serve_scores(
        self, session: EvaluationSession, values: Mapping[str, memoryview[float]], request: Request
    ) -> None:
        try:
            scores, labels = self._score_checked(values, request)
        except UnreadableRows:
            session.give_up(request)  # The evaluator goes on with the next snapshot, or says why it does not.
        else:
            session.answer(request, scores, labels)

    def _serve_prediction(
        self, session: EvaluationSession, values: Mapping[str, memoryview[float]], request: PredictionRequest
    ) -> None:
        """What goes wrong with it is the page's to show."""
        import traceback

        try:
            scores = self._predict_checked(values, request)
        except Exception as error:
            traceback.print_exc()
            session.refuse(request, f"{type(error).__name__}: {error}")
        else:
            session.predict(request, scores)

    def _predict_checked(self, values: Mapping[str, memoryview[float]], request: PredictionRequest) -> memoryview:
        assert self._predict is not None and self._form is not None
        features: Any = request.columns
        if self._form.input_shape:
            features = request.numbers.toreadonly().cast("f", self._form.input_shape)
        scores = self._predict_at(request.step, values, features)
        return _floats("predict", [scores] if isinstance(scores, (int, float)) else scores, (self._scoring.outputs,))

    def _predict_at(self, step: int, values: Mapping[str, memoryview[float]], features: Any) -> Any:
        """`values`: those of the snapshot of this step."""
        assert self._predict is not None
        return self._predict(values, features)

    def _score_checked(
        self, values: Mapping[str, memoryview[float]], request: Request
    ) -> Tuple[memoryview, memoryview]:
        scores, labels = self._score(values, range(request.first, request.first + request.records))
        shape: Tuple[int, ...] = (request.records,)
        if self._scoring.kind == "classification":
            shape = (request.records, self._scoring.outputs)
        return _floats("scores", scores, shape), _floats("labels", labels, (request.records,))


class _Values(Mapping[str, "memoryview[float]"]):
    """Read-only, without copies."""

    def __init__(self, arrays: Mapping[str, Tuple[Tuple[int, ...], memoryview]]) -> None:
        self._arrays = arrays

    def __getitem__(self, name: str) -> memoryview[float]:
        shape, values = self._arrays[name]
        return values.toreadonly().cast("f", shape)

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)


class _Fork:
    """A process that has what this one has, and ends with it."""

    def __init__(self, work: Callable[[Callable[[], None]], None]) -> None:
        """Returns when `work` calls what it is given, or had nothing to do. JoinError: it could not begin."""
        ours, theirs = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        parent = os.getpid()
        self._pid = os.fork()
        if self._pid == 0:
            os.close(ours)
            _work_in_child(work, parent, theirs)
        os.close(theirs)
        with open(ours, "rb") as pipe:
            told = pipe.read()
        if told == _READY:
            return
        _, status = os.waitpid(self._pid, 0)
        self._pid = 0
        if status != 0:
            raise JoinError(told.decode(errors="replace") or "the evaluation has ended before it began")

    def end(self, patience: float) -> None:
        """Waits for it so long, and ends it."""
        if self._pid == 0:
            return
        deadline = time.monotonic() + patience
        while os.waitpid(self._pid, os.WNOHANG)[0] == 0:
            if time.monotonic() >= deadline:
                break
            time.sleep(_LOOK_SECONDS / 10)
        else:
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)


def _work_in_child(work: Callable[[Callable[[], None]], None], parent: int, pipe: int) -> NoReturn:
    import ctypes
    import traceback

    is_ready = False

    def tell(text: bytes) -> None:
        os.write(pipe, text)
        os.close(pipe)

    def ready() -> None:
        nonlocal is_ready
        is_ready = True
        tell(_READY)

    code = 1
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in the terminal is the script's.
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        if os.getppid() == parent:
            work(ready)
        code = 0
    except Error as error:
        code = error.exit_code
        if is_ready:
            _say(f"the evaluation has ended: {error}")
        else:
            tell(str(error).encode())
    except BaseException:
        _say("the evaluation has ended:")
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


@contextlib.contextmanager
def _connected(
    model_dir: str, config: str, environment: Mapping[str, str], log_path: Optional[str], page: Optional[int]
) -> Iterator[Tuple[socket.socket, Child]]:
    """An evaluator, and the connection to it."""
    import socket

    from .programs import Child, find_program

    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours:
        with theirs:
            command = [find_program("evaluator"), f"--script_socket={theirs.fileno()}"]
            command += [f"--config={config}", f"--model_dir={model_dir}"]
            own = cluster_variables() if in_cluster() else {}
            if not own and not environment:
                command.append("--directory_only")
            if not environment:
                command += metrics_flags()
            port, address = page_of(page, in_cluster=bool(own) and not environment)
            if port is not None:
                command.append(f"--dashboard_port={port}")
                if address is not None:
                    command.append(f"--dashboard_address={address}")
            child = Child(command, {**own, **environment}, log_path, [theirs.fileno()])
        try:
            yield ours, child
        finally:
            ours.close()
            if child.wait(_END_SECONDS) is None:
                child.kill()


def _await_config(model_dir: str, check_signal: Callable[[], None]) -> str:
    """The job's configuration, which its chief writes."""
    path = os.path.join(model_dir, _CONFIG)
    while not os.path.exists(path):
        check_signal()
        time.sleep(_LOOK_SECONDS)
    return path


def _floats(what: str, value: Any, shape: Tuple[int, ...]) -> memoryview:
    try:
        floats = floats_of(_numbers(value))
    except TypeError as error:
        raise TypeError(f"{what}: {error}") from error
    elements = 1
    for extent in shape:
        elements *= extent
    if floats.data.nbytes != 4 * elements:
        raise ValueError(f"{what}: expected {list(shape)}, found {list(floats.shape)}")
    return floats.data


def _numbers(value: Any) -> Any:
    """Whole numbers, as labels are, become numbers."""
    try:
        view = memoryview(value)
    except TypeError:
        return value
    return view.tolist() if view.format in _WHOLE else value


def _tell_page(port: int) -> None:
    _say(f"the page of the evaluation: http://127.0.0.1:{port}/")


def _say(text: str) -> None:
    print(f"keelson: {text}", file=sys.stderr, flush=True)
