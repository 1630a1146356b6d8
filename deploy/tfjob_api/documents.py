"""The documents of manifest files: YAML or JSON as kubectl reads them, lists taken apart.

Differences to plain PyYAML, all towards kubectl: 12:30 and 2026-01-01 are text; keys are text; values are
what JSON can hold; aliases multiply the documents up to a limit only. Beyond kubectl, which silently takes
the last one, a key that stands twice in a mapping is an error.
"""

import json
import re
import sys
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

import yaml

from .fields import FieldReader, ManifestError, describe
from .job_kind import MANIFEST_KINDS, any_kind

STANDARD_INPUT = "-"
_LIST_KINDS = ("List", *(f"{kind}List" for kind in MANIFEST_KINDS))
_TAG_PREFIX = "tag:yaml.org,2002:"
_MERGE_TAG = _TAG_PREFIX + "merge"
_TEXT_TAG = _TAG_PREFIX + "str"
# The characters that all documents of a file may have once their aliases are replaced; a value costs some
# beside its own. The API server takes objects of 3 MB at most.
_MAX_EXPANDED_SIZE = 16 * 1024 * 1024
_VALUE_SIZE = 16
_SyntaxError = Union[yaml.MarkedYAMLError, yaml.reader.ReaderError]


@dataclass(frozen=True)
class Document:
    """One object of Kubernetes, with the file that it stands in."""

    source: str
    value: Dict[str, Any]

    @property
    def kind(self) -> str:
        return str(self.value.get("kind"))

    @property
    def name(self) -> str:
        """metadata.name, or generateName; "" without either."""
        metadata = self.value.get("metadata")
        if not isinstance(metadata, dict):
            return ""
        return str(metadata.get("name") or metadata.get("generateName") or "")

    def __str__(self) -> str:
        """Kind and name: "Service mnist-dashboard"."""
        return f"{self.kind} {self.name}".rstrip()


def load_files(paths: Sequence[str]) -> List[Document]:
    """The documents of all files in order; "-" is standard input. ManifestError."""
    documents: List[Document] = []
    for path in paths:
        source = source_name(path)
        values = _parse(_read_text(path, source), source)
        if not values:
            raise ManifestError(f"{source}: expected a document of kind {any_kind()}, found an empty file")
        documents.extend(take_apart(values, source))
    return documents


def source_name(path: str) -> str:
    """Returns a file's name for errors."""
    return "standard input" if path == STANDARD_INPUT else path


def take_apart(values: Sequence[Any], source: str) -> List[Document]:
    """Documents of values; those of kind List give their items. ManifestError."""
    documents: List[Document] = []
    for number, value in enumerate(values, 1):
        where = f"document {number}" if len(values) > 1 else "document"
        documents.extend(_take_apart(value, FieldReader(source), where))
    return documents


def _take_apart(value: Any, fields: FieldReader, where: str) -> List[Document]:
    if not isinstance(value, dict):
        raise fields.expected(where, "a mapping with apiVersion and kind", value)
    kind = fields.required_text(value.get("kind"), f"{where}: kind")
    if kind not in _LIST_KINDS:
        return [Document(fields.source, value)]
    documents: List[Document] = []
    for i, item in enumerate(fields.sequence(value.get("items"), f"{where}: items")):
        documents.extend(_take_apart(item, fields, f"{where}: items[{i}]"))
    return documents


def _read_text(path: str, source: str) -> str:
    try:
        if path == STANDARD_INPUT:
            content = sys.stdin.buffer.read()
        else:
            with open(path, "rb") as file:
                content = file.read()
    except OSError as error:
        raise ManifestError(f"{source}: {error.strerror}") from error
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ManifestError(f"{source}:{line}: not UTF-8 text") from error


def _parse(text: str, source: str) -> List[Any]:
    """The documents that are not empty."""
    try:
        values = [value for value in yaml.load_all(text, Loader=_Loader) if value is not None]
    except (yaml.MarkedYAMLError, yaml.reader.ReaderError) as error:
        # JSON may be indented with tabs, YAML not.
        value = _parse_json(text)
        if value is None:
            raise _syntax_error(error, text, source) from error
        return [value]
    except (ValueError, RecursionError) as error:
        raise ManifestError(f"{source}: not YAML: {_reason(error)}") from error
    try:
        values = json.loads(json.dumps(values))
    except (TypeError, ValueError, RecursionError) as error:
        raise ManifestError(f"{source}: not YAML that Kubernetes takes: {_reason(error)}") from error
    hint = _rendering_hint(text)
    if hint and not all(isinstance(value, dict) for value in values):
        raise ManifestError(f"{source}: not YAML: {hint}")
    return values


