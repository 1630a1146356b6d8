"""An image and its command -> a program of this machine. An image itself cannot be run here."""

import fnmatch
import os
import shutil
import sys
from dataclasses import dataclass, field, replace
from typing import Callable, Mapping, Optional, Sequence, Tuple

from tfjob_api.model import ADDED_SERVERS, Container, ReplicaSpec

from .command_words import find_program
from .flag_translation import translate_flags
from .flag_values import Surroundings
from .plan import PlanError
from .program_flags import PROGRAMS, Flag, read_flags
from .scripts import Scripts
from .user_scripts import UserScript, find_user_script

BY_ROLE = "role"
AS_IS = "as-is"


@dataclass(frozen=True)
class ImageMap:
    """Maps images to programs: the first pattern that matches decides; without one, the role does."""

    # Keelson's programs.
    bin_dir: str
    # Pattern, and "role", "as-is" or a directory.
    rules: Tuple[Tuple[str, str], ...] = ()

    @classmethod
    def parse(cls, texts: Sequence[str], bin_dir: str) -> "ImageMap":
        """Parses texts of the form PATTERN=WHAT. ValueError: one line."""
        rules = []
        for text in texts:
            pattern, separator, what = text.partition("=")
            if not separator or not pattern or not what:
                expected = "PATTERN=WHAT, WHAT being role, as-is or a directory"
                raise ValueError(f'expected {expected}, found "{text}"')
            if what not in (BY_ROLE, AS_IS):
                if not os.path.isdir(what):
                    raise ValueError(f'"{text}": expected role, as-is or a directory, found "{what}"')
                what = os.path.abspath(what)
            rules.append((pattern, what))
        return cls(os.path.abspath(bin_dir), tuple(rules))

    def lookup(self, image: str) -> str:
        for pattern, what in self.rules:
            if fnmatch.fnmatchcase(image, pattern):
                return what
        return BY_ROLE


@dataclass(frozen=True)
class ResolvedProgram:
    path: str
    args: Tuple[str, ...]
    # Which of Keelson's programs it is; None: another one, with arguments of its own.
    keelson: Optional[str] = None
    # What that program takes.
    flags: Mapping[str, Flag] = field(default_factory=dict)
    # Whether it is one of Keelson's scripts, whose arguments and environment are the manifest's.
    is_own_script: bool = False
    # Where it runs; "": where its container says.
    directory: str = ""


@dataclass(frozen=True)
class Words:
    """A container's command, args and environment, with paths and names of this machine."""

    command: Sequence[str] = ()
    args: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    # Likewise the container's workingDir; "": the image's.
    working_dir: str = ""


