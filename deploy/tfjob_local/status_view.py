"""What the command `status` shows of a job: as a table, or as the TFJob with its status.

A view is plain data, so that it can go through the control socket and into a file:

    job, namespace, run_dir, launcher (its pid), running (it is at work), started (UTC), elapsed (s)
    tfjob       the resource, with `status:`
    replicas    name, state, pid, restarts, exit_code, seconds, log
    progress    the line about the training
    dashboards  URLs of the pages that can be looked at
"""

import json
from typing import Any, List, Mapping, Optional, Sequence

from tfjob_api.conditions import find_end, read_conditions, state, was_stopped
from tfjob_api.text_table import render_table
from tfjob_api.yaml_text import to_yaml

from .pods import Phase, Pod
from .progress import duration

FORMATS = ("table", "yaml", "json")


def replica_state(pod: Optional[Pod]) -> str:
    """In the words of kubectl, as far as it has one."""
    if pod is None:
        return "Gone"
    if pod.deleting:
        return "Terminating" if not pod.phase.ended else pod.phase.value
    return pod.phase.value if pod.phase is not Phase.PENDING else "Init"


def render(view: Mapping[str, Any], output_format: str) -> str:
    """Ends with a line break."""
    if output_format == "yaml":
        return to_yaml([view["tfjob"]])
    if output_format == "json":
        return json.dumps(view["tfjob"], indent=2) + "\n"
    return "\n".join(_table(view)) + "\n"


def _table(view: Mapping[str, Any]) -> List[str]:
    lines = [_head(view), f"run directory {view['run_dir']}"]
    # A state that an older launcher wrote has none.
    lines += [f"dashboard {url}" for url in view.get("dashboards", ())]
    lines.append("")
    lines += render_table(_HEADINGS, [_row(replica) for replica in view["replicas"]])
    lines.append("")
    lines += render_table(
        ("condition", "status", "reason", "since", "message"),
        [
            (c.type, c.status, c.reason, c.last_transition_time, c.message)
            for c in read_conditions(view["tfjob"])
        ],
    )
    if view["progress"]:
        lines += ["", view["progress"]]
    return lines


def _head(view: Mapping[str, Any]) -> str:
    job = view["tfjob"]
    launcher = f"launcher {view['launcher']}"
    if not view["running"]:
        conditions = read_conditions(job)
        ended = find_end(conditions) is not None or was_stopped(conditions)
        launcher += " has ended" if ended else " ended early; this is the last that it wrote"
    return f"job {view['job']}: {state(job) or 'Unknown'}, {duration(view['elapsed'])}, {launcher}"


_HEADINGS = ("replica", "state", "pid", "restarts", "exit code", "uptime", "log")


def _row(replica: Mapping[str, Any]) -> Sequence[str]:
    return (
        replica["name"],
        replica["state"],
        _or_dash(replica["pid"]),
        str(replica["restarts"]),
        _or_dash(replica["exit_code"]),
        duration(replica["seconds"]),
        replica["log"],
    )


def _or_dash(value: object) -> str:
    return "-" if value is None else str(value)
