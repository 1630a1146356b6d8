"""The launcher's flags, and its objects put together."""

import argparse
import os
import sys
import time
from dataclasses import dataclass
from typing import Dict, List, Sequence, Tuple

from .addresses import PortAllocator, PortsError, local_addresses
from .command import CommandBuilder, CommandError, LocalSettings, ReplicaCommand
from .console import Console
from .fields import ManifestError
from .job import TFJob
from .manifest import ManifestReader
from .progress import Progress, TrainingFiles
from .replica import Replica
from .signals import SignalQueue
from .summary import Summary
from .supervisor import Supervisor
from .tf_config import TfConfig

EXIT_BAD_INPUT = 2

_REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# The servers first: whoever starts later finds them listening.
_START_ORDER = ("PS", "Chief", "Master", "Worker", "Evaluator")


class InputError(Exception):
    """A flag's value cannot be used; the text is one line."""


@dataclass(frozen=True)
class RunDirectory:
    """runs/JOB-TIME: the model, unless --model_dir says otherwise, the logs and the volumes."""

    path: str
    model_dir: str

    @property
    def log_dir(self) -> str:
        return os.path.join(self.path, "logs")

    @property
    def volumes_dir(self) -> str:
        return os.path.join(self.path, "volumes")


def main(argv: Sequence[str]) -> int:
    """The exit code: 0, that of the replica that failed, 2 for bad input, 128 + n after signal n."""
    own, extra = _split_at_dashes(argv)
    options = _parser().parse_args(own)
    try:
        return _launch(options, extra, Console())
    except (ManifestError, InputError, CommandError, PortsError) as error:
        print(f"tfjob_local: {error}", file=sys.stderr)
    except OSError as error:
        print(f"tfjob_local: {error.filename or ''}: {error.strerror}", file=sys.stderr)
    return EXIT_BAD_INPUT


def _launch(options: argparse.Namespace, extra: List[str], console: Console) -> int:
    _check_inputs(options)
    reader = ManifestReader(options.manifest, _replica_overrides(options))
    job = reader.read()
    run_dir = _plan_run_directory(options, job)
    builder = CommandBuilder(job, _settings(options, extra, run_dir))
    with PortAllocator() as ports:
        commands = _build_commands(job, builder, TfConfig(job, local_addresses(job, ports)))
        for warning in reader.warnings + builder.warnings:
            console.line(f"warning: {warning}")
        os.makedirs(run_dir.log_dir, exist_ok=True)
        os.makedirs(run_dir.model_dir, exist_ok=True)
        console.line(f"job {job.name}: {_describe_replicas(job)}; logs in {run_dir.log_dir}")
        return _run(options, job, commands, run_dir, console)


def _run(
    options: argparse.Namespace,
    job: TFJob,
    commands: Sequence[ReplicaCommand],
    run_dir: RunDirectory,
    console: Console,
) -> int:
    clock = time.monotonic
    files = TrainingFiles(run_dir.model_dir)
    progress = Progress(files, console, clock)
    summary = Summary(job.name, run_dir.model_dir, run_dir.log_dir, files)
    with SignalQueue() as signals:
        replicas = [Replica(c, run_dir.log_dir, clock, signals.watched) for c in commands]
        supervisor = Supervisor(
            job, replicas, signals, console, progress, clock, options.max_restarts
        )
        outcome = supervisor.run()
        summary.print(outcome, replicas, console)
    return outcome.exit_code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tfjob_local.py",
        usage="%(prog)s [flags] MANIFEST [-- flags for every role]",
        description="Runs a Kubeflow TFJob manifest as processes on this machine.",
        allow_abbrev=False,
    )
    parser.add_argument("manifest", metavar="MANIFEST", help="a TFJob v1 file (YAML or JSON)")
    parser.add_argument("--ps", type=_count, metavar="N", help="parameter servers, instead of the manifest's")
    parser.add_argument("--workers", type=_count, metavar="N", help="workers, instead of the manifest's")
    parser.add_argument("--data_dir", metavar="DIR", help="IDX files to train on; default: generated digits")
    parser.add_argument("--model_dir", metavar="DIR", help="snapshots and event files; default: RUN_DIR/model")
    parser.add_argument("--config", metavar="FILE", help="TrainConfig, instead of the manifest's")
    parser.add_argument("--training_steps", type=_count, metavar="N", help="steps to train in all")
    parser.add_argument("--device", metavar="DEVICE", help="what workers compute on: cpu, cuda, cuda:0,1, auto")
    parser.add_argument("--precision", metavar="P", help="of their GPUs: float32, tf32, bfloat16")
    parser.add_argument(
        "--bin_dir",
        metavar="DIR",
        default=os.path.join(_REPOSITORY, "build", "release", "bin"),
        help="where the four programs are (default: build/release/bin)",
    )
    parser.add_argument("--run_dir", metavar="DIR", help="logs and volumes; default: runs/JOB-TIME")
    parser.add_argument(
        "--max_restarts",
        type=_count,
        default=10,
        metavar="N",
        help="restarts of one replica before the job fails (default: %(default)s)",
    )
    return parser


