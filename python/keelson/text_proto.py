"""Writes text protos: the configuration that a script and its job share."""

from __future__ import annotations

import math
from typing import Iterable, List, Sequence, Tuple, Union


class Enum(str):
    """The name of an enum's value, which is written without quotes."""


Scalar = Union[bool, int, float, str]
# A message's fields in their order; a name may come more than once.
Fields = Sequence[Tuple[str, Union[Scalar, "Fields"]]]

_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def render(fields: Fields, indent: str = "") -> str:
    """A line for each field, two more spaces inside of each message."""
    return "".join(_lines(fields, indent))


def _lines(fields: Fields, indent: str) -> Iterable[str]:
    for name, value in fields:
        if isinstance(value, (bool, int, float, str)):
            yield f"{indent}{name}: {_scalar(value)}\n"
        elif not value:
            yield f"{indent}{name} {{}}\n"
        else:
            yield f"{indent}{name} {{\n{render(value, indent + '  ')}{indent}}}\n"


def present(*fields: Tuple[str, Union[Scalar, Fields, None]]) -> List[Tuple[str, Union[Scalar, Fields]]]:
    """Those whose value is neither None nor false nor 0."""
    return [(name, value) for name, value in fields if value is not None and value not in (False, 0)]


def _scalar(value: Scalar) -> str:
    if isinstance(value, Enum):
        return str(value)
    if isinstance(value, str):
        return f'"{"".join(_character(c) for c in value)}"'
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"expected a finite number, found {value}")
    return repr(value)


def _character(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    if ord(character) < 32 or ord(character) == 127:
        return f"\\{ord(character):03o}"
    if 0xD800 <= ord(character) <= 0xDFFF:
        raise ValueError(f"expected text, found half a surrogate pair, U+{ord(character):04X}")
    return character
