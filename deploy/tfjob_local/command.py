"""One replica -> program, arguments, environment.

The program is found by the command's name where that is one of Keelson's four, otherwise by the replica
type: an image cannot be run here, its role can. Flags given to the launcher replace the manifest's.
"""

import os
import re
from dataclasses import dataclass, field
from typing import Dict, List, Mapping, Optional, Sequence, Tuple

from .job import ReplicaSpec, TFJob
from .volumes import VolumeMap

_BINARY_BY_TYPE = {
    "Chief": "chief",
    "Master": "chief",
    "PS": "ps_server",
    "Worker": "worker",
    "Evaluator": "evaluator",
}
_BINARIES = frozenset(_BINARY_BY_TYPE.values())
# Kubernetes' expansion in command, args and env: $(NAME), and $$ for a plain $.
_REFERENCE = re.compile(r"\$(?:(\$)|\(([A-Za-z_][A-Za-z0-9_.-]*)\))")


class CommandError(Exception):
    """A replica cannot be started; the text is one line."""


@dataclass(frozen=True)
class LocalSettings:
    """What the user of the launcher chose, beside the manifest."""

    bin_dir: str
    volumes_dir: str
    working_dir: str
    cores: int
    # Flag name -> value, handed to every role in place of the manifest's.
    flags: Mapping[str, str] = field(default_factory=dict)
    # The same for those who train: workers, or the chief that runs the whole job.
    training_flags: Mapping[str, str] = field(default_factory=dict)
    # Handed to every role, after everything else.
    extra_args: Sequence[str] = ()


@dataclass(frozen=True)
class ReplicaCommand:
    # "worker-1"
    name: str
    type: str
    index: int
    argv: Tuple[str, ...]
    # Added to the launcher's own environment.
    environment: Mapping[str, str]
    working_dir: str
    restart_policy: str = "Never"
    grace_seconds: float = 30.0


