"""A job as its user describes it, and rules that the cluster does not check."""

import posixpath
import re
from dataclasses import dataclass, field
from typing import Mapping, Optional, Tuple

from tfjob_api.fields import describe
from tfjob_api.job_kind import TF_JOB, JobKind
from tfjob_api.model import CLEAN_POD_POLICIES, RESTART_POLICIES, VARIABLE_NAME
from tfjob_api.quantity import parse_quantity

from .errors import InputError

# The API server's limit for all the data of a ConfigMap.
MAX_CONFIG_BYTES = 1024 * 1024
# Where the ConfigMap is in every pod.
CONFIG_DIR = "/etc/keelson"
# Where the Secret with the token is, in the pods that ask for it.
TOKEN_DIR = "/etc/keelson-token"
JOB_TOKEN_DIR = "/etc/keelson-job-token"
# Where the snapshots are in every pod, unless the claim has a path of its own.
MODEL_DIR = "/model"
ROLES = ("chief", "ps", "worker", "evaluator")

_SUBDIRECTORY = re.compile(r"\.|(?!\.\.)[-._a-zA-Z0-9]+(/(?!\.\.)[-._a-zA-Z0-9]+)*")
_HOSTS = re.compile(r"--(chief|ps|worker|evaluator)_hosts(=|$)")
_OBJECT_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")


@dataclass(frozen=True)
class Mount:
    """A claim or a Secret, by name, as a directory of every role."""

    name: str
    path: str


@dataclass(frozen=True)
class Resources:
    """The resources of one role's pods, as Kubernetes writes them ("500m", "2Gi"); empty: the default.

    The memory is limit and request; the cpu is a request, and the workers' limit too.
    """

    cpu: str = ""
    memory: str = ""


@dataclass(frozen=True)
class Toleration:
    key: str
    # Empty: any.
    value: str = ""
    # Empty: all.
    effect: str = ""


