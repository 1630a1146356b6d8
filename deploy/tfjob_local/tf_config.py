"""TF_CONFIG as the TFJob operator (1.7 and later) writes it, byte for byte.

Go's encoder sorts the cluster's keys and writes no spaces; the fields' order is cluster, task,
environment. The evaluator stands in the cluster. A job of a single replica gets none at all.
"""

import json
from typing import Dict, List, Optional

from .job import TFJob

# Replica type ("PS") -> one "host:port" per replica.
Addresses = Dict[str, List[str]]


class TfConfig:
    def __init__(self, job: TFJob, addresses: Addresses):
        self._job = job
        self._addresses = addresses

    def render(self, replica_type: str, index: int) -> Optional[str]:
        """The value for one replica; None: the operator sets no TF_CONFIG."""
        if self._job.total_replicas() == 1:
            return None
        task = {"type": replica_type.lower(), "index": index}
        if self._job.dynamic_workers:
            return _encode({"cluster": self._sparse_cluster(replica_type, index), "task": task})
        return _encode({"cluster": self._dense_cluster(), "task": task, "environment": "cloud"})

    def _dense_cluster(self) -> Dict[str, List[str]]:
        by_key = {t.lower(): addresses for t, addresses in self._addresses.items()}
        return dict(sorted(by_key.items()))

    def _sparse_cluster(self, replica_type: str, index: int) -> Dict[str, object]:
        """What a replica of a job with enableDynamicWorker is told: little beside itself."""
        if replica_type == "Worker":
            own = {str(index): self._addresses["Worker"][index]}
            return {"worker": own, "ps": self._addresses.get("PS")}
        if replica_type == "PS":
            return {"worker": {}, "ps": [self._addresses["PS"][index]]}
        return {"worker": {}, "ps": []}


def _encode(value: Dict[str, object]) -> str:
    return json.dumps(value, separators=(",", ":"))
