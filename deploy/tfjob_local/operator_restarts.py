"""How often each replica was restarted, in place and by a new pod; the operator itself keeps no count."""

from typing import Callable, Dict, NamedTuple, Optional, Sequence, Set

from .pods import Pod


class FailedPod(NamedTuple):
    # "worker-1"
    replica_name: str
    # None: nobody saw it end.
    exit_code: Optional[int]

    @classmethod
    def of(cls, pod: Pod) -> "FailedPod":
        return cls(pod.replica_name, pod.exit_code)


class RestartLedger:
    """Counts what observe() is shown; a failure counts as the restart that it asks for."""

    def __init__(self) -> None:
        self._by_replica: Dict[str, int] = {}
        # By the uid of a pod: its restarts in place so far.
        self._in_place: Dict[int, int] = {}
        # The uids of pods that asked for a new one in their place.
        self._failed: Set[int] = set()
        self.last_failure: Optional[FailedPod] = None

    @property
    def total(self) -> int:
        return sum(self._by_replica.values())

    def restarts(self, replica_name: str) -> int:
        return self._by_replica.get(replica_name, 0)

    def observe(self, pods: Sequence[Pod], asks_for_restart: Callable[[Pod], bool]) -> None:
        for pod in pods:
            news = pod.restart_count - self._in_place.get(pod.uid, 0)
            self._in_place[pod.uid] = pod.restart_count
            if pod.uid not in self._failed and asks_for_restart(pod):
                self._failed.add(pod.uid)
                news += 1
            if news > 0:
                self._by_replica[pod.replica_name] = self.restarts(pod.replica_name) + news
                self.last_failure = FailedPod.of(pod)
