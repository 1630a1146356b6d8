"""The optimizers of the servers, and the schedules of their rates.

Arguments have PyTorch's names and defaults, and mean the same numbers, but for RmsProp. `str` of each is the part of the
job's configuration that it stands for (proto/keelson/v1/train_config.proto explains the algorithms).
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import List, Optional, Sequence, Tuple

from .text_proto import Fields, present, render


def _check(condition: bool, what: str, expected: str, found: object) -> None:
    if not condition:
        raise ValueError(f"{what}: expected {expected}, found {found!r}")


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


@dataclass(frozen=True)
class Schedule:
    """How the rate depends on the job's step; first it rises from 0 over `warmup` steps."""

    warmup: int = 0

    def fields(self) -> Fields:
        return present(("warmup_steps", self.warmup)) + [(type(self).__name__.lower(), self._own_fields())]

    def _own_fields(self) -> Fields:
        return []

    def __str__(self) -> str:
        return render(self.fields())


@dataclass(frozen=True)
class Constant(Schedule):
    """lr"""


@dataclass(frozen=True)
class Step(Schedule):
    """lr * factor^(number of boundaries <= step)"""

    boundaries: Sequence[int] = ()
    factor: float = 0.1

    def _own_fields(self) -> Fields:
        return [("boundaries", int(b)) for b in self.boundaries] + [("factor", float(self.factor))]


@dataclass(frozen=True)
class Exponential(Schedule):
    """lr * rate^(step / decay_steps), the exponent floored with `staircase`"""

    rate: float = 0.96
    decay_steps: int = 1000
    staircase: bool = False

    def _own_fields(self) -> Fields:
        own: Fields = [("rate", float(self.rate)), ("decay_steps", int(self.decay_steps))]
        return [*own, *present(("staircase", self.staircase))]


@dataclass(frozen=True)
class Cosine(Schedule):
    """lr * (alpha + (1 - alpha) * (1 + cos(pi * step / decay_steps)) / 2); by default over all of the job's steps"""

    decay_steps: int = 0
    alpha: float = 0.0

    def _own_fields(self) -> Fields:
        return present(("decay_steps", int(self.decay_steps)), ("alpha", float(self.alpha)))


@dataclass(frozen=True)
class Optimizer:
    """`weight_decay` is added to the gradient (L2), but for AdamW. `clip_value` bounds each element of a gradient on the
    servers. `groups`: what is different for some variables."""

    lr: float
    schedule: Schedule = dataclasses.field(default_factory=Constant)
    weight_decay: float = 0.0
    clip_value: float = 0.0
    groups: Sequence[Group] = ()

    def __post_init__(self) -> None:
        _check(_is_number(self.lr) and self.lr > 0, "lr", "a number > 0", self.lr)
        _check(isinstance(self.schedule, Schedule), "schedule", "one such as keelson.Cosine()", self.schedule)
        for name in ("weight_decay", "clip_value"):
            value = getattr(self, name)
            _check(_is_number(value) and value >= 0, name, "a number >= 0", value)

    def algorithm(self) -> Tuple[str, Fields]:
        """The name of its message, and the fields in that."""
        raise NotImplementedError

    def l2(self) -> float:
        """What of weight_decay is added to the gradient."""
        return float(self.weight_decay)

    def fields(self, first_groups: Fields = ()) -> Fields:
        """Of OptimizerConfig. `first_groups` come before the own ones."""
        fields = [self.algorithm(), *present(("clip_value", float(self.clip_value)), ("l2", self.l2()))]
        return [*fields, *first_groups, *(("groups", group.fields()) for group in self.groups)]

    def rate_fields(self) -> Fields:
        """Of LearningRateConfig."""
        return [("base", float(self.lr)), *self.schedule.fields()]

    def __str__(self) -> str:
        return render([("optimizer", self.fields()), ("learning_rate", self.rate_fields())])


