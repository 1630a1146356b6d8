"""A module's scores of a job's snapshots."""

from __future__ import annotations

import os
import sys
from typing import Any, Callable, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

import torch

from .. import evaluation, snapshots
from ..errors import JoinError
from ..evaluated_rows import EvaluatedRows
from ..job import Job
from ..pod_paths import local_path
from . import conversion
from .batches import make_batches
from .embedding import Embedding, SnapshotTables

# Of the module in its evaluation mode and a batch: scores and labels.
Score = Callable[[Any, Any], Tuple[torch.Tensor, torch.Tensor]]
# Likewise, and one record's numbers as a tensor, or its columns: its scores.
Predict = Callable[[Any, Any], Any]


class Evaluator(evaluation.Evaluator):
    """keelson.Evaluator of a module on a dataset. `source`: the job of this script, start(), after keelson.torch.Optimizer
    was made; or a model directory, run(). `score(model, batch)` returns the scores and labels of a batch, without gradients.
    `predict(model, features)` returns those of one record: of a tensor of `input_shape`, or of {column: value}. The other
    arguments are keelson.Evaluator's and DataLoader's; `dataset` makes batches as it does for Loader."""

    def __init__(
        self,
        source: Union[Job, str, os.PathLike[str]],
        model: torch.nn.Module,
        dataset: Any,
        score: Score,
        *,
        kind: str = "classification",
        classes: Union[int, Sequence[str], None] = None,
        batch_size: int = 500,
        probabilities: bool = False,
        page: Optional[int] = 0,
        num_workers: int = 0,
        collate_fn: Optional[Callable[[List[Any]], Any]] = None,
        predict: Optional[Predict] = None,
        input_shape: Optional[Sequence[int]] = None,
        columns: Union[Mapping[str, str], Sequence[str], None] = None,
    ) -> None:
        super().__init__(
            source,
            self._score_records,
            records=len(dataset),
            kind=kind,
            classes=classes,
            batch_size=batch_size,
            probabilities=probabilities,
            page=page,
            predict=predict,
            input_shape=input_shape,
            columns=columns,
        )
        self.computes = f"python {'.'.join(map(str, sys.version_info[:2]))}, torch {torch.__version__} cpu"
        self.prepare = self._prepare
        self._is_beside_training = isinstance(source, Job)
        self._model_dir = None if isinstance(source, Job) else local_path(source)
        self._model = model
        self._score_batch = score
        self._predict_one = predict
        begins = range(0, len(dataset), batch_size)
        positions = [list(range(begin, min(begin + batch_size, len(dataset)))) for begin in begins]
        self._loader = make_batches(dataset, positions, num_workers, collate_fn)
        self._batches: Optional[Iterator[Any]] = None
        self._taken_step: Optional[int] = None  # whose values the model has, as far as that is known

    @torch.no_grad()
    def _prepare(self) -> None:
        if self._is_beside_training:
            torch.set_num_threads(1)  # The others' pool did not come along, and the cores are for training.
        tensors = self._model.state_dict(keep_vars=True)
        if self._is_beside_training:
            _refuse_gpus(tensors)
        for tensor in tensors.values():
            tensor.data = tensor.data.clone()  # Not those that the servers write to.
        kept = None if self._model_dir is None else snapshots.read_kept(self._model_dir)
        for name, constant in ({} if kept is None else kept.constants).items():
            if name in tensors and tuple(tensors[name].shape) == constant.shape:
                tensors[name].data.copy_(conversion.from_bytes(constant))
        self._model.eval()

    def _take_tables(self, tables: EvaluatedRows) -> None:
        """JoinError: the model has others."""
        super()._take_tables(tables)
        found = [each for each in self._model.modules() if isinstance(each, Embedding) and each.weight is None]
        own = {module.name: module.table.dim for module in found}
        for name in [*tables.dims, *own]:
            if own.get(name) != tables.dims.get(name):
                raise JoinError(
                    f"model: expected table {name} of dim {tables.dims.get(name, 'none')}, as the job has it, found "
                    f"{own.get(name, 'none')}"
                )
        for module in found:
            module.bind(SnapshotTables(tables))

    @torch.no_grad()
    def _score_records(self, values: Mapping[str, memoryview[float]], records: range) -> Tuple[Any, Any]:
        if records.start == 0:
            self._take(values)
            self._taken_step = None
            self._batches = iter(self._loader)
        assert self._batches is not None
        scores, labels = self._score_batch(self._model, next(self._batches))
        return _floats(scores), _floats(labels)

    @torch.no_grad()
    def _predict_at(self, step: int, values: Mapping[str, memoryview[float]], features: Any) -> Any:
        if step != self._taken_step:
            self._take(values)
            self._taken_step = step
        if not isinstance(features, dict):
            features = torch.frombuffer(bytearray(features), dtype=torch.float32).view(features.shape)
        assert self._predict_one is not None
        scores = self._predict_one(self._model, features)
        return _floats(scores.reshape(-1) if isinstance(scores, torch.Tensor) else scores)

    def _take(self, values: Mapping[str, memoryview[float]]) -> None:
        """JoinError: it is another model's snapshot."""
        tensors = self._model.state_dict(keep_vars=True)
        for name, value in values.items():
            if name not in tensors or tuple(tensors[name].shape) != value.shape:
                found = list(tensors[name].shape) if name in tensors else "none"
                raise JoinError(
                    f"model: expected {name} of {list(value.shape or ())}, as the job has it, found {found}"
                )
            tensors[name].data.copy_(conversion.from_bytes(_tensor(value)))


def _refuse_gpus(tensors: Mapping[str, Any]) -> None:
    """JoinError. CUDA does not come along into a fork."""
    for name, tensor in tensors.items():
        if tensor.device.type != "cpu":
            raise JoinError(f"model: expected an evaluation beside the training to have one on the cpu, found {name} on "
                            f"{tensor.device}: give it copy.deepcopy(model).cpu(), or evaluate in a second script")  # fmt: skip


def _tensor(value: memoryview[float]) -> Any:
    from ..safetensors import Tensor

    return Tensor("F32", tuple(value.shape or ()), value.cast("B"))


def _floats(tensor: Any) -> Any:
    return tensor.detach().float().cpu().contiguous() if isinstance(tensor, torch.Tensor) else tensor
