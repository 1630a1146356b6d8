"""A script's part in a job: join(), and what it yields."""

from __future__ import annotations

import array
import dataclasses
import os
import sys
from types import TracebackType
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Type, Union

from .arrays import floats_of, ids_of, is_finite, shaped
from .config import JobSettings, Proposal, check_logged_name, make_settings, propose
from .errors import BadGradient, install_exit_codes
from .optimizers import Optimizer
from .settings import Checkpoint, Consistency, Evaluation, Transfer
from .signals import TermSignal
from .snapshots import newest_step
from .tables import Table

if TYPE_CHECKING:  # What `import keelson` need not wait for.
    from .membership import Membership
    from .rows import Part, RowSet
    from .session import Arrays, Ticket
    from .work import Work


def join(
    name: Optional[str] = None,
    *,
    records: int,
    config: Union[str, os.PathLike[str], None] = None,
    batch_size: Optional[int] = None,
    epochs: Optional[int] = None,
    max_steps: Optional[int] = None,
    variables: Optional[Mapping[str, Any]] = None,
    tables: Optional[Mapping[str, Table]] = None,
    optimizer: Optional[Optimizer] = None,
    consistency: Optional[Consistency] = None,
    transfer: Optional[Transfer] = None,
    checkpoint: Optional[Checkpoint] = None,
    evaluation: Optional[Evaluation] = None,
    model_dir: Union[str, os.PathLike[str], None] = None,
    initial: Union[str, os.PathLike[str], Mapping[str, Any], None] = None,
    seed: int = 0,
    data_dir: Union[str, os.PathLike[str], None] = None,
    checkpoint_writer: Optional[str] = None,
    placement: Optional[Mapping[str, str]] = None,
    debug: bool = False,
) -> Job:
    """A job as a context manager: the script is a worker of it from the beginning of the with block to its end.

    variables: name -> array, or keelson.Variable; without them, and without `optimizer`, keelson.torch.Optimizer proposes
    those of a model, and the job starts then. tables: name -> keelson.Table, whose rows steps ask for.
    records: how many the script's data have; steps name them by their positions.
    epochs or max_steps: the length of the whole job, however many scripts take part. model_dir: where snapshots are; one
    that is there is continued. initial: a file, a model directory, or arrays, whose values a new job starts from in place
    of those of `variables`.

    config: a file with a whole configuration, of a model of Keelson's layers, which says all but records and what a machine
    has: the script computes that model beside C++ workers, and has their records by the same positions.
    keelson.torch.from_config makes a module of it. data_dir: where a chief that the script starts counts the records.

    With TF_CONFIG in the environment, or RANK and WORLD_SIZE of several processes, the script takes part in that cluster's job
    as its worker; without, it starts a chief and a server on this machine, and ends them with the job. Where the cluster
    has no parameter servers the scripts hold the model among themselves: they need a model_dir that they share, a step is
    by default the mean over a batch of each, and the with block ends when the job does. checkpoint_writer: "chief" where the
    first script alone has the model_dir and the others may have none: it then writes and reads their parts of snapshots
    too, which otherwise ("servers") each does.

    placement: who holds which variables beside parameter servers, "servers" (the default) or "workers", the scripts among
    themselves, by patterns of which the first that matches decides: {"*": "workers"}. Tables are on servers.

    debug: each step compares the values with what the servers sent, and raises a RuntimeError that names the variable where
    the script has changed them. JoinError."""
    if config is not None:
        others = (name, batch_size, epochs, max_steps, variables, tables, optimizer, consistency, transfer, checkpoint)
        settings = _settings_of(config, records, model_dir, data_dir, [*others, evaluation, initial, seed or None, placement])
        return Job(dataclasses.replace(settings, checkpoint_writer=checkpoint_writer, debug=debug), None, None)
    if name is None or batch_size is None:
        raise TypeError("join: expected a name and a batch_size, or a config, found neither")
    if data_dir is not None:
        raise TypeError("join: expected data_dir with config, whose chief counts the records, found it without")
    settings = make_settings(
        name,
        records,
        batch_size,
        epochs,
        max_steps,
        consistency,
        transfer,
        checkpoint,
        evaluation,
        model_dir,
        initial,
        seed,
    )
    if (variables is None and tables is None) != (optimizer is None):
        raise TypeError("join: expected both variables and optimizer, or neither with keelson.torch.Optimizer")
    settings = dataclasses.replace(
        settings, checkpoint_writer=checkpoint_writer, placement={} if placement is None else placement, debug=debug
    )
    return Job(settings, None if optimizer is None else propose(variables or {}, tables), optimizer)


