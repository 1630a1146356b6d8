"""What the checks of the C++ sources share: finding the files, and reporting violations."""

import argparse
import os
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

_SKIPPED_FOLDERS = ("build", "runs", "docs", "third_party")
_REPOSITORY = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class Violation(NamedTuple):
    path: str
    line: int
    rule: str
    found: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.rule}: {self.found}"


def source_paths(root: str, suffixes: tuple[str, ...]) -> Iterator[str]:
    """The files below `root` whose names end so, relative to it, without build trees and hidden folders."""
    for folder, folders, files in os.walk(root):
        relative = os.path.relpath(folder, root)
        skipped = _SKIPPED_FOLDERS if relative == "." else ("node_modules",)
        folders[:] = sorted(f for f in folders if f not in skipped and not f.startswith("."))
        for name in sorted(files):
            if name.endswith(suffixes):
                yield os.path.normpath(os.path.join(relative, name))


def read_text(root: str, path: str) -> str:
    with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
        return file.read()


def run(name: str, title: str, check: Callable[[str], tuple[int, Sequence[Violation]]]) -> int:
    """The exit code of the program `name`: 0 no violations, 1 some, 2 the command line is wrong. `check` takes the
    tree's root, and returns how many files it read and what it found."""
    parser = argparse.ArgumentParser(prog=name, description=title)
    parser.add_argument("--root", default=_REPOSITORY, help="default: the repository")
    files, violations = check(parser.parse_args().root)
    for violation in violations:
        print(violation)
    print(f"{name}: {files} files, {len(violations)} violations")
    return 1 if violations else 0
