"""A container's command, taken apart: which program, and which words are that program's arguments.

`python -m trainer.task --lr=1`, `sh -c "cd /app && exec python train.py --lr $LR 2>&1 | tee log"` and
`/usr/bin/env A=b worker --lr=1` all lead to a program and its `--lr=1`, and so does `torchrun --nnodes=2 train.py --lr=1`.
"""

import os
import re
import shlex
from dataclasses import dataclass
from types import MappingProxyType
from typing import List, Mapping, Optional, Sequence, Tuple

from .shell_variables import expand_script

# torchrun, as a command or as a module of python.
TORCH_LAUNCHERS = frozenset({"torchrun", "torch.distributed.run", "torch.distributed.launch"})
SHELLS = frozenset({"sh", "bash", "dash", "ash", "zsh"})
# They run the words after their own options.
_WRAPPERS = frozenset({"env", "exec", "nohup", "nice", "stdbuf", "time", "tini", "dumb-init"})
_PYTHON = re.compile(r"(python|pypy|ipython)[\d.]*")
_PYTHON_OPTIONS_WITH_VALUE = frozenset({"-W", "-X", "-Q"})
_SHELL_OPTIONS_WITH_VALUE = frozenset({"-o", "+o", "-O", "+O", "--rcfile", "--init-file"})
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)


@dataclass(frozen=True)
class Program:
    """`name` is the basename of what runs, "" where the words name nothing."""

    name: str
    arguments: Tuple[str, ...]
    is_python: bool = False


def find_program(
    words: Sequence[str], preferred: Sequence[str], variables: Mapping[str, str] = MappingProxyType({})
) -> Program:
    """In a shell's script, finds the first command that is one of `preferred`, else Python, else the last.
    `variables`: those that the shell would find in its environment."""
    words = _without_wrappers(words)
    if not words:
        return Program("", ())
    name = os.path.basename(words[0])
    if name in SHELLS:
        return _of_shell(words, preferred, variables)
    if name in preferred:
        return Program(name, tuple(words[1:]))
    if name in TORCH_LAUNCHERS:
        return Program(name, tuple(_after_script(words[1:])), is_python=True)
    if _PYTHON.fullmatch(name):
        return Program(name, tuple(_python_arguments(words[1:])), is_python=True)
    return Program(name, tuple(words[1:]))


def _of_shell(words: Sequence[str], preferred: Sequence[str], variables: Mapping[str, str]) -> Program:
    shell = os.path.basename(words[0])
    runs_script = False
    rest = list(words[1:])
    while rest and rest[0][:1] in ("-", "+"):
        option = rest.pop(0)
        if option == "--":
            break
        runs_script = runs_script or re.fullmatch(r"-\w*c", option) is not None
        if option in _SHELL_OPTIONS_WITH_VALUE or re.fullmatch(r"-\w+o", option):
            rest = rest[1:]
    if not rest:
        return Program(shell, ())
    if runs_script:
        return _of_script(expand_script(rest[0], variables, rest[1:]), shell, preferred)
    # A script's file is assumed to pass its arguments on.
    return Program(os.path.basename(rest[0]), tuple(rest[1:]))


def _of_script(script: str, shell: str, preferred: Sequence[str]) -> Program:
    programs = [find_program(command, preferred) for command in _simple_commands(script)]
    programs = [program for program in programs if program.name]
    for program in programs:
        if program.name in preferred:
            return program
    for program in programs:
        if program.is_python:
            return program
    return programs[-1] if programs else Program(shell, ())


def _simple_commands(script: str) -> List[List[str]]:
    """The script's commands without operators and redirections; [] where it cannot be taken apart."""
    text = re.sub(r"\\\r?\n", " ", script).replace("\n", " ; ")
    # The 2 of "2> log" is no argument; once taken apart it could not be told from one.
    text = re.sub(r"(?<!\S)\d+(?=[<>])", "", text)
    lexer = shlex.shlex(text, posix=True, punctuation_chars=";|&<>()")
    lexer.whitespace_split = True
    # A # in a word is a #.
    lexer.commenters = ""
    commands: List[List[str]] = [[]]
    skip_next = False
    try:
        for token in lexer:
            if skip_next:
                skip_next = False
            elif set(token) <= set(";|&<>()"):
                # A redirection's target is no argument either.
                skip_next = "<" in token or ">" in token
                if not skip_next:
                    commands.append([])
            else:
                commands[-1].append(token)
    except ValueError:
        return []
    return [command for command in commands if command]


def _without_wrappers(words: Sequence[str]) -> List[str]:
    rest = list(words)
    while rest:
        if _ASSIGNMENT.fullmatch(rest[0]):
            rest = rest[1:]
        elif os.path.basename(rest[0]) in _WRAPPERS:
            rest = rest[1:]
            while rest and rest[0].startswith("-"):
                rest = rest[1:]
        else:
            break
    return rest


def _after_script(words: Sequence[str]) -> List[str]:
    """What stands after the script or the module that torchrun starts."""
    at = find_script(words)
    return [] if at is None else list(words[at + 1 :])


def find_script(words: Sequence[str]) -> Optional[int]:
    """Which of torchrun's arguments is the script or the module that it starts: the first one that no option's value
    looks like. None: there is none."""
    for i, word in enumerate(words):
        if word in ("-m", "--module") and i + 1 < len(words):
            return i + 1
        if not word.startswith("-") and word.endswith(".py"):
            return i
    return None


def _python_arguments(words: Sequence[str]) -> List[str]:
    """What stands after -m MODULE, -c CODE or the script."""
    rest = list(words)
    while rest and rest[0].startswith("-"):
        if rest[0] == "-m" and rest[1:2] and rest[1] in TORCH_LAUNCHERS:
            return _after_script(rest[2:])
        if rest[0] in ("-m", "-c"):
            return rest[2:]
        rest = rest[2:] if rest[0] in _PYTHON_OPTIONS_WITH_VALUE else rest[1:]
    return rest[1:]