class CommandBuilder:
    """Builds the command of every replica of one job; `warnings` says what was left out."""

    def __init__(self, job: TFJob, settings: LocalSettings):
        self._job = job
        self._settings = settings
        self.warnings: List[str] = []

    def build(self, spec: ReplicaSpec, index: int, tf_config: Optional[str]) -> ReplicaCommand:
        name = f"{spec.type.lower()}-{index}"
        volumes = VolumeMap(spec, name, self._settings.volumes_dir)
        environment = self._manifest_environment(spec, index, volumes)
        command = [_expand(word, environment) for word in spec.container.command]
        args = [_expand(word, environment) for word in spec.container.args]
        binary, command_args = self._choose_binary(spec, command)
        argv = [binary, *self._arguments(spec, command_args + args, volumes)]
        self._add_thread_count(spec, argv, environment)
        if tf_config is not None:
            environment["TF_CONFIG"] = tf_config
        for volume in volumes.unsupported:
            self._warn(f"{spec.type}: the volume {volume} has no content locally")
        return ReplicaCommand(
            name=name,
            type=spec.type,
            index=index,
            argv=tuple(argv),
            environment=environment,
            working_dir=self._working_dir(spec, volumes),
            restart_policy=spec.restart_policy,
            grace_seconds=spec.grace_seconds,
        )

    def _choose_binary(self, spec: ReplicaSpec, command: List[str]) -> Tuple[str, List[str]]:
        """The program's path, and the arguments that stand in `command`."""
        name, args = self._binary_of_role(spec), []
        if command and os.path.basename(command[0]) in _BINARIES:
            name, args = os.path.basename(command[0]), command[1:]
        elif command:
            self._warn(f"{spec.type}: {name} runs in place of the command {' '.join(command)}")
        path = os.path.join(self._settings.bin_dir, name)
        if not os.access(path, os.X_OK):
            raise CommandError(f"{path}: no such program; deploy/run_local.sh builds it")
        return path, args

    def _binary_of_role(self, spec: ReplicaSpec) -> str:
        # Without a cluster there is nobody to serve: the chief runs the whole job in one process.
        return "chief" if self._job.total_replicas() == 1 else _BINARY_BY_TYPE[spec.type]

    def _arguments(self, spec: ReplicaSpec, args: List[str], volumes: VolumeMap) -> List[str]:
        """Each flag once: the programs refuse a repeated one."""
        flags = dict(self._settings.flags)
        if spec.type == "Worker" or self._job.total_replicas() == 1:
            flags.update(self._settings.training_flags)
        for flag in flags:
            args = remove_flag(args, flag)
        args = [volumes.translate(argument) for argument in args]
        args += [f"--{flag}={value}" for flag, value in flags.items()]
        for argument in self._settings.extra_args:
            flag = flag_name(argument)
            args = remove_flag(args, flag) if flag else args
        return args + list(self._settings.extra_args)

    def _add_thread_count(self, spec: ReplicaSpec, argv: List[str], environment: Dict[str, str]) -> None:
        """Workers of one machine share its cores, unless the user said otherwise."""
        if spec.type != "Worker" or self._job.total_replicas() == 1:
            return
        threads = max(1, self._settings.cores // max(1, self._job.replicas("Worker")))
        if not has_flag(argv, "compute_threads"):
            argv.append(f"--compute_threads={threads}")
        if "OMP_NUM_THREADS" not in os.environ:
            environment.setdefault("OMP_NUM_THREADS", str(threads))

    def _working_dir(self, spec: ReplicaSpec, volumes: VolumeMap) -> str:
        wanted = volumes.translate_path(spec.container.working_dir)
        if wanted and wanted != spec.container.working_dir:
            return wanted
        return self._settings.working_dir

    def _manifest_environment(
        self, spec: ReplicaSpec, index: int, volumes: VolumeMap
    ) -> Dict[str, str]:
        environment: Dict[str, str] = {}
        for variable in spec.container.environment:
            if variable.field_path:
                value = self._field(spec, index, variable.field_path)
                if value is None:
                    self._warn(f"{spec.type}: {variable.name}: no {variable.field_path} locally")
                    continue
                environment[variable.name] = value
            else:
                value = _expand(variable.value, environment)
                environment[variable.name] = volumes.translate_path(value)
        return environment

    def _field(self, spec: ReplicaSpec, index: int, path: str) -> Optional[str]:
        """The downward API, as far as it means something here."""
        label = re.fullmatch(r"metadata\.labels\['(.+)'\]", path)
        if label:
            value = spec.labels.get(label.group(1))
            return None if value is None else str(value)
        return {
            "metadata.name": f"{self._job.name}-{spec.type.lower()}-{index}",
            "metadata.namespace": self._job.namespace,
            "status.podIP": "127.0.0.1",
            "status.hostIP": "127.0.0.1",
        }.get(path)

    def _warn(self, text: str) -> None:
        if text not in self.warnings:
            self.warnings.append(text)


def has_flag(args: Sequence[str], name: str) -> bool:
    return any(flag_name(argument) == name for argument in args)


def remove_flag(args: Sequence[str], name: str) -> List[str]:
    """`args` without --name=value, --name value and --name."""
    kept: List[str] = []
    may_be_value = False
    for argument in args:
        if flag_name(argument) == name:
            may_be_value = "=" not in argument
        elif not may_be_value or argument.startswith("--"):
            kept.append(argument)
            may_be_value = False
        else:
            may_be_value = False
    return kept


def flag_name(argument: str) -> Optional[str]:
    match = re.match(r"--?([A-Za-z]\w*)(=|$)", argument)
    return match.group(1) if match else None


def _expand(text: str, environment: Mapping[str, str]) -> str:
    def replace(match: "re.Match[str]") -> str:
        if match.group(1):
            return "$"
        return environment.get(match.group(2), match.group(0))

    return _REFERENCE.sub(replace, text)
