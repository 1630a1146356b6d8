"""The operator's names: pods, the Services of the same name, hosts, labels.

The pods of a TrainJob have JobSet's names, without the five characters that the cluster makes up behind them: the
names of their hosts.
"""

import re
from typing import Dict, List, Mapping, Sequence, Tuple

from .job_kind import JOB_KINDS, TRAIN_JOB
from .model import API_GROUP, TrainingJob
from .operator_version import NEWEST, OperatorVersion

# Replica type ("PS") -> "host:port" per replica.
Addresses = Mapping[str, Sequence[str]]

_NEWEST = OperatorVersion.parse(NEWEST)
_TYPES = dict.fromkeys(name.lower() for kind in JOB_KINDS.values() for name in kind.replica_types)
# A regular expression for a replica type in names and labels.
TYPE_PATTERN = f"(?:{'|'.join(_TYPES)})"
# The number of the only Job of a JobSet.
_JOB_INDEX = 0
# The prefix of labels since 1.4.
LABEL_PREFIX = "training.kubeflow.org/"
_LABEL_PREFIXES = (LABEL_PREFIX, "", "tf-")


def replica_name(replica_type: str, index: int) -> str:
    """"worker-1": how users call a replica."""
    return f"{replica_type.lower()}-{index}"


def pod_name(job_name: str, replica_type: str, index: int) -> str:
    """Also the name of the replica's Service, or of its host."""
    if replica_type in TRAIN_JOB.replica_types:
        return f"{job_of_pods(job_name)}-{index}"
    return f"{job_name}-{replica_name(replica_type, index)}"


def job_of_pods(job_name: str) -> str:
    """The Job of a TrainJob's JobSet."""
    return f"{job_name}-{TRAIN_JOB.container}-{_JOB_INDEX}"


def host_patterns(job: TrainingJob) -> Tuple[str, str]:
    """Regular expressions for the name of a replica's host, the first one up to its index, with the type as a group,
    the second one for what stands behind it before the namespace."""
    name = re.escape(job.name)
    if job.kind.is_job_set:
        return rf"{name}-({TRAIN_JOB.container})-{_JOB_INDEX}-", rf"\.{name}"
    return rf"{name}-({TYPE_PATTERN})-", ""


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
    if job.kind.is_job_set:
        return f"{name}.{job.name}"
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
    return replica_type == job.kind.worker_type and index == 0


def labels(job: TrainingJob, replica_type: str, index: int, version: OperatorVersion = _NEWEST) -> Dict[str, str]:
    """The labels that the operator adds to those of the pod template, and by which it selects pods."""
    if job.kind.is_job_set:
        return _job_set_labels(job, replica_type, index)
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


def annotations(job: TrainingJob, index: int) -> Dict[str, str]:
    """Those beside the pod template's."""
    return {"batch.kubernetes.io/job-completion-index": str(index)} if job.kind.is_job_set else {}


def _job_set_labels(job: TrainingJob, replica_type: str, index: int) -> Dict[str, str]:
    """JobSet's (api/jobset/v1alpha2) and the Job's (k8s.io/api/batch/v1), as far as they are known without a cluster."""
    prefix = "jobset.sigs.k8s.io/"
    return {
        f"{prefix}jobset-name": job.name,
        f"{prefix}replicatedjob-name": replica_type.lower(),
        f"{prefix}job-index": str(_JOB_INDEX),
        "batch.kubernetes.io/job-name": job_of_pods(job.name),
        "job-name": job_of_pods(job.name),
        **annotations(job, index),
    }


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