@dataclass(frozen=True)
class Group:
    """What is different for the variables that the pattern matches ("*" stands for any characters): another optimizer,
    whose lr goes by the job's schedule; or else a rate, or a multiple of it. The first group that matches decides."""

    variables: str
    optimizer: Optional[Optimizer] = None
    lr: Optional[float] = None
    lr_factor: Optional[float] = None

    def __post_init__(self) -> None:
        given = [value for value in (self.optimizer, self.lr, self.lr_factor) if value is not None]
        _check(len(given) == 1, "group", "one of optimizer, lr and lr_factor", len(given))

    def fields(self) -> Fields:
        variables: List[Tuple[str, str]] = [("variables", self.variables)]
        if self.lr is not None:
            return [*variables, ("learning_rate", float(self.lr))]
        if self.lr_factor is not None:
            return [*variables, ("learning_rate_factor", float(self.lr_factor))]
        assert self.optimizer is not None
        own = self.optimizer
        _check(own.schedule == Constant() and not own.groups, f"group {self.variables}",
               "an optimizer without a schedule and groups of its own", own)  # fmt: skip
        rest: Fields = [("learning_rate", float(own.lr)), ("clip_value", float(own.clip_value)), ("l2", own.l2())]
        return [*variables, own.algorithm(), *rest]


@dataclass(frozen=True)
class Sgd(Optimizer):
    """value -= lr * gradient"""

    def algorithm(self) -> Tuple[str, Fields]:
        return "sgd", []


@dataclass(frozen=True)
class Momentum(Optimizer):
    """torch.optim.SGD with a momentum: accumulator = momentum * accumulator + gradient; value -= lr * accumulator"""

    momentum: float = 0.9
    nesterov: bool = False

    def algorithm(self) -> Tuple[str, Fields]:
        return "momentum", [("momentum", float(self.momentum)), *present(("nesterov", self.nesterov))]


@dataclass(frozen=True)
class _AdamNumbers(Optimizer):
    betas: Tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8

    def _numbers(self) -> List[Tuple[str, float]]:
        beta1, beta2 = self.betas
        numbers = [("beta1", float(beta1)), ("beta2", float(beta2)), ("epsilon", float(self.eps))]
        return [*numbers, ("corrected_epsilon", True)]


@dataclass(frozen=True)
class Adam(_AdamNumbers):
    """torch.optim.Adam: epsilon is added to the corrected root"""

    def algorithm(self) -> Tuple[str, Fields]:
        return "adam", self._numbers()


@dataclass(frozen=True)
class AdamW(_AdamNumbers):
    """torch.optim.AdamW: weights decay by lr * weight_decay apart from the gradient"""

    weight_decay: float = 0.01

    def algorithm(self) -> Tuple[str, Fields]:
        return "adamw", [*self._numbers(), ("weight_decay", float(self.weight_decay))]

    def l2(self) -> float:
        return 0.0


@dataclass(frozen=True)
class Adagrad(Optimizer):
    """accumulator += gradient^2; value -= lr * gradient / (sqrt(accumulator) + eps)"""

    initial_accumulator: float = 0.0
    eps: float = 1e-10

    def algorithm(self) -> Tuple[str, Fields]:
        return "adagrad", [("initial_accumulator", float(self.initial_accumulator)), ("epsilon", float(self.eps))]


@dataclass(frozen=True)
class RowWiseAdagrad(Optimizer):
    """Of tables alone, with one number n for each row: n += mean of gradient^2; value -= lr * gradient / (sqrt(n) + eps)"""

    initial_accumulator: float = 0.0
    eps: float = 1e-8

    def algorithm(self) -> Tuple[str, Fields]:
        return "row_wise_adagrad", [
            ("initial_accumulator", float(self.initial_accumulator)),
            ("epsilon", float(self.eps)),
        ]


@dataclass(frozen=True)
class RmsProp(Optimizer):
    """TensorFlow's, not PyTorch's: eps is inside the root, the mean square starts at 1, the rate is in the momentum"""

    decay: float = 0.9
    momentum: float = 0.0
    eps: float = 1e-10

    def algorithm(self) -> Tuple[str, Fields]:
        return "rmsprop", [
            ("decay", float(self.decay)),
            ("momentum", float(self.momentum)),
            ("epsilon", float(self.eps)),
        ]


@dataclass(frozen=True)
class Ftrl(Optimizer):
    """FTRL-proximal, as TensorFlow's ApplyFtrlV2"""

    initial_accumulator: float = 0.1
    l1: float = 0.0
    l2_strength: float = 0.0
    l2_shrinkage: float = 0.0
    beta: float = 0.0

    def algorithm(self) -> Tuple[str, Fields]:
        rest = present(("l1", float(self.l1)), ("l2", float(self.l2_strength)),
                       ("l2_shrinkage", float(self.l2_shrinkage)), ("beta", float(self.beta)))  # fmt: skip
        return "ftrl", [("initial_accumulator", float(self.initial_accumulator)), *rest]
