"""Gradients are sent while backward computes others."""

from __future__ import annotations

import contextlib
from functools import partial
from typing import Any, Callable, Dict, Iterator, List, Tuple

import torch

from ..job import Job
from ..membership import Membership
from . import conversion
from .exchange import Exchange
from .modules import Parts

# So many bytes of gradients have one message to the agent: each costs a few microseconds.
_OFFERED_BYTES = 1 << 18


class OverlappedExchange(Exchange):
    """A hook of each parameter copies its gradient when it is complete. What has not come by then, step() sends: parameters
    that have nothing but what accumulated before. Those that the loss does not depend on have none."""

    def __init__(self, parts: Parts, membership: Membership, reject_non_finite: bool, job: Job) -> None:
        self._job = job
        self._is_accumulating = False
        self._ticket: object = None  # The one that the following is about.
        self._sent: Dict[int, Tuple[torch.Tensor, int]] = {}  # Gradients as they were, by their source.
        self._pending: List[int] = []  # Positions of variables.
        self._pending_bytes = 0
        super().__init__(parts, membership, reject_non_finite)
        self._hooks = [_on_gradient(s.parameter, partial(self._take, n)) for n, s in enumerate(self._sources)]
        job.at_end(self._remove_hooks)

    @contextlib.contextmanager
    def accumulate(self) -> Iterator[None]:
        before, self._is_accumulating = self._is_accumulating, True
        try:
            yield
        finally:
            self._is_accumulating = before

    @torch.no_grad()
    def write_gradients(self) -> List[int]:
        """The positions of the variables that have no gradient in this step. BadGradient. RuntimeError: one was changed after it was sent."""
        sent = self._sent_now()
        absent: List[int] = []
        for n, source in enumerate(self._sources):
            if n not in sent:
                if self._write_gradient(source):
                    self._check(source.name, source.place)
                else:
                    absent.append(source.position)
                continue
            gradient, version = sent[n]
            is_same = source.parameter.grad is gradient and gradient._version == version
            # GradScaler, and what is done to .data, leave the version as it was.
            found = gradient.to_dense() if gradient.is_sparse else gradient
            if not is_same or not conversion.are_equal(source.place, found.float()):
                raise RuntimeError(
                    f"gradient of {source.name}: expected it as backward left it, found it changed after it was sent "
                    "(clip_grad_norm_, GradScaler.unscale_, zero_grad, ...): use overlap=False, or clip_value of "
                    "keelson's optimizers"
                )
        self._write_samples()
        return absent

    def _sent_now(self) -> Dict[int, Tuple[torch.Tensor, int]]:
        """Of the ticket whose gradients are being computed."""
        if self._ticket is not self._job.work.current:
            self._ticket = self._job.work.current
            self._sent, self._pending, self._pending_bytes = {}, [], 0
        return self._sent

    @torch.no_grad()
    def _take(self, n: int) -> None:
        """BadGradient. RuntimeError: it was sent before."""
        work, source = self._job.work, self._sources[n]
        if self._is_accumulating or work.current is None:
            return
        sent = self._sent_now()
        if n in sent:
            raise RuntimeError(
                f"gradient of {source.name}: expected one backward for each step, found another one, after the gradient "
                "was sent: use `with opt.accumulate():` for all but the last, or overlap=False"
            )
        self._write_gradient(source)
        self._check(source.name, source.place)
        gradient = source.parameter.grad
        assert gradient is not None
        sent[n] = gradient, gradient._version
        self._pending.append(source.position)
        self._pending_bytes += 4 * source.place.numel()
        if self._pending_bytes >= _OFFERED_BYTES:
            work.offer(self._pending)
            self._pending, self._pending_bytes = [], 0

    def _remove_hooks(self) -> None:
        for handle, _ in self._hooks:
            handle.remove()


def _on_gradient(parameter: torch.nn.Parameter, call: Callable[[], None]) -> Tuple[Any, Any]:
    """Calls when a backward has added all that it has to the gradient. The handle, and what must live as long."""
    register: Any = getattr(parameter, "register_post_accumulate_grad_hook", None)
    if register is not None:  # From torch 2.1 on.
        return register(lambda _: call()), None
    accumulation: Any = parameter.expand_as(parameter).grad_fn.next_functions[0][0]  # type: ignore[union-attr]
    return accumulation.register_hook(lambda *_: call()), accumulation
