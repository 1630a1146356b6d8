"""Which pods a drain of their node may evict: none whose loss fails the job, and of servers one at a time."""

import unittest
from typing import Any, Dict, List, Mapping

from isolation_test import labels_of
from support import Document, Role, all_roles, documents, is_collective, roles_of

from tfjob_api.job_kind import JOB_KINDS


def pod_labels(role: Role) -> Dict[str, str]:
    own = labels_of(role)
    if role.kind in ("JobSet", "ClusterTrainingRuntime"):
        own["jobset.sigs.k8s.io/replicatedjob-name"] = "node" if role.container["name"] == "node" else role.role
    return own


def selects(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    for rule in selector.get("matchExpressions", ()):
        among = labels.get(rule["key"]) in rule["values"]
        if among != {"In": True, "NotIn": False}[rule["operator"]]:
            return False
    return all(labels.get(key) == value for key, value in selector["matchLabels"].items())


def budgets_of(role: Role) -> List[Document]:
    """A pod that two budgets select cannot be evicted at all."""
    found = [d for d in documents(role.path) if d.kind == "PodDisruptionBudget"]
    return [d for d in found if selects(d.content["spec"]["selector"], pod_labels(role))]


def evictable(budget: Document) -> int:
    """How many of the pods that it selects may be away at once."""
    selected = [r.replicas for r in roles_of(budget.path) if budget in budgets_of(r)]
    spec = budget.content["spec"]
    return int(spec["maxUnavailable"]) if "maxUnavailable" in spec else sum(selected) - int(spec["minAvailable"])


class Budgets(unittest.TestCase):
    def test_no_pod_is_evicted_whose_loss_fails_the_job(self) -> None:
        for role in all_roles():
            if role.kind in JOB_KINDS and not (role.dynamic_workers and role.role == "worker"):
                with self.subTest(role.name):
                    (budget,) = budgets_of(role)
                    self.assertEqual(evictable(budget), 0)

    def test_dynamic_workers_come_and_go(self) -> None:
        workers = [r for r in all_roles() if r.dynamic_workers and r.role == "worker"]
        self.assertTrue(workers)
        for role in workers:
            self.assertEqual(budgets_of(role), [], role.name)

    def test_who_has_variables_without_an_operator_goes_one_at_a_time(self) -> None:
        for role in all_roles():
            if role.kind not in JOB_KINDS:
                with self.subTest(role.name):
                    has_variables = role.role == "ps" or is_collective(role.path)
                    self.assertEqual([evictable(b) for b in budgets_of(role)], [1] if has_variables else [])
