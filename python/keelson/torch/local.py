"""An optimizer of torch.optim that runs in the script: the servers get by how much it has changed the parameters."""

from __future__ import annotations

import os
from typing import Any, Dict, List

import torch

from ..errors import JoinError
from ..job import Job
from ..membership import Membership
from .exchange import Exchange
from .modules import Parts


class LocalExchange(Exchange):
    """The difference goes out in the gradient's place, and the servers subtract it from their values: SGD at rate 1."""

    def __init__(
        self, parts: Parts, membership: Membership, reject_non_finite: bool, optimizer: torch.optim.Optimizer
    ) -> None:
        self._optimizer = optimizer
        super().__init__(parts, membership, reject_non_finite, has_views=False)

    @torch.no_grad()
    def write_gradients(self) -> List[int]:
        """BadGradient: the optimizer has made no step."""
        for source in self._sources:
            if source.parameter.grad is not None:
                self._check(source.name, source.parameter.grad)
            if source.parameter.dtype != torch.float32:
                source.place.copy_(source.parameter)  # The servers' value has more digits, which they keep.
        with torch.enable_grad():
            self._optimizer.step()
        for _, parameter, value, place, _ in self._sources:
            torch.sub(value if parameter.dtype == torch.float32 else place, parameter.detach().cpu(), out=place)
        self._write_samples()
        return []  # Where there was no gradient the difference is 0, and SGD without a momentum leaves it at that.


class LocalState:
    """What the optimizer knows of the steps before, in a file of this worker in the model directory."""

    def __init__(self, job: Job, membership: Membership, optimizer: torch.optim.Optimizer) -> None:
        """Takes what is there, if the job is gone on with. JoinError."""
        self._job = job
        self._optimizer = optimizer
        self._kind = type(optimizer).__name__
        self._path = membership.own_path("optimizer", "pt")
        if self._path is None:
            return
        if job.global_step > 0 and os.path.exists(self._path):
            self._load(self._path)
        job.at_end(self.save)
        job.at_save(self.save)

    def save(self) -> None:
        if self._path is None:
            return
        content = {"kind": self._kind, "step": self._job.global_step, "state": self._optimizer.state_dict()["state"]}
        written = f"{self._path}.{os.getpid()}"
        torch.save(content, written)
        os.replace(written, self._path)

    def _load(self, path: str) -> None:
        try:
            content: Dict[str, Any] = torch.load(path, weights_only=True)
            if content["kind"] != self._kind:
                raise ValueError(f"that of {content['kind']}")
            # The settings are the script's: a changed rate is allowed.
            self._optimizer.load_state_dict({**self._optimizer.state_dict(), "state": content["state"]})
        except Exception as error:  # Whatever a damaged file makes of it.
            raise JoinError(f"{path}: expected the state of {self._kind}, found {error}") from error
