"""Shows events, conditions, log lines, pages and the progress line while the job runs."""

import re
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Mapping, Sequence, Set, Tuple

from tfjob_api.job_kind import MANIFEST_KINDS
from tfjob_api.status import RESUMED, STOPPED, SUSPENDED, TYPES

from .console import BOLD, Console
from .dashboard_links import DashboardLinks
from .log_follower import LogFollower
from .pods import Pod
from .progress import Progress

# The operator's, each a kind or the word Job and what happened.
_CONDITION_REASON = re.compile(f"({'|'.join([*MANIFEST_KINDS, 'Job'])})({'|'.join([*TYPES, RESUMED, STOPPED])})")
_POD_CREATED = "SuccessfulCreatePod"


@dataclass(eq=False)
class LiveOutput:
    _console: Console
    _follower: LogFollower
    _links: DashboardLinks
    _progress: Progress
    # The job's.
    _status: Callable[[], Mapping[str, Any]]
    # What is said in place of the progress, or nothing.
    _instead: Callable[[], str]
    _conditions: Dict[str, str] = field(init=False, default_factory=dict)
    # Reasons and messages that were shown since the last update().
    _told: Set[Tuple[str, str]] = field(init=False, default_factory=set)
    _started: bool = field(init=False, default=False)

    def event(self, text: str) -> None:
        """Shows an event of the operator ("REASON message") or the kubelet, except the creation of the first
        pods."""
        event_reason, _, message = text.partition(" ")
        if event_reason == _POD_CREATED and not self._started:
            return
        if _CONDITION_REASON.fullmatch(event_reason):
            self._show_change(event_reason, message)
        else:
            self._console.line(text)

    def init_failed(self, replica_name: str, container: str) -> None:
        self._follower.show_init_failure(replica_name, container)

    def update(self) -> None:
        self._started = True
        self._follower.show_new()
        for condition in self._status().get("conditions") or []:
            self._show_condition(condition)
        self._told.clear()
        self._links.update()
        self._progress.update(self._instead())

    def stopping(self, pods: Sequence[Pod]) -> None:
        if pods:
            self._console.line(f"ending {_names(pods)}; a second time kills at once")

    def ending(self, pods: Sequence[Pod]) -> None:
        if pods:
            self._console.line(f"ending {_names(pods)}")

    def finished(self, pods: Sequence[Pod], strict: bool) -> None:
        """`pods`: those that still run when the job has succeeded or failed."""
        left = [pod for pod in pods if not pod.deleting]
        if strict and left:
            self._console.line(
                f"cleanPodPolicy leaves {_names(left)} running, as on a cluster; Ctrl-C ends them"
            )

    def close(self) -> None:
        """After the last process has ended."""
        self._follower.show_rest()
        self._console.end_status()

    def _show_condition(self, condition: Mapping[str, Any]) -> None:
        news = f"{condition['status']} {condition['reason']} {condition['message']}"
        if self._conditions.get(condition["type"]) == news:
            return
        self._conditions[condition["type"]] = news
        if condition["status"] == "True" or condition["type"] == SUSPENDED:
            self._show_change(condition["reason"], condition["message"])

    def _show_change(self, reason: str, message: str) -> None:
        """Shows a change once, even if both an event and a condition report it."""
        if (reason, message) not in self._told:
            self._told.add((reason, message))
            self._console.line(f"{self._console.paint(reason, BOLD)}: {message}")


def _names(pods: Sequence[Pod]) -> str:
    return ", ".join(pod.replica_name for pod in pods)
