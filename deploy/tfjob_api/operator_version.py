"""The differences between the generations of the TFJob operator, as properties.

Source: the tags of kubeflow/trainer (training-operator, tf-operator) and kubeflow/common; each
property names the first version that behaves as its value says.
"""

import re
from dataclasses import dataclass
from typing import Tuple

NEWEST = "1.9.4"
OLDEST = (0, 3, 0)

# API version of a manifest -> the last operator that was made for it.
_NEWEST_OF_API_VERSION = {
    "v1alpha2": "0.3.0",
    "v1beta1": "0.4.0",
    "v1beta2": "0.5.3",
    "v1": NEWEST,
}


@dataclass(frozen=True, order=True)
class OperatorVersion:
    """A version such as 1.9.4; the properties are its behaviour."""

    numbers: Tuple[int, int, int]

    @classmethod
    def parse(cls, text: str) -> "OperatorVersion":
        """"1.4", "v1.9.4". ValueError: not a version, or older than any that knew tfReplicaSpecs."""
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

    def _since(self, *numbers: int) -> bool:
        return self.numbers >= numbers

    # The environment of a replica.

    @property
    def evaluator_in_cluster(self) -> bool:
        """The evaluator stands in TF_CONFIG's cluster (1.2)."""
        return self._since(1, 2)

    @property
    def single_replica_has_tf_config(self) -> bool:
        return not self._since(1, 1)

    @property
    def knows_dynamic_workers(self) -> bool:
        return self._since(1, 1)

    @property
    def sparse_cluster_key(self) -> str:
        return "cluster" if self._since(1, 7) else "sparseCluster"

    @property
    def hosts_have_namespace(self) -> bool:
        """HOST.NAMESPACE.svc (0.4); before, the bare name of the Service."""
        return self._since(0, 4)

    # How pods are labelled.

    @property
    def has_prefixed_labels(self) -> bool:
        """training.kubeflow.org/job-name and its like (1.4)."""
        return self._since(1, 4)

    @property
    def has_plain_labels(self) -> bool:
        """job-name and its like (1.0 to 1.5)."""
        return self._since(1, 0) and not self._since(1, 6)

    @property
    def has_tf_labels(self) -> bool:
        """tf-job-name and its like."""
        return not self._since(1, 0)

    @property
    def has_underscore_labels(self) -> bool:
        """tf_job_name, but tf-replica-type."""
        return not self._since(0, 4)

    # Failures and restarts.

    @property
    def retries_every_code_from_128(self) -> bool:
        """ExitCode: codes >= 128 are retried (1.5); before, 130, 137, 138 and 143 alone."""
        return self._since(1, 5)

    @property
    def remembers_restarting(self) -> bool:
        """A chief that runs does not hide that another replica restarts (1.5)."""
        return self._since(1, 5)

    @property
    def recreates_lost_on_failure_pods(self) -> bool:
        """OnFailure, Always: a lost pod is recreated (1.6); before, it failed the job."""
        return self._since(1, 6)

    @property
    def restarting_subject(self) -> str:
        """The first word of the message of the condition Restarting."""
        return "job" if self._since(1, 6) else "TFJob"

    @property
    def counts_terminating_as_failed(self) -> bool:
        """A running pod that is being deleted counts as failed (1.7)."""
        return self._since(1, 7)

    @property
    def names_failing_replica_type(self) -> bool:
        """A permanent exit code has its own message, and wins over a Restarting condition (1.8)."""
        return self._since(1, 8)

    # Policies.

    @property
    def default_clean_pod_policy(self) -> str:
        return "None" if self._since(1, 6) else "Running"

    @property
    def cleans_up_after_limits(self) -> bool:
        """cleanPodPolicy counts after backoffLimit and activeDeadlineSeconds too; from 1.7 to 1.9.3
        every pod was deleted."""
        return not self._since(1, 7) or self._since(1, 9, 4)

    @property
    def forgets_the_deadline(self) -> bool:
        """activeDeadlineSeconds is only looked at when something else happens (1.3)."""
        return self._since(1, 3)

    @property
    def knows_suspend(self) -> bool:
        return self._since(1, 7)

    @property
    def knows_managed_by(self) -> bool:
        return self._since(1, 9)

    @property
    def has_webhook(self) -> bool:
        """Admission's checks are a webhook's (1.8); before, the controller made them, in other words."""
        return self._since(1, 8)

    @property
    def wants_one_evaluator(self) -> bool:
        """A second evaluator is refused (0.4 to 1.0)."""
        return self._since(0, 4) and not self._since(1, 1)

    @property
    def wants_dns_1035_name(self) -> bool:
        return self._since(1, 6)

    @property
    def reads_policies_beside_run_policy(self) -> bool:
        """cleanPodPolicy and its like directly under spec count (up to 1.1)."""
        return not self._since(1, 2)
