"""Embedding tables on the servers: rows of numbers by id, of which only those travel that a step asks for."""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass
from typing import List, Mapping, Optional, Tuple, Union

from .errors import JoinError
from .optimizers import Constant, Optimizer
from .text_proto import Enum, Fields, present

_MOST_DIM = 1024
_NAME = re.compile(r"[A-Za-z0-9._-]+")


@dataclass(frozen=True)
class Uniform:
    """Numbers in [low, high)."""

    low: float = -0.05
    high: float = 0.05

    def fields(self) -> Fields:
        return [("uniform", [("low", float(self.low)), ("high", float(self.high))])]


@dataclass(frozen=True)
class Normal:
    """`truncated`: those beyond two standard deviations are drawn again."""

    mean: float = 0.0
    stddev: float = 1.0
    truncated: bool = False

    def fields(self) -> Fields:
        own = [("mean", float(self.mean)), ("stddev", float(self.stddev))]
        return [("truncated_normal" if self.truncated else "normal", own)]


Init = Union[Uniform, Normal, float]


def mean_of(init: Init) -> float:
    if isinstance(init, Uniform):
        return (init.low + init.high) / 2
    return init.mean if isinstance(init, Normal) else init


@dataclass(frozen=True)
class Table:
    """Rows of `dim` numbers by ids of 64 bits. An id has `init`, numbers or what they are drawn from by the id and the job's
    seed, until a gradient for it is pushed.

    `optimizer`: by default the job's; each row is stepped by itself, when it has a gradient. `max_rows`: beyond them new ids
    get no row, or with `evict` those that have long stood still go. `expire_after`: steps without a gradient after which a
    row goes. `admit_after`: an id gets a row with the so-many-th gradient."""

    dim: int
    optimizer: Optional[Optimizer] = None
    init: Init = Uniform()
    max_rows: int = 0
    evict: bool = False
    expire_after: int = 0
    admit_after: int = 0

    def model_fields(self, name: str) -> Fields:
        """Of TableConfig."""
        at_limit = Enum("EVICT") if self.evict else None
        rest = present(("max_rows", self.max_rows), ("at_limit", at_limit), ("expire_after_steps", self.expire_after),
                       ("admit_after", self.admit_after))  # fmt: skip
        return [("name", name), ("dim", self.dim), *rest]

    def initial_fields(self, name: str) -> Fields:
        """Of InitialValuesConfig.Group."""
        init = self.init
        fields = init.fields() if isinstance(init, (Uniform, Normal)) else [("constant", [("value", float(init))])]
        return [("variables", name), *fields]

    def optimizer_fields(self, name: str, of_job: Optimizer) -> Fields:
        """Of OptimizerConfig.Group."""
        own = self.optimizer or dataclasses.replace(of_job, schedule=Constant(), groups=())
        algorithm, numbers = own.algorithm()
        # Rows have Adam's epsilon as it is.
        of_rows: Fields = [(number, value) for number, value in numbers if number != "corrected_epsilon"]
        rest: List[Tuple[str, float]] = [("learning_rate", float(own.lr)), ("clip_value", float(own.clip_value))]
        return [("variables", name), (algorithm, of_rows), *rest, ("l2", own.l2())]


def check_tables(tables: Mapping[str, Table], variables: Mapping[str, object]) -> None:
    """JoinError."""
    for name, table in tables.items():
        if not isinstance(table, Table):
            raise JoinError(f"table {name}: expected a keelson.Table, found {table!r}")
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise JoinError(f"table {name!r}: expected a name of letters, digits, '.', '_' and '-'")
        if name in variables:
            raise JoinError(f"table {name}: expected a name of its own, found a variable that has it")
        if not isinstance(table.dim, int) or not 1 <= table.dim <= _MOST_DIM:
            raise JoinError(f"table {name}: dim: expected 1 to {_MOST_DIM}, found {table.dim!r}")
        own = table.optimizer
        if own is not None and (own.schedule != Constant() or own.groups):
            raise JoinError(f"table {name}: optimizer: expected one without a schedule and groups of its own: the rate "
                            "goes by the job's schedule")  # fmt: skip
