"""An optimizer of torch.optim as one of the servers', where they compute the same. What has no equal is refused by name."""

from __future__ import annotations

import dataclasses
from typing import Any, Callable, Dict, List, Mapping

import torch

from .. import optimizers
from ..errors import JoinError
from .modules import Parts

Numbers = Mapping[str, Any]


def translate(optimizer: torch.optim.Optimizer, parts: Parts) -> optimizers.Optimizer:
    """The first group's settings are those of the job; parameters of others that differ have a group each. JoinError."""
    kind = type(optimizer).__name__
    make = _KINDS.get(type(optimizer))
    if make is None:
        known = ", ".join(known.__name__ for known in _KINDS)
        hint = ": keelson.RmsProp is TensorFlow's" if kind == "RMSprop" else ""
        raise JoinError(f"optimizer: expected one of keelson's or of torch's {known}, found {kind}{hint}")
    stepped = sum(map(_has_stepped, optimizer.state.values()))
    if stepped:
        raise JoinError(f"{kind}: expected one that has made no step yet, found the state of {stepped} parameters")
    if any("initial_lr" in group for group in optimizer.param_groups):
        raise JoinError(f"{kind}: expected no torch.optim.lr_scheduler, found one: {SCHEDULES}")
    check_parameters(optimizer, parts)
    settings = [make(group) for group in optimizer.param_groups]
    groups: List[optimizers.Group] = []
    for group, own in zip(optimizer.param_groups, settings):
        for parameter in group["params"]:
            name = str(parts.name_of(parameter))
            if own != settings[0] and name in parts.parameters:
                groups.append(optimizers.Group(name, own))
    return dataclasses.replace(settings[0], groups=groups)


def check_parameters(optimizer: torch.optim.Optimizer, parts: Parts) -> None:
    """JoinError: it has a parameter that is not the model's."""
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            if parts.name_of(parameter) is None:
                raise JoinError(
                    f"{type(optimizer).__name__}: expected the model's parameters, found another one of "
                    f"{list(parameter.shape)}"
                )


SCHEDULES = (
    "the servers' schedule goes by the step of the whole job: keelson's optimizers take schedule=keelson.Constant, Step, "
    "Exponential or Cosine, each with a warmup"
)


def _has_stepped(state: Mapping[str, Any]) -> bool:
    """Adagrad has a state from the beginning, of 0 steps; that of SGD does not count them."""
    if "step" in state:
        return float(state["step"]) > 0
    return any(value is not None for value in state.values())


def _common(group: Numbers, **required: object) -> Dict[str, Any]:
    """Rate and decay; settings without an equal must have these values."""
    required = {"maximize": False, "differentiable": False, **required}
    for name, value in required.items():
        if group.get(name, value) != value:
            raise JoinError(f"{name}: expected {value}, found {group[name]}")
    return {"lr": float(group["lr"]), "weight_decay": float(group["weight_decay"])}


def _sgd(group: Numbers) -> optimizers.Optimizer:
    common = _common(group)
    if group["momentum"] == 0:
        return optimizers.Sgd(**common)
    _common(group, dampening=0)
    return optimizers.Momentum(**common, momentum=float(group["momentum"]), nesterov=bool(group["nesterov"]))


def _adam(group: Numbers) -> optimizers.Optimizer:
    common = _common(group, amsgrad=False, decoupled_weight_decay=False)
    return optimizers.Adam(**common, betas=_betas(group), eps=float(group["eps"]))


def _adamw(group: Numbers) -> optimizers.Optimizer:
    common = _common(group, amsgrad=False)
    return optimizers.AdamW(**common, betas=_betas(group), eps=float(group["eps"]))


def _adagrad(group: Numbers) -> optimizers.Optimizer:
    common = _common(group, lr_decay=0)
    initial = float(group["initial_accumulator_value"])
    return optimizers.Adagrad(**common, initial_accumulator=initial, eps=float(group["eps"]))


def _betas(group: Numbers) -> Any:
    return tuple(float(beta) for beta in group["betas"])


_KINDS: Dict[type, Callable[[Numbers], optimizers.Optimizer]] = {
    torch.optim.SGD: _sgd,
    torch.optim.Adam: _adam,
    torch.optim.AdamW: _adamw,
    torch.optim.Adagrad: _adagrad,
}
