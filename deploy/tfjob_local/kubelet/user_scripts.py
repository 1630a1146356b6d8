"""Python scripts of a job's own, found on this machine: `python train.py`, `torchrun train.py` and the like.

They run as they are, in the directory in which they were found: their container's workingDir, where this machine has
it, else the launcher's own.
"""

import os
import re
from dataclasses import dataclass
from typing import List, Optional, Sequence, Tuple

from .command_words import TORCH_LAUNCHERS, find_script

_PYTHON = re.compile(r"python[\d.]*")
# Options of python that have a word of their own behind them.
_PYTHON_OPTIONS_WITH_VALUE = ("-W", "-X")


@dataclass(frozen=True)
class UserScript:
    # The whole command.
    words: Tuple[str, ...]
    # The script, or the file of the module that runs.
    file: str
    directory: str

    def with_python(self, python: str) -> Tuple[str, Tuple[str, ...]]:
        """Program and arguments with this interpreter in place of the command's, or of the one within torchrun."""
        if os.path.basename(self.words[0]) == "torchrun":
            return python, ("-m", "torch.distributed.run", *self.words[1:])
        return python, self.words[1:]


def find_user_script(
    command: Sequence[str], args: Sequence[str], working_dir: str
) -> Optional[UserScript]:
    """None: the command is another one, or its script is not here."""
    words = [*command, *args]
    program = os.path.basename(words[0]) if words else ""
    if program == "torchrun":
        candidates = _of_launcher(words[1:])
    elif _PYTHON.fullmatch(program):
        candidates = _of_python(words[1:])
    else:
        return None
    for directory in (working_dir, os.getcwd()):
        if not os.path.isdir(directory):
            continue
        for candidate in candidates:
            file = os.path.join(directory, candidate)
            if os.path.isfile(file):
                return UserScript(tuple(words), os.path.normpath(file), directory)
    return None


def _of_python(words: Sequence[str]) -> List[str]:
    rest = list(words)
    while rest and rest[0].startswith("-"):
        option = rest.pop(0)
        if option == "-m" and rest:
            return _of_launcher(rest[1:]) if rest[0] in TORCH_LAUNCHERS else _module_files(rest[0])
        if option in ("-c", "-"):
            return []
        if option in _PYTHON_OPTIONS_WITH_VALUE:
            rest = rest[1:]
    return [rest[0]] if rest and rest[0].endswith(".py") else []


def _of_launcher(words: Sequence[str]) -> List[str]:
    at = find_script(words)
    if at is None:
        return []
    return [words[at]] if words[at].endswith(".py") else _module_files(words[at])


def _module_files(module: str) -> List[str]:
    path = module.replace(".", os.sep)
    return [f"{path}.py", os.path.join(path, "__main__.py")]