@dataclass(frozen=True)
class JobSettings:
    name: str
    image: str
    # Empty: the one of kubectl's context.
    namespace: str = ""
    kind: JobKind = TF_JOB
    # The replica that leads, a PyTorchJob's Master; without one, worker 0 leads the job.
    chief: bool = True
    # 0: the job's chief and workers have the variables.
    ps: int = 1
    workers: int = 1
    # None: where there is a claim to share the snapshots.
    evaluator: Optional[bool] = None
    # The number of GPUs of each worker.
    gpus: int = 0
    # A TrainConfig as a text proto; empty: the programs' default.
    config: str = ""
    # The claim for snapshots; None: they are in the chief's pod, and lost with it.
    model_claim: Optional[Mount] = None
    # The directory of that claim with the job's model, for each job its own; empty: one of the job's name, in
    # which a later job of this name resumes; ".": the claim itself.
    model_subdirectory: str = ""
    # The claim with IDX files, read only; None: the config's data.
    data_claim: Optional[Mount] = None
    environment: Mapping[str, str] = field(default_factory=dict)
    secrets: Tuple[Mount, ...] = ()
    # By role ("ps"); for a role that is not here the defaults of the manifest.
    resources: Mapping[str, Resources] = field(default_factory=dict)
    training_steps: Optional[int] = None
    # Workers may come and go (enableDynamicWorker). None: where nothing speaks against it.
    dynamic_workers: Optional[bool] = None
    # No eviction takes a pod whose loss fails the job; a drain of its node waits for the job's end.
    disruption_budget: bool = True
    # The restart policy of all roles; empty: ExitCode, and OnFailure for the evaluator.
    restart_policy: str = ""
    clean_pod_policy: str = "Running"
    # None: forever.
    ttl_seconds: Optional[int] = 86400
    # None: no limit.
    deadline_seconds: Optional[int] = None
    backoff_limit: Optional[int] = None
    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: Tuple[Toleration, ...] = ()
    service_account: str = ""
    image_pull_secrets: Tuple[str, ...] = ()
    # The evaluator serves its page, and a Service leads to it.
    dashboard: bool = False
    # A Secret with the job's token under the key "token", which authorizes changes of the running job.
    auth_secret: str = ""
    # A Secret with the token of the job's tasks under the key "token"; empty: one is made for the job.
    job_secret: str = ""
    # Whether the job has such a token; without it, whoever reaches its ports can take part in it.
    job_token: bool = True
    # For every role, after all others.
    arguments: Tuple[str, ...] = ()

    @property
    def model_dir(self) -> str:
        """In every pod."""
        if self.model_claim is None:
            return MODEL_DIR
        return posixpath.normpath(posixpath.join(self.model_claim.path, self.model_subdirectory or self.name))

    @property
    def leader_type(self) -> str:
        return self.kind.leader_types[0] if self.chief else "Worker"

    @property
    def is_collective(self) -> bool:
        """Chief and workers have the variables, and all of them train."""
        return self.ps == 0 and (self.workers > 0 or not self.kind.programs.get("PS"))

    def trains(self, replica_type: str) -> bool:
        """Whether such a replica is a worker, whatever it is called."""
        return replica_type == "Worker" or (self.is_collective and replica_type == self.leader_type)

    @property
    def has_job_token(self) -> bool:
        """A job in one process has none: its tasks do not call one another."""
        return self.job_token and self._has_cluster

    @property
    def _has_cluster(self) -> bool:
        return self.ps > 0 or self.workers > 1 or (self.chief and self.workers > 0) or self.has_evaluator

    @property
    def has_dynamic_workers(self) -> bool:
        """A job without a chief is led by a worker; hosts of one's own are not those that the operator's lists lack."""
        if self.dynamic_workers is not None:
            return self.dynamic_workers
        own_hosts = any(_HOSTS.match(argument) for argument in self.arguments)
        return self.chief and self.ps > 0 and self.workers > 0 and not own_hosts

    @property
    def has_evaluator(self) -> bool:
        if self.evaluator is not None:
            return self.evaluator
        has_cluster = self.ps > 0 or self.workers > 0
        return self.model_claim is not None and has_cluster and "Evaluator" in self.kind.replica_types


def default_servers(kind: JobKind) -> int:
    return 1 if "PS" in kind.replica_types else 0


def check_settings(settings: JobSettings) -> None:
    """Raises InputError for mistakes that neither kubectl nor the reader of manifests finds, or names as
    well."""
    _check_replicas(settings)
    _check_config(settings.config)
    _check_mounts(settings)
    for role, resources in settings.resources.items():
        if role not in ROLES:
            raise InputError(f'resources: expected one of {", ".join(ROLES)}, found "{role}"')
        _check_quantity(f"--{role}_cpu", resources.cpu)
        _check_quantity(f"--{role}_memory", resources.memory)
    for name in settings.environment:
        if not VARIABLE_NAME.fullmatch(name):
            raise InputError(f'--env: expected the name of a variable, found "{name}"')
        if name == "TF_CONFIG":
            raise InputError("--env: TF_CONFIG is the operator's, it cannot be given")
    for name in (settings.service_account, *settings.image_pull_secrets):
        if name and not _OBJECT_NAME.fullmatch(name):
            raise InputError(f'expected the name of a service account or pull secret, found "{name}"')
    for flag, secret in (("--auth_secret", settings.auth_secret), ("--job_secret", settings.job_secret)):
        if secret and not _OBJECT_NAME.fullmatch(secret):
            raise InputError(f'{flag}: expected the name of a Secret, found "{secret}"')
    _check_choice("--restart_policy", settings.restart_policy or "ExitCode", RESTART_POLICIES)
    _check_choice("--clean_pod_policy", settings.clean_pod_policy, CLEAN_POD_POLICIES)


