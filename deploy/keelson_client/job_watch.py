"""Polls one job, also over times in which the cluster does not answer."""

from typing import Any, Callable, Dict, Optional, TypeVar

from .errors import ClusterError, ErrorKind

Result = TypeVar("Result")
JobDocument = Dict[str, Any]

# The API server may be unreachable for this long without ending a wait.
PATIENCE_SECONDS = 300.0


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
