"""The plan of one pod: everything is decided and checked, nothing is started or written yet."""

from dataclasses import dataclass, field
from typing import Mapping, Tuple


class PlanError(Exception):
    """A replica cannot be run here; the text is one line: which one, what, expected, found."""


@dataclass(frozen=True)
class ProcessPlan:
    # "tensorflow", or the init container's name.
    container: str
    argv: Tuple[str, ...]
    # Added to the launcher's own environment, or to the few variables of it that a foreign command gets.
    environment: Mapping[str, str]
    working_dir: str
    # One of Keelson's programs; else a command of the manifest's.
    is_keelsons: bool = False
    # It ends by itself when its job does, as Keelson's programs and scripts do.
    ends_with_job: bool = False


@dataclass(frozen=True)
class LocalDirectory:
    """A directory that is there before the pod's first process starts."""

    path: str
    # No link beneath it is followed when the directory is made; empty: the user has chosen `path`.
    root: str = ""
    # Emptied first: every new pod has its own emptyDir, ConfigMap and Secret volumes. It has a root.
    fresh: bool = False
    # Path in the directory -> content; of a fresh one.
    files: Mapping[str, bytes] = field(default_factory=dict)
    # Readable by the user only.
    private: bool = False


@dataclass(frozen=True)
class PodPlan:
    main: ProcessPlan
    init: Tuple[ProcessPlan, ...]
    # As in the manifest: Always, OnFailure, Never or ExitCode.
    restart_policy: str
    grace_seconds: float
    directories: Tuple[LocalDirectory, ...] = ()
    # Mounts of the main container: its path -> the local one.
    mounts: Mapping[str, str] = field(default_factory=dict)
    # The replica ("master-0") whose main container must run before the first one of these does; "": none.
    waits_for: str = ""
