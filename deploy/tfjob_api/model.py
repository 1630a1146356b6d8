"""A job and the objects beside it, whatever form its manifest had."""

import re
from dataclasses import dataclass, field, replace
from typing import Any, Mapping, Optional, Tuple

from .job_kind import JOB_KINDS, TF_JOB, JobKind, Messages
from .job_set import JobSetRules
from .operator_version import OperatorVersion

API_GROUP = "kubeflow.org"
DEFAULT_NAMESPACE = "default"
RESTART_POLICIES = ("Always", "OnFailure", "Never", "ExitCode")
CLEAN_POD_POLICIES = ("All", "Running", "None")
# Keelson's programs that replicas run.
PROGRAMS = tuple(dict.fromkeys(program for kind in JOB_KINDS.values() for program in kind.programs.values()))
# An annotation of servers that the manifest does not have: the replica type whose template they got.
ADDED_SERVERS = "keelson/template-of"
# The names of environment variables that the API server accepts.
VARIABLE_NAME = re.compile(r"[-._a-zA-Z][-._a-zA-Z0-9]*")


@dataclass(frozen=True)
class ObjectReference:
    """One key of a ConfigMap or Secret, or the whole of it (key "")."""

    # "ConfigMap" or "Secret".
    kind: str
    name: str
    key: str = ""
    optional: bool = False


@dataclass(frozen=True)
class EnvironmentVariable:
    """`value`, unless one of the sources is given."""

    name: str
    value: str = ""
    # "metadata.name" and so on; empty: none.
    field_path: str = ""
    # "limits.cpu" and so on, of the own container; empty: none.
    resource: str = ""
    reference: Optional[ObjectReference] = None


@dataclass(frozen=True)
class EnvironmentSource:
    """An entry of envFrom: every key of an object becomes a variable named prefix + key."""

    reference: ObjectReference
    prefix: str = ""


@dataclass(frozen=True)
class VolumeMount:
    volume: str
    path: str
    sub_path: str = ""
    read_only: bool = False


@dataclass(frozen=True)
class VolumeFile:
    """A key of a ConfigMap or Secret as a file of its volume."""

    key: str
    path: str


@dataclass(frozen=True)
class Volume:
    name: str
    # "persistentVolumeClaim", "emptyDir", "hostPath", "configMap", "secret", or what else the
    # manifest says.
    kind: str
    # The claim's, ConfigMap's or Secret's name, or the host's path.
    source: str = ""
    # configMap and secret: the keys to show; empty: all of them, under their own names.
    items: Tuple[VolumeFile, ...] = ()
    # configMap and secret: an absent object is an empty directory.
    optional: bool = False


@dataclass(frozen=True)
class ContainerPort:
    port: int
    name: str = ""


@dataclass(frozen=True)
class Container:
    name: str = TF_JOB.container
    image: str = ""
    # Empty: the image's own.
    command: Tuple[str, ...] = ()
    args: Tuple[str, ...] = ()
    working_dir: str = ""
    environment: Tuple[EnvironmentVariable, ...] = ()
    environment_sources: Tuple[EnvironmentSource, ...] = ()
    mounts: Tuple[VolumeMount, ...] = ()
    ports: Tuple[ContainerPort, ...] = ()
    # {"cpu": "2", "memory": "1Gi", "nvidia.com/gpu": "1"}; quantities as in the manifest.
    requests: Mapping[str, str] = field(default_factory=dict)
    limits: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ReplicaSpec:
    """One entry of the replica types, with its pod template."""

    # Camel case as the operator rewrites it ("PS").
    type: str
    replicas: int
    restart_policy: str
    # The one that the kind names.
    container: Container
    init_containers: Tuple[Container, ...] = ()
    volumes: Tuple[Volume, ...] = ()
    grace_seconds: float = 30.0
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    # That of its job.
    kind: JobKind = TF_JOB

    @property
    def port(self) -> int:
        """The number of the port that peers connect to; the kind's without one."""
        for port in self.container.ports:
            if self.kind.port_name and port.name == self.kind.port_name:
                return port.port
        return self.kind.port


