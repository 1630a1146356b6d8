"""Polls one job, also over times in which the cluster does not answer."""

from typing import Any, Callable, Dict, List, Optional, Protocol, Sequence, Tuple, TypeVar

from .errors import ClusterError, ErrorKind
from .kubectl import LineStream
from .replica_pods import ReplicaPod

Result = TypeVar("Result")
JobDocument = Dict[str, Any]

# The API server may be unreachable for this long without ending a wait.
PATIENCE_SECONDS = 300.0
# Other errors about a pod are retried: it may be about to start, or to end.
FATAL_KINDS = (ErrorKind.FORBIDDEN, ErrorKind.UNAUTHORIZED, ErrorKind.NO_KUBECTL)


class FollowedCluster(Protocol):
    """The methods of TrainingClient that following a job's pods takes."""

    def get_job(self, name: str, namespace: str = "") -> Dict[str, Any]: ...

    def get_replica_pods(self, name: str, namespace: str = "") -> List[ReplicaPod]: ...

    def stream_log(self, pod_name: str, namespace: str = "", flags: Sequence[str] = ()) -> LineStream: ...

    def forward_port(self, pod_name: str, port: int, pods_port: int, namespace: str = "") -> LineStream: ...


class Notes:
    """Lines about what is awaited, each once until another takes its place."""

    def __init__(self, note: Callable[[str], None]):
        self.note = note
        self._said = ""

    def say(self, text: str) -> None:
        if text != self._said:
            self._said = text
            self.note(text)

    def clear(self) -> None:
        """What was awaited has come: the same line may be said again."""
        self._said = ""


def find_pod(pods: Sequence[ReplicaPod], replica: Tuple[str, int]) -> Optional[ReplicaPod]:
    """`replica`: ("worker", 1)."""
    return next((pod for pod in pods if (pod.replica_type, pod.index) == replica), None)


class JobWatch:
    def __init__(
        self, read: Callable[[], JobDocument], clock: Callable[[], float], note: Callable[[str], None]
    ):
        """`note` gets a line when the cluster stops answering."""
        self._read = read
        self._clock = clock
        self._note = note
        self._answered = False
        self._silent_since: Optional[float] = None

    def look(self) -> Optional[JobDocument]:
        """Returns the job; None: no answer now. ClusterError: no answer for too long, or another error."""
        return self.attempt(self._read)

    def attempt(self, read: Callable[[], Result]) -> Optional[Result]:
        """Does the same for another request to the cluster."""
        try:
            result = read()
        except ClusterError as error:
            if error.kind is not ErrorKind.NO_SERVER or not self._answered:
                raise
            self._wait_further(error)
            return None
        self._answered = True
        self._silent_since = None
        return result

    def _wait_further(self, error: ClusterError) -> None:
        now = self._clock()
        if self._silent_since is None:
            self._silent_since = now
            self._note(f"{error}; trying again for {PATIENCE_SECONDS:g} s")
        elif now - self._silent_since >= PATIENCE_SECONDS:
            raise error