def _check_replicas(settings: JobSettings) -> None:
    for flag, number in (("--ps", settings.ps), ("--workers", settings.workers), ("--gpus", settings.gpus)):
        if number < 0:
            raise InputError(f"{flag}: expected a whole number >= 0, found {number}")
    alone = settings.ps == 0 and settings.workers == 0
    if settings.ps > 0 and "PS" not in settings.kind.replica_types:
        raise InputError(f"--ps: a {settings.kind} has no parameter servers: expected 0, found {settings.ps}")
    if settings.has_evaluator and "Evaluator" not in settings.kind.replica_types:
        raise InputError(f"--evaluator: a {settings.kind} has none; a TFJob has (--kind tensorflow)")
    if settings.ps > 0 and settings.workers == 0:
        raise InputError(f"--workers: expected at least 1 beside {settings.ps} parameter servers, found 0")
    if alone and not settings.chief:
        raise InputError("no chief, no parameter servers and no workers: nothing would run")
    if alone and settings.has_evaluator:
        raise InputError("--evaluator: without workers the chief evaluates by itself")
    if settings.has_evaluator and settings.model_claim is None:
        raise InputError("--evaluator: it reads snapshots from a directory that all share; give --pvc CLAIM")
    if settings.dashboard and not settings.has_evaluator:
        raise InputError("--dashboard: the evaluator serves it; give --evaluator and --pvc CLAIM")
    if settings.dynamic_workers and not settings.chief:
        raise InputError("--dynamic_workers: worker 0 cannot lead workers it does not know; give it a chief")
    if settings.dynamic_workers and alone:
        raise InputError("--dynamic_workers: expected parameter servers and workers, found none")
    if settings.gpus and alone:
        raise InputError("--gpus: of each worker; expected --workers of at least 1, found 0")


def _check_config(config: str) -> None:
    size = len(config.encode())
    if size > MAX_CONFIG_BYTES:
        raise InputError(f"--config: expected at most {MAX_CONFIG_BYTES} bytes for a ConfigMap, found {size}")


def _check_mounts(settings: JobSettings) -> None:
    if settings.model_subdirectory:
        if settings.model_claim is None:
            raise InputError("--model_subdir: it is a directory of a claim; give --pvc CLAIM")
        if not _SUBDIRECTORY.fullmatch(settings.model_subdirectory):
            raise InputError(
                "--model_subdir: expected a path of letters, digits, '-', '_' and '.' within the claim, or "
                f"\".\", found {describe(settings.model_subdirectory)}"
            )
    claims = [("--pvc", settings.model_claim), ("--data_pvc", settings.data_claim)]
    mounts = claims + [("--secret", secret) for secret in settings.secrets]
    taken = {CONFIG_DIR: "the config", TOKEN_DIR: "the job's token", JOB_TOKEN_DIR: "the token of its pods"}
    for flag, mount in mounts:
        if mount is None:
            continue
        if not _OBJECT_NAME.fullmatch(mount.name):
            raise InputError(f'{flag}: expected the name of an object in the cluster, found "{mount.name}"')
        path = mount.path.rstrip("/")
        if not path.startswith("/") or ":" in path:
            raise InputError(f'{flag}: expected an absolute path in the pod, found "{mount.path}"')
        for other, what in taken.items():
            if f"{path}/".startswith(f"{other}/") or f"{other}/".startswith(f"{path}/"):
                raise InputError(f"{flag}: {path} overlaps {other}, the place of {what}")
        taken[path] = f"{flag} {mount.name}"


def _check_quantity(flag: str, text: str) -> None:
    if not text:
        return
    try:
        quantity = parse_quantity(text)
    except ValueError as error:
        raise InputError(f"{flag}: {error}") from error
    if quantity < 0:
        raise InputError(f'{flag}: expected a quantity >= 0, found "{text}"')


def _check_choice(flag: str, value: str, choices: Tuple[str, ...]) -> None:
    if value not in choices:
        raise InputError(f'{flag}: expected one of {", ".join(choices)}, found "{value}"')
