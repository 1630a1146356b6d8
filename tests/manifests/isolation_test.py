"""What a job's pods may do in the cluster, and who may reach them."""

import unittest
from dataclasses import dataclass
from typing import Any, Dict, Iterator, List, Mapping, Sequence, Set

from support import Document, Role, all_documents, all_roles, documents, peers_port, roles_of

from tfjob_api.job_kind import JOB_KINDS

JOBSET_LABEL = "jobset.sigs.k8s.io/jobset-name"
JOB_LABEL = "training.kubeflow.org/job-name"


@dataclass(frozen=True)
class Source:
    """Whence a connection comes. `labels`: of the pod; None: from outside the cluster."""

    name: str
    labels: Any
    same_namespace: bool


FOREIGN_POD = {JOB_LABEL: "other", JOBSET_LABEL: "other", "app.kubernetes.io/instance": "other"}


def job_name(path: str) -> str:
    kinds = (*JOB_KINDS, "JobSet", "TrainJob")
    names = [d.metadata_name for d in documents(path) if d.kind in kinds]
    return names[0] if names else "mnist"


def labels_of(role: Role) -> Dict[str, str]:
    """Those of the template, and those that controllers add."""
    own = dict(role.template["metadata"]["labels"])
    if role.kind in JOB_KINDS:
        own.update({JOB_LABEL: job_name(role.path), "training.kubeflow.org/replica-type": role.role})
    elif role.kind in ("JobSet", "ClusterTrainingRuntime"):
        own[JOBSET_LABEL] = job_name(role.path)
    return own


def selects(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    assert set(selector) <= {"matchLabels"}, selector
    return all(labels.get(key) == value for key, value in selector.get("matchLabels", {}).items())


def is_peer(peer: Mapping[str, Any], source: Source) -> bool:
    if source.labels is None:
        return False
    if "namespaceSelector" in peer:
        # Another selector would depend on the labels of namespaces, which no manifest has.
        assert peer == {"namespaceSelector": {}}, peer
        return True
    return source.same_namespace and selects(peer["podSelector"], source.labels)


def open_ports(policies: Sequence[Document], labels: Mapping[str, str], source: Source) -> Set[int]:
    """The ports of a pod with these labels that `source` reaches. A pod that no policy selects is open: an error."""
    specs = [p.content["spec"] for p in policies if selects(p.content["spec"]["podSelector"], labels)]
    assert specs and all(spec["policyTypes"] == ["Ingress"] for spec in specs), labels
    return {
        port["port"]
        for spec in specs
        for rule in spec["ingress"]
        for port in rule["ports"]
        if "from" not in rule or any(is_peer(peer, source) for peer in rule["from"])
    }


def policies(*paths: str) -> List[Document]:
    return [d for path in paths for d in documents(path) if d.kind == "NetworkPolicy"]


def pod_specs(value: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, dict):
        if "containers" in value:
            yield value
        for child in value.values():
            yield from pod_specs(child)
    elif isinstance(value, list):
        for child in value:
            yield from pod_specs(child)


class Accounts(unittest.TestCase):
    def test_no_pod_has_a_token_of_the_api_server(self) -> None:
        found = [(d.name, pod) for d in all_documents() for pod in pod_specs(d.content)]
        self.assertGreaterEqual(len(found), len(all_roles()) + 2)
        for name, pod in found:
            with self.subTest(name):
                self.assertIs(pod["automountServiceAccountToken"], False)

    def test_every_role_has_its_own_account(self) -> None:
        for path in {role.path for role in all_roles()}:
            with self.subTest(path):
                accounts = {d.metadata_name: d.content for d in documents(path) if d.kind == "ServiceAccount"}
                used = [role.pod["serviceAccountName"] for role in roles_of(path)]
                self.assertEqual(len(used), len(set(used)))
                self.assertEqual(sorted(used), sorted(accounts))
                self.assertTrue(all(a["automountServiceAccountToken"] is False for a in accounts.values()))


class Network(unittest.TestCase):
    def test_who_reaches_a_job(self) -> None:
        for role in all_roles():
            own = labels_of(role)
            page = {6006} if role.role == "evaluator" else set()
            metrics = {9090} if role.metrics_port else set()
            # Every pod may offer the page: the rule is the same for all.
            for source, expected in (
                (Source("own pod", own, True), {peers_port(role)} | metrics | page),
                (Source("pod of another job", FOREIGN_POD, True), metrics | page),
                (Source("pod of another namespace", FOREIGN_POD, False), metrics),
                (Source("own labels in another namespace", own, False), metrics),
                (Source("outside", None, False), set()),
            ):
                with self.subTest(role.name, source=source.name):
                    ports = {port["containerPort"] for port in role.container["ports"]}
                    self.assertEqual(open_ports(policies(role.path), own, source) & ports, expected)

    def test_the_ingress_reaches_the_page_and_nothing_else(self) -> None:
        outside = Source("outside", None, False)
        files = ("deploy/tfjob/mnist.yaml", "deploy/kubernetes/dashboard.yaml")
        for role in roles_of(files[0]):
            with self.subTest(role.name):
                expected = {6006} if role.role == "evaluator" else set()
                self.assertEqual(open_ports(policies(*files), labels_of(role), outside), expected)


class Mounts(unittest.TestCase):
    def test_workers_beside_servers_cannot_write_the_model(self) -> None:
        for role in all_roles():
            with self.subTest(role.name):
                (mount,) = [m for m in role.container["volumeMounts"] if m["name"] == "model"]
                has_servers = any(other.role == "ps" for other in roles_of(role.path))
                self.assertEqual(mount.get("readOnly", False), role.role == "worker" and has_servers)
