"""Reads a replica's pod template: its containers and volumes, and the references between them."""

from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, Optional, Tuple

from . import schema
from .containers import ContainerReader
from .fields import FieldReader
from .job_kind import TF_JOB, JobKind
from .model import Container, ReplicaSpec, Volume, VolumeFile
from .names import read_claim_name, read_file_path, read_host_path, read_label
from .pod_rules import pod_warnings

_DEFAULT_GRACE_SECONDS = 30
# Kind of volume -> the field that names what it shows, and what reads that.
_VOLUME_SOURCES = {
    "persistentVolumeClaim": ("claimName", read_claim_name),
    "hostPath": ("path", read_host_path),
    "configMap": ("name", FieldReader.required_text),
    "secret": ("secretName", FieldReader.required_text),
}


@dataclass(frozen=True)
class PodTemplate:
    container: Container
    init_containers: Tuple[Container, ...]
    volumes: Tuple[Volume, ...]
    grace_seconds: float
    # "": not set; the operator overwrites it in any case.
    restart_policy: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)

    def of_replicas(self, replica_type: str, replicas: int, restart_policy: str, kind: JobKind) -> ReplicaSpec:
        """So many pods of this template, of a job of this kind."""
        return ReplicaSpec(
            type=replica_type,
            replicas=replicas,
            restart_policy=restart_policy,
            container=self.container,
            init_containers=self.init_containers,
            volumes=self.volumes,
            grace_seconds=self.grace_seconds,
            labels=self.labels,
            annotations=self.annotations,
            kind=kind,
        )


class PodTemplateReader:
    """Reads a template that admission.check_document has accepted."""

    def __init__(self, fields: FieldReader, kind: JobKind = TF_JOB):
        self._fields = fields
        self._kind = kind
        self._containers = ContainerReader(fields)

    def read(self, template: Dict[str, Any], where: str) -> PodTemplate:
        fields = self._fields
        fields.warn_unknown(template, where, schema.POD_TEMPLATE)
        metadata = fields.mapping(template.get("metadata"), f"{where}.metadata")
        where_spec = f"{where}.spec"
        spec = fields.mapping(template.get("spec"), where_spec)
        fields.warn_unknown(spec, where_spec, schema.POD_SPEC)
        grace = fields.count(
            spec.get("terminationGracePeriodSeconds"), f"{where_spec}.terminationGracePeriodSeconds"
        )
        pod = PodTemplate(
            container=self._read_container(spec, f"{where_spec}.containers"),
            init_containers=self._read_init_containers(spec, f"{where_spec}.initContainers"),
            volumes=self._read_volumes(spec.get("volumes"), f"{where_spec}.volumes"),
            grace_seconds=float(_DEFAULT_GRACE_SECONDS if grace is None else grace),
            restart_policy=fields.text(spec.get("restartPolicy"), f"{where_spec}.restartPolicy"),
            labels=fields.text_map(metadata.get("labels"), f"{where}.metadata.labels"),
            annotations=fields.text_map(metadata.get("annotations"), f"{where}.metadata.annotations"),
        )
        self._check_mounts(pod, where_spec)
        fields.warnings.extend(pod_warnings(template, where))
        return pod

    def _read_container(self, spec: Dict[str, Any], where: str) -> Container:
        """The one that the kind names; the others are the cluster's."""
        chosen: Optional[Container] = None
        names: List[str] = []
        for path, value in self._fields.mappings(spec.get("containers"), where):
            name = self._fields.required_text(value.get("name"), f"{path}.name")
            if name in names:
                raise self._fields.error(f"{path}.name", f'Duplicate value: "{name}"')
            names.append(name)
            if name == self._kind.container:
                chosen = self._containers.read(value, path)
            else:
                self._fields.warn(path, f"the container {name} is ignored locally")
        assert chosen is not None, "admission requires it"
        return chosen

    def _read_init_containers(self, spec: Dict[str, Any], where: str) -> Tuple[Container, ...]:
        result = []
        for path, value in self._fields.mappings(spec.get("initContainers"), where):
            if value.get("restartPolicy") == "Always":
                self._fields.warn(path, f"the sidecar {value.get('name')} is ignored locally")
            else:
                result.append(self._containers.read(value, path))
        return tuple(result)

    def _read_volumes(self, value: Any, where: str) -> Tuple[Volume, ...]:
        result: List[Volume] = []
        for path, entry in self._fields.mappings(value, where):
            volume = self._read_volume(entry, path)
            if any(volume.name == other.name for other in result):
                raise self._fields.error(f"{path}.name", f'Duplicate value: "{volume.name}"')
            result.append(volume)
        return tuple(result)

    def _read_volume(self, entry: Dict[str, Any], where: str) -> Volume:
        fields = self._fields
        name = read_label(fields, entry.get("name"), f"{where}.name")
        kinds = [key for key in entry if key != "name"]
        if len(kinds) > 1:
            raise fields.error(where, f"expected one kind of volume, found {', '.join(kinds)}")
        kind = kinds[0] if kinds else "emptyDir"
        details = fields.mapping(entry.get(kind), f"{where}.{kind}")
        source = ""
        if kind in _VOLUME_SOURCES:
            key, read = _VOLUME_SOURCES[kind]
            source = read(fields, details.get(key), f"{where}.{kind}.{key}")
        if kind not in ("configMap", "secret"):
            return Volume(name, kind, source)
        return Volume(
            name,
            kind,
            source,
            items=self._read_items(details.get("items"), f"{where}.{kind}.items"),
            optional=fields.boolean(details.get("optional"), f"{where}.{kind}.optional"),
        )

    def _read_items(self, value: Any, where: str) -> Tuple[VolumeFile, ...]:
        fields = self._fields
        items: List[VolumeFile] = []
        for path, item in fields.mappings(value, where):
            key = fields.required_text(item.get("key"), f"{path}.key")
            items.append(VolumeFile(key, read_file_path(fields, item.get("path"), f"{path}.path")))
        files = {item.path for item in items}
        for item in items:
            parts = item.path.split("/")
            for outer in ("/".join(parts[:count]) for count in range(1, len(parts))):
                if outer in files:
                    raise fields.error(where, f'"{item.path}" lies below "{outer}", which is a file')
        return tuple(items)

    def _check_mounts(self, pod: PodTemplate, where: str) -> None:
        known = [volume.name for volume in pod.volumes]
        for container in (*pod.init_containers, pod.container):
            for mount in container.mounts:
                if mount.volume not in known:
                    found = ", ".join(known) or "none"
                    raise self._fields.error(
                        f"{where}.volumes",
                        f'no volume "{mount.volume}" for {mount.path} of the container {container.name}, '
                        f"found {found}",
                    )
