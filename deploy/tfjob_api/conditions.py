"""The conditions of a job's document, as kubectl prints it."""

from dataclasses import dataclass
from typing import Any, List, Mapping, Optional, Sequence

from .job_kind import MANIFEST_KINDS
from .status import COMPLETE, FAILED, RUNNING, STOPPED, SUCCEEDED, reason


@dataclass(frozen=True)
class JobCondition:
    """As in the resource; the fields are named as in the training SDK."""

    type: str
    # "True" or "False".
    status: str
    reason: str = ""
    message: str = ""
    # RFC 3339.
    last_update_time: str = ""
    last_transition_time: str = ""


def read_conditions(job: Mapping[str, Any]) -> List[JobCondition]:
    """Empty while the operator has not seen the job."""
    status = job.get("status") or {}
    keys = ("type", "status", "reason", "message", "lastUpdateTime", "lastTransitionTime")
    conditions = status.get("conditions") or []
    return [JobCondition(*(str(condition.get(key, "")) for key in keys)) for condition in conditions]


def find_true(conditions: Sequence[JobCondition], kind: str) -> Optional[JobCondition]:
    return next((c for c in conditions if c.type == kind and c.status == "True"), None)


def find_end(conditions: Sequence[JobCondition]) -> Optional[JobCondition]:
    """Failed, or Succeeded, which a TrainJob calls Complete; Failed where a job has both. None: it goes on."""
    return next((c for kind in (FAILED, SUCCEEDED, COMPLETE) if (c := find_true(conditions, kind))), None)


def was_stopped(conditions: Sequence[JobCondition]) -> bool:
    """Whether its launcher was told to end it."""
    reasons = [reason(STOPPED, prefix) for prefix in (*MANIFEST_KINDS, "Job")]
    return any(c.reason in reasons for c in conditions)


def state(job: Mapping[str, Any]) -> str:
    """One word for a table; "" while the operator has not seen the job."""
    conditions = read_conditions(job)
    end = find_end(conditions)
    if end:
        return end.type
    if was_stopped(conditions):
        return STOPPED
    newest = next((c.type for c in reversed(conditions) if c.status == "True"), "")
    # A TrainJob that runs has no condition for it.
    jobs = (job.get("status") or {}).get("jobsStatus") or []
    return newest or (RUNNING if any(each.get("active") for each in jobs) else "")
