"""What of a manifest may act on this machine, beside Keelson's own programs."""

from dataclasses import dataclass
from typing import Dict, List

from tfjob_api.model import Container, TFJob

from .programs import BY_ROLE, ImageMap


@dataclass(frozen=True)
class Permissions:
    images: ImageMap
    # The commands of all init containers, and paths of this machine as volumes.
    run_commands: bool

    def runs(self, init_container: Container) -> bool:
        """Who says as-is, or names a directory of programs, for its image means its command, too."""
        return self.run_commands or self.images.lookup(init_container.image) != BY_ROLE

    def left_out(self, job: TFJob) -> str:
        """What of the job is not used, and could be; "" for nothing."""
        containers: Dict[str, List[str]] = {}
        paths: Dict[str, List[str]] = {}
        for spec in job.replica_specs.values():
            for container in spec.init_containers:
                if container.command and not self.runs(container):
                    containers.setdefault(container.name, []).append(spec.type)
            for volume in spec.volumes:
                if volume.kind == "hostPath" and not self.run_commands:
                    paths.setdefault(volume.source, []).append(spec.type)
        parts = [f"init container {name} ({', '.join(types)})" for name, types in containers.items()]
        parts += [
            f"hostPath {path} ({', '.join(dict.fromkeys(types))}: a directory of the run in its place)"
            for path, types in paths.items()
        ]
        return "; ".join(parts)
