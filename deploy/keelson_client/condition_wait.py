"""Waits until a job has one of several conditions, or can no longer get any of them."""

from typing import Callable, Collection, Optional

from tfjob_api.conditions import find_end, find_true, read_conditions
from tfjob_api.status import TYPES

from .errors import InputError, JobFailedError
from .job_watch import JobDocument, JobWatch


class ConditionWait:
    def __init__(
        self, name: str, expected: Collection[str], timeout: Optional[float], polling_interval: float
    ):
        """`timeout` in seconds; None: for ever. InputError for unknown conditions."""
        unknown = [kind for kind in expected if kind not in TYPES]
        if unknown or not expected:
            found = ", ".join(unknown) or "none"
            raise InputError(f"expected conditions among {', '.join(TYPES)}, found {found}")
        self._name = name
        self._expected = expected
        self._timeout = timeout
        self._polling_interval = polling_interval

    def run(
        self,
        watch: JobWatch,
        callback: Optional[Callable[[JobDocument], None]],
        clock: Callable[[], float],
        sleep: Callable[[float], None],
    ) -> JobDocument:
        """Returns the job with the condition. JobFailedError, TimeoutError."""
        deadline = None if self._timeout is None else clock() + self._timeout
        while True:
            job = watch.look()
            if job is not None:
                if callback:
                    callback(job)
                if self._has_arrived(job):
                    return job
            left = self._polling_interval if deadline is None else deadline - clock()
            if left <= 0:
                expected = " or ".join(sorted(self._expected))
                raise TimeoutError(f"job {self._name}: not {expected} within {self._timeout:g} s; it goes on")
            sleep(min(self._polling_interval, left))

    def _has_arrived(self, job: JobDocument) -> bool:
        conditions = read_conditions(job)
        if any(find_true(conditions, kind) for kind in self._expected):
            return True
        end = find_end(conditions)
        if end:
            raise JobFailedError(f"job {self._name}: {end.type}: {end.message}")
        return False
