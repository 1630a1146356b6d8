"""Reads the cluster's events about a job and its pods."""

import re
from typing import Any, Dict, List, Mapping, Sequence

from tfjob_api.naming import TYPE_PATTERN


def read_events(items: Sequence[Mapping[str, Any]], job_name: str) -> Dict[str, List[str]]:
    """Returns the events of the job and of its pods, by object: "Warning FailedMount: ...", the oldest
    first."""
    own = re.compile(rf"{re.escape(job_name)}(-{TYPE_PATTERN}-\d+)?")
    events: Dict[str, List[str]] = {}
    for item in sorted(items, key=_time):
        involved = str((item.get("involvedObject") or {}).get("name", ""))
        if own.fullmatch(involved):
            text = f"{item.get('type', '')} {item.get('reason', '')}: {item.get('message', '')}"
            events.setdefault(involved, []).append(text)
    return events


def _time(event: Mapping[str, Any]) -> str:
    keys = ("lastTimestamp", "eventTime", "firstTimestamp")
    return next((str(event[key]) for key in keys if event.get(key)), "")