def _parse_json(text: str) -> Optional[Dict[str, Any]]:
    try:
        value = json.loads(text, object_pairs_hook=_unique_pairs)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _unique_pairs(pairs: List[Tuple[str, Any]]) -> Dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("a key stands twice")
    return value


def _reason(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "nested too deeply"
    if "Circular reference" in str(error):
        return "an alias stands inside its own anchor"
    return str(error)


def _syntax_error(error: _SyntaxError, text: str, source: str) -> ManifestError:
    if isinstance(error, yaml.reader.ReaderError):
        before = text[: error.position]
        line, column = before.count("\n"), error.position - (before.rfind("\n") + 1)
        problem = f"the character U+{error.character:04X} is not allowed"
    else:
        line, column = error.problem_mark.line, error.problem_mark.column
        problem = f"{error.problem} ({error.context})" if error.context else error.problem
    hint = _rendering_hint(text)
    place = f"{source}:{line + 1}:{column + 1}"
    return ManifestError(f"{place}: not YAML: {problem}" + (f"; {hint}" if hint else ""))


def _rendering_hint(text: str) -> str:
    """Returns a hint for a file that another program renders to YAML; "" for any other."""
    if re.search(r"(?<!\$)\{\{.*\}\}", text):
        return (
            "expected rendered YAML, this is a template ({{ ... }}): render it first, as with helm template"
        )
    if re.search(r"^\s*(local\s+\w+\s*=|import\s+['\"])", text, re.MULTILINE):
        return "expected rendered YAML, this is jsonnet: render it first, as with jsonnet FILE"
    return ""


class _Size:
    """Measures documents before anything is made of them."""

    def __init__(self) -> None:
        # Each value counted once, and as often as aliases repeat it.
        self.written = 0
        self.expanded = 0

    def add(self, root: yaml.Node) -> None:
        self.expanded += self._measure(root, {})

    def _measure(self, node: yaml.Node, known: Dict[int, int]) -> int:
        """`known`: by the node's identity; 0 while its children are being measured, which an alias inside its
        own anchor finds."""
        if id(node) in known:
            return known[id(node)]
        known[id(node)] = 0
        own = _VALUE_SIZE
        children: List[yaml.Node] = []
        if isinstance(node, yaml.ScalarNode):
            own += len(node.value)
        elif isinstance(node, yaml.SequenceNode):
            children = node.value
        else:
            children = [part for pair in node.value for part in pair]
        self.written += own
        known[id(node)] = own + sum(self._measure(child, known) for child in children)
        return known[id(node)]


class _Loader(yaml.SafeLoader):
    """Safe YAML with the scalars that kubectl knows."""

    yaml_implicit_resolvers: Dict[str, Any] = {}
    bool_values = {**yaml.SafeLoader.bool_values, "y": True, "n": False}

    def __init__(self, stream: str):
        super().__init__(stream)
        self._size = _Size()

    def construct_document(self, node: yaml.Node) -> Any:
        self._size.add(node)
        if self._size.expanded > max(_MAX_EXPANDED_SIZE, self._size.written):
            raise yaml.composer.ComposerError(
                None,
                None,
                f"expected at most {_MAX_EXPANDED_SIZE} characters with aliases replaced, found more",
                node.start_mark,
            )
        return super().construct_document(node)

    def compose_mapping_node(self, anchor: Optional[str]) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        seen = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode) or key.tag == _MERGE_TAG:
                continue
            key.tag = _TEXT_TAG
            if key.value in seen:
                raise yaml.composer.ComposerError(
                    None,
                    None,
                    f"the key {describe(key.value)} stands twice in one mapping; kubectl would take the last one",
                    key.start_mark,
                )
            seen.add(key.value)
        return node


for _tag, _pattern, _first in (
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    (
        "bool",
        r"y|Y|yes|Yes|YES|n|N|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF",
        list("yYnNtTfFoO"),
    ),
    ("int", r"[-+]?(?:0b[01_]+|0o?[0-7_]+|0x[0-9a-fA-F_]+|0|[1-9][0-9_]*)", list("-+0123456789")),
    (
        "float",
        r"[-+]?(?:[0-9][0-9_]*\.[0-9_]*(?:[eE][-+]?[0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+]?[0-9]+)?"
        r"|[0-9]+[eE][-+]?[0-9]+)",
        list("-+.0123456789"),
    ),
    ("merge", r"<<", ["<"]),
):
    _Loader.add_implicit_resolver(_TAG_PREFIX + _tag, re.compile(f"(?:{_pattern})$"), _first)
