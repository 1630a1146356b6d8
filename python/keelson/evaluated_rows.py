"""The rows of a snapshot's tables, for what scores or predicts."""

from __future__ import annotations

from typing import Mapping

from .rows import RowConnection, Rows, RowSet


class UnreadableRows(RuntimeError):
    """The snapshot has them, but its files cannot be read; the evaluator says why."""


class EvaluatedRows:
    """`dims`: of the job's tables, by their names, in the order of the configuration."""

    def __init__(self, connection: RowConnection, dims: Mapping[str, int]) -> None:
        self.dims = dims
        self._rows = Rows(connection, dims)

    def fetch(self, table: str, ids: memoryview) -> RowSet:
        """`ids`: bytes of 64-bit integers. The rows are there until they are released. RuntimeError: there is no such table,
        or they cannot be read."""
        if table not in self.dims:
            raise RuntimeError(f"rows: expected a table of {list(self.dims)}, found {table}")
        found = self._rows.fetch({table: ids})
        if found is None:
            raise UnreadableRows(f"rows of {table}: expected a snapshot that can be read")
        return found

    def release(self, rows: RowSet) -> None:
        self._rows.release([rows])