def _settings_of(
    config: Union[str, os.PathLike[str]],
    records: int,
    model_dir: Union[str, os.PathLike[str], None],
    data_dir: Union[str, os.PathLike[str], None],
    others: Sequence[object],
) -> JobSettings:
    from .config_file import ConfigFile

    if any(other is not None for other in others):
        raise TypeError(
            "join: expected records, model_dir, data_dir, checkpoint_writer and debug alone beside config, found more"
        )
    return ConfigFile.read(config, data_dir).settings(records, model_dir)


class Job:
    """Used in the thread that made it."""

    def __init__(self, settings: JobSettings, proposal: Optional[Proposal], optimizer: Optional[Optimizer]) -> None:
        self.settings = settings
        self._proposal = proposal
        self._optimizer = optimizer
        self._signal = TermSignal()
        self._membership: Optional[Membership] = None
        self._entered = False
        self._at_end: List[Callable[[], None]] = []
        self._at_save: List[Callable[[], None]] = []

    def __enter__(self) -> Job:
        install_exit_codes()
        self._signal.open()
        self._entered = True
        try:
            if self._proposal is not None and self._optimizer is not None:
                self.start(self._proposal, self._optimizer)
        except BaseException:
            self._signal.close()
            raise
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self._entered = False
        try:
            if self._membership is not None:
                self._membership.end(failed=error is not None)
        except Exception:
            if error is None:
                raise  # Otherwise the first error says more.
        finally:
            self._signal.close()
            for restore in self._at_end:
                restore()

    def start(
        self,
        proposal: Optional[Proposal],
        optimizer: Optional[Optimizer],
        computes: str = "",
        agent_flags: Sequence[str] = (),
    ) -> Membership:
        """For keelson.torch. Of a configuration's model, without proposal and optimizer. JoinError."""
        if not self._entered:
            raise RuntimeError("expected the job in a with block: with keelson.join(...) as job")
        if self._membership is not None:
            raise RuntimeError("expected one model in a job, found another one")
        from .membership import join_job

        computes = computes or f"python {'.'.join(map(str, sys.version_info[:3]))}"
        self._membership = join_job(self.settings, proposal, optimizer, computes, self._signal.check, agent_flags)
        return self._membership

    def at_end(self, restore: Callable[[], None]) -> None:
        """For keelson.torch: is called when the job ends for this script, however it ends."""
        self._at_end.append(restore)

    def at_save(self, keep: Callable[[], None]) -> None:
        """For keelson.torch: is called when a snapshot that the script asked for is complete."""
        self._at_save.append(keep)

    @property
    def membership(self) -> Membership:
        if self._membership is None and self.settings.config is not None:
            return self.start(None, None)
        if self._membership is None:
            raise RuntimeError(
                "expected a job with a model: give join() variables, or make a keelson.torch.Optimizer first"
            )
        return self._membership

    @property
    def work(self) -> Work:
        return self.membership.work

    @property
    def values(self) -> Mapping[str, memoryview[float]]:
        """The variables' values as of the newest step of this script, without a copy: they change with the next one."""
        return self.membership.values

    @property
    def global_step(self) -> int:
        """Of the whole job, as far as this script knows: before it has a model, the step of the newest snapshot in
        model_dir."""
        if self._awaits_model:
            return 0 if self.settings.model_dir is None else newest_step(self.settings.model_dir)
        return self.work.global_step

    @property
    def max_steps(self) -> int:
        return self.settings.length if self._awaits_model else self.membership.max_steps

    @property
    def epoch(self) -> float:
        """How many times the job has been over its records."""
        return self.global_step * self.settings.records_per_step / self.settings.records

    @property
    def _awaits_model(self) -> bool:
        """It comes with a keelson.torch.Optimizer that is not made yet."""
        return self._membership is None and self.settings.config is None

    def steps(self) -> Iterator[TrainingStep]:
        """The steps that the chief gives to this script, until the job has no more. One that is not pushed is done without
        an update."""
        work = self.work
        while True:
            if work.current is not None:
                work.skip()
            ticket = work.take()
            if ticket is None:
                return
            if work.begin(ticket):
                step = TrainingStep(self, ticket)
                yield step
                step.drop_rows()

    def log(self, name: str, value: float, step: Optional[int] = None) -> None:
        """A number of the script's own, such as the accuracy of the batch: the chief draws its curve beside the loss, by
        default at the step that is computed. One that is not finite is left out of the curve."""
        check_logged_name(name)
        if step is None:
            current = self.work.current
            step = self.global_step if current is None else current.step
        self.membership.log(name, int(step), float(value))

    def save(self) -> int:
        """Has the chief write a snapshot now, of the steps that are done; returns its step once it is complete. After the
        job's last step, of which the chief writes one by itself, waits for that. Error: it could not be written."""
        step = self.membership.save()
        for keep in self._at_save:
            keep()
        return step

    def end(self, reason: str) -> None:
        """Training of the whole job ends early, after the steps that are under way."""
        self.membership.end_training(reason)


