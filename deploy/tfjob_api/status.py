"""The job's status: conditions with the operator's rules for changing them, and the replicas' counts.

Reasons and messages are the operator's, word for word: scripts and Katib look for them.
"""

import datetime
from dataclasses import dataclass, field, replace
from typing import Any, Dict, List, Optional

from .job_kind import TF_JOB

CREATED = "Created"
RUNNING = "Running"
RESTARTING = "Restarting"
SUCCEEDED = "Succeeded"
# What a TrainJob has in place of Succeeded.
COMPLETE = "Complete"
FAILED = "Failed"
SUSPENDED = "Suspended"
# Reason of the condition Suspended that is no longer true.
RESUMED = "Resumed"
# Reason of the condition Running of a job whose launcher was told to end it; the operator knows no such end.
STOPPED = "Stopped"

TYPES = (CREATED, RUNNING, RESTARTING, SUSPENDED, SUCCEEDED, FAILED)


def reason(name: str, prefix: str = TF_JOB.name) -> str:
    """ "TFJobRunning": the reason of a condition, and of the event that tells of it. `prefix`: the kind of the job,
    or what its operator writes in its place."""
    return prefix + name


@dataclass(frozen=True)
class Condition:
    type: str
    status: bool
    reason: str
    message: str
    # Seconds since the epoch.
    last_update_time: float
    # The time of the last change of `status`.
    last_transition_time: float


@dataclass
class ReplicaStatus:
    """The number of pods of one replica type in each state."""

    active: int = 0
    succeeded: int = 0
    failed: int = 0


@dataclass
class JobStatus:
    conditions: List[Condition] = field(default_factory=list)
    # By replica type ("PS").
    replica_statuses: Dict[str, ReplicaStatus] = field(default_factory=dict)
    start_time: Optional[float] = None
    completion_time: Optional[float] = None
    # The reasons of conditions begin with it.
    reason_prefix: str = TF_JOB.name

    def condition(self, condition_type: str) -> Optional[Condition]:
        for condition in self.conditions:
            if condition.type == condition_type:
                return condition
        return None

    def is_true(self, condition_type: str) -> bool:
        condition = self.condition(condition_type)
        return condition is not None and condition.status

    @property
    def succeeded(self) -> bool:
        return self.is_true(SUCCEEDED)

    @property
    def failed(self) -> bool:
        return self.is_true(FAILED)

    @property
    def finished(self) -> bool:
        return self.succeeded or self.failed

    def update(
        self, condition_type: str, message: str, now: float, status: bool = True, reason_name: str = ""
    ) -> bool:
        """Writes a condition as the operator does; False: nothing changed.

        Nothing is written after Failed. Running and Restarting take each other's place; Succeeded and
        Failed end Running, which stays in the list.
        """
        if self.failed:
            return False
        new = Condition(condition_type, status, reason(reason_name or condition_type, self.reason_prefix), message, now, now)
        old = self.condition(condition_type)
        if old is not None and old.status == new.status:
            if old.reason == new.reason:
                return False
            new = replace(new, last_transition_time=old.last_transition_time)
        self.conditions = [*self._conditions_beside(condition_type), new]
        return True

    def _conditions_beside(self, condition_type: str) -> List[Condition]:
        gone = {condition_type}
        if condition_type in (RUNNING, RESTARTING):
            gone |= {RUNNING, RESTARTING}
        kept = [condition for condition in self.conditions if condition.type not in gone]
        if condition_type in (SUCCEEDED, FAILED):
            kept = [replace(c, status=False) if c.type == RUNNING else c for c in kept]
        return kept

    def count_active_as_succeeded(self) -> None:
        """What the operator does after success, whatever the pods do."""
        for counts in self.replica_statuses.values():
            counts.succeeded += counts.active
            counts.active = 0

    def clear_active(self) -> None:
        for counts in self.replica_statuses.values():
            counts.active = 0

    def to_document(self) -> Dict[str, Any]:
        """`status:` of the job, as `kubectl get -o yaml` prints it."""
        document: Dict[str, Any] = {}
        if self.completion_time is not None:
            document["completionTime"] = rfc3339(self.completion_time)
        document["conditions"] = [_condition_document(condition) for condition in self.conditions]
        document["replicaStatuses"] = {
            replica_type: _counts_document(self.replica_statuses[replica_type])
            for replica_type in sorted(self.replica_statuses)
        }
        if self.start_time is not None:
            document["startTime"] = rfc3339(self.start_time)
        return document


def _condition_document(condition: Condition) -> Dict[str, str]:
    return {
        "lastTransitionTime": rfc3339(condition.last_transition_time),
        "lastUpdateTime": rfc3339(condition.last_update_time),
        "message": condition.message,
        "reason": condition.reason,
        "status": "True" if condition.status else "False",
        "type": condition.type,
    }


def _counts_document(counts: ReplicaStatus) -> Dict[str, int]:
    """A count of zero is left out, as Go's omitempty does."""
    named = {"active": counts.active, "failed": counts.failed, "succeeded": counts.succeeded}
    return {name: count for name, count in named.items() if count}


def rfc3339(seconds: float) -> str:
    """Seconds since the epoch as Kubernetes writes a time."""
    time = datetime.datetime.fromtimestamp(int(seconds), datetime.timezone.utc)
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")
