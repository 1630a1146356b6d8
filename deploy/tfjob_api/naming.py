"""The operator's names: pods, the Services of the same name, hosts, labels."""

from typing import Dict, List, Mapping, Sequence, Tuple

from .job_kind import JOB_KINDS
from .model import API_GROUP, TrainingJob
from .operator_version import NEWEST, OperatorVersion

# Replica type ("PS") -> "host:port" per replica.
Addresses = Mapping[str, Sequence[str]]

_NEWEST = OperatorVersion.parse(NEWEST)
_TYPES = dict.fromkeys(name.lower() for kind in JOB_KINDS.values() for name in kind.replica_types)
# A regular expression for a replica type in names and labels.
TYPE_PATTERN = f"(?:{'|'.join(_TYPES)})"
# The prefix of labels since 1.4.
LABEL_PREFIX = "training.kubeflow.org/"
_LABEL_PREFIXES = (LABEL_PREFIX, "", "tf-")


def replica_name(replica_type: str, index: int) -> str:
    """"worker-1": how users call a replica."""
    return f"{replica_type.lower()}-{index}"


def pod_name(job_name: str, replica_type: str, index: int) -> str:
    """Also the name of the replica's Service."""
    return f"{job_name}-{replica_name(replica_type, index)}"


def replicas(job: TrainingJob) -> List[Tuple[str, int]]:
    """Type and index of every replica, in the manifest's order."""
    return [(t, index) for t, spec in job.replica_specs.items() for index in range(spec.replicas)]


def replica_names(job: TrainingJob) -> List[str]:
    return [replica_name(replica_type, index) for replica_type, index in replicas(job)]


def replica_host(
    job: TrainingJob, replica_type: str, index: int, domain: str = "", version: OperatorVersion = _NEWEST
) -> str:
    """`domain`: CUSTOM_CLUSTER_DOMAIN of the operator."""
    name = pod_name(job.name, replica_type, index)
    if not (job.kind.hosts_have_namespace and version.hosts_have_namespace):
        return name
    return f"{name}.{job.namespace}.svc" + (f".{domain}" if domain else "")


def cluster_addresses(job: TrainingJob, domain: str = "", version: OperatorVersion = _NEWEST) -> Addresses:
    return {
        replica_type: [
            f"{replica_host(job, replica_type, index, domain, version)}:{spec.port}"
            for index in range(spec.replicas)
        ]
        for replica_type, spec in job.replica_specs.items()
    }


def is_leader(job: TrainingJob, replica_type: str, index: int) -> bool:
    """The replica whose log is the job's, and whose pod has the label job-role=master."""
    if job.chief_type() is not None:
        return replica_type in job.kind.leader_types
    return replica_type == "Worker" and index == 0


def labels(job: TrainingJob, replica_type: str, index: int, version: OperatorVersion = _NEWEST) -> Dict[str, str]:
    """The labels that the operator adds to those of the pod template, and by which it selects pods."""
    own = {"job-name": job.name, "replica-type": replica_type.lower(), "replica-index": str(index)}
    if is_leader(job, replica_type, index):
        own["job-role"] = "master"
    result: Dict[str, str] = {}
    if version.has_prefixed_labels:
        prefixed = {"operator-name": job.kind.controller, **own}
        result.update({LABEL_PREFIX + key: value for key, value in prefixed.items()})
    if version.has_plain_labels:
        result.update({"group-name": API_GROUP, **own})
    if version.has_tf_labels:
        result.update({"group-name": API_GROUP, **{f"tf-{key}": value for key, value in own.items()}})
    if version.has_underscore_labels:
        result = {key if "replica" in key else key.replace("-", "_"): value for key, value in result.items()}
    return result


def job_selectors(job_name: str) -> List[str]:
    """Each selects all pods of the job; the newest generation of labels first."""
    return [
        f"{LABEL_PREFIX}job-name={job_name}",
        f"group-name={API_GROUP},job-name={job_name}",
        f"group-name={API_GROUP},tf-job-name={job_name}",
        f"group_name={API_GROUP},tf_job_name={job_name}",
    ]


def label(pod_labels: Mapping[str, str], name: str) -> str:
    """"replica-type" and so on, whichever generation wrote it; "" where none did."""
    names = [prefix + name for prefix in _LABEL_PREFIXES]
    return next((pod_labels[full] for full in names if full in pod_labels), "")
