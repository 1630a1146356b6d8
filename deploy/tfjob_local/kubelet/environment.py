"""env and envFrom of a container -> the variables of its process, as the kubelet makes them."""

import math
import re
from dataclasses import dataclass
from types import MappingProxyType
from typing import Callable, Dict, List, Mapping, Optional

from tfjob_api.model import VARIABLE_NAME, ClusterObjects, Container, EnvironmentVariable, ObjectReference
from tfjob_api.quantity import parse_quantity

from .plan import PlanError

# $(NAME), and $$ for a plain $; what is no reference stays as it is.
_REFERENCE = re.compile(r"\$(?:(\$)|\(([^()]*)\))")
_MAP_FIELD = re.compile(r"metadata\.(labels|annotations)\['(.+)'\]")
_RESOURCES = ("limits.cpu", "limits.memory", "requests.cpu", "requests.memory")


@dataclass(frozen=True)
class PodFacts:
    """The facts about pod and node that the downward API gives a container."""

    # "metadata.name" and so on -> value.
    fields: Mapping[str, str]
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    # The machine's resources, which a container without limits may use.
    cores: int
    memory_bytes: int


class EnvironmentBuilder:
    """For the containers of one replica; `who` ("Worker") begins every error and warning."""

    def __init__(self, who: str, objects: ClusterObjects, facts: PodFacts, warn: Callable[[str], None]):
        self._who = who
        self._objects = objects
        self._facts = facts
        self._warn = warn

    def build(self, container: Container, operators: Mapping[str, str] = MappingProxyType({})) -> Dict[str, str]:
        """`operators`: the variables that the operator adds. PlanError: an object or a key is missing, or a field is
        unknown."""
        result: Dict[str, str] = {}
        for source in container.environment_sources:
            for key, content in (self._find_object(source.reference, "envFrom") or {}).items():
                name = source.prefix + key
                if VARIABLE_NAME.fullmatch(name):
                    result[name] = self._text(content, f"envFrom: {source.reference.name}.{key}")
                else:
                    self._warn(f'{self._who}: envFrom: "{name}" cannot be a variable\'s name, left out')
        for variable in container.environment:
            value = self._value(container, variable, result)
            if value is not None:
                result[variable.name] = value
        result.update(operators)
        return result

    def _value(
        self, container: Container, variable: EnvironmentVariable, known: Mapping[str, str]
    ) -> Optional[str]:
        where = f"env {variable.name}"
        if variable.reference is not None:
            return self._referred_value(variable.reference, where)
        if variable.field_path:
            return self._field(variable.field_path, where)
        if variable.resource:
            return self._resource(container, variable.resource, where)
        return expand(variable.value, known)

    def _referred_value(self, reference: ObjectReference, where: str) -> Optional[str]:
        content = self._find_object(reference, where)
        if content is None:
            return None
        if reference.key not in content:
            if reference.optional:
                return None
            raise self._error(where, f'{reference.kind} "{reference.name}"', "key", reference.key, content)
        return self._text(content[reference.key], where)

    def _find_object(self, reference: ObjectReference, where: str) -> Optional[Mapping[str, bytes]]:
        found = self._objects.lookup(reference)
        if found is None and not reference.optional:
            known = self._objects.of_kind(reference.kind)
            raise self._error(where, "the manifest's files", reference.kind, reference.name, known)
        return found

    def _field(self, path: str, where: str) -> str:
        entry = _MAP_FIELD.fullmatch(path)
        if entry:
            values = self._facts.labels if entry.group(1) == "labels" else self._facts.annotations
            return values.get(entry.group(2), "")
        if path not in self._facts.fields:
            known = [*self._facts.fields, "metadata.labels['KEY']", "metadata.annotations['KEY']"]
            raise PlanError(f'{self._who}: {where}: fieldPath: expected {", ".join(known)}, found "{path}"')
        return self._facts.fields[path]

    def _resource(self, container: Container, resource: str, where: str) -> str:
        if resource not in _RESOURCES:
            raise PlanError(
                f'{self._who}: {where}: resource: expected {", ".join(_RESOURCES)}, found "{resource}"'
            )
        kind, _, name = resource.partition(".")
        # The API server gives a container that has only a limit the same request.
        text = container.limits.get(name)
        if kind == "requests":
            text = container.requests.get(name, text)
        if text is None:
            if kind == "requests":
                return "0"
            return str(self._facts.cores if name == "cpu" else self._facts.memory_bytes)
        return str(math.ceil(parse_quantity(text)))

    def _text(self, content: bytes, where: str) -> str:
        try:
            text = content.decode("utf-8")
        except UnicodeDecodeError as error:
            raise PlanError(f"{self._who}: {where}: expected UTF-8 text, found other bytes") from error
        if "\0" in text:
            raise PlanError(f"{self._who}: {where}: expected text, found a zero byte")
        return text

    def _error(self, where: str, place: str, kind: str, name: str, known: Mapping[str, object]) -> PlanError:
        return missing(f"{self._who}: {where}", place, kind, name, list(known))


def missing(where: str, place: str, kind: str, name: str, known: List[str]) -> PlanError:
    expected = f"expected one of {', '.join(sorted(known))}" if known else "there is none at all"
    return PlanError(f'{where}: {place}: no {kind} "{name}", {expected}')


def expand(text: str, environment: Mapping[str, str]) -> str:
    """Kubernetes' $(NAME) in command, args and env."""

    def replace(match: "re.Match[str]") -> str:
        if match.group(1):
            return "$"
        return environment.get(match.group(2), match.group(0))

    return _REFERENCE.sub(replace, text)
