"""What of a module goes to the servers: parameters, and the moving averages of batch norm. The rest are constants."""

from __future__ import annotations

from dataclasses import dataclass
from typing import AbstractSet, Any, Dict, List, Optional

import torch
from torch.nn.modules.batchnorm import _NormBase

from ..config import Proposal, Proposed
from ..errors import JoinError
from ..membership import Membership
from ..optimizers import Group
from ..tables import Table, check_tables
from . import conversion
from .embedding import Embedding
from .from_config import MovingAverages

_TRAINED_TYPES = (torch.float32, torch.float16, torch.bfloat16)
_WRAPPERS = ("DataParallel", "DistributedDataParallel", "FullyShardedDataParallel")
_COUNT = "num_batches_tracked"
_AVERAGES = ("running_mean", "running_var")


@dataclass
class Average:
    """A buffer that is the moving average of what the module computes of each batch."""

    buffer: torch.Tensor
    decay: float


class Parts:
    """Of a model, by the names of its state_dict. JoinError names what cannot be trained on servers."""

    def __init__(
        self, model: torch.nn.Module, trained: Optional[AbstractSet[int]] = None, is_configured: bool = False
    ) -> None:
        """`trained`: the ids of the parameters that an optimizer has; None: all that require a gradient. `is_configured`: the
        names are those of a configuration's layers."""
        model = getattr(model, "_orig_mod", model)  # Of one that torch.compile has made, by the names of its source.
        self._forbidden = "" if is_configured else "/*"
        self.parameters: Dict[str, torch.nn.Parameter] = {}
        self.averages: Dict[str, Average] = {}
        self.constants: Dict[str, torch.Tensor] = {}
        self.aliases: Dict[str, str] = {}
        self.norms: List[Any] = []  # They have a momentum, and may have a num_batches_tracked.
        found = [module for module in model.modules() if isinstance(module, Embedding)]
        self.embeddings = [module for module in found if module.weight is None]
        self._dense = [module for module in found if module.weight is not None]
        _refuse_wrappers(model)
        averages = self._find_averages(model)
        self._names: Dict[int, str] = {}
        state = model.state_dict(keep_vars=True)
        for name, tensor in state.items():
            if not isinstance(tensor, torch.Tensor) or name.rpartition(".")[2] == _COUNT:
                continue
            if id(tensor) in self._names:
                self.aliases[name] = self._names[id(tensor)]
                continue
            self._names[id(tensor)] = name
            self._add(name, tensor, averages.get(id(tensor)), trained)
        _refuse_shared_storage(self.parameters)
        for name, parameter in model.named_parameters():
            if id(parameter) not in self._names:
                raise JoinError(f"parameter {name}: expected it in the model's state_dict, found {', '.join(state)}")
        self.tables = _tables_of(self.embeddings)
        _refuse_shared_names(found)
        check_tables(self.tables, state)
        if not self.parameters and not self.tables:
            raise JoinError("model: expected a parameter that requires a gradient, found none")

    def name_of(self, parameter: torch.Tensor) -> Optional[str]:
        return self._names.get(id(parameter))

    def device(self) -> str:
        """What the model is on: "cuda" if any parameter is."""
        return "cuda" if any(parameter.device.type == "cuda" for parameter in self.parameters.values()) else "cpu"

    def dense_groups(self) -> List[Group]:
        """Of embeddings with a number of rows that have optimizers of their own."""
        named = ((self._names[id(module.weight)], module.table.optimizer) for module in self._dense)
        return [Group(name, own) for name, own in named if own is not None and name in self.parameters]

    def proposal(self) -> Proposal:
        variables = {name: _proposed(parameter) for name, parameter in self.parameters.items()}
        for name, average in self.averages.items():
            variables[name] = _proposed(average.buffer)._replace(average_decay=average.decay)
        constants = {name: conversion.to_bytes(tensor) for name, tensor in self.constants.items()}
        return Proposal(variables, constants, dict(self.aliases), dict(self.tables))

    def _find_averages(self, model: torch.nn.Module) -> Dict[int, float]:
        """The buffers' ids -> their decay."""
        decays: Dict[int, float] = {}
        buffers = dict(model.named_buffers())
        for name, module in model.named_modules():
            if isinstance(module, MovingAverages):
                self.norms.append(module)
                decays.update({id(buffers[own]): 1 - module.momentum for own in module.names if own in buffers})
            if not isinstance(module, _NormBase) or module.running_mean is None:
                continue
            if module.momentum is None:
                raise JoinError(f"{name or 'model'}: expected a momentum, found None, a cumulative average")
            self.norms.append(module)
            for average in _AVERAGES:
                decays[id(getattr(module, average))] = 1 - module.momentum
        return decays

    def _add(
        self, name: str, tensor: torch.Tensor, decay: Optional[float], trained: Optional[AbstractSet[int]]
    ) -> None:
        _check(name, tensor, self._forbidden)
        if decay is not None:
            self.averages[name] = Average(tensor, decay)
        elif not isinstance(tensor, torch.nn.Parameter) or not _is_trained(tensor, trained):
            if not conversion.knows(tensor.dtype):
                raise JoinError(f"{name}: expected real or whole numbers, found {tensor.dtype}")
            self.constants[name] = tensor
        elif tensor.dtype not in _TRAINED_TYPES:
            raise JoinError(f"parameter {name}: expected float32, float16 or bfloat16, found {tensor.dtype}")
        else:
            self.parameters[name] = tensor


