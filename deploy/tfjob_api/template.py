"""OpenShift Templates: parameters filled in, as `oc process` does it.

Stricter than `oc process` in one thing: a reference to a parameter that the Template does not declare
is an error here; there it stays in the text, and the job starts with "${WORKERS}" in it.
"""

import copy
import json
import re
import secrets
import string
from typing import Any, Dict, List, Mapping, Sequence

from .documents import Document, take_apart
from .fields import FieldReader, ManifestError

_API_VERSIONS = ("v1", "template.openshift.io/v1")
_REFERENCE = re.compile(r"\$\{([a-zA-Z0-9_]+)\}|\$\{\{([a-zA-Z0-9_]*)\}\}")
_RAW_REFERENCE = re.compile(r"\$\{\{([a-zA-Z0-9_]+)\}\}")
_PARAMETER_NAME = re.compile(r"[a-zA-Z0-9_]+")

_GENERATED = re.compile(r"\[([a-zA-Z0-9\\-]+)\]\{([0-9]+)\}")
_CHARACTER_CLASS = re.compile(r"\\([wdaA])|([a-zA-Z0-9])-([a-zA-Z0-9])")
_ALPHABET = string.ascii_letters + string.digits
_CLASSES = {
    "w": _ALPHABET + "_",
    "d": string.digits,
    "a": _ALPHABET,
    "A": "~!@#$%^&*()-_+={}[]\\|<,>.?/\"';:`",
}
_MAX_GENERATED = 255


def expand_templates(
    documents: Sequence[Document], source: str, parameters: Mapping[str, str]
) -> List[Document]:
    """The documents with every Template replaced by its objects. ManifestError.

    `parameters`: values in place of the Templates' own; each must be declared by one of them, or the error
    names `source`.
    """
    result: List[Document] = []
    declared: List[str] = []
    for document in documents:
        if document.kind == "Template" and document.value.get("apiVersion") in _API_VERSIONS:
            template = _Template(document, parameters)
            declared.extend(template.values)
            result.extend(template.objects())
        else:
            result.append(document)
    for name in parameters:
        if name not in declared:
            known = ", ".join(sorted(declared)) or "no Template"
            raise ManifestError(f'{source}: parameters: no parameter "{name}", found {known}')
    return result


class _Template:
    def __init__(self, document: Document, parameters: Mapping[str, str]):
        self._fields = FieldReader(document.source)
        self._value = document.value
        self.values: Dict[str, str] = {}
        for where, entry in self._fields.mappings(document.value.get("parameters"), "parameters"):
            name = self._fields.required_text(entry.get("name"), f"{where}.name")
            if not _PARAMETER_NAME.fullmatch(name):
                raise self._fields.expected(f"{where}.name", "letters, digits and _", name)
            if name in self.values:
                raise self._fields.error(f"{where}.name", f'second parameter "{name}"')
            self.values[name] = self._read_value(where, name, entry, parameters)

    def _read_value(self, where: str, name: str, entry: Dict[str, Any], parameters: Mapping[str, str]) -> str:
        value = parameters.get(name, self._fields.text(entry.get("value"), f"{where}.value"))
        required = self._fields.boolean(entry.get("required"), f"{where}.required")
        if not value and entry.get("generate"):
            self._fields.choice(entry["generate"], f"{where}.generate", ("expression",), "")
            expression = self._fields.required_text(entry.get("from"), f"{where}.from")
            try:
                value = generate(expression)
            except ValueError as error:
                raise self._fields.error(f"{where}.from", str(error)) from error
        if not value and required:
            raise self._fields.error(
                where, f"Required value: parameter {name} is required and must be specified"
            )
        return value

    def objects(self) -> List[Document]:
        labels = self._substitute(self._value.get("labels"), "labels")
        result = []
        for where, item in self._fields.mappings(self._value.get("objects"), "objects"):
            item = self._substitute(_without_fixed_namespace(item), where)
            if labels:
                _add_labels(item, self._fields.text_map(labels, "labels"))
            result.append(item)
        if not result:
            raise self._fields.error("objects", "Required value: the Template has no objects")
        return take_apart(result, self._fields.source)

    def _substitute(self, value: Any, where: str) -> Any:
        if isinstance(value, dict):
            return {
                self._fill_in(key, f"{where}.{key}"): self._substitute(item, f"{where}.{key}")
                for key, item in value.items()
            }
        if isinstance(value, list):
            return [self._substitute(item, f"{where}[{i}]") for i, item in enumerate(value)]
        if not isinstance(value, str):
            return value
        raw = _RAW_REFERENCE.fullmatch(value)
        return _unquoted(self._lookup(raw.group(1), where)) if raw else self._fill_in(value, where)

    def _fill_in(self, text: str, where: str) -> str:
        def replace(match: "re.Match[str]") -> str:
            if match.group(1) is None:
                raise self._fields.error(
                    where,
                    f"{match.group(0)} must be the whole value; within text it is ${{{match.group(2)}}}",
                )
            return self._lookup(match.group(1), where)

        return _REFERENCE.sub(replace, text)

    def _lookup(self, name: str, where: str) -> str:
        if name not in self.values:
            known = ", ".join(sorted(self.values)) or "none"
            raise self._fields.error(
                where,
                f"${{{name}}} is no parameter of the Template, expected one of {known} "
                f"(a variable of a shell is written ${name} here)",
            )
        return self.values[name]


def generate(expression: str) -> str:
    """A random text for an expression such as "user-[a-z0-9]{5}". ValueError."""
    return _GENERATED.sub(lambda match: _random_text(match.group(1), int(match.group(2))), expression)


def _random_text(characters: str, length: int) -> str:
    if not 0 < length <= _MAX_GENERATED:
        raise ValueError(f"range must be within [1-{_MAX_GENERATED}] characters ({length})")
    choices = ""
    for match in _CHARACTER_CLASS.finditer(characters):
        if match.group(1):
            choices += _CLASSES[match.group(1)]
            continue
        first, last = _ALPHABET.index(match.group(2)), _ALPHABET.index(match.group(3))
        if first > last:
            raise ValueError(f"invalid range specified: {match.group(0)}")
        choices += _ALPHABET[first : last + 1]
    # What is no class and no range stands for itself.
    rest = _CHARACTER_CLASS.sub("", characters)
    if "\\" in rest or "-" in rest:
        raise ValueError(f"malformed expression syntax: [{characters}]")
    unique = sorted(set(choices + rest))
    return "".join(secrets.choice(unique) for _ in range(length))


def _unquoted(text: str) -> Any:
    """The value that the text is as JSON (2, true, a list); the text itself where it is none."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _without_fixed_namespace(item: Dict[str, Any]) -> Dict[str, Any]:
    """A Template's objects go into the namespace of the user who applies it, unless a parameter names one."""
    metadata = item.get("metadata")
    if not isinstance(metadata, dict) or "namespace" not in metadata:
        return item
    if _REFERENCE.search(str(metadata["namespace"])):
        return item
    item = copy.deepcopy(item)
    del item["metadata"]["namespace"]
    return item


def _add_labels(item: Dict[str, Any], labels: Mapping[str, str]) -> None:
    """The Template's labels win over the object's."""
    metadata = item.get("metadata")
    if not isinstance(metadata, dict):
        metadata = item["metadata"] = {}
    own = metadata.get("labels")
    metadata["labels"] = {**(own if isinstance(own, dict) else {}), **labels}
