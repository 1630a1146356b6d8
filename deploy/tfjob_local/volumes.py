"""Container paths -> local directories.

A claim is one directory shared by all replicas, an emptyDir one directory per replica, a hostPath the
path itself. A path is translated where it is a whole argument or follows "=" in one.
"""

import os
from typing import List, Tuple

from .job import ReplicaSpec, Volume


class VolumeMap:
    """The mounts of one replica. A volume's directory is created when a path first leads there."""

    def __init__(self, spec: ReplicaSpec, replica_name: str, volumes_dir: str):
        self._unsupported: List[str] = []
        volumes = {volume.name: volume for volume in spec.volumes}
        pairs = []
        for mount in spec.container.mounts:
            directory = self._directory(volumes[mount.volume], replica_name, volumes_dir)
            if mount.sub_path:
                directory = os.path.join(directory, mount.sub_path)
            pairs.append((mount.path.rstrip("/") or "/", directory))
        # The longest mount path first: mounts may be nested.
        self._mounts: List[Tuple[str, str]] = sorted(pairs, key=lambda pair: -len(pair[0]))

    @property
    def unsupported(self) -> List[str]:
        """Volumes that stay empty directories here, such as configMap or secret."""
        return self._unsupported

    def translate(self, argument: str) -> str:
        head, separator, tail = argument.partition("=")
        if separator:
            return head + separator + self.translate_path(tail)
        return self.translate_path(argument)

    def translate_path(self, path: str) -> str:
        for mount_path, directory in self._mounts:
            if path == mount_path or path.startswith(mount_path.rstrip("/") + "/"):
                os.makedirs(directory, exist_ok=True)
                return directory + path[len(mount_path.rstrip("/")) :].rstrip("/")
        return path

    def _directory(self, volume: Volume, replica_name: str, volumes_dir: str) -> str:
        if volume.kind == "hostPath":
            return volume.source
        if volume.kind == "persistentVolumeClaim":
            return os.path.join(volumes_dir, volume.source)
        if volume.kind != "emptyDir":
            self._unsupported.append(f"{volume.name} ({volume.kind})")
        return os.path.join(volumes_dir, replica_name, volume.name)
