"""The status of a TrainJob: the conditions of its JobSet, and its one Job in numbers.

Reasons and messages of the conditions are JobSet's (pkg/constants) and Trainer's (pkg/constants), word for word.
"""

from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional

from .status import COMPLETE, FAILED, SUSPENDED, Condition, rfc3339

# Why a TrainJob is complete, or has failed.
ALL_JOBS_COMPLETED = "AllJobsCompleted"
FAILED_JOBS = "FailedJobs"
REACHED_MAX_RESTARTS = "ReachedMaxRestarts"
FAIL_ACTION = "FailJobSetFailurePolicyAction"
SUSPENDED_MESSAGE = "TrainJob is suspended"
RESUMED_MESSAGE = "TrainJob is resumed"


@dataclass
class NodeCounts:
    """The pods of the Job."""

    wanted: int = 0
    # Not ended, and running.
    active: int = 0
    running: int = 0
    succeeded: int = 0


@dataclass
class TrainJobStatus:
    conditions: List[Condition] = field(default_factory=list)
    nodes: NodeCounts = field(default_factory=NodeCounts)

    def condition(self, condition_type: str) -> Optional[Condition]:
        return next((condition for condition in self.conditions if condition.type == condition_type), None)

    def is_true(self, condition_type: str) -> bool:
        condition = self.condition(condition_type)
        return condition is not None and condition.status

    @property
    def finished(self) -> bool:
        return self.is_true(COMPLETE) or self.is_true(FAILED)

    def update(self, condition_type: str, reason: str, message: str, now: float, status: bool = True) -> bool:
        """Writes a condition, in its place or as the last one; False: it was so already."""
        old = self.condition(condition_type)
        if old is not None and (old.status, old.reason, old.message) == (status, reason, message):
            return False
        changed_at = now if old is None or old.status != status else old.last_transition_time
        new = Condition(condition_type, status, reason, message, now, changed_at)
        if old is None:
            self.conditions.append(new)
        else:
            self.conditions[self.conditions.index(old)] = new
        return True

    def to_document(self) -> Dict[str, Any]:
        """`status:` of the TrainJob."""
        return {
            "conditions": [_condition_document(condition) for condition in self.conditions],
            "jobsStatus": [self._job_document()],
        }

    def _job_document(self) -> Dict[str, Any]:
        """How many Jobs of the name `node` are in each state: none or one."""
        nodes = self.nodes
        return {
            "active": int(nodes.active > 0 and not self.finished),
            "failed": int(self.is_true(FAILED)),
            "name": "node",
            "ready": int(0 < nodes.wanted <= nodes.running + nodes.succeeded and not self.finished),
            "succeeded": int(self.is_true(COMPLETE)),
            "suspended": int(self.is_true(SUSPENDED)),
        }


def _condition_document(condition: Condition) -> Dict[str, str]:
    return {
        "lastTransitionTime": rfc3339(condition.last_transition_time),
        "message": condition.message,
        "reason": condition.reason,
        "status": "True" if condition.status else "False",
        "type": condition.type,
    }