def _split_at_dashes(argv: Sequence[str]) -> Tuple[List[str], List[str]]:
    if "--" not in argv:
        return list(argv), []
    at = list(argv).index("--")
    return list(argv[:at]), list(argv[at + 1 :])


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f'expected a whole number >= 0, found "{text}"')
    return int(text)


def _check_inputs(options: argparse.Namespace) -> None:
    """What every role would find missing is said once, before any starts."""
    if options.data_dir is not None and not os.path.isdir(options.data_dir):
        raise InputError(f"--data_dir {options.data_dir}: no such directory")
    if options.config is not None and not os.path.isfile(options.config):
        raise InputError(f"--config {options.config}: no such file")


def _replica_overrides(options: argparse.Namespace) -> Dict[str, int]:
    wanted = {"PS": options.ps, "Worker": options.workers}
    return {replica_type: count for replica_type, count in wanted.items() if count is not None}


def _plan_run_directory(options: argparse.Namespace, job: TFJob) -> RunDirectory:
    path = os.path.abspath(options.run_dir) if options.run_dir else _fresh_run_path(job.name)
    model_dir = options.model_dir or os.path.join(path, "model")
    return RunDirectory(path, os.path.abspath(model_dir))


def _fresh_run_path(job_name: str) -> str:
    stamp = time.strftime("%Y%m%d-%H%M%S")
    path = base = os.path.join(_REPOSITORY, "runs", f"{job_name}-{stamp}")
    number = 2
    while os.path.exists(path):
        path = f"{base}-{number}"
        number += 1
    return path


def _settings(options: argparse.Namespace, extra: List[str], run_dir: RunDirectory) -> LocalSettings:
    flags = {"model_dir": run_dir.model_dir}
    if options.data_dir is not None:
        flags["data_dir"] = os.path.abspath(options.data_dir)
    if options.config is not None:
        flags["config"] = os.path.abspath(options.config)
    if options.training_steps is not None:
        flags["training_steps"] = str(options.training_steps)
    training_flags = {"device": options.device, "precision": options.precision}
    return LocalSettings(
        bin_dir=os.path.abspath(options.bin_dir),
        volumes_dir=run_dir.volumes_dir,
        working_dir=_REPOSITORY,
        cores=len(os.sched_getaffinity(0)),
        flags=flags,
        training_flags={flag: value for flag, value in training_flags.items() if value is not None},
        extra_args=tuple(extra),
    )


def _build_commands(
    job: TFJob, builder: CommandBuilder, tf_config: TfConfig
) -> List[ReplicaCommand]:
    specs = sorted(job.replica_specs.values(), key=lambda spec: _START_ORDER.index(spec.type))
    return [
        builder.build(spec, index, tf_config.render(spec.type, index))
        for spec in specs
        for index in range(spec.replicas)
    ]


def _describe_replicas(job: TFJob) -> str:
    return ", ".join(f"{spec.replicas} {spec.type.lower()}" for spec in job.replica_specs.values())
