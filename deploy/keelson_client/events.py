"""Reads the cluster's events about a job and its pods."""

import re
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Sequence

from tfjob_api.naming import TYPE_PATTERN


@dataclass(frozen=True)
class Event:
    # "Warning FailedMount: no such claim".
    text: str
    # RFC 3339; "" where the cluster gives none.
    time: str = ""


def read_events(items: Sequence[Mapping[str, Any]], job: Mapping[str, Any]) -> Dict[str, List[Event]]:
    """Returns the events of the job and of its pods, by object, the oldest first.

    An earlier job of the same name had pods of the same names: its own events have its uid, its pods' are older
    than this job.
    """
    metadata = job.get("metadata") or {}
    name, uid = str(metadata.get("name", "")), metadata.get("uid")
    created = str(metadata.get("creationTimestamp", ""))
    pods = re.compile(rf"{re.escape(name)}-{TYPE_PATTERN}-\d+")
    events: Dict[str, List[Event]] = {}
    for item in sorted(items, key=_time):
        involved = item.get("involvedObject") or {}
        about = str(involved.get("name", ""))
        is_jobs = about == name and involved.get("uid") in (None, uid)
        # Whole seconds; a fraction stands behind them.
        is_pods = pods.fullmatch(about) is not None and _time(item)[:19] >= created[:19]
        if is_jobs or is_pods:
            text = f"{item.get('type', '')} {item.get('reason', '')}: {item.get('message', '')}"
            events.setdefault(about, []).append(Event(text, _time(item)))
    return events


def _time(event: Mapping[str, Any]) -> str:
    keys = ("lastTimestamp", "eventTime", "firstTimestamp")
    return next((str(event[key]) for key in keys if event.get(key)), "")
