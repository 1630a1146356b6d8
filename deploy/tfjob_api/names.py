"""Kubernetes' rules for names and paths that become names of files, applied when a manifest is read."""

import posixpath
import re
from typing import Any

from .fields import FieldReader

_KEY = re.compile(r"[-._a-zA-Z0-9]+")
_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_MAX_NAME_LENGTH = 253
_MAX_LABEL_LENGTH = 63
# File systems' own limit for one part of a path.
_MAX_PART_LENGTH = 255


def check_key(fields: FieldReader, key: str, where: str) -> str:
    """A key of a ConfigMap or Secret: the name of its file."""
    if not _KEY.fullmatch(key) or len(key) > _MAX_NAME_LENGTH or key == "." or key.startswith(".."):
        rule = f"letters, digits, '-', '_' and '.', at most {_MAX_NAME_LENGTH}, not '.', no '..' at the start"
        raise fields.expected(where, f"a key of {rule}", key)
    return key


def read_label(fields: FieldReader, value: Any, where: str) -> str:
    """The name of a container or volume."""
    name = fields.required_text(value, where)
    if not re.fullmatch(_LABEL, name) or len(name) > _MAX_LABEL_LENGTH:
        raise fields.expected(
            where, f"lower case letters, digits and '-' between them, at most {_MAX_LABEL_LENGTH}", name
        )
    return name


def read_claim_name(fields: FieldReader, value: Any, where: str) -> str:
    name = fields.required_text(value, where)
    if not re.fullmatch(rf"{_LABEL}(\.{_LABEL})*", name) or len(name) > _MAX_NAME_LENGTH:
        raise fields.expected(
            where, f"lower case letters, digits, and '-' and '.' between them, at most {_MAX_NAME_LENGTH}", name
        )
    return name


def read_relative_path(fields: FieldReader, value: Any, where: str) -> str:
    """A path within a volume; "" where it is not set."""
    path = fields.text(value, where)
    parts = path.split("/")
    if path.startswith("/") or ".." in parts:
        raise fields.expected(where, "a relative path without '..'", path)
    if max(map(len, map(str.encode, parts))) > _MAX_PART_LENGTH:
        raise fields.expected(where, f"names of at most {_MAX_PART_LENGTH} bytes between '/'", path)
    return path


def read_file_path(fields: FieldReader, value: Any, where: str) -> str:
    """The path of a file within a volume, in its shortest form."""
    path = posixpath.normpath(read_relative_path(fields, fields.required_text(value, where), where))
    if path.startswith(".."):
        raise fields.expected(where, "a path without '..' at the start", path)
    if path == ".":
        raise fields.expected(where, "the path of a file", value)
    return path


def read_host_path(fields: FieldReader, value: Any, where: str) -> str:
    path = fields.required_text(value, where)
    if ".." in path.split("/"):
        raise fields.expected(where, "a path without '..'", path)
    return path
