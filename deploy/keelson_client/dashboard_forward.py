"""Forwards the evaluator's page to a port of this machine, over restarts, until the end of the job."""

import re
import socket
from typing import Any, Callable, Mapping, Optional, Tuple

from tfjob_api.conditions import JobCondition, find_end, read_conditions
from tfjob_api.job_kind import TF_JOB

from .errors import InputError
from .job_watch import FATAL_KINDS, FollowedCluster, JobWatch, Notes, find_pod
from .kubectl import LineStream
from .log_follower import POLLING_SECONDS
from .pod_template import DASHBOARD_PORT
from .replica_pods import ReplicaPod

HOST = "127.0.0.1"

_NO_LISTENER = "unable to listen|unable to create listener"
_FORWARDING = re.compile(r"Forwarding from 127\.0\.0\.1:(\d+) -> \d+")


class DashboardForward:
    def __init__(
        self,
        cluster: FollowedCluster,
        write: Callable[[str], None],
        note: Callable[[str], None],
        clock: Callable[[], float],
        sleep: Callable[[float], None],
        is_free: Callable[[int], bool],
    ):
        """`write` gets the page's URL, `note` lines about what is awaited. `is_free`: whether a program can
        listen on this port of the machine."""
        self._cluster = cluster
        self._write = write
        self._notes = Notes(note)
        self._clock = clock
        self._sleep = sleep
        self._is_free = is_free
        # The port of this machine; 0 until it is known.
        self._port = 0

    def run(self, name: str, evaluator: Tuple[str, int], port: Optional[int] = None) -> JobCondition:
        """Returns Succeeded or Failed when the job has that condition: then its evaluator has ended.

        `evaluator` is ("evaluator", 0). `port`: 0 for any; None: 6006, or any where that is taken.
        InputError: the evaluator serves no page. ClusterError: also a port that is taken.
        """
        self._port = (DASHBOARD_PORT if self._is_free(DASHBOARD_PORT) else 0) if port is None else port
        watch = JobWatch(lambda: self._cluster.get_job(name), self._clock, self._notes.note)
        while True:
            job = watch.look()
            end = find_end(read_conditions(job)) if job is not None else None
            if end is not None:
                return end
            pods = watch.attempt(lambda: self._cluster.get_replica_pods(name))
            pod = find_pod(pods or [], evaluator)
            if pod is not None and pod.phase == "Running":
                self._forward(pod, watch)
            elif pods is not None:
                why = f": {pod.waiting_for or pod.phase}" if pod is not None else ""
                self._notes.say(f"waiting for the pod of {evaluator[0]}-{evaluator[1]}{why}")
            self._sleep(POLLING_SECONDS)

    def _forward(self, pod: ReplicaPod, watch: JobWatch) -> None:
        """Forwards until the pod, the job or the connection ends."""
        stream = self._cluster.forward_port(pod.name, self._port, page_port(pod.document))
        try:
            self._watch(stream, watch)
        finally:
            error = stream.close()
        if error is None:
            return
        if error.kind in FATAL_KINDS or re.search(_NO_LISTENER, str(error), re.IGNORECASE):
            raise error
        self._notes.say(f"{error}; trying again")

    def _watch(self, stream: LineStream, watch: JobWatch) -> None:
        looked_at = self._clock()
        while (lines := stream.read(POLLING_SECONDS)) is not None:
            for line in lines:
                self._tell(line)
            if self._clock() - looked_at >= POLLING_SECONDS:
                looked_at = self._clock()
                job = watch.look()
                if job is not None and find_end(read_conditions(job)):
                    return

    def _tell(self, line: str) -> None:
        """Writes the URL. kubectl's lines about each connection are ignored."""
        forwarding = _FORWARDING.match(line)
        if forwarding:
            # The port stays the same when the pod comes back, so that the open page reconnects.
            self._port = int(forwarding.group(1))
            self._notes.clear()
            self._write(f"dashboard: http://{HOST}:{self._port}/")


def page_port(pod: Mapping[str, Any]) -> int:
    """The port that the pod's container serves its page on. InputError."""
    containers = (pod.get("spec") or {}).get("containers") or []
    container = next((c for c in containers if c.get("name") == TF_JOB.container), {})
    words = [str(word) for key in ("command", "args") for word in container.get(key) or []]
    found = re.search(r"(?:^|\s)--dashboard_port[=\s](\d+)(?=\s|$)", " ".join(words))
    if not found or int(found.group(1)) == 0:
        name = (pod.get("metadata") or {}).get("name", "")
        raise InputError(
            f"pod {name}: expected an evaluator with --dashboard_port=N, found none; submit has --dashboard"
        )
    return int(found.group(1))


def is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True
