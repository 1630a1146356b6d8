"""Shared code for the flags of all commands here."""

import argparse
from typing import List, NoReturn, Sequence, Tuple


class Parser(argparse.ArgumentParser):
    """Complains in one line."""

    def error(self, message: str) -> NoReturn:
        program = self.prog.partition(" ")[0].removesuffix(".py")
        self.exit(2, f"{program}: {message}; --help lists the flags\n")


def split_at_dashes(argv: Sequence[str]) -> Tuple[List[str], List[str]]:
    """The command's own arguments, and after the first -- those of the replicas."""
    own = list(argv)
    if "--" not in own:
        return own, []
    at = own.index("--")
    return own[:at], own[at + 1 :]


def count(text: str) -> int:
    """The type of a flag whose value is a number of something."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f'expected a whole number >= 0, found "{text}"')
    return int(text)
