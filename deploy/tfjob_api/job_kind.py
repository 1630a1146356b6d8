"""What each kind of job has of its own: a table with one row for each kind.

What is code and no data stands elsewhere, by the kind: what the operator adds to a pod in operator_pod, further
refusals in admission, further warnings in lint. A TrainJob is Kubeflow Trainer's, the others are the training
operator's.

Source: pkg/apis/kubeflow.org/v1 and pkg/controller.v1 of kubeflow/training-operator; of TrainJob pkg/constants and
pkg/runtime/framework/plugins of kubeflow/trainer.
"""

from dataclasses import dataclass
from typing import Dict, Mapping, Tuple

from .operator_version import OperatorVersion


@dataclass(frozen=True)
class Messages:
    """What the operator says of a job in its conditions, with {namespace}, {name} and, of a failure, {count} and
    {type} to be filled in."""

    running: str
    succeeded: str
    failed: str


@dataclass(frozen=True)
class JobKind:
    """One row of the table."""

    # "TFJob"; the operator's messages begin with it.
    name: str
    # As kubectl lists them: "tfjobs".
    plural: str
    # The field of spec that has the replica types.
    specs_field: str
    replica_types: Tuple[str, ...]
    # One replica of one of these leads the job; without them worker 0 does.
    leader_types: Tuple[str, ...]
    # The container that the operator gives its variables to, and whose exit code counts.
    container: str
    # The port of the container that peers connect to, and its number where there is none of that name; "": the number
    # is always the same.
    port_name: str
    port: int
    # Those of the kind's API group, the newest first.
    api_versions: Tuple[str, ...]
    restart_policy: str
    # Operators before this one clean up running pods unless the job says otherwise; () for none.
    cleans_up_before: Tuple[int, ...]
    # The label operator-name of the pods, or the value of managedBy that leaves the job to its own controller.
    controller: str
    # The operator writes HOST.NAMESPACE.svc, since the version that began with it; else the bare name of the Service.
    hosts_have_namespace: bool
    # Its admission webhook refuses unknown replica types, which it compares before they get their usual spelling.
    webhook_knows_types: bool
    messages: Messages
    # The messages of a job that worker 0 leads.
    leaderless_messages: Messages
    # Before this operator, the reasons of conditions begin with "Job" and not with the kind; () for none.
    plain_reasons_before: Tuple[int, ...]
    # Peers are told one address alone, and programs take its port on all addresses of a machine: on a machine that they
    # share, each replica has a host of its own.
    wants_own_hosts: bool
    # Keelson's program of each replica type.
    programs: Mapping[str, str]
    # Keelson's program where the job is one replica.
    program_alone: str
    # Its scripts know nothing of Keelson, and run as they are where this machine has them.
    runs_scripts: bool
    # The replicas that train; where nothing else leads, the first of them does.
    worker_type: str = "Worker"
    # Its pods are those of one Job of a JobSet, which stands behind the job: its Jobs have numbers, one Service names
    # all pods, and JobSet and Job have rules of their own for ends of pods.
    is_job_set: bool = False

    @property
    def specs_path(self) -> str:
        """ "spec.tfReplicaSpecs", as errors name it."""
        return f"spec.{self.specs_field}"

    def __str__(self) -> str:
        return self.name

    def default_clean_pod_policy(self, version: OperatorVersion) -> str:
        return "Running" if version.numbers < self.cleans_up_before else "None"

    def reason_prefix(self, version: OperatorVersion) -> str:
        return "Job" if version.numbers < self.plain_reasons_before else self.name


_TF_MESSAGES = Messages(
    running="TFJob {namespace}/{name} is running.",
    succeeded="TFJob {namespace}/{name} successfully completed.",
    failed="TFJob {namespace}/{name} has failed because {count} {type} replica(s) failed.",
)
_PYTORCH_FAILED = "PyTorchJob {name} is failed because {count} {type} replica(s) failed."

# A JobSet's, which become its TrainJob's.
_JOB_SET_MESSAGES = Messages(
    running="",
    succeeded="jobset completed successfully",
    failed="jobset failed due to one or more job failures",
)

TF_JOB = JobKind(
    name="TFJob",
    plural="tfjobs",
    specs_field="tfReplicaSpecs",
    replica_types=("Chief", "Evaluator", "Master", "PS", "Worker"),
    leader_types=("Chief", "Master"),
    container="tensorflow",
    port_name="tfjob-port",
    port=2222,
    api_versions=("v1", "v1alpha2", "v1beta1", "v1beta2"),
    restart_policy="Never",
    cleans_up_before=(1, 6),
    controller="tfjob-controller",
    hosts_have_namespace=True,
    webhook_knows_types=False,
    messages=_TF_MESSAGES,
    leaderless_messages=_TF_MESSAGES,
    plain_reasons_before=(),
    wants_own_hosts=False,
    programs={
        "Chief": "chief",
        "Evaluator": "evaluator",
        "Master": "chief",
        "PS": "ps_server",
        "Worker": "worker",
    },
    program_alone="chief",
    runs_scripts=False,
)

PYTORCH_JOB = JobKind(
    name="PyTorchJob",
    plural="pytorchjobs",
    specs_field="pytorchReplicaSpecs",
    replica_types=("Master", "Worker"),
    leader_types=("Master",),
    container="pytorch",
    port_name="pytorchjob-port",
    port=23456,
    api_versions=("v1",),
    restart_policy="OnFailure",
    cleans_up_before=(),
    controller="pytorchjob-controller",
    hosts_have_namespace=False,
    webhook_knows_types=True,
    messages=Messages(
        running="PyTorchJob {name} is running.",
        succeeded="PyTorchJob {name} is successfully completed.",
        failed=_PYTORCH_FAILED,
    ),
    leaderless_messages=Messages(
        running="PyTorchJob {namespace}/{name} is running.",
        succeeded="PyTorchJob {namespace}/{name} successfully completed.",
        failed=_PYTORCH_FAILED,
    ),
    plain_reasons_before=(1, 7),
    wants_own_hosts=True,
    # In a cluster without servers the workers have the variables, and the one of rank 0 leads.
    programs={"Master": "worker", "Worker": "worker"},
    program_alone="worker",
    runs_scripts=True,
)

TRAIN_JOB = JobKind(
    name="TrainJob",
    plural="trainjobs",
    # The runtime that it names has them.
    specs_field="",
    replica_types=("Node",),
    leader_types=(),
    container="node",
    port_name="",
    port=29500,
    api_versions=("v1alpha1",),
    # JobSet's default.
    restart_policy="OnFailure",
    cleans_up_before=(),
    controller="trainer.kubeflow.org/trainjob-controller",
    hosts_have_namespace=False,
    webhook_knows_types=False,
    messages=_JOB_SET_MESSAGES,
    leaderless_messages=_JOB_SET_MESSAGES,
    plain_reasons_before=(),
    wants_own_hosts=True,
    programs={"Node": "worker"},
    program_alone="worker",
    runs_scripts=True,
    worker_type="Node",
    is_job_set=True,
)

# Those of the training operator, by name.
JOB_KINDS: Dict[str, JobKind] = {kind.name: kind for kind in (TF_JOB, PYTORCH_JOB)}
# All that a manifest may have.
MANIFEST_KINDS: Dict[str, JobKind] = {**JOB_KINDS, TRAIN_JOB.name: TRAIN_JOB}


def any_kind(article: str = "") -> str:
    """Returns what errors expect: "a TFJob, a PyTorchJob or a TrainJob" with "a " before each."""
    *first, last = (article + kind for kind in MANIFEST_KINDS)
    return f"{', '.join(first)} or {last}"