class ProgramResolver:
    def __init__(
        self,
        images: ImageMap,
        warn: Callable[[str], None],
        has_gpus: Callable[[], bool],
        scripts: Scripts,
        run_commands: bool,
    ):
        """`run_commands`: whether a command of the manifest's may run its own script."""
        self._run_commands = run_commands
        self._images = images
        self._scripts = scripts
        self._warn = warn
        self._has_gpus = has_gpus

    def main_program(
        self, spec: ReplicaSpec, words: Words, alone: bool, may_get_data: Callable[[str], bool]
    ) -> ResolvedProgram:
        """`alone`: the only replica of its job. `may_get_data`: as in Surroundings. PlanError: there is no such
        program here."""
        command, args = words.command, words.args
        what = self._images.lookup(spec.container.image)
        script = self._scripts.find(spec.type, [*command, *args])
        if script is not None:
            if what == BY_ROLE:
                return ResolvedProgram(sys.executable, script, is_own_script=True)
            command, args = command[:1], script
        if what == AS_IS:
            if not command:
                raise PlanError(
                    f"{spec.type}: --image {spec.container.image}=as-is: expected a command in the manifest, "
                    "found none (the image's own is not known here)"
                )
            return self._own_command(spec.type, command, args, None)
        if what != BY_ROLE:
            name = os.path.basename(command[0]) if command else program_of(spec, alone)
            path = self._executable(os.path.join(what, name), spec.type)
            rest = (*command[1:], *args)
            return self._keelson(name, rest, path) if name in PROGRAMS else ResolvedProgram(path, rest)
        return self._by_role(spec, words, alone, Surroundings(self._has_gpus, may_get_data))

    def init_program(
        self, replica_type: str, container: Container, command: Sequence[str], args: Sequence[str]
    ) -> Optional[ResolvedProgram]:
        """An init container has no role: its own command runs. None: it has none, and is skipped."""
        where = f"{replica_type}: init container {container.name}"
        if not command:
            self._warn(f"{where}: skipped, the command of the image {container.image} is not known here")
            return None
        what = self._images.lookup(container.image)
        return self._own_command(where, command, args, what if what not in (BY_ROLE, AS_IS) else None)

    def _by_role(
        self, spec: ReplicaSpec, words: Words, alone: bool, surroundings: Surroundings
    ) -> ResolvedProgram:
        command, all_words = words.command, [*words.command, *words.args]
        if not all_words or all_words[0].startswith("-"):
            # The image's own program, with these arguments.
            return self._translated(program_of(spec, alone), all_words, words.environment, surroundings)
        found = find_program(all_words, tuple(PROGRAMS), words.environment)
        name = program_of(spec, alone)
        if found.name in PROGRAMS:
            if ADDED_SERVERS not in spec.annotations:
                return self._keelson(found.name, found.arguments)
            return self._translated(name, found.arguments, words.environment, surroundings)
        script = find_user_script(words.command, words.args, words.working_dir) if spec.kind.runs_scripts else None
        if script is not None and self._run_commands:
            return self._user_script(spec.type, script)
        shown = " ".join(command or all_words)
        hint = f"; --run_commands runs {script.file}, which is on this machine" if script else ""
        self._warn(f"{spec.type}: {name} runs in place of the command {_shorten(shown)}{hint}")
        return self._translated(name, found.arguments, words.environment, surroundings)

    def _user_script(self, replica_type: str, script: UserScript) -> ResolvedProgram:
        """The interpreter that the command names, or the one that is here."""
        wanted, *rest = script.words
        try:
            own = self._own_command(replica_type, [wanted], rest, None)
        except PlanError:
            own = ResolvedProgram(*script.with_python(sys.executable))
            self._warn(f"{replica_type}: {own.path} runs in place of {wanted}, which this machine does not have")
        return replace(own, directory=script.directory)

    def _translated(
        self, name: str, args: Sequence[str], environment: Mapping[str, str], surroundings: Surroundings
    ) -> ResolvedProgram:
        resolved = self._keelson(name, args)
        others = (os.path.join(self._images.bin_dir, program) for program in PROGRAMS)
        programs = {os.path.basename(path): read_flags(path) for path in others if os.path.exists(path)}
        translation = translate_flags(args, name, programs, surroundings, environment)
        for remark in translation.remarks:
            self._warn(remark)
        return replace(resolved, args=translation.args)

    def _keelson(self, name: str, args: Sequence[str], path: Optional[str] = None) -> ResolvedProgram:
        """`path`: in a directory of the user's, where a program of this name may be anything. The one in
        bin_dir is asked for the flags, if it is there."""
        own = os.path.join(self._images.bin_dir, name)
        found = path or self._executable(own, "")
        return ResolvedProgram(found, tuple(args), name, read_flags(own if os.path.exists(own) else found))

    def _own_command(
        self, where: str, command: Sequence[str], args: Sequence[str], directory: Optional[str]
    ) -> ResolvedProgram:
        """Where the image has it, else by name: in `directory`, beside Keelson's programs, in PATH."""
        wanted, name = command[0], os.path.basename(command[0])
        places = [directory] if directory else []
        if not directory and "/" in wanted and os.access(wanted, os.X_OK) and os.path.isfile(wanted):
            path: Optional[str] = wanted
        else:
            search = os.pathsep.join([*places, self._images.bin_dir, os.environ.get("PATH", os.defpath)])
            path = shutil.which(name, path=search)
        if path is None:
            raise PlanError(f'{where}: command: no program "{wanted}" on this machine')
        if "/" in wanted and path != wanted:
            self._warn(f"{where}: {path} runs in place of {wanted}")
        return ResolvedProgram(path, (*command[1:], *args))

    @staticmethod
    def _executable(path: str, who: str) -> str:
        if not os.path.isfile(path) or not os.access(path, os.X_OK):
            hint = "" if who else "; deploy/run_local.sh builds it"
            raise PlanError(f"{who + ': ' if who else ''}{path}: no such program{hint}")
        return path


def program_of(spec: ReplicaSpec, alone: bool) -> str:
    """`alone`: without a cluster there is no client, and one process runs the whole job."""
    return spec.kind.program_alone if alone else spec.kind.programs[spec.type]


def _shorten(text: str, limit: int = 120) -> str:
    text = " ".join(text.split())
    return text if len(text) <= limit else text[: limit - 3] + "..."
