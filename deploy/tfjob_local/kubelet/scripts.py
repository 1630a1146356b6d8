"""Python scripts as workers and evaluators: what the image of Keelson with PyTorch has for them, and this machine as well."""

import json
import os
import re
from dataclasses import dataclass
from typing import Dict, Mapping, Optional, Sequence, Tuple

from .plan import PlanError

# A script of the repository's python/examples, as the image has it (deploy/docker/Dockerfile).
_OWN = re.compile(r"/opt/keelson/examples/(\w+\.py)")


@dataclass(frozen=True)
class Scripts:
    # The repository's, with the package and the examples.
    python_dir: str
    # Keelson's programs.
    bin_dir: str

    def find(self, replica_type: str, words: Sequence[str]) -> Optional[Tuple[str, ...]]:
        """Of `python3 SCRIPT ARGUMENTS...` with one of Keelson's scripts: the repository's copy of it, and the arguments;
        None: it is another command. PlanError: there is no such script."""
        is_python = len(words) > 1 and os.path.basename(words[0]) == "python3"
        own = _OWN.fullmatch(words[1]) if is_python else None
        if own is None:
            return None
        directory = os.path.join(self.python_dir, "examples")
        path = os.path.join(directory, own[1])
        if not os.path.isfile(path):
            raise PlanError(f"{replica_type}: command: {words[1]}: expected a script of {directory}, found none")
        return (path, *words[2:])

    def prepare(self, environment: Dict[str, str], mounts: Mapping[str, str]) -> None:
        """Package and programs are found as in the image, behind those of the manifest's own, and the paths of volumes in a
        script's text as they are here (python/keelson/pod_paths.py)."""
        own = environment.get("PYTHONPATH")
        environment["PYTHONPATH"] = f"{own}:{self.python_dir}" if own else self.python_dir
        environment.setdefault("KEELSON_BINARY_DIR", self.bin_dir)
        environment["KEELSON_MOUNTS"] = json.dumps(mounts)