@dataclass(frozen=True)
class RunPolicy:
    # None: not set; the operator's default depends on its version.
    clean_pod_policy: Optional[str] = None
    ttl_seconds_after_finished: Optional[int] = None
    active_deadline_seconds: Optional[int] = None
    # None: no limit.
    backoff_limit: Optional[int] = None
    suspend: bool = False


@dataclass(frozen=True)
class ElasticPolicy:
    """elasticPolicy of a PyTorchJob: how many pods its torchrun waits for. None: not set."""

    min_replicas: Optional[int] = None
    max_replicas: Optional[int] = None
    rdzv_backend: Optional[str] = None
    rdzv_host: Optional[str] = None
    rdzv_port: Optional[int] = None
    rdzv_id: Optional[str] = None
    # "KEY=VALUE" each.
    rdzv_conf: Tuple[str, ...] = ()
    standalone: bool = False
    # The older place of nprocPerNode.
    nproc_per_node: Optional[int] = None
    max_restarts: Optional[int] = None


@dataclass(frozen=True)
class TrainingJob:
    name: str
    namespace: str
    # By type ("PS"), in the manifest's order.
    replica_specs: Mapping[str, ReplicaSpec]
    run_policy: RunPolicy = RunPolicy()
    success_policy: str = ""
    dynamic_workers: bool = False
    kind: JobKind = TF_JOB
    elastic_policy: Optional[ElasticPolicy] = None
    # A PyTorchJob sets it to "2" or "auto", the torch policy of a TrainJob to what it makes of that; None: it is not
    # set, and a TrainJob's pods do not get the torch policy's variables.
    nproc_per_node: Optional[str] = None
    # Only a TrainJob has other rules than the default ones.
    job_set: JobSetRules = JobSetRules()

    def replicas(self, replica_type: str) -> int:
        spec = self.replica_specs.get(replica_type)
        return spec.replicas if spec else 0

    def total_replicas(self) -> int:
        return sum(spec.replicas for spec in self.replica_specs.values())

    def with_replicas(self, numbers: Mapping[str, int]) -> "TrainingJob":
        """Returns the job with the number of replicas that `numbers` has for each replica type."""
        specs = {
            replica_type: replace(spec, replicas=numbers.get(replica_type, spec.replicas))
            for replica_type, spec in self.replica_specs.items()
        }
        return replace(self, replica_specs=specs)

    def with_suspend(self, suspend: bool) -> "TrainingJob":
        """ValueError: it is suspended already, or is not suspended."""
        if self.run_policy.suspend == suspend:
            raise ValueError(f"job {self.name} is {'suspended already' if suspend else 'not suspended'}")
        return replace(self, run_policy=replace(self.run_policy, suspend=suspend))

    def chief_type(self) -> Optional[str]:
        """"Chief" or "Master"; None where the first worker or node leads the job."""
        for replica_type in self.kind.leader_types:
            if replica_type in self.replica_specs:
                return replica_type
        return None

    @property
    def messages(self) -> Messages:
        """The operator's words for it."""
        return self.kind.messages if self.chief_type() else self.kind.leaderless_messages


@dataclass(frozen=True)
class ClusterObjects:
    """The other objects in the job's files, by name."""

    # name -> key -> content.
    config_maps: Mapping[str, Mapping[str, bytes]] = field(default_factory=dict)
    secrets: Mapping[str, Mapping[str, bytes]] = field(default_factory=dict)
    claims: Tuple[str, ...] = ()
    # Kinds that were read and have no meaning for one job ("Service mnist-dashboard").
    others: Tuple[str, ...] = ()

    def of_kind(self, kind: str) -> Mapping[str, Mapping[str, bytes]]:
        """`kind`: "ConfigMap" or "Secret"."""
        return self.config_maps if kind == "ConfigMap" else self.secrets

    def lookup(self, reference: ObjectReference) -> Optional[Mapping[str, bytes]]:
        """All keys of the object; None: it is not there."""
        return self.of_kind(reference.kind).get(reference.name)


@dataclass(frozen=True)
class Manifest:
    """The result of reader.read_manifest."""

    job: TrainingJob
    # The operator that the job was read for.
    version: OperatorVersion
    objects: ClusterObjects
    # Differences from a cluster, or from what the author may expect; one line each.
    warnings: Tuple[str, ...]
    # The job as a v1 document: legacy forms moved, parameters filled in, defaults not.
    document: Mapping[str, Any]
