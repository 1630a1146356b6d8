"""A TFJob as the launcher knows it, whatever form its manifest had."""

from dataclasses import dataclass, field
from typing import Dict, Optional, Tuple


@dataclass(frozen=True)
class EnvironmentVariable:
    name: str
    value: str
    # "metadata.name" and so on; empty: `value` counts.
    field_path: str = ""


@dataclass(frozen=True)
class VolumeMount:
    volume: str
    path: str
    sub_path: str = ""


@dataclass(frozen=True)
class Volume:
    name: str
    # "persistentVolumeClaim", "emptyDir", "hostPath", or what else the manifest says.
    kind: str
    # The claim's name, or the host's path.
    source: str = ""


@dataclass(frozen=True)
class Container:
    command: Tuple[str, ...] = ()
    args: Tuple[str, ...] = ()
    working_dir: str = ""
    environment: Tuple[EnvironmentVariable, ...] = ()
    mounts: Tuple[VolumeMount, ...] = ()


@dataclass(frozen=True)
class ReplicaSpec:
    """One entry of tfReplicaSpecs."""

    type: str
    replicas: int
    restart_policy: str
    container: Container
    volumes: Tuple[Volume, ...] = ()
    grace_seconds: float = 30.0
    labels: Dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class TFJob:
    name: str
    namespace: str
    # By type in camel case ("PS"), in the manifest's order.
    replica_specs: Dict[str, ReplicaSpec]
    clean_pod_policy: str = "None"
    success_policy: str = ""
    dynamic_workers: bool = False
    # None: no limit.
    backoff_limit: Optional[int] = None
    active_deadline_seconds: Optional[float] = None

    def replicas(self, replica_type: str) -> int:
        spec = self.replica_specs.get(replica_type)
        return spec.replicas if spec else 0

    def total_replicas(self) -> int:
        return sum(spec.replicas for spec in self.replica_specs.values())

    def chief_type(self) -> Optional[str]:
        """"Chief" or "Master"; None where worker 0 leads the job."""
        for replica_type in ("Chief", "Master"):
            if replica_type in self.replica_specs:
                return replica_type
        return None
