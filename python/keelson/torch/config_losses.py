"""The losses of a configuration in PyTorch: means over a batch, as the workers compute them."""

from __future__ import annotations

from typing import Any, List, Mapping, Sequence, Tuple, Union

import torch
import torch.nn.functional as F

from ..errors import JoinError
from ..text_proto_reader import Message

_IN_BATCH = "IN_BATCH_SOFTMAX"
_KINDS = ("SOFTMAX_CROSS_ENTROPY", "SIGMOID_CROSS_ENTROPY", "MEAN_SQUARED_ERROR", "HUBER", _IN_BATCH)
Labels = Union[torch.Tensor, Mapping[str, torch.Tensor]]


class Loss:
    def __init__(self, message: Message, last_layer: str) -> None:
        """JoinError, ValueError."""
        self._message = message
        self.kind = message.text("kind")
        if self.kind not in _KINDS:
            raise JoinError(f"{message.place}: kind: expected one of {', '.join(_KINDS)}, found {self.kind or 'none'}")
        self._label = message.text("label", "label")
        self._weight_label = message.text("weight_label")
        self._probability_label = message.text("log_probability_label")
        self.inputs: Tuple[str, ...] = (message.text("scores", last_layer),)
        if self.kind == _IN_BATCH:
            self.inputs = (message.text("queries"), message.text("items"))

    @property
    def labels(self) -> List[str]:
        """That it needs, by their names."""
        own = [self._probability_label] if self.kind == _IN_BATCH else [self._label]
        return [name for name in (*own, self._weight_label) if name]

    def mean(self, outputs: Any, labels: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """Times its weight."""
        losses = self._in_batch(outputs, labels) if self.kind == _IN_BATCH else self._of_scores(outputs, labels)
        if self._weight_label:
            losses = losses * labels[self._weight_label].to(losses.dtype)
        return losses.mean() * self._message.number("weight", 1.0)

    def _in_batch(self, outputs: Any, labels: Mapping[str, torch.Tensor]) -> torch.Tensor:
        queries, items = outputs
        scores = queries @ items.t() / self._message.number("temperature", 1.0)
        if self._probability_label:
            scores = scores - labels[self._probability_label].to(scores.dtype)
        return F.cross_entropy(scores, torch.arange(len(scores)), reduction="none")

    def _of_scores(self, scores: torch.Tensor, labels: Mapping[str, torch.Tensor]) -> torch.Tensor:
        label = labels[self._label]
        if self.kind == "SOFTMAX_CROSS_ENTROPY":
            return F.cross_entropy(scores, label.long(), reduction="none")
        label, score = label.to(scores.dtype), scores[:, 0]
        if self.kind == "SIGMOID_CROSS_ENTROPY":
            return F.binary_cross_entropy_with_logits(score, label, reduction="none")
        if self.kind == "MEAN_SQUARED_ERROR":
            return F.mse_loss(score, label, reduction="none")
        return F.huber_loss(score, label, reduction="none", delta=self._message.number("delta", 1.0))


def losses_of(model: Message, last_layer: str) -> List[Loss]:
    """JoinError, ValueError."""
    messages = model.messages("losses") or [model.message("loss")]
    return [Loss(message, last_layer) for message in messages]


def labels_by_name(losses: Sequence[Loss], labels: Labels) -> Mapping[str, torch.Tensor]:
    """`labels`: by their names, or the only one."""
    wanted = list(dict.fromkeys(name for loss in losses for name in loss.labels))
    if isinstance(labels, Mapping):
        missing = [name for name in wanted if name not in labels]
        if missing:
            raise ValueError(f"labels: expected {', '.join(wanted)}, found none of {', '.join(missing)}")
        return labels
    if len(wanted) != 1:
        raise ValueError(f"labels: expected a mapping with {', '.join(wanted) or 'none'}, found one tensor")
    return {wanted[0]: labels}
