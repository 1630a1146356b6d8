"""A job's pods, whichever generation of the operator labelled them."""

from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, Optional, Tuple

from tfjob_api.job_kind import JOB_KINDS
from tfjob_api.naming import label, replica_name

_CONTAINERS = [kind.container for kind in JOB_KINDS.values()]
# As people list roles: the leader, servers, workers, the evaluator.
_TYPE_ORDER = ("chief", "master", "ps", "worker", "evaluator")


@dataclass(frozen=True)
class ReplicaPod:
    """One pod, as far as a user of the job cares."""

    name: str
    uid: str
    # Lower case: "worker".
    replica_type: str
    index: int
    # The operator's label; on worker 0 in a job without a chief.
    is_master: bool
    # Kubernetes' word: Pending, Running, Succeeded, Failed, Unknown.
    phase: str
    # Restarts of all containers in this pod.
    restarts: int = 0
    # The exit code of the container that the kind of job names. None: it has not ended.
    exit_code: Optional[int] = None
    # The container's termination message; that of the last run while it runs again.
    last_words: str = ""
    # True: the container has run, or runs, so that there is a log.
    started: bool = False
    # Why it does not run: "ImagePullBackOff: ...", "0/3 nodes are available: ..."; "" where it does.
    waiting_for: str = ""
    node: str = ""
    created: str = ""
    # As the cluster has it.
    document: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def replica_name(self) -> str:
        """ "worker-1"."""
        return replica_name(self.replica_type, self.index)

    @property
    def ended(self) -> bool:
        return self.phase in ("Succeeded", "Failed")

    @property
    def state(self) -> str:
        """One word for a table: the reason of waiting, or the phase."""
        reason = self.waiting_for.partition(":")[0]
        return reason if reason and " " not in reason else self.phase


def read_pod(document: Mapping[str, Any]) -> ReplicaPod:
    metadata, status = document.get("metadata") or {}, document.get("status") or {}
    container = _find_container(status)
    state = container.get("state") or {}
    ended = state.get("terminated") or {}
    last_end = ended or (container.get("lastState") or {}).get("terminated") or {}
    labels = metadata.get("labels") or {}
    index = label(labels, "replica-index")
    return ReplicaPod(
        name=str(metadata.get("name", "")),
        uid=str(metadata.get("uid", "")),
        replica_type=label(labels, "replica-type").lower(),
        index=int(index) if index.isdecimal() else 0,
        is_master=label(labels, "job-role") == "master",
        phase=str(status.get("phase", "Unknown")),
        restarts=_count_restarts(status),
        exit_code=ended.get("exitCode"),
        last_words=str(last_end.get("message", "")).strip(),
        started=bool(last_end) or state.get("running") is not None,
        waiting_for=_why_waiting(status, state),
        node=str((document.get("spec") or {}).get("nodeName", "")),
        created=str(metadata.get("creationTimestamp", "")),
        document=document,
    )


def sort_pods(pods: List[ReplicaPod]) -> List[ReplicaPod]:
    return sorted(pods, key=lambda pod: (*type_order(pod.replica_type), pod.index))


def type_order(replica_type: str) -> Tuple[int, str]:
    """Sorts replica types, in whatever case; unknown ones come last."""
    name = replica_type.lower()
    return (_TYPE_ORDER.index(name) if name in _TYPE_ORDER else len(_TYPE_ORDER)), name


def find_master(pods: List[ReplicaPod]) -> Optional[ReplicaPod]:
    """The pod that leads the job: chief, master, or worker 0 where there is neither."""
    labelled = [pod for pod in pods if pod.is_master]
    if labelled:
        return labelled[0]
    leader_types = [name.lower() for kind in JOB_KINDS.values() for name in kind.leader_types]
    leaders = [pod for pod in pods if pod.replica_type in leader_types]
    if leaders:
        return leaders[0]
    return next((pod for pod in pods if (pod.replica_type, pod.index) == ("worker", 0)), None)


def _find_container(status: Mapping[str, Any]) -> Dict[str, Any]:
    containers = status.get("containerStatuses") or []
    return next((c for c in containers if c.get("name") in _CONTAINERS), {})


def _count_restarts(status: Mapping[str, Any]) -> int:
    containers = (status.get("initContainerStatuses") or []) + (status.get("containerStatuses") or [])
    return sum(int(container.get("restartCount") or 0) for container in containers)


def _why_waiting(status: Mapping[str, Any], state: Mapping[str, Any]) -> str:
    if status.get("phase") == "Failed":
        # Evicted, lost with its node: the pod has the reason, no container.
        return _join(status.get("reason"), status.get("message"))
    waiting = state.get("waiting") or {}
    if waiting:
        return _join(waiting.get("reason"), waiting.get("message"))
    for condition in status.get("conditions") or []:
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            return _join(condition.get("reason"), condition.get("message"))
    return ""


def _join(reason: Any, message: Any) -> str:
    return ": ".join(str(part) for part in (reason, message) if part)
