"""$NAME in a shell's script -> the values that the shell would find, quoted as shlex reads them."""

import re
import shlex
from typing import List, Mapping, Sequence

_VARIABLE = (
    r"\$(?:(?P<name>[A-Za-z_]\w*|[@*]|\d)"
    r"|\{(?P<braced>[A-Za-z_]\w*|[@*]|\d+)(?::?-(?P<default>[^{}]*))?\})"
)
# What is more than a character of the script: outside of double quotes, and within.
_PLAIN = re.compile(rf"'[^']*'|\\.|(?P<all>\"\$(?:@|\{{@\}})\")|{_VARIABLE}", re.DOTALL)
_QUOTED = re.compile(rf"\\.|{_VARIABLE}", re.DOTALL)
_SPECIAL = re.compile(r"([^\w\s%+,./:=@-])")


def expand_script(script: str, variables: Mapping[str, str], arguments: Sequence[str]) -> str:
    """`arguments`: the words after the script, $0 first. A variable of unknown value stays as it is: the
    image, or the script itself, may set it."""
    rest = list(arguments[1:])
    known = {**variables, **{str(i): argument for i, argument in enumerate(arguments)}}
    known.update({"@": " ".join(rest), "*": " ".join(rest)})
    parts: List[str] = []
    position = 0
    quoted = False
    while position < len(script):
        match = (_QUOTED if quoted else _PLAIN).match(script, position)
        if match is None:
            quoted = quoted != (script[position] == '"')
            parts.append(script[position])
            position += 1
            continue
        position = match.end()
        if match.groupdict().get("all"):
            parts.append(" ".join(shlex.quote(word) for word in rest))
        else:
            parts.append(_expand(match, known, quoted))
    return "".join(parts)


def _expand(match: "re.Match[str]", known: Mapping[str, str], quoted: bool) -> str:
    name = match["name"] or match["braced"]
    if name is None:
        return match[0]
    value = known.get(name) or match["default"]
    if value is None and name not in known:
        return match[0]
    # A line break would end the command where the script is taken apart.
    words = " ".join((value or "").splitlines())
    return re.sub(r'([\\"])', r"\\\1", words) if quoted else _SPECIAL.sub(r"\\\1", words)
