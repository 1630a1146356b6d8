"""The pods of one job, shared by the operator and the kubelet.

The kubelet owns every Pod and alone changes it; the operator reads pods and asks PodControl for new
ones or for their end. One thread.
"""

import enum
import signal
from dataclasses import dataclass
from typing import Optional, Protocol, Sequence

from tfjob_api.naming import replica_name

# The operator's "user-defined retryable" code; by its number alone it would be SIGUSR1.
_ASKS_FOR_RESTART = 138


class Phase(enum.Enum):
    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"

    @property
    def ended(self) -> bool:
        return self in (Phase.SUCCEEDED, Phase.FAILED)


@dataclass
class Pod:
    # "mnist-worker-1"
    name: str
    # "Worker"
    replica_type: str
    index: int
    # The id of this pod alone: the one that replaces it under the same name has another.
    uid: int
    # Pending: init containers run. Running also while a container waits to be restarted in place.
    phase: Phase = Phase.PENDING
    # The exit code of the container tensorflow when it ended last, 128 + n after signal n. None: it has not
    # ended, or the pod was lost (deleted from outside, evicted) and its end was not observed.
    exit_code: Optional[int] = None
    # Restarts in place, of the main container and the init containers together.
    restart_count: int = 0
    # Its end was requested; it is gone from pods() when its last process has ended.
    deleting: bool = False

    @property
    def replica_name(self) -> str:
        """"worker-1": how the user of the launcher calls it."""
        return replica_name(self.replica_type, self.index)


class PodControl(Protocol):
    """The operator's access to pods. Implemented by Kubelet, and by fakes in the tests."""

    def pods(self) -> Sequence[Pod]:
        """All that exist, those being deleted included; by type, then index."""

    def create(self, replica_type: str, index: int) -> None:
        """There is no pod of this name any more, or an ended one that is being deleted."""

    def delete(self, pod: Pod) -> None:
        """Asks its processes to end: SIGTERM, the grace period, SIGKILL. Returns at once."""


def describe_exit(exit_code: Optional[int]) -> str:
    """"exit code 2", "signal SIGKILL (exit code 137)", "no exit code"."""
    if exit_code is None:
        return "no exit code"
    if exit_code > 128 and exit_code != _ASKS_FOR_RESTART:
        try:
            return f"signal {signal.Signals(exit_code - 128).name} (exit code {exit_code})"
        except ValueError:
            pass
    return f"exit code {exit_code}"
