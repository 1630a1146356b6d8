"""What a script's evaluation has scores of."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Mapping, Optional, Sequence, Tuple, Union

KINDS = ("classification", "binary", "regression")


COLUMN_KINDS = ("number", "integer", "text")


@dataclass(frozen=True)
class Form:
    """What a prediction takes: numbers of a shape, or a value for each column, by its name."""

    input_shape: Tuple[int, ...]
    columns: Mapping[str, str]  # -> their kinds

    @property
    def elements(self) -> int:
        return math.prod(self.input_shape) if self.input_shape else 0


def make_form(
    predicts: bool, input_shape: Optional[Sequence[int]], columns: Union[Mapping[str, str], Sequence[str], None]
) -> Optional[Form]:
    """ValueError: there can be no such form."""
    given = [what for what in (input_shape, columns) if what is not None]
    if len(given) != int(predicts):
        expected = "input_shape or columns with it" if predicts else "neither input_shape nor columns without it"
        found = ("neither", "one", "both")[len(given)]
        raise ValueError(f"predict: expected {expected}, found {found}")
    if not predicts:
        return None
    if input_shape is not None:
        shape = tuple(input_shape)
        if not 1 <= len(shape) <= 3 or not all(isinstance(e, int) and e > 0 for e in shape):
            raise ValueError(f"input_shape: expected one to three whole numbers > 0, found {list(shape)}")
        return Form(shape, {})
    assert columns is not None
    kinds = dict(columns) if isinstance(columns, Mapping) else {name: "text" for name in columns}
    for name, kind in kinds.items():
        if not name or any(c in name for c in "\t\n") or kind not in COLUMN_KINDS:
            raise ValueError(f"columns: expected names and {', '.join(COLUMN_KINDS)}, found {name!r}: {kind!r}")
    if not kinds:
        raise ValueError("columns: expected one or more, found none")
    return Form((), kinds)


@dataclass(frozen=True)
class Scoring:
    kind: str
    outputs: int  # of a record
    records: int
    batch_size: int
    probabilities: bool  # in place of logits
    class_names: Sequence[str]


def make_scoring(
    kind: str, classes: Union[int, Sequence[str], None], records: int, batch_size: int, probabilities: bool
) -> Scoring:
    """ValueError: there can be no such scores."""
    if kind not in KINDS:
        raise ValueError(f"kind: expected one of {', '.join(KINDS)}, found {kind!r}")
    names = () if classes is None or isinstance(classes, int) else tuple(classes)
    if any(not name or "\n" in name for name in names):
        raise ValueError(f"classes: expected names of one line each, found {list(names)}")
    outputs = 1
    if kind == "classification":
        outputs = classes if isinstance(classes, int) else len(names)
        if outputs < 2:
            raise ValueError(f"classes: expected how many there are, 2 or more, or their names, found {classes!r}")
    elif names and (kind == "regression" or len(names) != 2):
        raise ValueError(f"classes: expected {'none' if kind == 'regression' else 'two names'}, found {list(names)}")
    for what, value in (("records", records), ("batch_size", batch_size)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ValueError(f"{what}: expected a whole number > 0, found {value!r}")
    return Scoring(kind, outputs, records, batch_size, probabilities, names)
