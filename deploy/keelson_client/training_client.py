"""TrainingClient: TFJobs on a cluster, in the words of Kubeflow's training SDK, through kubectl.

Jobs and pods are the documents that the cluster has, as dicts. Raises InputError (a ValueError) for errors
found without the cluster, ClusterError (a RuntimeError) for errors of the cluster."""

import json
import sys
import time
from typing import Any, Callable, Collection, Dict, List, Mapping, Optional, Sequence, Tuple

from tfjob_api.conditions import JobCondition, find_end, find_true, read_conditions
from tfjob_api.job_document import replica_specs
from tfjob_api.job_kind import JOB_KINDS, TF_JOB
from tfjob_api.naming import job_selectors
from tfjob_api.status import CREATED, FAILED, RESTARTING, RUNNING, SUCCEEDED

from .condition_wait import ConditionWait
from .errors import ClusterError, ErrorKind, InputError
from .events import Event, read_events
from .job_creation import COMPANION_RESOURCES, JobCreation, is_owned_by, without_servers_fields
from .job_watch import JobDocument, JobWatch
from .kubectl import Kubectl, KubectlProgram, LineStream, find_json, read_json, resource_of
from .log_follower import LogFollower
from .manifest import MANAGED_BY_SELECTOR, check_documents, find_job, render
from .options import parse_resources
from .replica_pods import ReplicaPod, find_master, read_pod, sort_pods
from .settings import JobSettings, Resources, default_servers

DEFAULT_POLLING_SECONDS = 15
# A deleted job is gone when its pods' grace period is over.
_DELETE_SECONDS = 120.0


def _note(text: str) -> None:
    print(text, file=sys.stderr)


