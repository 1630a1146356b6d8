"""Follows one replica's log from its first pod to the end of the job, over waiting, restarts, and new
pods."""

import re
from typing import Any, Callable, Mapping, Optional, Tuple

from tfjob_api.conditions import JobCondition, find_end, read_conditions, state

from .job_watch import FATAL_KINDS, FollowedCluster, JobWatch, Notes, find_pod
from .kubectl import LineStream
from .replica_pods import ReplicaPod, find_master

POLLING_SECONDS = 2.0
# The time to read the rest of a log after the job's end; a pod that never ends by itself is not awaited.
DRAIN_SECONDS = 5.0

# The begin of each line of kubectl logs --timestamps.
_TIME = re.compile(r"(\d{4}-\d\d-\d\dT\S+) ?")


class LogFollower:
    def __init__(
        self,
        cluster: FollowedCluster,
        write: Callable[[str], None],
        note: Callable[[str], None],
        clock: Callable[[], float],
        sleep: Callable[[float], None],
        polling_seconds: float = POLLING_SECONDS,
    ):
        """`write` gets the log's lines, `note` lines about what is awaited."""
        self._cluster = cluster
        self._write = write
        self._notes = Notes(note)
        self._clock = clock
        self._sleep = sleep
        self._polling_seconds = polling_seconds
        # The pod that was read last, and the time of its last line that was written.
        self._pod_uid = ""
        self._written_until = ""
        # The run of a container whose log is written: pod's uid, restarts.
        self._finished: Optional[Tuple[str, int]] = None

    def follow(
        self,
        name: str,
        namespace: str = "",
        replica: Optional[Tuple[str, int]] = None,
        timeout: Optional[float] = None,
    ) -> JobCondition:
        """Returns Succeeded or Failed when the job has that condition and the log is written.

        `replica` is ("worker", 1); None: the replica that leads the job. TimeoutError; ClusterError, NOT_FOUND
        when the job was deleted.
        """
        deadline = None if timeout is None else self._clock() + timeout
        watch = JobWatch(lambda: self._cluster.get_job(name, namespace), self._clock, self._notes.note)
        while True:
            job = watch.look()
            end = find_end(read_conditions(job)) if job is not None else None
            if end is None and deadline is not None and self._clock() >= deadline:
                raise TimeoutError(f"job {name}: not ended within {timeout:g} s; it goes on")
            pods = watch.attempt(lambda: self._cluster.get_replica_pods(name, namespace))
            if job is None or pods is None:
                self._sleep(self._polling_seconds)
                continue
            pod = find_master(pods) if replica is None else find_pod(pods, replica)
            if end is None:
                self._note_waiting(job, pod, replica)
            if pod is not None and pod.started and self._finished != (pod.uid, pod.restarts):
                complete = self._read_pod(pod, namespace, watch, deadline)
                if complete or end is not None:
                    self._finished = (pod.uid, pod.restarts)
                    continue
            elif end is not None:
                self._note_missing_log(pod, replica)
                return end
            self._sleep(self._polling_seconds)

    def _read_pod(self, pod: ReplicaPod, namespace: str, watch: JobWatch, deadline: Optional[float]) -> bool:
        """Writes the pod's log until its container, the job, or the connection ends.

        True: there will be no more of this run.
        """
        if self._pod_uid != pod.uid:
            self._pod_uid, self._written_until = pod.uid, ""
        flags = ["--follow", "--timestamps"]
        if self._written_until:
            flags.append(f"--since-time={self._written_until}")
        stream = self._cluster.stream_log(pod.name, namespace, flags)
        try:
            to_its_end = self._copy(stream, watch, deadline)
        finally:
            error = stream.close()
        if error is not None and error.kind in FATAL_KINDS:
            raise error
        return error is None and (pod.ended or not to_its_end)

    def _copy(self, stream: LineStream, watch: JobWatch, deadline: Optional[float]) -> bool:
        """False: the job is over and the stream goes on."""
        skip_until = self._written_until
        looked_at = self._clock()
        drain_until: Optional[float] = None
        while True:
            lines = stream.read(self._polling_seconds)
            if lines is None:
                return True
            for line in lines:
                skip_until = self._write_line(line, skip_until)
            now = self._clock()
            if drain_until is not None and now >= drain_until:
                return False
            if deadline is not None and drain_until is None and now >= deadline:
                return True
            if drain_until is None and now - looked_at >= self._polling_seconds:
                looked_at = now
                job = watch.look()
                if job is not None and find_end(read_conditions(job)):
                    drain_until = now + DRAIN_SECONDS

    def _write_line(self, line: str, skip_until: str) -> str:
        """`line` is "TIME TEXT"; what an earlier stream wrote, up to the time `skip_until`, comes again
        at the beginning. Returns the rest of that: "" when something new came."""
        match = _TIME.match(line)
        if not match:
            self._write(line)
            return skip_until
        time = match.group(1)
        if skip_until and time <= skip_until:
            return skip_until
        self._written_until = time
        self._notes.clear()
        self._write(line[match.end() :])
        return ""

    def _note_waiting(
        self, job: Mapping[str, Any], pod: Optional[ReplicaPod], replica: Optional[Tuple[str, int]]
    ) -> None:
        if pod is None and not read_conditions(job):
            self._notes.say("waiting for the operator to start the job")
        elif pod is None and state(job) == "Suspended":
            self._notes.say("the job is suspended")
        elif pod is None:
            self._notes.say(f"waiting for the pod of {_describe(replica)}")
        elif pod.waiting_for or not pod.started:
            self._notes.say(f"waiting for pod {pod.name}: {pod.waiting_for or pod.phase}")

    def _note_missing_log(self, pod: Optional[ReplicaPod], replica: Optional[Tuple[str, int]]) -> None:
        if not self._pod_uid:
            state = "is gone" if pod is None else "never started"
            self._notes.say(f"no log: the pod of {_describe(replica)} {state}")


def _describe(replica: Optional[Tuple[str, int]]) -> str:
    return f"{replica[0]}-{replica[1]}" if replica else "the chief"
