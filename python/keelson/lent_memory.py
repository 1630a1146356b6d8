"""Finds out, for join(debug=True), that the script writes to memory while that is not its to write.

Values are the servers': what a script changes of them is lost with the next step. Gradients are the agent's from the push to
its answer. Both are compared by their checksums, in the thread of the training loop.
"""

from __future__ import annotations

import contextlib
import zlib
from typing import TYPE_CHECKING, Dict, Iterator, Mapping, Sequence

if TYPE_CHECKING:
    from .session import Arrays


class LentMemory:
    """Of a job's variables."""

    def __init__(self, arrays: Mapping[str, Arrays], agent_changes_gradients: bool = False) -> None:
        """`agent_changes_gradients`: where it bounds their norm, others' changes cannot be told from its own."""
        self._arrays = arrays
        self._agent_changes_gradients = agent_changes_gradients
        self._values = self._sums_of_values()

    @contextlib.contextmanager
    def lent_to_agent(self, sends_gradients: bool = False, absent: Sequence[int] = ()) -> Iterator[None]:
        """The agent may write values in the context, and reads gradients where they are sent, but for these variables, by
        their positions, that have none. RuntimeError: the script has
        changed values since the context before, or gradients in this one."""
        _compare("values", self._values, self._sums_of_values(),
                 "since the step before: the script's changes are lost with the next step")  # fmt: skip
        compares = sends_gradients and not self._agent_changes_gradients
        gradients = self._sums_of_gradients(absent) if compares else {}
        yield
        if compares:
            _compare("gradient", gradients, self._sums_of_gradients(absent),
                     "while it was pushed: another thread of the script writes to it")  # fmt: skip
        self._values = self._sums_of_values()

    def _sums_of_values(self) -> Dict[str, int]:
        return {name: zlib.crc32(arrays.values) for name, arrays in self._arrays.items()}

    def _sums_of_gradients(self, absent: Sequence[int]) -> Dict[str, int]:
        arrays = enumerate(self._arrays.items())
        return {name: zlib.crc32(found.gradients) for n, (name, found) in arrays if n not in absent}


def _compare(what: str, expected: Mapping[str, int], found: Mapping[str, int], when: str) -> None:
    for name, checksum in expected.items():
        if found[name] != checksum:
            raise RuntimeError(f"{name}: expected its {what} unchanged, found them changed {when}")
