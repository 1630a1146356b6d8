"""Implements the sub-commands."""

import argparse
import datetime
import json
import os
import shlex
import sys
import time
from typing import Any, Callable, Mapping, Optional, Sequence, Tuple

from tfjob_api.command_flags import split_at_dashes
from tfjob_api.conditions import read_conditions
from tfjob_api.job_document import replica_specs
from tfjob_api.status import FAILED
from tfjob_api.yaml_text import to_yaml

from .command_line import KINDS, make_parser
from .dashboard_forward import DashboardForward, is_free
from .errors import ClusterError, ErrorKind, InputError, JobFailedError
from .image_build import BuildSettings, plan_build, run_commands
from .job_watch import find_pod
from .kubectl import Kubectl, KubectlProgram
from .log_follower import POLLING_SECONDS, LogFollower
from .options import parse_replica
from .replica_pods import ReplicaPod, find_master
from .resubmission import Resubmission, countdown
from .status_view import find_progress, render_job, render_jobs
from .submit import EXIT_FAILED, EXIT_INTERRUPTED, Submission
from .training_client import TrainingClient

EXIT_BAD_INPUT = 2
EXIT_TIMEOUT = 124

_PROGRESS_LINES = 200


def main(
    argv: Sequence[str],
    kubectl: Optional[Kubectl] = None,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> int:
    """The exit code, as --help lists them."""
    own, role_arguments = split_at_dashes(argv)
    parser = make_parser()
    options = parser.parse_args(own)
    if role_arguments and options.command != "submit":
        parser.error(f"{options.command} takes no flags for the roles, found {role_arguments[0]}")
    options.role_arguments = role_arguments
    try:
        return Commands(options, kubectl, clock, sleep).run()
    except InputError as error:
        return _fail(str(error), EXIT_BAD_INPUT)
    except (ClusterError, JobFailedError) as error:
        return _fail(str(error), EXIT_FAILED)
    except TimeoutError as error:
        return _fail(str(error), EXIT_TIMEOUT)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # The reader of the output has seen enough; nothing more can be written, at the end neither.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_FAILED


def _fail(text: str, exit_code: int) -> int:
    sys.stdout.flush()
    _note(text)
    return exit_code


def _note(text: str) -> None:
    print(f"keelson: {text}", file=sys.stderr, flush=True)


def _write(text: str) -> None:
    print(text, flush=True)


class Commands:
    """One invocation."""

    def __init__(
        self,
        options: argparse.Namespace,
        kubectl: Optional[Kubectl],
        clock: Callable[[], float],
        sleep: Callable[[float], None],
    ):
        self._options = options
        self._clock = clock
        self._sleep = sleep
        if options.command != "build":
            kubectl = kubectl or KubectlProgram(options.kubectl, options.context, options.kubeconfig)
            self._client = TrainingClient(
                namespace=options.namespace,
                job_kind=KINDS[options.kind].name,
                kubectl=kubectl,
                clock=clock,
                sleep=sleep,
            )

    def run(self) -> int:
        return int(getattr(self, f"_{self._options.command}")())

    def _submit(self) -> int:
        submission = Submission(self._client, self._options, _write, _note, self._make_follower, self._clock)
        return submission.run()

    def _status(self) -> int:
        name = self._choose_job()
        job = self._client.get_job(name)
        if self._options.output != "table":
            _write_document(job, self._options.output)
            return 0
        pods = self._client.get_replica_pods(name)
        events = self._client.find_events(job)
        _write(render_job(job, pods, self._find_progress(pods), events, _now()))
        return 0

    def _list(self) -> int:
        jobs = self._client.list_jobs()
        if self._options.output == "table":
            _write(render_jobs(jobs, _now()) if jobs else f"no {KINDS[self._options.kind]}s")
        else:
            _write_document({"apiVersion": "v1", "kind": "List", "items": jobs}, self._options.output)
        return 0

    def _logs(self) -> int:
        role, index = parse_replica(self._options.role, self._options.index)
        name = self._choose_job()
        replica = find_replica(self._client.get_job(name), role, index)
        if self._options.follow:
            if self._options.previous or self._options.tail is not None:
                raise InputError("--follow: not with --previous or --tail")
            end = self._make_follower().follow(name, replica=replica, timeout=self._options.timeout)
            _note(f"job {name}: {end.type}: {end.message}")
            return 0
        if self._options.timeout is not None:
            raise InputError("--timeout: only with --follow")
        self._copy_log(name, replica)
        return 0

    def _copy_log(self, name: str, replica: Tuple[str, int]) -> None:
        pods = self._client.get_replica_pods(name)
        pod = find_pod(pods, replica)
        if pod is None:
            raise ClusterError(
                ErrorKind.NOT_FOUND, f"job {name}: there is no pod of {replica[0]}-{replica[1]} now"
            )
        flags = ["--previous"] if self._options.previous else []
        if self._options.tail is not None:
            flags.append(f"--tail={self._options.tail}")
        stream = self._client.stream_log(pod.name, flags=flags)
        try:
            while (lines := stream.read(POLLING_SECONDS)) is not None:
                for line in lines:
                    _write(line)
        finally:
            error = stream.close()
        if error is not None:
            raise error

    def _dashboard(self) -> int:
        name = self._choose_job()
        evaluator = find_replica(self._client.get_job(name), "evaluator", self._options.index)
        forward = DashboardForward(self._client, _write, _note, self._clock, self._sleep, is_free)
        end = forward.run(name, evaluator, self._options.port)
        _note(f"job {name}: {end.type}: {end.message}")
        return EXIT_FAILED if end.type == FAILED else 0

    def _scale(self) -> int:
        name = self._choose_job()
        if is_risky_to_shrink(self._client.get_job(name), self._options.workers):
            _note(
                "warning: without enableDynamicWorker the operator may fail the job while the pods of removed "
                "workers end"
            )
        self._client.scale(name, self._options.workers)
        _note(f"job {name}: {self._options.workers} workers wanted")
        return 0

    def _wait(self) -> int:
        name = self._choose_job()
        expected = set(self._options.conditions or ["Succeeded"])
        if self._options.resubmit and FAILED in expected:
            raise InputError("--resubmit: not with --for Failed")
        resubmission = Resubmission(self._client, self._options.resubmit, _note)
        time_left = countdown(self._options.timeout, self._clock)
        job = None
        while job is None:
            try:
                job = self._client.wait_for_job_conditions(
                    name,
                    expected_conditions=expected,
                    wait_timeout=time_left(),
                    polling_interval=POLLING_SECONDS,
                    note=_note,
                )
            except JobFailedError:
                if not resubmission.try_again(name):
                    raise
        found = next(c for c in read_conditions(job) if c.type in expected and c.status == "True")
        _note(f"job {name}: {found.type}: {found.message}")
        return 0

    def _delete(self) -> int:
        self._client.delete_job(self._options.name)
        _note(f"job {self._options.name} deleted")
        return 0

    def _build(self) -> int:
        options = self._options
        commands = plan_build(
            BuildSettings(
                image=options.image,
                registry=options.registry,
                builder=options.builder,
                variant=options.variant,
                push=options.push,
                base_image=options.base_image,
            )
        )
        if options.dry_run:
            for command in commands:
                _write(shlex.join(command))
            return 0
        return EXIT_FAILED if run_commands(commands, _note) else 0

    def _choose_job(self) -> str:
        """Returns the named job, or the only one of the namespace."""
        if self._options.name:
            return str(self._options.name)
        names = [str(job["metadata"]["name"]) for job in self._client.list_jobs()]
        if len(names) != 1:
            found = ", ".join(sorted(names)) or "none"
            raise InputError(f"expected the name of a job where there is not just one, found {found}")
        return names[0]

    def _find_progress(self, pods: Sequence[ReplicaPod]) -> str:
        """Returns the leader's last or current report."""
        master = find_master(list(pods))
        if master is None or not master.started:
            return ""
        if master.ended and master.last_words:
            return master.last_words
        try:
            return find_progress(self._client.read_log(master.name, flags=[f"--tail={_PROGRESS_LINES}"]))
        except ClusterError:
            # The pod may be gone, or the user may not read its log; the rest of the status is available.
            return ""

    def _make_follower(self) -> LogFollower:
        return LogFollower(self._client, _write, _note, self._clock, self._sleep)


def find_replica(job: Mapping[str, Any], role: str, index: int) -> Tuple[str, int]:
    """Returns the replica as the pods' labels name it; "chief" is also a job's master. InputError."""
    replicas = {kind.lower(): int((spec or {}).get("replicas", 1)) for kind, spec in replica_specs(job).items()}
    if role == "chief" and "chief" not in replicas and "master" in replicas:
        role = "master"
    if role not in replicas:
        hint = "; worker 0 leads this job" if role in ("chief", "master") else ""
        raise InputError(f"expected one of {', '.join(sorted(replicas))}, found {role}{hint}")
    if index >= replicas[role]:
        article = "an" if role == "evaluator" else "a"
        raise InputError(f"expected {article} {role} of 0..{replicas[role] - 1}, found {index}")
    return role, index


def is_risky_to_shrink(job: Mapping[str, Any], workers: int) -> bool:
    """Whether removed workers may fail the job: a running pod that is being deleted counts as a failed one."""
    spec, replicas = job.get("spec") or {}, replica_specs(job)
    wanted = [(value or {}).get("replicas", 1) for kind, value in replicas.items() if kind.lower() == "worker"]
    return not spec.get("enableDynamicWorker") and any(workers < number for number in wanted)


def _write_document(document: Mapping[str, Any], output: str) -> None:
    text = json.dumps(document, indent=2) if output == "json" else to_yaml([document]).rstrip("\n")
    _write(text)


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.timezone.utc)
