"""Compares documents with schemas that refuse unknown fields.

An API server drops what a schema does not know (or refuses it, with kubectl's validation): a misspelt
field would be a rule that nobody follows.
"""

from typing import Any, List

import jsonschema
from reduce_crds import Schema


def errors(schema: Schema, content: Any) -> List[str]:
    """One line per violation: the field's path and what is wrong."""
    found = jsonschema.Draft7Validator(schema).iter_errors(content)
    return sorted(f"{_path(error)}: {error.message[:300]}" for error in found)


def _path(error: jsonschema.ValidationError) -> str:
    path = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in error.absolute_path)
    return path.lstrip(".") or "the whole"
