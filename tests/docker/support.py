"""The Dockerfile, the ignore file and the compose files as data, for the tests of deploy/docker."""

import ast
import fnmatch
import os
import re
import shlex
import sys
from dataclasses import dataclass, field
from typing import Dict, List, Optional

import yaml

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))

from temporary_directory import DEADLINE_SECONDS, TemporaryDirectoryTest  # noqa: E402, F401  (for the tests)

REPOSITORY = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
FOLDER = os.path.join(REPOSITORY, "deploy", "docker")
ROLES = {"ps": "ps_server", "worker": "worker", "chief": "chief", "evaluator": "evaluator"}


def read(*path: str) -> str:
    with open(os.path.join(REPOSITORY, *path), encoding="utf-8") as file:
        return file.read()


@dataclass(frozen=True)
class Instruction:
    name: str
    arguments: str

    @property
    def words(self) -> List[str]:
        """The words without flags such as --from=build."""
        return [word for word in shlex.split(self.arguments) if not word.startswith("--")]

    def flag(self, name: str) -> Optional[str]:
        found = re.search(rf"--{name}=(\S+)", self.arguments)
        return found.group(1) if found else None


@dataclass
class Stage:
    name: str
    base: str
    instructions: List[Instruction] = field(default_factory=list)

    def all(self, name: str) -> List[Instruction]:
        return [instruction for instruction in self.instructions if instruction.name == name]


class Dockerfile:
    """Stages by name, in order; `global_arguments`: the ARGs before the first."""

    def __init__(self, text: str):
        self.stages: Dict[str, Stage] = {}
        self.global_arguments: Dict[str, str] = {}
        stage: Optional[Stage] = None
        for instruction in _instructions(text):
            if instruction.name == "FROM":
                base, _, name = instruction.words[0], *instruction.words[1:]
                stage = self.stages[name] = Stage(name, self._substitute(base))
            elif stage is None:
                key, _, value = instruction.arguments.partition("=")
                self.global_arguments[key] = value
            else:
                stage.instructions.append(instruction)

    def chain(self, name: str) -> List[Stage]:
        """The stage and those that it is built on, the lowest first."""
        stage = self.stages[name]
        below = self.chain(stage.base) if stage.base in self.stages else []
        return [*below, stage]

    def last(self, name: str, instruction: str) -> Optional[Instruction]:
        """The value in the stage: its own, or that of the nearest stage below."""
        found = [entry for stage in self.chain(name) for entry in stage.all(instruction)]
        return found[-1] if found else None

    def _substitute(self, base: str) -> str:
        for key, value in self.global_arguments.items():
            base = base.replace(f"${{{key}}}", value)
        return base


def _instructions(text: str) -> List[Instruction]:
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n", " ", "\n".join(lines))
    instructions = []
    for line in filter(str.strip, joined.splitlines()):
        name, _, arguments = line.strip().partition(" ")
        instructions.append(Instruction(name.upper(), arguments.strip()))
    return instructions


class IgnoreFile:
    """A .dockerignore: the last pattern that matches a path or one of its folders decides."""

    def __init__(self, text: str):
        self._patterns = [line for line in map(str.strip, text.splitlines()) if line and line[0] != "#"]

    def ignores(self, path: str) -> bool:
        ignored = False
        for pattern in self._patterns:
            if _matches(path, pattern.lstrip("!")):
                ignored = not pattern.startswith("!")
        return ignored


def _matches(path: str, pattern: str) -> bool:
    parts = path.split("/")
    for count in range(1, len(parts) + 1):
        prefix = "/".join(parts[:count])
        if pattern.startswith("**/"):
            if fnmatch.fnmatch(parts[count - 1], pattern[3:]):
                return True
        elif prefix.count("/") == pattern.count("/") and fnmatch.fnmatch(prefix, pattern):
            return True
    return False


def dockerfile() -> Dockerfile:
    return Dockerfile(read("deploy", "docker", "Dockerfile"))


def compose(name: str) -> Dict:
    return yaml.safe_load(read("deploy", "docker", name))


def programs_of_package() -> List[str]:
    """From the list in make_wheel.py."""
    found = re.search(r"^PROGRAMS = (\(.*\))$", read("deploy", "make_wheel.py"), re.MULTILINE)
    assert found, "deploy/make_wheel.py: expected PROGRAMS = (…)"
    return list(ast.literal_eval(found.group(1)))


def programs_of_image() -> List[str]:
    """From the list in make_rootfs.sh."""
    found = re.search(r"^programs=\(([^)]*)\)", read("deploy", "docker", "make_rootfs.sh"), re.MULTILINE)
    assert found, "deploy/docker/make_rootfs.sh: expected programs=(…)"
    return found.group(1).split()
