"""The weight of an Embedding that has a number of rows: a variable like any other, of which all rows travel."""

from __future__ import annotations

import torch

from ..errors import JoinError
from ..tables import Normal, Table, Uniform

_MOST_ROWS = (1 << 31) - 1
_OF_TABLES_ALONE = ("max_rows", "evict", "expire_after", "admit_after")


def make_weight(name: str, table: Table, rows: int) -> torch.nn.Parameter:
    """With `init`, drawn by PyTorch. JoinError."""
    if isinstance(rows, bool) or not isinstance(rows, int) or not 1 <= rows <= _MOST_ROWS:
        raise JoinError(f"table {name}: rows: expected 1 to {_MOST_ROWS}, found {rows!r}")
    for setting in _OF_TABLES_ALONE:
        if getattr(table, setting):
            raise JoinError(f"table {name}: {setting}: expected none with rows, found {getattr(table, setting)!r}")
    weight = torch.empty(rows, table.dim)
    init = table.init
    if isinstance(init, Uniform):
        weight.uniform_(init.low, init.high)
    elif isinstance(init, Normal) and init.truncated:
        deviation = 2 * init.stddev
        torch.nn.init.trunc_normal_(weight, init.mean, init.stddev, init.mean - deviation, init.mean + deviation)
    elif isinstance(init, Normal):
        weight.normal_(init.mean, init.stddev)
    else:
        weight.fill_(init)
    return torch.nn.Parameter(weight)


def check_ids(name: str, ids: torch.Tensor, rows: int) -> None:
    """IndexError: one has no row."""
    for one in (ids.min(), ids.max()) if ids.numel() > 0 else ():
        if not 0 <= int(one) < rows:
            raise IndexError(f"table {name}: expected ids from 0 to {rows - 1}, found {int(one)}")
