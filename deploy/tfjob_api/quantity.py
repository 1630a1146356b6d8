"""Kubernetes' quantities: "500m" of a core, "1Gi" of memory."""

import re
from decimal import Decimal

_QUANTITY = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))(?:([eE][+-]?\d+)|([numkMGTPE]|[KMGTPE]i)?)")
_DECIMAL_EXPONENTS = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = "KMGTPE"


def parse_quantity(text: str) -> Decimal:
    """Exact. ValueError: not a quantity."""
    match = _QUANTITY.fullmatch(text)
    if not match:
        raise ValueError(f'expected a quantity such as 2, 500m or 1Gi, found "{text}"')
    number, exponent, suffix = match.groups()
    if exponent:
        return Decimal(number + exponent)
    if not suffix:
        return Decimal(number)
    if suffix.endswith("i"):
        return Decimal(number) * Decimal(1024) ** (_BINARY.index(suffix[0]) + 1)
    return Decimal(number).scaleb(_DECIMAL_EXPONENTS[suffix])
