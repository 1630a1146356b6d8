"""Tables of one job, or of all jobs of a namespace."""

import datetime
import re
from typing import Any, Dict, List, Mapping, Sequence

from tfjob_api.conditions import read_conditions, state
from tfjob_api.job_document import replica_specs
from tfjob_api.status import SUCCEEDED
from tfjob_api.text_table import render_table

from .events import Event
from .replica_pods import ReplicaPod, type_order

# The chief's report: "2026-11-20T20:15:03.120Z step=1200 loss=0.4312 ...".
_PROGRESS = re.compile(r"(?:^|\s)(step=\d+(?:\s.*)?)$")
_MAX_WARNINGS = 5


def render_jobs(jobs: Sequence[Mapping[str, Any]], now: datetime.datetime) -> str:
    rows = []
    for job in jobs:
        metadata = job.get("metadata") or {}
        age = render_age(str(metadata.get("creationTimestamp", "")), now)
        rows.append([str(metadata.get("name", "")), state(job) or "-", age, describe_replicas(job)])
    return _table(("NAME", "STATE", "AGE", "REPLICAS"), rows)


def render_job(
    job: Mapping[str, Any],
    pods: Sequence[ReplicaPod],
    progress: str,
    events: Mapping[str, Sequence[Event]],
    now: datetime.datetime,
) -> str:
    """Shows conditions, pods, progress, and the cluster's warnings about a job that has not succeeded."""
    metadata = job.get("metadata") or {}
    age = render_age(str(metadata.get("creationTimestamp", "")), now)
    name = f"{metadata.get('namespace', '')}/{metadata.get('name', '')}"
    parts = [f"{name}  {state(job) or 'not seen by the operator'}  {age}  {describe_replicas(job)}"]
    conditions = read_conditions(job)
    if conditions:
        rows = []
        for c in conditions:
            since = c.last_transition_time or c.last_update_time
            rows.append([c.type, c.status, render_age(since, now), c.reason, c.message])
        parts.append(_table(("CONDITION", "STATUS", "AGE", "REASON", "MESSAGE"), rows))
    parts.append(_render_pods(pods, now) if pods else "no pods")
    if progress:
        parts.append(f"progress: {progress}")
    for pod in pods:
        if pod.exit_code and pod.last_words:
            parts.append(f"{pod.replica_name}: {pod.last_words}")
        elif pod.waiting_for:
            parts.append(f"{pod.replica_name}: {pod.waiting_for}")
    warnings = _warnings(events, now)
    if warnings and state(job) != SUCCEEDED:
        parts.append("\n".join(warnings[-_MAX_WARNINGS:]))
    return "\n\n".join(parts)


def find_progress(log: str) -> str:
    """The newest report in the leader's log; "" without one."""
    for line in reversed(log.splitlines()):
        match = _PROGRESS.search(line)
        if match:
            return match.group(1)
    return ""


def describe_replicas(job: Mapping[str, Any]) -> str:
    """ "chief 1, ps 2/2, worker 3/4": active of those wanted, where the operator counts them."""
    specs = replica_specs(job)
    counts = (job.get("status") or {}).get("replicaStatuses") or {}
    parts = []
    for kind in sorted(specs, key=type_order):
        wanted = (specs[kind] or {}).get("replicas", 1)
        count = counts.get(kind)
        if count is None:
            parts.append(f"{kind.lower()} {wanted}")
            continue
        text = f"{kind.lower()} {count.get('active', 0)}/{wanted}"
        for word in ("succeeded", "failed"):
            if count.get(word):
                text += f" ({count[word]} {word})"
        parts.append(text)
    return ", ".join(parts)


def render_age(time: str, now: datetime.datetime) -> str:
    """As kubectl does: 45s, 12m, 3h12m, 5d."""
    try:
        then = datetime.datetime.fromisoformat(time.replace("Z", "+00:00"))
    except ValueError:
        return "-"
    seconds = max(0, int((now - then).total_seconds()))
    if seconds < 120:
        return f"{seconds}s"
    if seconds < 3600:
        return f"{seconds // 60}m"
    if seconds < 48 * 3600:
        return f"{seconds // 3600}h{seconds % 3600 // 60}m"
    return f"{seconds // 86400}d"


def _render_pods(pods: Sequence[ReplicaPod], now: datetime.datetime) -> str:
    rows = []
    for pod in pods:
        code = "-" if pod.exit_code is None else str(pod.exit_code)
        age = render_age(pod.created, now)
        rows.append([pod.replica_name, pod.name, pod.state, str(pod.restarts), code, pod.node or "-", age])
    return _table(("REPLICA", "POD", "STATE", "RESTARTS", "EXIT", "NODE", "AGE"), rows)


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(render_table(headings, rows))


def _warnings(events: Mapping[str, Sequence[Event]], now: datetime.datetime) -> List[str]:
    """The newest of each text, by object."""
    newest: Dict[str, str] = {}
    for name, found in events.items():
        for event in found:
            if event.text.startswith("Warning "):
                newest[f"{name}: {event.text.partition(' ')[2]}"] = event.time
    return [f"{text} ({render_age(time, now)} ago)" if time else text for text, time in newest.items()]
