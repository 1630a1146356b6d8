"""What of a manifest may act on this machine, beside Keelson's own programs."""

import itertools
from dataclasses import dataclass
from typing import Dict, List, Mapping

from tfjob_api.model import Container, TrainingJob

from .command_words import find_program
from .flag_translation import flag_of_variable
from .process import tells_of_job
from .program_flags import PROGRAMS
from .programs import BY_ROLE, ImageMap


# What Keelson's programs, and the libraries in them, read of a container's environment. Others, such as
# LD_PRELOAD, make a program run code of a volume.
_READ_VARIABLES = ("CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS", "TZ")


@dataclass(frozen=True)
class Permissions:
    images: ImageMap
    # The commands of all init containers, paths of this machine as volumes, any variable for any program.
    run_commands: bool

    def trusts(self, container: Container) -> bool:
        """Whether its command and variables are used: who says as-is, or names a directory of programs, for its
        image means them, too."""
        return self.run_commands or self.images.lookup(container.image) != BY_ROLE

    def environment_of_keelsons(self, container: Container, variables: Mapping[str, str]) -> Dict[str, str]:
        """Of the container's variables those that Keelson's program gets in its place."""
        trusted = self.trusts(container)
        return {name: value for name, value in variables.items() if trusted or _is_read(name)}

    def left_out(self, job: TrainingJob) -> str:
        """What of the job is not used, and could be; "" for nothing."""
        containers: Dict[str, List[str]] = {}
        paths: Dict[str, List[str]] = {}
        variables: Dict[str, List[str]] = {}
        for spec in job.replica_specs.values():
            for name in self._unread(spec.container):
                variables.setdefault(name, []).append(spec.type)
            for container in spec.init_containers:
                if container.command and not self.trusts(container):
                    containers.setdefault(container.name, []).append(spec.type)
            for volume in spec.volumes:
                if volume.kind == "hostPath" and not self.run_commands:
                    paths.setdefault(volume.source, []).append(spec.type)
        parts = [f"init container {name} ({', '.join(types)})" for name, types in containers.items()]
        parts += [
            f"hostPath {path} ({', '.join(dict.fromkeys(types))}: a directory of the run in its place)"
            for path, types in paths.items()
        ]
        if variables:
            types = dict.fromkeys(itertools.chain(*variables.values()))
            parts.append(f"env {', '.join(variables)} ({', '.join(types)}: Keelson's programs do not read it)")
        return "; ".join(parts)

    def _unread(self, container: Container) -> List[str]:
        """The variables that Keelson's program does not get."""
        if self.trusts(container):
            return []
        names = dict.fromkeys(variable.name for variable in container.environment)
        words = [*container.command, *container.args]
        own = find_program(words, tuple(PROGRAMS)).name in PROGRAMS
        return [
            name
            for name in names
            if not _is_read(name)
            and (own or not flag_of_variable(name))
            # It stands in the arguments.
            and not any(f"$({name})" in word for word in words)
        ]


def _is_read(name: str) -> bool:
    return name in _READ_VARIABLES or tells_of_job(name)
