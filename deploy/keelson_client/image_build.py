"""Builds Keelson's image from its sources with docker, podman or buildah."""

import os
import shutil
import subprocess
from dataclasses import dataclass
from typing import Callable, List, Optional, Sequence

from .errors import InputError

BUILDERS = ("docker", "podman", "buildah")
VARIANTS = ("cpu", "cuda")

_REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_DOCKERFILE = os.path.join(_REPOSITORY, "deploy", "docker", "Dockerfile")


@dataclass(frozen=True)
class BuildSettings:
    # "keelson:1.0", or with its registry.
    image: str
    # Put before the image's name.
    registry: str = ""
    # Empty: the first of BUILDERS that is installed.
    builder: str = ""
    variant: str = "cpu"
    push: bool = False
    # The Debian that it is compiled on; empty: the Dockerfile's.
    base_image: str = ""

    @property
    def full_image(self) -> str:
        return f"{self.registry.rstrip('/')}/{self.image}" if self.registry else self.image


def plan_build(
    settings: BuildSettings, find_program: Callable[[str], Optional[str]] = shutil.which
) -> List[List[str]]:
    """Returns the commands in order. InputError: no builder."""
    builder = settings.builder or next((b for b in BUILDERS if find_program(b)), "")
    if not builder:
        raise InputError(f"--builder: expected one of {', '.join(BUILDERS)} in PATH, found none")
    if not find_program(builder):
        raise InputError(f"--builder: {builder} is not in PATH")
    build = [
        builder,
        "build",
        f"--file={_DOCKERFILE}",
        f"--build-arg=VARIANT={settings.variant}",
        *([f"--build-arg=BUILD_IMAGE={settings.base_image}"] if settings.base_image else []),
        f"--tag={settings.full_image}",
        _REPOSITORY,
    ]
    return [build, [builder, "push", settings.full_image]] if settings.push else [build]


def run_commands(commands: Sequence[Sequence[str]], note: Callable[[str], None]) -> int:
    """Returns 0, or the exit code of the first command that failed; their output goes to the user."""
    for command in commands:
        note(" ".join(command))
        code = subprocess.run(command, check=False).returncode
        if code != 0:
            note(f"{command[0]} {command[1]}: exit code {code}")
            return code if code > 0 else 128 - code
    return 0
