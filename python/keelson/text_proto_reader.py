"""Reads text protos, whatever message they are of: a job's configuration that a file has."""

from __future__ import annotations

import math
import re
from typing import Any, Dict, Iterator, List, Match, NamedTuple, NoReturn, Union

from .text_proto import Enum, Scalar


class Message:
    """What parse() has read: fields by their names, any of which may come several times."""

    def __init__(self, place: str) -> None:
        self.place = place  # "FILE:LINE:COLUMN", where it begins
        self.fields: Dict[str, List[Union[Scalar, Message]]] = {}

    def __contains__(self, name: str) -> bool:
        return name in self.fields

    def messages(self, name: str) -> List[Message]:
        """ValueError: a field of this name has another kind."""
        return [self._checked(name, value, Message, "{") for value in self.fields.get(name, ())]

    def message(self, name: str) -> Message:
        """The last one, or an empty one. ValueError."""
        found = self.messages(name)
        return found[-1] if found else Message(self.place)

    def integers(self, name: str) -> List[int]:
        """ValueError."""
        return [self._checked(name, value, int, "a whole number") for value in self.fields.get(name, ())]

    def integer(self, name: str, default: int = 0) -> int:
        """ValueError."""
        return (self.integers(name) or [default])[-1]

    def number(self, name: str, default: float = 0.0) -> float:
        """ValueError."""
        found = [self._checked(name, value, (int, float), "a number") for value in self.fields.get(name, ())]
        return float(found[-1]) if found else default

    def texts(self, name: str) -> List[str]:
        """ValueError."""
        return [self._checked(name, value, str, "a text") for value in self.fields.get(name, ())]

    def text(self, name: str, default: str = "") -> str:
        """Also the name of an enum's value. ValueError."""
        return (self.texts(name) or [default])[-1]

    def flag(self, name: str) -> bool:
        """ValueError."""
        found = [self._checked(name, value, (bool, int), "true or false") for value in self.fields.get(name, ())]
        return bool(found[-1]) if found else False

    def _checked(self, name: str, value: Any, kind: Any, expected: str) -> Any:
        is_whole = isinstance(value, bool) and kind is int
        if not isinstance(value, kind) or is_whole:
            found = "a message" if isinstance(value, Message) else repr(value)
            raise ValueError(f"{self.place}: {name}: expected {expected}, found {found}")
        return value


def parse(text: str, source: str) -> Message:
    """A text proto without extensions, whatever message it is of. ValueError: "SOURCE:LINE:COLUMN: expected …, found …"."""
    return _Parser(text, source).parse()


_TOKEN = re.compile(
    r"""(?P<blank>[\s]+|\#[^\n]*)
      | (?P<number>-?\s*(?:0[xX][0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?[fF]?)(?![\w.]))
      | (?P<name>-?[A-Za-z_]\w*)
      | (?P<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
      | (?P<sign>[{}<>\[\]:;,])""",
    re.VERBOSE,
)
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{1,2}|[0-7]{1,3}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)", re.DOTALL)
_UNESCAPED = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_CLOSING = {"{": "}", "<": ">"}
_WORDS: Dict[str, Union[bool, float]] = {
    "true": True,
    "false": False,
    "inf": math.inf,
    "-inf": -math.inf,
    "nan": math.nan,
}
_END = "the end"


class _Token(NamedTuple):
    kind: str  # a group of _TOKEN, or _END
    text: str
    at: int


class _Parser:
    def __init__(self, text: str, source: str) -> None:
        self._text, self._source = text, source
        self._tokens = self._split()
        self._next = next(self._tokens)

    def parse(self) -> Message:
        message = self._fields(_END)
        self._take()
        return message

    def _split(self) -> Iterator[_Token]:
        at = 0
        while at < len(self._text):
            match = _TOKEN.match(self._text, at)
            if match is None:
                found = repr(self._text[at : at + 20].split("\n")[0])
                raise ValueError(f"{self._place(at)}: expected a field, found {found}")
            if match.lastgroup != "blank":
                yield _Token(str(match.lastgroup), match.group(), at)
            at = match.end()
        while True:
            yield _Token(_END, _END, at)

    def _place(self, at: int) -> str:
        line = self._text.count("\n", 0, at)
        return f"{self._source}:{line + 1}:{at - self._text.rfind(chr(10), 0, at)}"

    def _take(self) -> _Token:
        taken, self._next = self._next, next(self._tokens)
        return taken

    def _fail(self, expected: str) -> NoReturn:
        raise ValueError(f"{self._place(self._next.at)}: expected {expected}, found {self._next.text}")

    def _fields(self, end: str) -> Message:
        """Up to `end`, which is left."""
        message = Message(self._place(self._next.at))
        while self._next.text != end or self._next.kind == "text":
            if self._next.kind != "name":
                self._fail("a field's name" if end == _END else f'a field\'s name or "{end}"')
            name = self._take().text
            has_colon = self._next.text == ":"
            if has_colon:
                self._take()
            message.fields.setdefault(name, []).extend(self._values(has_colon))
            if self._next.text in (",", ";"):
                self._take()
        return message

    def _values(self, has_colon: bool) -> List[Union[Scalar, Message]]:
        if self._next.text in _CLOSING:
            return [self._message()]
        if not has_colon and self._next.text != "[":
            self._fail('":" or "{"')
        if self._next.text != "[":
            return [self._scalar()]
        self._take()
        values: List[Union[Scalar, Message]] = []
        while self._next.text != "]":
            values.append(self._message() if self._next.text in _CLOSING else self._scalar())
            if self._next.text == ",":
                self._take()
            elif self._next.text != "]":
                self._fail('"," or "]"')
        self._take()
        return values

    def _message(self) -> Message:
        end = _CLOSING[self._take().text]
        message = self._fields(end)
        self._take()
        return message

    def _scalar(self) -> Scalar:
        if self._next.kind == "text":
            parts = []
            while self._next.kind == "text":
                parts.append(_unescaped(self._take().text[1:-1]))
            return "".join(parts)
        if self._next.kind == "number":
            return _number("".join(self._take().text.split()))
        if self._next.kind == "name":
            word = self._take().text
            return _WORDS[word] if word in _WORDS else Enum(word)
        self._fail("a value")


def _unescaped(text: str) -> str:
    """Octal and hexadecimal escapes are bytes of UTF-8."""

    def replaced(match: Match[str]) -> str:
        code = match.group(1)
        if code[0] in "uU":
            return chr(int(code[1:], 16))
        if code[0] == "x" and len(code) > 1:
            return _raw(int(code[1:], 16))
        return _raw(int(code, 8)) if code[0] in "01234567" else _UNESCAPED.get(code, code)

    return _ESCAPE.sub(replaced, text).encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _raw(byte: int) -> str:
    byte &= 0xFF
    return chr(byte) if byte < 128 else chr(0xDC00 + byte)


def _number(text: str) -> Union[int, float]:
    digits = text.lstrip("-")
    sign = -1 if text.startswith("-") else 1
    if digits[:2] in ("0x", "0X"):
        return sign * int(digits, 16)
    if digits.isdigit():
        return sign * int(digits, 8 if len(digits) > 1 and digits[0] == "0" else 10)
    return sign * float(digits.rstrip("fF"))
