"""Between a model's tensors and the memory that is shared with the agent."""

from __future__ import annotations

from typing import List, NamedTuple, Optional, Tuple

import torch

from ..errors import BadGradient
from ..job import Job
from ..membership import Membership
from . import conversion
from .gpu import Copies
from .modules import Parts


class Exchange:
    """Gradients go out as they are, and parameters of float32 in the host's memory are views of the values."""

    def __init__(self, parts: Parts, membership: Membership, reject_non_finite: bool, has_views: bool = True) -> None:
        """`has_views`: False copies all values, for who changes parameters."""
        self._reject_non_finite = reject_non_finite
        self._sources: List[Source] = []
        self._copied: List[Tuple[torch.Tensor, torch.Tensor]] = []
        self._copied_parameters: List[Source] = []  # Those of them that a batch does not change.
        self._touched: List[torch.Tensor] = []
        self._samples: List[Tuple[torch.Tensor, torch.Tensor]] = []
        positions = {name: n for n, name in enumerate(membership.arrays)}
        for name, parameter in parts.parameters.items():
            shape = tuple(parameter.shape)
            value = conversion.view_of_floats(membership.arrays[name].values, shape)
            place = conversion.view_of_floats(membership.arrays[name].gradients, shape)
            self._sources.append(Source(name, parameter, value, place, positions[name]))
            if has_views and parameter.dtype == torch.float32 and parameter.device.type == "cpu":
                parameter.data = value
                self._touched.append(parameter.detach().view(-1)[:0])
            else:
                self._copied.append((parameter, value))
                self._copied_parameters.append(self._sources[-1])
        for name, average in parts.averages.items():
            shape = tuple(average.buffer.shape)
            self._copied.append((average.buffer, conversion.view_of_floats(membership.arrays[name].values, shape)))
            sample = conversion.view_of_floats(membership.arrays[name].gradients, shape)
            self._samples.append((average.buffer, sample))
        self._copies = Copies([*parts.parameters.values(), *(average.buffer for average in parts.averages.values())])
        self.take_values()

    @torch.no_grad()
    def write_gradients(self) -> List[int]:
        """The positions of the variables that have no gradient in this step. BadGradient."""
        absent = [source.position for source in self._sources if not self._write_gradient(source)]
        self._write_samples()
        for source in self._sources:
            if source.position not in absent:
                self._check(source.name, source.place)
        return absent

    @torch.no_grad()
    def take_values(self) -> None:
        """Parameters that are views have them; autograd is told that they have changed."""
        for view in self._touched:
            view.zero_()
        for tensor, value in self._copied:
            tensor.copy_(value, non_blocking=True)
        self._copies.wait()

    def check_copies(self) -> None:
        """RuntimeError: the script has changed a parameter that is a copy of its value. Those that are views are the values."""
        for name, parameter, value, _, _ in self._copied_parameters:
            if not conversion.are_equal(parameter.detach().cpu().float(), value.to(parameter.dtype).float()):
                raise RuntimeError(f"{name}: expected its values unchanged, found them changed since the step before: the "
                                   "script's changes are lost with the next step")  # fmt: skip

    def _write_gradient(self, source: Source) -> bool:
        """False: there is none."""
        gradient: Optional[torch.Tensor] = source.parameter.grad
        if gradient is None:
            return False
        source.place.copy_(gradient.to_dense() if gradient.is_sparse else gradient, non_blocking=True)
        return True

    def _check(self, name: str, gradient: torch.Tensor) -> None:
        if self._reject_non_finite and not torch.isfinite(gradient).all():
            raise BadGradient(f"gradient of {name}: expected finite elements, found one that is not")

    def _write_samples(self) -> None:
        for buffer, sample in self._samples:
            sample.copy_(buffer, non_blocking=True)
        self._copies.wait()


class Source(NamedTuple):
    """A parameter, where its value and its gradient lie, and its position among the job's variables."""

    name: str
    parameter: torch.nn.Parameter
    value: torch.Tensor
    place: torch.Tensor
    position: int


class Norms:
    """With the momentum 1 a batch norm's buffers hold exactly the batch's mean and variance after its forward pass, which is
    what the servers average. At the job's end the modules are as they were, but for the values."""

    def __init__(self, parts: Parts, job: Job) -> None:
        self._job = job
        self._momenta = [(norm, norm.momentum) for norm in parts.norms]
        for norm in parts.norms:
            norm.momentum = 1.0
        job.at_end(self._restore)

    def _restore(self) -> None:
        for norm, momentum in self._momenta:
            norm.momentum = momentum
            if norm.num_batches_tracked is not None:
                norm.num_batches_tracked.fill_(self._job.global_step)
