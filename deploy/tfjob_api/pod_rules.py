"""Warns of what no API server takes in a pod.

A TFJob's definition has none of these rules: the cluster takes the job, refuses each of its pods, and the job
never gets a condition that says so.
"""

import re
from typing import Any, Dict, Iterator, List, Mapping, Tuple

from .quantity import parse_quantity

_PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_MAX_PORT_NAME_LENGTH = 15
_PORT_NAME = re.compile(r"(?=.*[a-z])[a-z0-9]+(-[a-z0-9]+)*")
_MAX_LABEL_LENGTH = 63
_LABEL_PART = re.compile(r"[A-Za-z0-9]([-_.A-Za-z0-9]*[A-Za-z0-9])?")
_CONSEQUENCE = "the cluster refuses the pods, and the job gets no condition"


def pod_warnings(template: Mapping[str, Any], where: str) -> List[str]:
    """One line for each rule that a pod template breaks, with the field's path. `where`: the template's."""
    labels = _mapping(_mapping(template.get("metadata")).get("labels"))
    problems = _label_problems(labels, f"{where}.metadata.labels")
    spec = _mapping(template.get("spec"))
    for key in ("initContainers", "containers"):
        for path, container in _items(spec.get(key), f"{where}.spec.{key}"):
            problems += _container_problems(container, path)
    return [f"{path}: {problem}; {_CONSEQUENCE}" for path, problem in problems]


def label_warnings(labels: Any, where: str) -> List[str]:
    """The same of the job's own labels."""
    problems = _label_problems(_mapping(labels), where)
    return [f"{path}: {problem}; the cluster refuses the job" for path, problem in problems]


# A field's path and what is wrong with it, in the API server's words where they are short.
_Problem = Tuple[str, str]


def _container_problems(container: Mapping[str, Any], where: str) -> List[_Problem]:
    problems: List[_Problem] = []
    policy = container.get("imagePullPolicy") or _PULL_POLICIES[0]
    if policy not in _PULL_POLICIES:
        known = ", ".join(f'"{known}"' for known in _PULL_POLICIES)
        problems.append((f"{where}.imagePullPolicy", f'Unsupported value: "{policy}": supported values: {known}'))
    names: List[str] = []
    for path, port in _items(container.get("ports"), f"{where}.ports"):
        name = str(port.get("name") or "")
        if name in names:
            problems.append((f"{path}.name", f'Duplicate value: "{name}"'))
        elif name:
            names.append(name)
            problems += _port_name_problems(name, f"{path}.name")
    return [*problems, *_resource_problems(_mapping(container.get("resources")), f"{where}.resources")]


def _port_name_problems(name: str, where: str) -> Iterator[_Problem]:
    if len(name) > _MAX_PORT_NAME_LENGTH:
        yield where, f'Invalid value: "{name}": must be no more than {_MAX_PORT_NAME_LENGTH} characters'
    elif not _PORT_NAME.fullmatch(name):
        rule = "lower case letters, digits and single '-' between them, at least one letter"
        yield where, f'expected {rule}, found "{name}"'


def _resource_problems(resources: Mapping[str, Any], where: str) -> Iterator[_Problem]:
    limits = _mapping(resources.get("limits"))
    for name, request in _mapping(resources.get("requests")).items():
        limit = limits.get(name)
        try:
            is_above = limit is not None and parse_quantity(str(request)) > parse_quantity(str(limit))
        except ValueError:
            # No quantity: an error of its own where it counts.
            continue
        if is_above:
            rule = f"must be less than or equal to {name} limit of {limit}"
            yield f"{where}.requests", f'Invalid value: "{request}": {rule}'


def _label_problems(labels: Mapping[str, Any], where: str) -> List[_Problem]:
    problems: List[_Problem] = []
    for key, value in labels.items():
        name = key.rpartition("/")[2]
        rule = f"letters and digits, '-', '_' and '.' between them, at most {_MAX_LABEL_LENGTH} characters"
        if not _is_label_part(name):
            problems.append((where, f'expected as the name of a label {rule}, found "{key}"'))
        if str(value) and not _is_label_part(str(value)):
            problems.append((f"{where}.{key}", f'expected {rule}, found "{value}"'))
    return problems


def _is_label_part(text: str) -> bool:
    return len(text) <= _MAX_LABEL_LENGTH and _LABEL_PART.fullmatch(text) is not None


def _items(value: Any, where: str) -> List[Tuple[str, Dict[str, Any]]]:
    """The mappings of a list; what else is there has an error of its own where it counts."""
    items = value if isinstance(value, list) else []
    return [(f"{where}[{i}]", item) for i, item in enumerate(items) if isinstance(item, dict)]


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