class TrainingStep:
    """One step's batch: compute the gradients of the mean loss of these records from job.values, and push them."""

    def __init__(self, job: Job, ticket: Ticket) -> None:
        self._job = job
        self._ticket = ticket
        self._rows: Dict[str, RowSet] = {}

    @property
    def number(self) -> int:
        """Of the whole job."""
        return self._ticket.step

    @property
    def epoch(self) -> int:
        return self._ticket.epoch

    @property
    def records(self) -> array.array[int]:
        """Positions in the script's data, int64."""
        return self._ticket.records

    @property
    def weight(self) -> int:
        """How much the step counts in a mean: its number of records."""
        return len(self._ticket.records)

    def rows(self, table: str, ids: Any) -> TableRows:
        """Those of these ids, which are 64-bit integers, any number of times the same; once in a step for each table. Read
        them before the push."""
        self._check_is_current()
        dims = self._job.membership.table_dims
        if table not in dims or table in self._rows:
            others = [name for name in dims if name not in self._rows]
            raise RuntimeError(f"rows: expected a table of {others}, each once in a step, found {table}")
        found = self._job.work.rows.fetch({table: ids_of(ids)})
        if found is None:
            raise RuntimeError(f"rows of {table}: expected a job that is under way, found its end")
        self._rows[table] = found
        return TableRows(found.parts[table])

    def push(self, gradients: Mapping[str, Any], loss: float) -> bool:
        """Of all variables, arrays of float32 of their shapes, or None: the variable has no gradient in this step, and stays as
        it is with what its optimizer knows of it (with `Sync` the mean takes zeros). And of tables whose rows() were asked
        for, of the shape of their values. False: the step does not count, since it was given to another worker; go on with the next one.
        BadGradient: nothing was pushed."""
        self._check_is_current()
        rows = {name: row_set for name, row_set in self._rows.items() if name in gradients}
        places: Dict[str, Union[Arrays, Part]] = {**self._job.membership.arrays}
        for name, row_set in rows.items():
            places[name] = row_set.parts[name]
        if gradients.keys() != places.keys():
            _check_names(places, gradients)
        reject = self._job.settings.transfer.reject_non_finite
        # All are looked at before the first one is written.
        found = [
            (place.gradients, _gradient_of(name, gradients[name], place.shape, reject))
            for name, place in places.items()
            if gradients[name] is not None or name in rows
        ]
        for memory, data in found:
            memory[:] = data
        absent = [n for n, name in enumerate(self._job.membership.arrays) if gradients[name] is None]
        counts = self._job.work.push(float(loss), list(rows.values()), absent)
        self.drop_rows()
        return counts

    def drop_rows(self) -> None:
        """Nobody reads them any more."""
        self._job.work.rows.release(list(self._rows.values()))
        self._rows.clear()

    def _check_is_current(self) -> None:
        if self._job.work.current is not self._ticket:
            raise RuntimeError(
                f"step {self.number}: expected one push, found another one, or one after the next step began"
            )


class TableRows:
    """Rows that a step asked for, each once."""

    def __init__(self, part: Part) -> None:
        self._part = part

    @property
    def positions(self) -> memoryview[int]:
        """Of each id, in the order in which they were given, the row in `values`."""
        positions = self._part.positions.toreadonly()
        return positions.cast("i") if positions.nbytes > 0 else memoryview(array.array("i"))

    @property
    def values(self) -> memoryview[float]:
        """float32 [rows, dim]"""
        return shaped(self._part.values.toreadonly(), (self._part.count, self._part.dim))


def _gradient_of(name: str, gradient: Any, shape: Tuple[int, ...], reject_non_finite: bool) -> memoryview:
    """As bytes. BadGradient."""
    if 0 in shape and isinstance(gradient, (list, tuple)) and not gradient:
        return memoryview(b"")  # A list of no rows has no other form.
    try:
        floats = floats_of(gradient)
    except TypeError as error:
        raise BadGradient(f"gradient of {name}: {error}") from error
    if floats.shape != shape:
        raise BadGradient(f"gradient of {name}: expected {list(shape)}, found {list(floats.shape)}")
    if reject_non_finite and not is_finite(floats.data):
        raise BadGradient(f"gradient of {name}: expected finite elements, found one that is not")
    return floats.data


def _check_names(variables: Mapping[str, object], gradients: Mapping[str, Any]) -> None:
    missing = [name for name in variables if name not in gradients]
    unknown = [name for name in gradients if name not in variables]
    if missing or unknown:
        raise BadGradient(
            f"gradients: expected one of each variable, found none of {missing}"
            if missing
            else f"gradients: expected those of {list(variables)}, found also {unknown}"
        )
