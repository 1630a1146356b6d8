"""A torch.optim.Optimizer whose step is made on the servers."""

from __future__ import annotations

import contextlib
import dataclasses
import sys
from typing import Any, ContextManager, Dict, List, Optional, Tuple, Union

import torch

from .. import optimizers
from ..errors import JoinError
from ..job import Job
from ..membership import Membership
from . import conversion
from .embedding import Tables
from .exchange import Exchange, Norms
from .gpu import lock_pages
from .local import LocalExchange, LocalState
from .modules import Parts, check_configured
from .overlap import OverlappedExchange
from .translation import SCHEDULES, check_parameters, translate


class Optimizer(torch.optim.Optimizer):
    """Gives the model to the job, which starts with it, and from then on the model has the values of the servers.

    `optimizer`: keelson's, or one of torch.optim that the servers compute alike. `where="worker"` takes any of torch.optim,
    which makes its steps in the script: the servers get the difference. `overlap` sends gradients while backward computes
    others; they may not be changed after that. Parameters that do not require a gradient, and those that the optimizer of
    torch does not have, are constants. In a job with a config the model is kt.from_config's, and the configuration has the
    optimizer. JoinError names what cannot be had."""

    def __init__(
        self,
        job: Job,
        model: torch.nn.Module,
        optimizer: Union[optimizers.Optimizer, torch.optim.Optimizer, None] = None,
        overlap: bool = False,
        where: str = "server",
    ):
        if where not in ("server", "worker"):
            raise ValueError(f'where: expected "server" or "worker", found {where!r}')
        if overlap and where == "worker":
            raise ValueError('overlap: expected False with where="worker", whose differences are there after backward')
        self._job = job
        _check_who_has_the_optimizer(job, optimizer, where)
        self._local = _local_of(optimizer) if where == "worker" else None
        parts, server, groups = _describe(job, model, optimizer, self._local)
        if overlap and parts.tables:
            raise JoinError(f"overlap: expected a model without tables, found {', '.join(parts.tables)}")
        device = parts.device()
        if overlap and device != "cpu":
            raise JoinError(f"overlap: expected parameters on the cpu, found them on {device}")
        version = ".".join(map(str, sys.version_info[:2]))
        proposal = None if server is None else parts.proposal()
        membership = job.start(proposal, server, f"python {version}, torch {torch.__version__} {device}",
                               ["--hold_values"] if overlap else [])  # fmt: skip
        if server is None:
            check_configured(parts, membership)
        self._is_complete = False
        super().__init__(groups, {"lr": groups[0]["lr"]})
        self._is_complete = True
        self._settings = [_without_parameters(group) for group in self.param_groups]
        _take_constants(parts, membership)
        reject = job.settings.transfer.reject_non_finite
        self._exchange: Exchange
        if overlap:
            self._exchange = OverlappedExchange(parts, membership, reject, job)
        elif self._local is None:
            self._exchange = Exchange(parts, membership, reject)
        else:
            self.param_groups = self._local.param_groups  # What is changed here has effect there.
            self._exchange = LocalExchange(parts, membership, reject, self._local)
            LocalState(job, membership, self._local)
        if device == "cuda" and membership.memory is not None:
            job.at_end(lock_pages(membership.memory, torch.cuda.cudart()))  # type: ignore[no-untyped-call]
        self._norms = Norms(parts, job)
        self._tables = Tables(job.work, parts.embeddings, reject)
        job.work.on_new_values = self._take_values

    def step(self, loss: Any = None) -> bool:  # type: ignore[override]
        """Pushes the gradients of the batch that kt.Loader gave last, with its loss, and gets the new values. False: it does
        not count, since the batch was given to another worker; go on with the next one. BadGradient: nothing was pushed."""
        if loss is None or callable(loss):
            raise TypeError("step: expected the batch's loss, opt.step(loss), found none or a closure")
        self._check_settings()
        if self._job.work.current is None:
            raise RuntimeError("step: expected one for each batch of keelson.torch.Loader, found another one")
        if self._job.settings.debug and self._local is None:
            self._exchange.check_copies()
        number = loss.detach().item() if isinstance(loss, torch.Tensor) else float(loss)
        absent = self._exchange.write_gradients()
        counts = self._job.work.push(number, self._tables.write_gradients(), absent)
        self._tables.note_step()
        return counts

    def zero_grad(self, *arguments: Any, **named: Any) -> None:
        super().zero_grad(*arguments, **named)
        self._tables.zero_grad()

    def _take_values(self) -> None:
        self._exchange.take_values()
        self._tables.note_new_values()

    def accumulate(self) -> ContextManager[None]:
        """`with opt.accumulate():` around all but the last backward of a step, of which `overlap` would send the gradients too
        early. Gradients add up as ever."""
        if isinstance(self._exchange, OverlappedExchange):
            return self._exchange.accumulate()
        return contextlib.nullcontext()

    def add_param_group(self, param_group: Dict[str, Any]) -> None:
        if self._is_complete:
            raise RuntimeError(
                "add_param_group: expected all parameters from the beginning: the servers have the model"
            )
        super().add_param_group(param_group)

    def _check_settings(self) -> None:
        if self._local is not None:
            return
        for index, (group, given) in enumerate(zip(self.param_groups, self._settings)):
            if "initial_lr" in group:
                raise RuntimeError(
                    f"param_groups[{index}]: expected no torch.optim.lr_scheduler, found one: {SCHEDULES}"
                )
            for name, value in given.items():
                if group[name] != value:
                    raise RuntimeError(f"param_groups[{index}][{name!r}]: expected {value} as at the beginning, found "
                                       f"{group[name]}: {SCHEDULES}")  # fmt: skip


