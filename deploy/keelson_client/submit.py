"""keelson.py submit: creates a job, follows or awaits it, and says how it ended."""

import argparse
import posixpath
from dataclasses import dataclass
from typing import Callable, Optional, Sequence

from tfjob_api.conditions import JobCondition, find_end, read_conditions
from tfjob_api.status import SUCCEEDED
from tfjob_api.yaml_text import to_yaml

from .command_line import kind_flag
from .errors import ClusterError, JobFailedError
from .job_watch import JobDocument
from .local_run import run_locally
from .log_follower import POLLING_SECONDS, LogFollower
from .manifest import check_documents, find_job, render
from .replica_pods import find_master
from .resubmission import Resubmission, countdown
from .settings import JobSettings
from .status_view import describe_replicas
from .submit_settings import settings_from
from .training_client import TrainingClient

EXIT_FAILED = 1
EXIT_INTERRUPTED = 130
# The text of tfjob_api's warnings about a run without a cluster.
_LOCAL_WARNING = "ignored locally"


@dataclass(eq=False)
class Submission:
    _client: TrainingClient
    _options: argparse.Namespace
    _write: Callable[[str], None]
    _note: Callable[[str], None]
    _make_follower: Callable[[], LogFollower]
    _clock: Callable[[], float]

    @property
    def _name(self) -> str:
        return str(self._options.name)

    def run(self) -> int:
        settings = settings_from(self._options)
        documents = render(settings)
        for warning in check_documents(documents).warnings:
            if not warning.startswith(_LOCAL_WARNING):
                self._note(f"warning: {warning}")
        if self._options.dry_run:
            self._write(to_yaml(documents).rstrip("\n"))
            return 0
        if self._options.local:
            run_locally(documents, self._options.local_flag)
        self._warn_of_claims(settings)
        self._client.create_objects(documents)
        self._note(f"job {self._name} created: {describe_replicas(find_job(documents))}")
        self._tell_of_the_model(settings)
        if self._options.follow is False and self._options.wait is None:
            return 0
        try:
            return self._await(documents)
        except KeyboardInterrupt:
            flag = kind_flag(settings.kind)
            self._note(
                f"job {self._name} goes on; keelson.py logs -f {flag}--name {self._name} chief follows it again, "
                f"keelson.py delete {flag}{self._name} ends it"
            )
            return EXIT_INTERRUPTED

    def _warn_of_claims(self, settings: JobSettings) -> None:
        if settings.model_claim is None:
            self._note("warning: without --pvc the model is lost with the chief's pod")
        for flag, mount in (("--pvc", settings.model_claim), ("--data_pvc", settings.data_claim)):
            if mount is not None and not self._client.find_claim(mount.name):
                self._note(f"warning: {flag}: there is no claim {mount.name} yet; the pods wait for it")

    def _tell_of_the_model(self, settings: JobSettings) -> None:
        claim = settings.model_claim
        if claim is not None:
            place = posixpath.relpath(settings.model_dir, claim.path)
            what = f"--model_subdir {place}" if settings.model_subdirectory else f"--name {settings.name}"
            self._note(f"its model: {place} in the claim {claim.name}; a later job with {what} resumes it")

    def _await(self, documents: Sequence[JobDocument]) -> int:
        resubmission = Resubmission(self._client, self._options.resubmit, self._note)
        time_left = countdown(self._options.timeout, self._clock)
        while True:
            if self._options.wait is None:
                end = self._make_follower().follow(self._name, timeout=time_left())
            else:
                found = self._wait_for_condition(time_left())
                if found is None:
                    return 0
                end = found
            if not resubmission.try_again(self._name, documents):
                break
        self._report(end)
        if self._options.delete_after:
            self._client.delete_job(self._name)
            self._note(f"job {self._name} deleted")
        return 0 if end.type == (self._options.wait or SUCCEEDED) else EXIT_FAILED

    def _wait_for_condition(self, timeout: Optional[float]) -> Optional[JobCondition]:
        """Returns how the job ended; None: it goes on, with the awaited condition."""
        try:
            job = self._client.wait_for_job_conditions(
                self._name,
                expected_conditions={self._options.wait},
                wait_timeout=timeout,
                polling_interval=POLLING_SECONDS,
                note=self._note,
            )
        except JobFailedError:
            job = self._client.get_job(self._name)
        end = find_end(read_conditions(job))
        if end is None:
            self._note(f"job {self._name}: {self._options.wait}")
        return end

    def _report(self, end: JobCondition) -> None:
        self._note(f"job {self._name}: {end.type}: {end.message}")
        try:
            pods = self._client.get_replica_pods(self._name)
        except ClusterError:
            # Further information is not worth an error.
            return
        master = find_master(pods)
        for pod in pods:
            if pod.exit_code:
                words = f": {pod.last_words}" if pod.last_words else ""
                self._note(f"{pod.replica_name}: exit code {pod.exit_code}{words}")
            elif pod is master and pod.last_words:
                self._note(f"{pod.replica_name}: {pod.last_words}")