def check_configured(parts: Parts, membership: Membership) -> None:
    """JoinError: the job's configuration has another model."""
    own = {name: tuple(parameter.shape) for name, parameter in parts.parameters.items()}
    own.update({name: tuple(average.buffer.shape) for name, average in parts.averages.items()})
    own.update({f"table {name}": (table.dim,) for name, table in parts.tables.items()})
    job = {name: arrays.shape for name, arrays in membership.arrays.items()}
    job.update({f"table {name}": (dim,) for name, dim in membership.table_dims.items()})
    for name in [*job, *own, *parts.constants]:
        expected, found = job.get(name), own.get(name)
        if expected is None or found != expected:
            raise JoinError(
                f"model: expected keelson.torch.from_config of the job's configuration, with {name} "
                f"{list(expected) if expected is not None else '(none)'}, found {list(found) if found else 'none'}"
            )


def _tables_of(embeddings: List[Embedding]) -> Dict[str, Table]:
    """Embeddings of one name have one table."""
    tables: Dict[str, Table] = {}
    for embedding in embeddings:
        table = tables.setdefault(embedding.name, embedding.table)
        if table != embedding.table:
            raise JoinError(f"table {embedding.name}: expected {table}, found {embedding.table}")
    return tables


def _refuse_shared_names(embeddings: List[Embedding]) -> None:
    """A weight of rows is that of its module alone."""
    modules: Dict[str, Embedding] = {}
    for module in embeddings:
        other = modules.setdefault(module.name, module)
        if other.weight is not module.weight:
            raise JoinError(f"table {module.name}: expected one module of the name with rows, found two: use one for both")


def _is_trained(parameter: torch.nn.Parameter, trained: Optional[AbstractSet[int]]) -> bool:
    return parameter.requires_grad and (trained is None or id(parameter) in trained)


def _refuse_wrappers(model: torch.nn.Module) -> None:
    for module in model.modules():
        if type(module).__name__ in _WRAPPERS:
            raise JoinError(
                f"model: expected a module that is not distributed otherwise, found {type(module).__name__}"
            )


def _refuse_shared_storage(parameters: Dict[str, torch.nn.Parameter]) -> None:
    """Parameters that are one and the same tensor are one variable; two that share memory would be torn apart."""
    owners: Dict[int, str] = {}
    for name, parameter in parameters.items():
        other = owners.setdefault(parameter.data_ptr(), name)
        if other != name:
            raise JoinError(
                f"parameter {name}: expected memory of its own, found that of {other}: make both one Parameter"
            )


def _check(name: str, tensor: torch.Tensor, forbidden: str) -> None:
    if any(c in forbidden or ord(c) < 32 for c in name):
        raise JoinError(f'parameter {name!r}: expected a name without "/", "*" and control characters')
    if torch.nn.parameter.is_lazy(tensor):
        raise JoinError(f"parameter {name}: expected a shape, found none yet: run the model on a batch first")
    if type(tensor).__name__ == "DTensor" or tensor.layout != torch.strided:
        raise JoinError(f"parameter {name}: expected a plain tensor, found {type(tensor).__name__}, {tensor.layout}")
    if tensor.device.type not in ("cpu", "cuda"):
        raise JoinError(f"parameter {name}: expected it on the cpu or a GPU of CUDA, found it on {tensor.device}")
    if tensor.numel() == 0 and isinstance(tensor, torch.nn.Parameter):
        raise JoinError(f"parameter {name}: expected elements, found none in {list(tensor.shape)}")


def _proposed(tensor: torch.Tensor) -> Proposed:
    return Proposed(tuple(tensor.shape), conversion.to_bytes(tensor.detach().float()).data)