class TrainingClient:
    def __init__(
        self,
        config_file: str = "",
        context: str = "",
        namespace: str = "",
        job_kind: str = TF_JOB.name,
        kubectl: Optional[Kubectl] = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ):
        """`config_file`, `context`: kubectl's, unless `kubectl` is given. An empty namespace is that of
        kubectl's context."""
        if job_kind not in JOB_KINDS:
            raise InputError(f'job_kind: expected one of {", ".join(JOB_KINDS)}, found "{job_kind}"')
        self._kind = JOB_KINDS[job_kind]
        self._resource = resource_of(self._kind)
        self.kubectl = kubectl or KubectlProgram(context=context, kubeconfig=config_file)
        self.namespace = namespace
        self._clock = clock
        self._sleep = sleep

    def create_job(
        self,
        job: Optional[JobDocument] = None,
        name: str = "",
        namespace: str = "",
        base_image: str = "",
        num_chief_replicas: int = 1,
        num_ps_replicas: Optional[int] = None,
        num_workers: int = 1,
        resources_per_worker: Optional[Mapping[str, Any]] = None,
        env_vars: Optional[Mapping[str, str]] = None,
        **further: Any,
    ) -> JobDocument:
        """Creates `job`, a document of the client's kind, or one from a name and what else JobSettings knows.

        `resources_per_worker` has the keys cpu, memory and gpu. Returns the job as created.
        """
        if job is not None:
            return self.create_objects([job], namespace)
        if num_chief_replicas not in (0, 1):
            raise InputError(f"num_chief_replicas: expected 0 or 1, found {num_chief_replicas}")
        cpu, memory, gpus = parse_resources(resources_per_worker or {})
        resources = {"worker": Resources(cpu, memory), **further.pop("resources", {})}
        settings = JobSettings(
            name=name,
            image=base_image,
            namespace=namespace or self.namespace,
            chief=num_chief_replicas == 1,
            ps=default_servers(self._kind) if num_ps_replicas is None else num_ps_replicas,
            kind=self._kind,
            workers=num_workers,
            gpus=gpus,
            resources=resources,
            environment=dict(env_vars or {}),
            **further,
        )
        return self.create_objects(render(settings), namespace)

    def create_objects(self, documents: Sequence[JobDocument], namespace: str = "") -> JobDocument:
        """Creates a job and its other objects. InputError also when the job's name is taken."""
        check_documents(documents)
        metadata = find_job(documents).get("metadata") or {}
        if not metadata.get("name"):
            raise InputError("metadata.name: expected a name, found none")
        namespace = self._namespace(namespace or metadata.get("namespace", ""))
        return JobCreation(self.kubectl, namespace).create(documents)

    def get_job(self, name: str, namespace: str = "") -> JobDocument:
        return read_json(self.kubectl, ["get", self._resource, name], self._namespace(namespace))

    def list_jobs(self, namespace: str = "") -> List[JobDocument]:
        return read_json(self.kubectl, ["get", self._resource], self._namespace(namespace)).get("items") or []

    def get_job_conditions(
        self, name: str = "", namespace: str = "", job: Optional[JobDocument] = None
    ) -> List[JobCondition]:
        """Returns the conditions of `job`, or of the job with this name."""
        return read_conditions(self.get_job(name, namespace) if job is None else job)

    def is_job_created(self, name: str = "", namespace: str = "", job: Optional[JobDocument] = None) -> bool:
        return self._has_condition(CREATED, name, namespace, job)

    def is_job_running(self, name: str = "", namespace: str = "", job: Optional[JobDocument] = None) -> bool:
        return self._has_condition(RUNNING, name, namespace, job)

    def is_job_restarting(
        self, name: str = "", namespace: str = "", job: Optional[JobDocument] = None
    ) -> bool:
        return self._has_condition(RESTARTING, name, namespace, job)

    def is_job_succeeded(
        self, name: str = "", namespace: str = "", job: Optional[JobDocument] = None
    ) -> bool:
        return self._has_condition(SUCCEEDED, name, namespace, job)

    def is_job_failed(self, name: str = "", namespace: str = "", job: Optional[JobDocument] = None) -> bool:
        return self._has_condition(FAILED, name, namespace, job)

    def wait_for_job_conditions(
        self,
        name: str,
        namespace: str = "",
        expected_conditions: Collection[str] = frozenset({SUCCEEDED}),
        wait_timeout: Optional[float] = 600,
        polling_interval: float = DEFAULT_POLLING_SECONDS,
        callback: Optional[Callable[[JobDocument], None]] = None,
        note: Callable[[str], None] = _note,
    ) -> JobDocument:
        """Returns the job with the first of the conditions; `callback` sees it at every poll, `note` gets
        a line when the cluster stops answering.

        JobFailedError, a RuntimeError, when it failed and that is none of them, or when it succeeded and
        can reach none of them any more. TimeoutError after `wait_timeout` seconds; None: never.
        """
        watch = JobWatch(lambda: self.get_job(name, namespace), self._clock, note)
        wait = ConditionWait(name, expected_conditions, wait_timeout, polling_interval)
        return wait.run(watch, callback, self._clock, self._sleep)

    def get_replica_pods(self, name: str, namespace: str = "") -> List[ReplicaPod]:
        """Returns all existing pods of the job."""
        for selector in job_selectors(name):
            arguments = ["get", "pods", "--selector", selector]
            items = read_json(self.kubectl, arguments, self._namespace(namespace)).get("items") or []
            if items:
                return sort_pods([read_pod(item) for item in items])
        return []

    def get_job_pods(
        self,
        name: str,
        namespace: str = "",
        is_master: bool = False,
        replica_type: str = "",
        replica_index: Optional[int] = None,
    ) -> List[JobDocument]:
        chosen = self._choose_pods(name, namespace, is_master, replica_type, replica_index)
        return [dict(pod.document) for pod in chosen]

    def get_job_pod_names(
        self,
        name: str,
        namespace: str = "",
        is_master: bool = False,
        replica_type: str = "",
        replica_index: Optional[int] = None,
    ) -> List[str]:
        chosen = self._choose_pods(name, namespace, is_master, replica_type, replica_index)
        return [pod.name for pod in chosen]

    def get_job_logs(
        self,
        name: str,
        namespace: str = "",
        is_master: bool = True,
        replica_type: str = "",
        replica_index: Optional[int] = None,
        follow: bool = False,
        verbose: bool = False,
    ) -> Tuple[Dict[str, str], Dict[str, List[str]]]:
        """The log of each chosen pod, and with `verbose` the events of the job and of these pods, by name.

        A `replica_type` wins over `is_master`. `follow` prints the first pod's log until the job ends
        and returns no logs.
        """
        logs: Dict[str, str] = {}
        master = is_master and not replica_type
        if follow:
            replica = (replica_type.lower(), replica_index or 0) if replica_type else None
            LogFollower(self, print, _note, self._clock, self._sleep).follow(name, namespace, replica)
        pods = self._choose_pods(name, namespace, master, replica_type, replica_index)
        for pod in pods if not follow else []:
            logs[pod.name] = self.read_log(pod.name, namespace)
        events = self.get_job_events(name, namespace) if verbose else {}
        names = {name, *(pod.name for pod in pods)}
        return logs, {key: texts for key, texts in events.items() if key in names}

    def read_log(self, pod_name: str, namespace: str = "", flags: Sequence[str] = ()) -> str:
        """Returns the log of the kind's container; `flags` are those of kubectl logs."""
        return self.kubectl.run(self._log_arguments(pod_name, flags), self._namespace(namespace))

    def stream_log(self, pod_name: str, namespace: str = "", flags: Sequence[str] = ()) -> LineStream:
        """Returns the same log, line by line as it is written."""
        return self.kubectl.stream(self._log_arguments(pod_name, flags), self._namespace(namespace))

    def forward_port(self, pod_name: str, port: int, pods_port: int, namespace: str = "") -> LineStream:
        """127.0.0.1:`port` of this machine leads to the pod's; 0: any free port, which the lines name."""
        arguments = ["port-forward", f"pod/{pod_name}", "--address=127.0.0.1", f"{port}:{pods_port}"]
        return self.kubectl.stream(arguments, self._namespace(namespace))

    def get_job_events(self, name: str, namespace: str = "") -> Dict[str, List[str]]:
        """Returns the events of the job and of its pods, by object; "Warning FailedScheduling: ...", the
        oldest first."""
        events = self.find_events(self.get_job(name, namespace), namespace)
        return {about: [event.text for event in found] for about, found in events.items()}

    def find_events(self, job: JobDocument, namespace: str = "") -> Dict[str, List[Event]]:
        """Returns the same of a job as the cluster has it, with their times."""
        items = read_json(self.kubectl, ["get", "events"], self._namespace(namespace)).get("items") or []
        return read_events(items, job)

    def get_job_documents(self, name: str, namespace: str = "") -> List[JobDocument]:
        """Returns the job, and what create_job made beside it, as they could be created again."""
        job = self.get_job(name, namespace)
        arguments = ["get", ",".join(COMPANION_RESOURCES), "--selector", MANAGED_BY_SELECTOR]
        items = read_json(self.kubectl, arguments, self._namespace(namespace)).get("items") or []
        companions = [item for item in items if is_owned_by(item, job)]
        return [without_servers_fields(document) for document in (*companions, job)]

    def update_job(self, job: JobDocument, name: str, namespace: str = "") -> JobDocument:
        """Merges `job`, a document or a part of one, into the job with this name."""
        arguments = ["patch", self._resource, name, "--type=merge", f"--patch={json.dumps(job)}"]
        return read_json(self.kubectl, arguments, self._namespace(namespace))

    def scale(self, name: str, num_workers: int, namespace: str = "") -> JobDocument:
        """Sets the number of workers of a job that has not ended."""
        job = self.get_job(name, namespace)
        end = find_end(read_conditions(job))
        if end:
            raise InputError(f"job {name}: {end.type}; only a job that goes on can be scaled")
        keys = {key.lower(): key for key in replica_specs(job)}
        if "worker" not in keys:
            raise InputError(f"job {name}: expected workers, found only {', '.join(sorted(keys))}")
        least = 0 if keys.keys() & {replica_type.lower() for replica_type in self._kind.leader_types} else 1
        if num_workers < least:
            who = "" if least == 0 else ": worker 0 leads this job"
            raise InputError(f"--workers: expected at least {least}, found {num_workers}{who}")
        change = {"spec": {self._kind.specs_field: {keys["worker"]: {"replicas": num_workers}}}}
        return self.update_job(change, name, namespace)

    def delete_job(
        self, name: str, namespace: str = "", wait_timeout: Optional[float] = _DELETE_SECONDS
    ) -> None:
        """Deletes the job, and with it its pods and what create_job made beside it. Returns when all are
        gone; with None at once."""
        namespace = self._namespace(namespace)
        self.kubectl.run(["delete", self._resource, name, "--cascade=foreground", "--wait=false"], namespace)
        if wait_timeout is not None:
            self._wait_until_gone(name, namespace, wait_timeout)

    def find_claim(self, name: str, namespace: str = "") -> bool:
        """False: there is none of this name. True also if the user may not read it."""
        try:
            self.kubectl.run(
                ["get", "persistentvolumeclaims", name, "-o", "name"], self._namespace(namespace)
            )
        except ClusterError as error:
            if error.kind is ErrorKind.NOT_FOUND:
                return False
            if error.kind is not ErrorKind.FORBIDDEN:
                raise
        return True

    def _log_arguments(self, pod_name: str, flags: Sequence[str]) -> List[str]:
        return ["logs", pod_name, f"--container={self._kind.container}", *flags]

    def _namespace(self, namespace: str) -> str:
        return namespace or self.namespace

    def _has_condition(self, kind: str, name: str, namespace: str, job: Optional[JobDocument]) -> bool:
        return find_true(self.get_job_conditions(name, namespace, job), kind) is not None

    def _choose_pods(
        self, name: str, namespace: str, is_master: bool, replica_type: str, replica_index: Optional[int]
    ) -> List[ReplicaPod]:
        pods = self.get_replica_pods(name, namespace)
        if is_master:
            master = find_master(pods)
            pods = [master] if master else []
        return [
            pod
            for pod in pods
            if (not replica_type or pod.replica_type == replica_type.lower())
            and (replica_index is None or pod.index == replica_index)
        ]

    def _wait_until_gone(self, name: str, namespace: str, wait_timeout: float) -> None:
        deadline = self._clock() + wait_timeout
        while find_json(self.kubectl, self._resource, name, namespace) is not None:
            if self._clock() >= deadline:
                raise TimeoutError(f"job {name}: deleted, but still there after {wait_timeout:g} s")
            self._sleep(1.0)
