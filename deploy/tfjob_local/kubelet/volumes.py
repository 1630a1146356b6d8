"""Container paths -> local directories.

A claim is one directory that all replicas share; an emptyDir, a ConfigMap and a Secret are directories
of the pod; a hostPath is itself where that is permitted, else a directory that all replicas share. Paths
are replaced in arguments and values wherever they stand as words of their own: "--model_dir=/model",
"/data:/more", `sh -c "ls /model/x > /out/list"`.
"""

import os
import re
from dataclasses import dataclass
from typing import Callable, Dict, List, Mapping, Tuple

from tfjob_api.model import ClusterObjects, Container, ObjectReference, ReplicaSpec, Volume

from .environment import missing
from .plan import LocalDirectory, PlanError

# What a path may follow, and what may follow it, in a text that is more than the path.
_BEFORE = r"(?:^|(?<=[\s=:,;\"'`(<>|&@\[{])|(?<=file://))"
_AFTER = r"(?=$|[/\s=:,;\"'`)<>|&\]}])"


@dataclass(frozen=True)
class VolumePlaces:
    """Where the volumes of a job are."""

    # The directory of the run's volumes.
    volumes_dir: str
    # Claim name -> directory, in place of VOLUMES_DIR/CLAIM.
    claims: Mapping[str, str]
    # A hostPath is that path of this machine; else VOLUMES_DIR/hostPath/PATH.
    host_paths: bool


class PodVolumes:
    """The volumes of one pod. `who` ("worker-1") names its directories and begins the errors."""

    def __init__(
        self,
        spec: ReplicaSpec,
        who: str,
        objects: ClusterObjects,
        places: VolumePlaces,
        warn: Callable[[str], None],
    ):
        self._who = who
        self._objects = objects
        self._own_dir = os.path.join(places.volumes_dir, who)
        self._places = places
        self._warn = lambda text: warn(f"{spec.type}: {text}")
        self._volumes = {volume.name: volume for volume in spec.volumes}
        self._paths: Dict[str, str] = {}
        self._directories: Dict[str, LocalDirectory] = {}
        for volume in spec.volumes:
            self._add(volume)

    @property
    def directories(self) -> Tuple[LocalDirectory, ...]:
        """The directories that must exist before the pod starts, outer before inner."""
        return tuple(self._directories.values())

    def mounts(self, container: Container) -> "Mounts":
        pairs: Dict[str, str] = {}
        for mount in container.mounts:
            path = mount.path.rstrip("/")
            if not path:
                self._warn(f"the volume {mount.volume} is mounted at /, paths in it are not translated")
                continue
            local = self._paths[mount.volume]
            if mount.sub_path:
                local = self._sub_path(self._volumes[mount.volume], local, mount.sub_path)
            pairs[path] = local
        return Mounts(pairs)

    def _sub_path(self, volume: Volume, directory: str, sub_path: str) -> str:
        """One file of a ConfigMap or Secret; of anything else a directory, made where it is not there."""
        path = os.path.normpath(os.path.join(directory, sub_path))
        holds_files = volume.kind in ("configMap", "secret")
        if not holds_files and not self._is_users(volume) and not os.path.isfile(path):
            root = self._directories[directory].root or directory
            self._directories.setdefault(path, LocalDirectory(path, root))
        return path

    def _add(self, volume: Volume) -> None:
        root = self._places.volumes_dir
        if self._is_users(volume):
            self._add_host_path(volume)
            return
        if volume.kind == "hostPath":
            path = os.path.normpath(os.path.join(root, "hostPath", volume.source.strip("/")))
            directory = LocalDirectory(path, root)
        elif volume.kind == "persistentVolumeClaim":
            chosen = self._places.claims.get(volume.source)
            own = os.path.join(root, volume.source)
            directory = LocalDirectory(chosen) if chosen else LocalDirectory(own, root)
        else:
            path = os.path.join(self._own_dir, volume.name)
            files = self._files(volume)
            private = volume.kind == "secret"
            directory = LocalDirectory(path, root, fresh=True, files=files, private=private)
        self._paths[volume.name] = directory.path
        self._directories.setdefault(directory.path, directory)

    def _is_users(self, volume: Volume) -> bool:
        """Whether it is a path of this machine."""
        return volume.kind == "hostPath" and self._places.host_paths

    def _add_host_path(self, volume: Volume) -> None:
        self._paths[volume.name] = volume.source
        if os.path.exists(volume.source):
            return
        parent = os.path.dirname(os.path.abspath(volume.source))
        while not os.path.exists(parent):
            parent = os.path.dirname(parent)
        if not os.path.isdir(parent) or not os.access(parent, os.W_OK):
            raise PlanError(
                f"{self._who}: volume {volume.name}: hostPath {volume.source}: no such directory on this "
                f"machine, and it cannot be made in {parent}"
            )
        self._directories.setdefault(volume.source, LocalDirectory(volume.source))

    def _files(self, volume: Volume) -> Mapping[str, bytes]:
        if volume.kind not in ("configMap", "secret"):
            if volume.kind != "emptyDir":
                self._warn(f"the volume {volume.name} ({volume.kind}) has no content locally")
            return {}
        kind = "ConfigMap" if volume.kind == "configMap" else "Secret"
        content = self._objects.lookup(ObjectReference(kind, volume.source))
        where = f"{self._who}: volume {volume.name}"
        if content is None:
            if volume.optional:
                return {}
            raise missing(where, "the manifest's files", kind, volume.source, list(self._objects.of_kind(kind)))
        if not volume.items:
            return content
        files: Dict[str, bytes] = {}
        for item in volume.items:
            if item.key in content:
                files[item.path] = content[item.key]
            elif not volume.optional:
                raise missing(where, f'{kind} "{volume.source}"', "key", item.key, list(content))
        return files


class Mounts:
    """Container path -> local path, for one container."""

    def __init__(self, pairs: Mapping[str, str]):
        self.pairs = dict(pairs)
        # The longest path first: mounts may be nested.
        paths: List[str] = sorted(pairs, key=lambda path: (-len(path), path))
        alternatives = "|".join(re.escape(path) for path in paths)
        self._pattern = re.compile(f"{_BEFORE}({alternatives}){_AFTER}") if paths else None

    def translate(self, text: str) -> str:
        if self._pattern is None:
            return text
        return self._pattern.sub(lambda match: self.pairs[match.group(1)], text)