def _local_of(optimizer: object) -> torch.optim.Optimizer:
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise TypeError(f'optimizer: expected one of torch.optim with where="worker", found {type(optimizer).__name__}')
    if isinstance(optimizer, torch.optim.LBFGS):
        raise JoinError("optimizer: expected one whose step takes no closure, found LBFGS")
    return optimizer


def _check_who_has_the_optimizer(job: Job, optimizer: object, where: str) -> None:
    if job.settings.config is None:
        if optimizer is None:
            raise TypeError("optimizer: expected one of keelson's or of torch.optim, found none")
    elif optimizer is not None or where == "worker":
        found = 'where="worker"' if optimizer is None else type(optimizer).__name__
        raise TypeError(f"optimizer: expected none, since the job's config has it, found {found}")


def _describe(
    job: Job,
    model: torch.nn.Module,
    optimizer: Union[optimizers.Optimizer, torch.optim.Optimizer, None],
    local: Optional[torch.optim.Optimizer],
) -> Tuple[Parts, Optional[optimizers.Optimizer], List[Dict[str, Any]]]:
    """What of the model is trained, how the servers do that (None: as the job's config has it), and the groups of its
    parameters."""
    config = job.settings.config
    if optimizer is None or config is not None:
        assert config is not None
        parts = Parts(model, is_configured=True)
        return parts, None, [{"params": list(parts.parameters.values()), "lr": config.learning_rate()}]
    if not isinstance(optimizer, torch.optim.Optimizer):
        parts = Parts(model)
        return parts, _with_groups(optimizer, parts), [{"params": list(parts.parameters.values()), "lr": optimizer.lr}]
    parts = Parts(model, {id(p) for group in optimizer.param_groups for p in group["params"]})
    server = _with_groups(translate(optimizer, parts), parts) if local is None else optimizers.Sgd(lr=1.0)
    if local is not None:
        check_parameters(optimizer, parts)
        for group in parts.dense_groups():
            raise JoinError(f'{group.variables}: expected no optimizer of its own with where="worker", found {group.optimizer!r}')
        for name, table in parts.tables.items():
            if table.optimizer is None:
                raise JoinError(f'table {name}: expected an optimizer of its own with where="worker", found none')
    return parts, server, [dict(group) for group in optimizer.param_groups]


def _with_groups(optimizer: optimizers.Optimizer, parts: Parts) -> optimizers.Optimizer:
    return dataclasses.replace(optimizer, groups=[*parts.dense_groups(), *optimizer.groups])


def _without_parameters(group: Dict[str, Any]) -> Dict[str, Any]:
    return {name: value for name, value in group.items() if name != "params"}


def _take_constants(parts: Parts, membership: Membership) -> None:
    """Those with which the job was begun, in place of this script's."""
    kept = membership.constants()
    for name, tensor in parts.constants.items():
        if name in kept and kept[name].shape == tuple(tensor.shape):
            tensor.data.copy_(conversion.from_bytes(kept[name]))
