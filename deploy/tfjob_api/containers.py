"""The containers of a pod template: command, environment, mounts, ports, resources."""

from typing import Any, Dict, List, Optional, Tuple

from . import schema
from .fields import FieldReader
from .model import (
    VARIABLE_NAME,
    Container,
    ContainerPort,
    EnvironmentSource,
    EnvironmentVariable,
    ObjectReference,
    VolumeMount,
)
from .names import read_label, read_relative_path
from .quantity import parse_quantity

_MAX_PORT = 65535


class ContainerReader:
    def __init__(self, fields: FieldReader):
        self._fields = fields

    def read(self, value: Dict[str, Any], where: str) -> Container:
        fields = self._fields
        fields.warn_unknown(value, where, schema.CONTAINER)
        self._warn_of_hooks(value.get("lifecycle"), f"{where}.lifecycle")
        if value.get("readinessProbe"):
            fields.warn(f"{where}.readinessProbe", "peers cannot find the pod by its name before it is ready")
        resources = fields.mapping(value.get("resources"), f"{where}.resources")
        fields.warn_unknown(resources, f"{where}.resources", schema.RESOURCES)
        return Container(
            name=read_label(fields, value.get("name"), f"{where}.name"),
            image=fields.required_text(value.get("image"), f"{where}.image"),
            command=fields.texts(value.get("command"), f"{where}.command"),
            args=fields.texts(value.get("args"), f"{where}.args"),
            working_dir=fields.text(value.get("workingDir"), f"{where}.workingDir"),
            environment=self.read_environment(value.get("env"), f"{where}.env"),
            environment_sources=self._read_sources(value.get("envFrom"), f"{where}.envFrom"),
            mounts=self._read_mounts(value.get("volumeMounts"), f"{where}.volumeMounts"),
            ports=self._read_ports(value.get("ports"), f"{where}.ports"),
            requests=self.read_quantities(resources.get("requests"), f"{where}.resources.requests"),
            limits=self.read_quantities(resources.get("limits"), f"{where}.resources.limits"),
        )

    def _warn_of_hooks(self, value: Any, where: str) -> None:
        for name, hook in self._fields.mapping(value, where).items():
            path = f"{where}.{name}"
            handler = self._fields.mapping(hook, path)
            command = self._fields.mapping(handler.get("exec"), f"{path}.exec").get("command")
            # A pause before the end gives peers time on a cluster; locally nothing waits for it.
            is_pause = "sleep" in handler or (isinstance(command, list) and command[:1] == ["sleep"])
            if handler and not is_pause:
                self._fields.warn(path, "ignored locally")

    def read_environment(self, value: Any, where: str) -> Tuple[EnvironmentVariable, ...]:
        result = []
        for path, entry in self._fields.mappings(value, where):
            variable = self._read_variable(entry, path)
            if variable is not None:
                result.append(variable)
        return tuple(result)

    def _read_variable(self, entry: Dict[str, Any], where: str) -> Optional[EnvironmentVariable]:
        fields = self._fields
        fields.warn_unknown(entry, where, schema.ENVIRONMENT_VARIABLE)
        name = fields.required_text(entry.get("name"), f"{where}.name")
        if not VARIABLE_NAME.fullmatch(name):
            raise fields.expected(
                f"{where}.name", "letters, digits, '_', '-' and '.', no digit at the start", name
            )
        text = fields.text(entry.get("value"), f"{where}.value")
        if entry.get("valueFrom") is None:
            return EnvironmentVariable(name, text)
        if text:
            raise fields.error(
                f"{where}.valueFrom", "Invalid value: may not be specified when `value` is not empty"
            )
        return self._read_value_source(name, entry["valueFrom"], f"{where}.valueFrom")

    def _read_value_source(self, name: str, value: Any, where: str) -> Optional[EnvironmentVariable]:
        fields = self._fields
        source = fields.mapping(value, where)
        fields.warn_unknown(source, where, schema.VALUE_SOURCE)
        kinds = [kind for kind in schema.VALUE_SOURCE if source.get(kind) is not None]
        if len(kinds) != 1:
            found = ", ".join(kinds) or "none"
            raise fields.error(where, f"expected one of {', '.join(schema.VALUE_SOURCE)}, found {found}")
        kind = kinds[0]
        path = f"{where}.{kind}"
        details = fields.mapping(source[kind], path)
        if kind == "fieldRef":
            field_path = fields.required_text(details.get("fieldPath"), f"{path}.fieldPath")
            return EnvironmentVariable(name, field_path=field_path)
        if kind == "resourceFieldRef":
            if str(details.get("divisor") or 0) not in ("0", "1"):
                fields.warn(f"{path}.divisor", "ignored locally")
            resource = fields.required_text(details.get("resource"), f"{path}.resource")
            return EnvironmentVariable(name, resource=resource)
        if kind == "fileKeyRef":
            fields.warn(path, "ignored locally")
            return None
        object_kind = "ConfigMap" if kind == "configMapKeyRef" else "Secret"
        key = fields.required_text(details.get("key"), f"{path}.key")
        return EnvironmentVariable(name, reference=self._read_reference(object_kind, key, details, path))

    def _read_reference(self, kind: str, key: str, details: Dict[str, Any], where: str) -> ObjectReference:
        name = self._fields.required_text(details.get("name"), f"{where}.name")
        optional = self._fields.boolean(details.get("optional"), f"{where}.optional")
        return ObjectReference(kind, name, key, optional)

    def _read_sources(self, value: Any, where: str) -> Tuple[EnvironmentSource, ...]:
        fields = self._fields
        result = []
        for path, entry in fields.mappings(value, where):
            fields.warn_unknown(entry, path, schema.ENVIRONMENT_SOURCE)
            kinds = [kind for kind in ("configMapRef", "secretRef") if entry.get(kind) is not None]
            if len(kinds) != 1:
                found = ", ".join(kinds) or "none"
                raise fields.error(path, f"expected one of configMapRef, secretRef, found {found}")
            object_kind = "ConfigMap" if kinds[0] == "configMapRef" else "Secret"
            details = fields.mapping(entry[kinds[0]], f"{path}.{kinds[0]}")
            reference = self._read_reference(object_kind, "", details, f"{path}.{kinds[0]}")
            result.append(EnvironmentSource(reference, fields.text(entry.get("prefix"), f"{path}.prefix")))
        return tuple(result)

    def _read_mounts(self, value: Any, where: str) -> Tuple[VolumeMount, ...]:
        fields = self._fields
        result: List[VolumeMount] = []
        for path, entry in fields.mappings(value, where):
            fields.warn_unknown(entry, path, schema.VOLUME_MOUNT)
            if entry.get("subPathExpr"):
                fields.warn(f"{path}.subPathExpr", "ignored locally, the whole volume is mounted")
            mount = VolumeMount(
                volume=fields.required_text(entry.get("name"), f"{path}.name"),
                path=fields.required_text(entry.get("mountPath"), f"{path}.mountPath"),
                sub_path=read_relative_path(fields, entry.get("subPath"), f"{path}.subPath"),
                read_only=fields.boolean(entry.get("readOnly"), f"{path}.readOnly"),
            )
            if any(mount.path == other.path for other in result):
                raise fields.error(f"{path}.mountPath", f'Invalid value: "{mount.path}": must be unique')
            result.append(mount)
        return tuple(result)

    def _read_ports(self, value: Any, where: str) -> Tuple[ContainerPort, ...]:
        fields = self._fields
        result = []
        for path, entry in fields.mappings(value, where):
            fields.warn_unknown(entry, path, schema.CONTAINER_PORT)
            number = fields.count(entry.get("containerPort"), f"{path}.containerPort")
            if number is None or not 0 < number <= _MAX_PORT:
                raise fields.expected(
                    f"{path}.containerPort", f"a port from 1 to {_MAX_PORT}", entry.get("containerPort")
                )
            result.append(ContainerPort(number, fields.text(entry.get("name"), f"{path}.name")))
        return tuple(result)

    def read_quantities(self, value: Any, where: str) -> Dict[str, str]:
        result: Dict[str, str] = {}
        for name, quantity in self._fields.mapping(value, where).items():
            is_number = isinstance(quantity, (int, float)) and not isinstance(quantity, bool)
            text = str(quantity) if is_number else self._fields.text(quantity, f"{where}.{name}")
            try:
                parse_quantity(text)
            except ValueError as error:
                raise self._fields.error(f"{where}.{name}", str(error)) from error
            # "nvidia.com/gpu": devices are not divided.
            if "/" in name and not text.isdecimal():
                raise self._fields.expected(f"{where}.{name}", "a whole number", quantity)
            result[name] = text
        return result
