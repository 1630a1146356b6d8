"""A job's configuration, as its script describes it."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, NamedTuple, Optional, Tuple, Union

from . import safetensors
from .arrays import floats_of
from .errors import JoinError
from .optimizers import Optimizer
from .pod_paths import local_path
from .settings import Checkpoint, Consistency, Evaluation, Transfer, default_consistency
from .tables import Table, check_tables
from .text_proto import Enum, Fields, present, render

if TYPE_CHECKING:
    from .config_file import ConfigFile

_MAX_LOGGED_BYTES = 100
# As the chief's flag of that name has them.
CHECKPOINT_WRITERS = ("servers", "chief")
_PLACES = {"servers": Enum("PS"), "workers": Enum("WORKERS")}


@dataclass(frozen=True)
class Variable:
    """An array of float32 on the servers. `initial`: what it starts from in a new job, by default zeros. With
    `average_decay` it has no optimizer, but is a moving average of what is pushed as its gradient."""

    shape: Tuple[int, ...]
    initial: Optional[Any] = None
    average_decay: Optional[float] = None


class Proposed(NamedTuple):
    """A variable with the values that it starts from."""

    shape: Tuple[int, ...]
    initial: memoryview  # of bytes
    average_decay: Optional[float] = None


@dataclass
class Proposal:
    """What of a model a script brings."""

    variables: Dict[str, Proposed]
    # What is part of the model and never changes; it is kept beside the snapshots.
    constants: Dict[str, safetensors.Tensor] = field(default_factory=dict)
    # Other names of variables and constants.
    aliases: Dict[str, str] = field(default_factory=dict)
    # Each row starts as its table says.
    tables: Dict[str, Table] = field(default_factory=dict)


@dataclass(frozen=True)
class JobSettings:
    """The arguments of join(), checked. JoinError."""

    name: str
    records: int
    batch_size: int
    epochs: Optional[int]
    max_steps: Optional[int]
    consistency: Consistency
    transfer: Transfer
    checkpoint: Checkpoint
    evaluation: Evaluation
    model_dir: Optional[str]
    initial: Union[str, Mapping[str, Any], None]
    seed: int
    # Who writes and reads the parts of a snapshot, one of CHECKPOINT_WRITERS; None: as the job's programs have it.
    checkpoint_writer: Optional[str] = None
    # "workers" or "servers" by patterns of variables; the first that matches decides.
    placement: Mapping[str, str] = field(default_factory=dict)
    # Has the rest, of a model of Keelson's layers; None: the script says it all.
    config: Optional[ConfigFile] = None
    # Whether the script is watched: see lent_memory.
    debug: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise JoinError(f"name: expected the job's name, found {self.name!r}")
        for what in ("records", "batch_size"):
            _expect(_is_count(getattr(self, what)), what, "a whole number > 0", getattr(self, what))
        _expect((self.epochs is None) != (self.max_steps is None), "epochs, max_steps", "one of the two",
                "both" if self.epochs is not None else "neither")  # fmt: skip
        length = self.max_steps if self.epochs is None else self.epochs
        _expect(_is_count(length), "epochs, max_steps", "a whole number > 0", length)
        _expect(isinstance(self.seed, int) and 0 <= self.seed < 1 << 64, "seed", "a whole number >= 0", self.seed)
        _expect(self.checkpoint_writer in (None, *CHECKPOINT_WRITERS), "checkpoint_writer",
                " or ".join(map(repr, CHECKPOINT_WRITERS)), repr(self.checkpoint_writer))  # fmt: skip
        _expect(isinstance(self.placement, Mapping), "placement", 'places by patterns, as in {"*": "workers"}',
                repr(self.placement))  # fmt: skip
        for pattern, place in self.placement.items():
            _expect(isinstance(pattern, str), "placement", "patterns of names", repr(pattern))
            _expect(isinstance(place, str) and place in _PLACES, f"placement of {pattern!r}",
                    " or ".join(map(repr, _PLACES)), repr(place))  # fmt: skip
        for what, kind in (
            ("consistency", Consistency),
            ("transfer", Transfer),
            ("checkpoint", Checkpoint),
            ("evaluation", Evaluation),
        ):
            _expect(isinstance(getattr(self, what), kind), what, f"a keelson.{kind.__name__}", getattr(self, what))


    @property
    def places_on_workers(self) -> bool:
        """Whether scripts hold variables although there are servers."""
        own = "workers" in self.placement.values()
        return own or (self.config is not None and self.config.places_on_workers())

    @property
    def records_per_step(self) -> int:
        return self.batch_size * self.consistency.batches_per_step

    @property
    def length(self) -> int:
        """The job's steps; an epoch's last one may have fewer records."""
        if self.epochs is None:
            return self.max_steps or 0
        return self.epochs * -(-self.records // self.records_per_step)


def make_settings(
    name: str,
    records: int,
    batch_size: int,
    epochs: Optional[int],
    max_steps: Optional[int],
    consistency: Optional[Consistency],
    transfer: Optional[Transfer],
    checkpoint: Optional[Checkpoint],
    evaluation: Optional[Evaluation],
    model_dir: Union[str, os.PathLike[str], None],
    initial: Union[str, os.PathLike[str], Mapping[str, Any], None],
    seed: int,
) -> JobSettings:
    """With the defaults of what is None."""
    return JobSettings(
        name,
        records,
        batch_size,
        epochs,
        max_steps,
        default_consistency() if consistency is None else consistency,
        Transfer() if transfer is None else transfer,
        Checkpoint() if checkpoint is None else checkpoint,
        Evaluation() if evaluation is None else evaluation,
        None if model_dir is None else os.path.abspath(local_path(model_dir)),
        local_path(initial) if isinstance(initial, (str, os.PathLike)) else initial,
        seed,
    )


def propose(variables: Mapping[str, Any], tables: Optional[Mapping[str, Table]] = None) -> Proposal:
    """Of `variables`: arrays, or Variables. JoinError."""
    check_tables(tables or {}, variables)
    return Proposal({name: _proposed(name, value) for name, value in variables.items()}, tables=dict(tables or {}))


def config_text(settings: JobSettings, proposal: Proposal, optimizer: Optimizer) -> str:
    """A TrainConfig. Its variables start from what comes with it."""
    length = ("epochs", settings.epochs) if settings.epochs is not None else ("max_steps", settings.max_steps)
    external = [("variables", _variable_fields(name, v)) for name, v in proposal.variables.items()]
    tables = proposal.tables.items()
    # The first group that matches a name decides.
    initial = [("groups", table.initial_fields(name)) for name, table in tables]
    if proposal.variables:
        initial.append(("groups", [("variables", "*"), ("from", [("path", "proposed")])]))
    of_tables = [("groups", table.optimizer_fields(name, optimizer)) for name, table in tables]
    evaluation = settings.evaluation.fields()
    fields: Fields = [
        (
            "model",
            [
                ("name", settings.name),
                ("external", external),
                *(("tables", table.model_fields(name)) for name, table in tables),
            ],
        ),
        ("optimizer", optimizer.fields(of_tables)),
        ("learning_rate", optimizer.rate_fields()),
        ("data", [("external", [("train_records", settings.records)])]),
        ("train", present(("batch_size", settings.batch_size), length, ("seed", settings.seed))),
        ("checkpoint", settings.checkpoint.fields()),
        ("transfer", settings.transfer.fields()),
        ("consistency", settings.consistency.fields()),
        *([("evaluation", evaluation)] if evaluation else []),
        *_placement_fields(settings.placement, proposal.tables),
        ("initial_values", initial),
    ]
    return render(fields)


def _placement_fields(placement: Mapping[str, str], tables: Mapping[str, Table]) -> Fields:
    """Tables are on servers whatever the patterns say."""
    if not placement:
        return []
    places = {**dict.fromkeys(tables, "servers"), **placement}
    return [("placement", [("groups", [("variables", name), ("on", _PLACES[on])]) for name, on in places.items()])]


def check_logged_name(name: str) -> None:
    """ValueError."""
    if not (
        isinstance(name, str) and 0 < len(name.encode(errors="replace")) <= _MAX_LOGGED_BYTES and name.isprintable()
    ):
        raise ValueError(f"name: expected a printable one of at most {_MAX_LOGGED_BYTES} bytes, found {name!r}")
    if name in ("loss", "learning_rate") or name.startswith(("speed/", "exchange/")):
        raise ValueError(f"name: expected one that the job does not report itself, found {name!r}")


def _variable_fields(name: str, variable: Proposed) -> Fields:
    shape: List[Tuple[str, int]] = [("shape", extent) for extent in variable.shape]
    decay: Fields = [] if variable.average_decay is None else [("average_decay", float(variable.average_decay))]
    return [("name", name), *shape, *decay]


def _proposed(name: str, value: Any) -> Proposed:
    try:
        given = value if isinstance(value, Variable) else None
        if given is not None and given.initial is None:
            elements = 1
            for extent in given.shape:
                elements *= extent
            return Proposed(tuple(given.shape), memoryview(bytes(4 * elements)), given.average_decay)
        floats = floats_of(value if given is None else given.initial)
    except TypeError as error:
        raise JoinError(f"variable {name}: {error}") from error
    if given is None:
        return Proposed(floats.shape, floats.data)
    _expect(tuple(given.shape) == floats.shape, f"variable {name}", f"initial values {list(given.shape)}",
            list(floats.shape))  # fmt: skip
    return Proposed(floats.shape, floats.data, given.average_decay)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _expect(condition: bool, what: str, expected: str, found: object) -> None:
    if not condition:
        raise JoinError(f"{what}: expected {expected}, found {found}")
