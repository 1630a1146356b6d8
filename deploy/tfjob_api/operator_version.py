"""The differences between the generations of the training operator, as properties.

Source: the tags of kubeflow/trainer (training-operator, tf-operator) and kubeflow/common; each
property names the first version that behaves as its value says.
"""

import re
from dataclasses import dataclass
from typing import Optional, Tuple

NEWEST = "1.9.4"
OLDEST = (0, 3, 0)

# API version of a manifest -> the last operator that was made for it.
_NEWEST_OF_API_VERSION = {"v1alpha2": "0.3.0", "v1beta1": "0.4.0", "v1beta2": "0.5.3", "v1": NEWEST}


def _between(first: Tuple[int, ...], end: Optional[Tuple[int, ...]] = None) -> property:
    """Whether a version is `first` or newer, and before `end`; None: there is no end."""
    return property(lambda self: first <= self.numbers and (end is None or self.numbers < end))


def _since(*first: int) -> property:
    return _between(first)


def _before(*end: int) -> property:
    return _between((), end)


@dataclass(frozen=True, order=True)
class OperatorVersion:
    """A version such as 1.9.4; the properties are its behaviour."""

    numbers: Tuple[int, int, int]

    @classmethod
    def parse(cls, text: str) -> "OperatorVersion":
        """ "1.4", "v1.9.4". ValueError: not a version, or older than any that knew tfReplicaSpecs."""
        match = re.fullmatch(r"v?(\d+)\.(\d+)(?:\.(\d+))?", text)
        if not match:
            raise ValueError(f'expected a version such as {NEWEST}, found "{text}"')
        version = cls((int(match.group(1)), int(match.group(2)), int(match.group(3) or 0)))
        if version.numbers < OLDEST:
            oldest = ".".join(str(number) for number in OLDEST)
            raise ValueError(f'expected {oldest} or newer, found "{text}"')
        return version

    @classmethod
    def for_api_version(cls, api_version: str) -> "OperatorVersion":
        """The newest operator that a manifest of this API version was written for."""
        text = _NEWEST_OF_API_VERSION.get(api_version)
        if text is None:
            known = ", ".join(_NEWEST_OF_API_VERSION)
            raise ValueError(f'expected one of {known}, found "{api_version}"')
        return cls.parse(text)

    def __str__(self) -> str:
        return ".".join(str(number) for number in self.numbers)

    # The environment of a replica.

    # The evaluator stands in TF_CONFIG's cluster.
    evaluator_in_cluster = _since(1, 2)
    single_replica_has_tf_config = _before(1, 1)
    knows_dynamic_workers = _since(1, 1)
    # HOST.NAMESPACE.svc; before, the bare name of the Service.
    hosts_have_namespace = _since(0, 4)
    # A replica's Service has all ports of the container; before, tfjob-port alone.
    services_have_all_ports = _since(1, 2)

    # The same of a PyTorchJob.

    # MASTER_ADDR is the name of the Service in the master, too; before, localhost, and PYTHONUNBUFFERED stands last.
    master_has_its_name = _since(1, 4)
    # A worker has an init container that looks for the master's name.
    waits_for_master = _since(1, 4)
    # It gives up after some tries.
    gives_up_waiting = _since(1, 7)
    knows_elastic_policy = _since(1, 4)
    # Without a Master, the success of one worker of an elastic job is that of the job.
    one_elastic_worker_is_enough = _since(1, 6)
    # The variables of torchrun of a job without elasticPolicy, and nprocPerNode, which counts in WORLD_SIZE.
    has_torchrun_variables = _since(1, 7)
    # PET_NPROC_PER_NODE stands behind PET_NODE_RANK, and jobs without a Master have it, too.
    always_has_nproc_per_node = _since(1, 8)

    @property
    def sparse_cluster_key(self) -> str:
        return "cluster" if self.numbers >= (1, 7) else "sparseCluster"

    # How pods are labelled.

    # training.kubeflow.org/job-name and its like.
    has_prefixed_labels = _since(1, 4)
    # job-name and its like.
    has_plain_labels = _between((1, 0), (1, 6))
    # tf-job-name and its like.
    has_tf_labels = _before(1, 0)
    # tf_job_name, but tf-replica-type.
    has_underscore_labels = _before(0, 4)

    # Failures and restarts.

    # ExitCode: codes >= 128 are retried; before, 130, 137, 138 and 143 alone.
    retries_every_code_from_128 = _since(1, 5)
    # A chief that runs does not hide that another replica restarts.
    remembers_restarting = _since(1, 5)
    # OnFailure, Always: a lost pod is recreated; before, it failed the job.
    recreates_lost_on_failure_pods = _since(1, 6)
    # A running pod that is being deleted counts as failed.
    counts_terminating_as_failed = _since(1, 7)
    # A permanent exit code has its own message, and wins over a Restarting condition.
    names_failing_replica_type = _since(1, 8)

    @property
    def restarting_subject(self) -> str:
        """The first word of the message of the condition Restarting."""
        return "job" if self.numbers >= (1, 6) else "TFJob"

    # A PyTorchJob whose pod has failed fails at once, unless it is ExitCode's, though nothing is missing any more.
    fails_while_others_run = _before(1, 5)

    # Policies.

    # activeDeadlineSeconds is only looked at when something else happens.
    forgets_the_deadline = _since(1, 3)
    knows_suspend = _since(1, 7)
    knows_managed_by = _since(1, 9)
    # Admission's checks are a webhook's; before, the controller made them, in other words.
    has_webhook = _since(1, 8)
    # A second evaluator is refused.
    wants_one_evaluator = _between((0, 4), (1, 1))
    wants_dns_1035_name = _since(1, 6)
    # cleanPodPolicy and its like directly under spec count.
    reads_policies_beside_run_policy = _before(1, 2)

    @property
    def cleans_up_after_limits(self) -> bool:
        """cleanPodPolicy counts after backoffLimit and activeDeadlineSeconds too; from 1.7 to 1.9.3
        every pod was deleted."""
        return not (1, 7) <= self.numbers < (1, 9, 4)
