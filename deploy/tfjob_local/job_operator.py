"""What the launcher asks of the controller that it emulates: the training operator, or Trainer with JobSet."""

from dataclasses import dataclass
from typing import Any, Dict, Mapping, Optional, Protocol

from tfjob_api.model import TrainingJob

from .operator_pods import FailedPod


@dataclass(frozen=True)
class JobOutcome:
    succeeded: bool
    # The message of the condition that ended the job.
    reason: str
    # The pod whose end failed the job; None: the job succeeded, or ran out of time.
    failed_pod: Optional[FailedPod] = None


class Status(Protocol):
    def is_true(self, condition_type: str) -> bool: ...

    def to_document(self) -> Dict[str, Any]:
        """`status:` of the job."""


class JobOperator(Protocol):
    """Does something in reconcile() alone; everything else only changes what it will find."""

    # The current spec.
    job: TrainingJob

    @property
    def status(self) -> Status: ...

    @property
    def finished(self) -> bool: ...

    @property
    def outcome(self) -> Optional[JobOutcome]:
        """None until the job has finished."""

    def scale(self, numbers: Mapping[str, int]) -> None:
        """By replica type. ValueError: the job does not admit such a number."""

    def suspend(self) -> None:
        """ValueError: it cannot be suspended now."""

    def resume(self) -> None:
        """ValueError: it is not suspended."""

    def stopped(self, how: str) -> None:
        """Its user has ended an unfinished job, whose pods have ended. `how`: "stopped by SIGTERM"."""

    def reconcile(self) -> None:
        """Call it after every change and, for time limits, now and then."""
