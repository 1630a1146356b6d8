"""How workers wait for each other, how gradients travel, and when snapshots are written. `str` of each is the part of the
job's configuration that it stands for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, List, Optional, Sequence, Tuple

from .cluster_environment import holds_shard, processes
from .text_proto import Enum, Fields, present, render

_FORMATS = {
    "float32": "FLOAT32",
    "float16": "FLOAT16",
    "bfloat16": "BFLOAT16",
    "int8": "INT8",
    "top_k": "TOP_K",
}


@dataclass(frozen=True)
class Consistency:
    """Async, Ssp or Sync."""

    def fields(self) -> Fields:
        """Of ConsistencyConfig."""
        raise NotImplementedError

    @property
    def batches_per_step(self) -> int:
        return 1

    def __str__(self) -> str:
        return render([("consistency", self.fields())])


@dataclass(frozen=True)
class Async(Consistency):
    """No worker waits for another. `scale_learning_rate`: the rate of a push is divided by 1 + its staleness."""

    scale_learning_rate: bool = False

    def fields(self) -> Fields:
        return [("mode", [("async", [])]), *_stale_gradients(self.scale_learning_rate)]


@dataclass(frozen=True)
class Ssp(Consistency):
    """A worker is at most `staleness` steps ahead of the slowest one."""

    staleness: int
    scale_learning_rate: bool = False

    def fields(self) -> Fields:
        bound: Fields = [("bounded_staleness", [("staleness", int(self.staleness))])]
        return [("mode", bound), *_stale_gradients(self.scale_learning_rate)]


@dataclass(frozen=True)
class Sync(Consistency):
    """A step is the mean over `replicas` batches; of `total` that are computed the last ones are dropped."""

    replicas: int
    total: Optional[int] = None

    def fields(self) -> Fields:
        own: Fields = [("replicas_to_aggregate", int(self.replicas)), *present(("total_replicas", self.total))]
        return [("mode", [("synchronous", own)])]

    @property
    def batches_per_step(self) -> int:
        return int(self.replicas)


@dataclass(frozen=True)
class SyncOfCluster(Consistency):
    """The default without parameter servers: a step is the mean over one batch of each process of the cluster."""

    processes: int

    def fields(self) -> Fields:
        return []  # The leader knows it, and keeps it where the job goes on with another number of processes.

    @property
    def batches_per_step(self) -> int:
        return self.processes


def default_consistency() -> Consistency:
    """Of the cluster that the environment names, as Keelson's programs have it."""
    return SyncOfCluster(processes()) if holds_shard() else Async()


def _stale_gradients(scale: bool) -> List[Tuple[str, Fields]]:
    return [("stale_gradients", [("scale_learning_rate", True)])] if scale else []


@dataclass(frozen=True)
class Wire:
    """The formats of the variables that the pattern matches: "float32", "float16", "bfloat16", and for `push` also "int8"
    and "top_k"."""

    variables: str = "*"
    push: str = "float32"
    pull: str = "float32"

    def fields(self) -> Fields:
        return [("variables", self.variables), ("push", _format(self.push)), ("pull", _format(self.pull))]


@dataclass(frozen=True)
class Transfer:
    """The first of `groups` that matches a variable decides; without one it travels as float32. `reject_non_finite`: a
    gradient that is not finite raises BadGradient before it is sent."""

    groups: Sequence[Wire] = ()
    reject_non_finite: bool = False

    def fields(self) -> Fields:
        """Of TransferConfig."""
        groups = [("groups", group.fields()) for group in self.groups]
        return [*groups, *present(("reject_non_finite", self.reject_non_finite))]

    def __str__(self) -> str:
        return render([("transfer", self.fields())])


@dataclass(frozen=True)
class EarlyStopping:
    """Training ends when the metric has not become better by more than `min_delta` in `patience` evaluations in a row."""

    patience: int
    metric: str = "loss"
    min_delta: float = 0.0
    min_steps: int = 0

    def fields(self) -> Fields:
        """Of EvaluationConfig.EarlyStopping."""
        more = present(("min_delta", float(self.min_delta)), ("min_steps", int(self.min_steps)))
        return [("metric", self.metric), ("patience", int(self.patience)), *more]


@dataclass(frozen=True)
class Evaluation:
    """What a keelson.Evaluator tells of each snapshot beside the loss: "accuracy", "top_5", "auc", "auc_pr", "precision",
    "recall", "mean_squared_error", "mean_absolute_error", "normalized_entropy", "calibration"; by default accuracy of classes.
    `keep_best`: the metric by which the best snapshot is kept in model_dir/export/best. `throttle_seconds`: between the
    begin of two evaluations. `final_timeout_seconds`: how long the job's end waits for that of the last snapshot."""

    metrics: Sequence[str] = ()
    early_stopping: Optional[EarlyStopping] = None
    keep_best: Optional[str] = None
    throttle_seconds: int = 0
    final_timeout_seconds: int = 600

    def fields(self) -> Fields:
        """Of EvaluationConfig."""
        fields: List[Tuple[str, Any]] = [("metrics", _metric(name)) for name in self.metrics]
        if self.final_timeout_seconds != 600:
            fields.append(("final_timeout_seconds", int(self.final_timeout_seconds)))
        fields += present(("throttle_seconds", int(self.throttle_seconds)))
        if self.early_stopping is not None:
            fields.append(("early_stopping", self.early_stopping.fields()))
        if self.keep_best is not None:
            fields.append(("exporters", [("best", [("metric", self.keep_best)])]))
        return fields

    def __str__(self) -> str:
        return render([("evaluation", self.fields())])


_METRICS = (
    "accuracy",
    "auc",
    "precision",
    "recall",
    "mean_squared_error",
    "mean_absolute_error",
    "normalized_entropy",
    "calibration",
)


def _metric(name: str) -> Fields:
    if name in _METRICS:
        return [(name, [])]
    if name == "auc_pr":
        return [("auc", [("curve", Enum("PRECISION_RECALL"))])]
    if name.startswith("top_") and name[4:].isdecimal():
        return [("top_k", [("k", int(name[4:]))])]
    raise ValueError(f"metrics: expected some of {', '.join(_METRICS)}, auc_pr and top_5, found {name!r}")


def _format(name: str) -> Enum:
    if name not in _FORMATS:
        raise ValueError(f"expected one of {', '.join(_FORMATS)}, found {name!r}")
    return Enum(_FORMATS[name])


@dataclass(frozen=True)
class Checkpoint:
    """A snapshot every so many steps or seconds, by default every 600 seconds, of which `keep_max` are kept."""

    save_steps: int = 0
    save_seconds: int = 0
    keep_max: int = 5

    def fields(self) -> Fields:
        """Of CheckpointConfig."""
        when = present(("save_seconds", int(self.save_seconds)), ("save_steps", int(self.save_steps)))
        return [*when, ("keep_max", int(self.keep_max))]

    def __str__(self) -> str:
        return render([("checkpoint", self.fields())])
