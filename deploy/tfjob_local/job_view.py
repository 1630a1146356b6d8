"""The view of a running job, for other terminals and for the files in its run directory."""

import copy
import os
import time
from typing import Any, Callable, Dict, List, Mapping, Sequence

from tfjob_api.model import TrainingJob
from tfjob_api.status import rfc3339

from .job_operator import JobOperator
from .kubelet.kubelet import Kubelet
from .run_directory import RunDirectory
from .status_view import replica_state


class JobView:
    """build() makes the plain data that status_view renders."""

    def __init__(
        self,
        operator: JobOperator,
        kubelet: Kubelet,
        document: Mapping[str, Any],
        run_dir: RunDirectory,
        progress: Callable[[], str],
        dashboards: Callable[[], Sequence[str]],
        clock: Callable[[], float] = time.time,
    ):
        """`document`: the job as the manifest has it. `dashboards`: URLs."""
        self._operator = operator
        self._kubelet = kubelet
        self._document = document
        self._run_dir = run_dir
        self._progress = progress
        self._dashboards = dashboards
        self._clock = clock
        self._started_at = clock()

    @property
    def elapsed(self) -> float:
        return self._clock() - self._started_at

    def build(self, running: bool = True) -> Dict[str, Any]:
        """`running`: the launcher has not done its work yet."""
        job = self._operator.job
        return {
            "job": job.name,
            "namespace": job.namespace,
            "run_dir": self._run_dir.path,
            "launcher": os.getpid(),
            "running": running,
            "started": rfc3339(self._started_at),
            "elapsed": round(self.elapsed, 1),
            "tfjob": self._resource(),
            "replicas": self._replicas(),
            "progress": self._progress(),
            "dashboards": list(self._dashboards()),
        }

    def news(self) -> Any:
        """A value that differs from the last one when something happened to the job."""
        replicas = [{**replica, "seconds": 0} for replica in self._replicas()]
        return self._operator.job, self._operator.status.to_document(), replicas, list(self._dashboards())

    def _resource(self) -> Dict[str, Any]:
        """The manifest's job with what scale and suspend changed, and its status."""
        job = self._operator.job
        resource = copy.deepcopy(dict(self._document))
        metadata = resource.setdefault("metadata", {})
        metadata.update(name=job.name, namespace=job.namespace, creationTimestamp=rfc3339(self._started_at))
        metadata.pop("generateName", None)
        _write_spec(resource["spec"], job)
        resource["status"] = self._operator.status.to_document()
        return resource

    def _replicas(self) -> List[Dict[str, Any]]:
        pods = {pod.replica_name: pod for pod in self._kubelet.pods()}
        return [
            {
                "name": record.name,
                "state": replica_state(pods.get(record.name)),
                "pid": record.pid,
                "restarts": record.restarts,
                "exit_code": record.exit_code,
                "seconds": round(record.seconds, 1),
                "log": record.log_path,
            }
            for record in self._kubelet.records()
        ]


class Journal:
    """Keeps status.yaml and state.json of the run directory as the job is."""

    def __init__(self, view: JobView, run_dir: RunDirectory, warn: Callable[[str], None]):
        """`warn` is called once if the files cannot be written; the job goes on."""
        self._view = view
        self._run_dir = run_dir
        self._warn = warn
        self._warned = False
        self._written: Any = None

    def update(self) -> None:
        """Writes if something happened; passing time does not count."""
        news = self._view.news()
        if news != self._written:
            self._write(running=True)
            self._written = news

    def close(self) -> None:
        """The last state, of a launcher that has ended."""
        self._write(running=False)

    def _write(self, running: bool) -> None:
        try:
            self._run_dir.write_state(self._view.build(running))
        except OSError as error:
            if not self._warned:
                self._warn(f"{error.filename or self._run_dir.path}: {error.strerror}")
            self._warned = True


def _write_spec(spec: Dict[str, Any], job: TrainingJob) -> None:
    """What of the spec scale and suspend change."""
    if job.kind.is_job_set:
        spec["suspend"] = job.run_policy.suspend
        return
    for replica_type, replica in spec[job.kind.specs_field].items():
        replica["replicas"] = job.replicas(replica_type)
    if job.run_policy.suspend or "suspend" in (spec.get("runPolicy") or {}):
        spec["runPolicy"] = {**(spec.get("runPolicy") or {}), "suspend": job.run_policy.suspend}
