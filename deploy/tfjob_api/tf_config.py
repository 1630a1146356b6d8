"""TF_CONFIG as the TFJob operator writes it, byte for byte.

Go's encoder sorts the cluster's keys and writes no spaces; the fields' order is cluster, task,
environment. With dynamic workers a replica is told little beside itself, and nothing of the
environment.
"""

import json
from typing import Dict, Mapping, Optional, Sequence

from .model import TrainingJob
from .naming import Addresses
from .operator_version import NEWEST, OperatorVersion


class TfConfig:
    def __init__(
        self, job: TrainingJob, addresses: Addresses, version: OperatorVersion = OperatorVersion.parse(NEWEST)
    ):
        self._job = job
        self._addresses = addresses
        self._version = version

    def render(self, replica_type: str, index: int) -> Optional[str]:
        """The value for one replica; None: the operator sets no TF_CONFIG."""
        if self._job.total_replicas() == 1 and not self._version.single_replica_has_tf_config:
            return None
        task = {"type": replica_type.lower(), "index": index}
        if self._job.dynamic_workers and self._version.knows_dynamic_workers:
            key = self._version.sparse_cluster_key
            return _encode({key: self._sparse_cluster(replica_type, index), "task": task})
        return _encode({"cluster": self._dense_cluster(), "task": task, "environment": "cloud"})

    def _dense_cluster(self) -> Mapping[str, Sequence[str]]:
        by_key = {t.lower(): self._of_type(t) for t in self._job.replica_specs}
        if not self._version.evaluator_in_cluster:
            by_key.pop("evaluator", None)
        return dict(sorted(by_key.items()))

    def _sparse_cluster(self, replica_type: str, index: int) -> Mapping[str, object]:
        if replica_type == "Worker":
            servers = self._of_type("PS") if "PS" in self._job.replica_specs else None
            return {"worker": {str(index): self._of_type("Worker")[index]}, "ps": servers}
        if replica_type == "PS":
            return {"worker": {}, "ps": [self._of_type("PS")[index]]}
        return {"worker": {}, "ps": []}

    def _of_type(self, replica_type: str) -> Sequence[str]:
        return list(self._addresses[replica_type])[: self._job.replicas(replica_type)]


def _encode(value: Dict[str, object]) -> str:
    return json.dumps(value, separators=(",", ":"))
