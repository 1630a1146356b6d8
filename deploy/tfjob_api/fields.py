"""Typed access to the fields of a YAML document; an error names file, field, expected and found."""

import json
from typing import Any, Dict, List, Optional, Sequence, Tuple

from .hints import unrendered

# The number of characters of a value that an error shows.
_SHOWN_CHARACTERS = 60


class ManifestError(Exception):
    """The manifest cannot be run; the text is one line: file, field, expected, found."""

    def __init__(self, text: str):
        super().__init__(" ".join(text.splitlines()))


class FieldReader:
    """Checks values of one file. `where` is always the field's path, "spec.runPolicy"."""

    def __init__(self, source: str, warnings: Optional[List[str]] = None):
        """`source`: the file, as errors name it. `warnings`: one line each; this reader appends."""
        self.source = source
        self.warnings: List[str] = [] if warnings is None else warnings

    def error(self, where: str, what: str) -> ManifestError:
        return ManifestError(f"{self.source}: {where}: {what}")

    def expected(self, where: str, what: str, value: Any) -> ManifestError:
        return self.error(where, f"expected {what}, found {describe(value)}")

    def warn(self, where: str, what: str) -> None:
        self.warnings.append(" ".join(f"{where}: {what}".splitlines()))

    def warn_unknown(self, value: Dict[str, Any], where: str, known: Sequence[str]) -> None:
        spellings = {name.lower(): name for name in known}
        for key in value:
            if key not in known:
                meant = spellings.get(key.lower())
                hint = f" (it knows {meant})" if meant else ""
                path = f"{where}.{key}" if where else key
                self.warn(path, f"unknown field, the API server drops it{hint}")

    def mapping(self, value: Any, where: str) -> Dict[str, Any]:
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise self.expected(where, "a mapping", value)
        return value

    def sequence(self, value: Any, where: str) -> List[Any]:
        if value is None:
            return []
        if not isinstance(value, list):
            raise self.expected(where, "a list", value)
        return value

    def mappings(self, value: Any, where: str) -> List[Tuple[str, Dict[str, Any]]]:
        """The items of a list of mappings, each with its path."""
        items = enumerate(self.sequence(value, where))
        return [(f"{where}[{i}]", self.mapping(item, f"{where}[{i}]")) for i, item in items]

    def text(self, value: Any, where: str) -> str:
        """The text; "" where it is not set."""
        if value is None:
            return ""
        if not isinstance(value, str):
            hint = "" if isinstance(value, (dict, list)) else "; quote it"
            raise self.error(where, f"expected a string, found {describe(value)}{hint}")
        if "\0" in value:
            raise self.expected(where, "a string without the character NUL", value)
        return value

    def required_text(self, value: Any, where: str) -> str:
        text = self.text(value, where)
        if not text:
            raise self.error(where, "Required value")
        return text

    def texts(self, value: Any, where: str) -> Tuple[str, ...]:
        return tuple(self.text(item, f"{where}[{i}]") for i, item in enumerate(self.sequence(value, where)))

    def text_map(self, value: Any, where: str) -> Dict[str, str]:
        """Labels, annotations."""
        return {key: self.text(item, f"{where}.{key}") for key, item in self.mapping(value, where).items()}

    def count(self, value: Any, where: str) -> Optional[int]:
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            number = isinstance(value, str) and value.isdecimal()
            hint = "; without quotes (in a Template: ${{NAME}})" if number else unrendered(value)
            raise self.error(where, f"expected a whole number >= 0, found {describe(value)}{hint}")
        return value

    def boolean(self, value: Any, where: str) -> bool:
        if value is None:
            return False
        if not isinstance(value, bool):
            raise self.expected(where, "true or false", value)
        return value

    def refuse(self, value: Dict[str, Any], where: str, keys: Sequence[str], why: str) -> None:
        """Refuses fields that are set, and that nothing here follows."""
        for key in keys:
            if value.get(key) not in (None, [], {}):
                raise self.error(f"{where}.{key}", f"expected it to be left out, found {describe(value[key])}: {why}")

    def choice(self, value: Any, where: str, choices: Sequence[str], default: str) -> str:
        if value is None:
            return default
        for choice in choices:
            if value == choice:
                return choice
        raise self.expected(where, "one of " + ", ".join(choice or '""' for choice in choices), value)


def describe(value: Any) -> str:
    """A value as an error shows it: short, on one line."""
    if value is None:
        return "nothing"
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    text: str = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 4] + '..."'
