"""Typed access to the fields of a YAML document; an error names file, field, expected and found."""

from typing import Any, Dict, List, Optional, Tuple


class ManifestError(Exception):
    """The manifest cannot be run; the text is one line: file, field, expected, found."""


class FieldReader:
    """Checks values of one file. `where` is always the field's path, "spec.runPolicy"."""

    def __init__(self, path: str):
        self._path = path
        # What is accepted but will not be as on a cluster, one line each.
        self.warnings: List[str] = []

    def error(self, where: str, what: str) -> ManifestError:
        return ManifestError(f"{self._path}: {where}: {what}")

    def warn_unknown(self, value: Dict[str, Any], where: str, known: Tuple[str, ...]) -> None:
        for key in value:
            if key not in known:
                self.warnings.append(f"{where}.{key}: unknown field, the operator ignores it")

    def mapping(self, value: Any, where: str) -> Dict[str, Any]:
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise self.error(where, f"expected a mapping, found {_describe(value)}")
        return value

    def sequence(self, value: Any, where: str) -> List[Any]:
        if value is None:
            return []
        if not isinstance(value, list):
            raise self.error(where, f"expected a list, found {_describe(value)}")
        return value

    def strings(self, value: Any, where: str) -> Tuple[str, ...]:
        result = []
        for i, item in enumerate(self.sequence(value, where)):
            if not isinstance(item, str):
                raise self.error(f"{where}[{i}]", f"expected a string, found {_describe(item)}; quote it")
            result.append(item)
        return tuple(result)

    def count(self, value: Any, where: str) -> Optional[int]:
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise self.error(where, f"expected a whole number >= 0, found {_describe(value)}")
        return value

    def boolean(self, value: Any, where: str) -> bool:
        if value is None:
            return False
        if not isinstance(value, bool):
            raise self.error(where, f"expected true or false, found {_describe(value)}")
        return value

    def choice(self, value: Any, where: str, choices: Tuple[str, ...], default: str) -> str:
        if value is None:
            return default
        if value not in choices:
            expected = ", ".join(choice or '""' for choice in choices)
            raise self.error(where, f"expected one of {expected}, found {_describe(value)}")
        return value


def _describe(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else f"{value!r}"
