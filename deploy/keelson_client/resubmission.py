"""Creates jobs again that the operator has failed because they lost pods.

The operators from 1.7 to 1.9.4 fail a job when one of its pods is deleted, as the drain of a node does, but for
dynamic workers. The model directory has what was trained, so that the same job, created again, goes on.
"""

import re
from typing import Callable, Optional, Sequence

from tfjob_api.conditions import JobCondition, find_end, read_conditions
from tfjob_api.status import FAILED

from .job_watch import JobDocument
from .replica_pods import ReplicaPod
from .training_client import TrainingClient

# Longer than the pods' time for a last snapshot.
_DELETE_SECONDS = 300.0
_PODS_FAILED = re.compile(r"has failed because \d+ \w+ replica\(s\) failed")
# A container that a signal, or Keelson's 138, has ended may be started again.
_FIRST_RETRYABLE_CODE = 128


def lost_pods(end: JobCondition, pods: Sequence[ReplicaPod]) -> bool:
    """Whether the job has failed by its pods, none of which has ended with an error of its own."""
    own_errors = [pod for pod in pods if pod.exit_code and pod.exit_code < _FIRST_RETRYABLE_CODE]
    return end.type == FAILED and _PODS_FAILED.search(end.message) is not None and not own_errors


def countdown(timeout: Optional[float], clock: Callable[[], float]) -> Callable[[], Optional[float]]:
    """Returns what says how many of the seconds `timeout` are left; None: there is no limit."""
    if timeout is None:
        return lambda: None
    deadline = clock() + timeout
    return lambda: max(0.0, deadline - clock())


class Resubmission:
    def __init__(self, client: TrainingClient, times: int, note: Callable[[str], None]):
        """`times`: how often a job is created again."""
        self._client = client
        self._left = times
        self._note = note

    def try_again(self, name: str, documents: Optional[Sequence[JobDocument]] = None) -> bool:
        """True: the job had lost pods, was deleted, and is created again. False: it has another end, or had its
        times. `documents`: the job's objects; None: as they are on the cluster. ClusterError, TimeoutError: it
        may be deleted already."""
        if self._left == 0:
            return False
        end = find_end(read_conditions(self._client.get_job(name)))
        if end is None or not lost_pods(end, self._client.get_replica_pods(name)):
            return False
        self._left -= 1
        self._note(
            f"job {name}: {end.type}: {end.message} No pod has ended with an error of its own: it is created "
            f"again and resumes its model; after this {self._left} more times"
        )
        objects = self._client.get_job_documents(name) if documents is None else documents
        self._client.delete_job(name, wait_timeout=_DELETE_SECONDS)
        self._client.create_objects(objects)
        return True
