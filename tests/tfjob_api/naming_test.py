"""Names of pods and hosts, and the labels of every generation of the operator."""

import unittest

import support  # Puts deploy/ on sys.path.
from tfjob_api.model import Container, ContainerPort, ReplicaSpec, TrainingJob
from tfjob_api.naming import (
    cluster_addresses,
    is_leader,
    job_selectors,
    label,
    labels,
    pod_name,
    replica_host,
    replica_names,
)
from tfjob_api.operator_version import OperatorVersion

assert support.REPOSITORY


def job(**replicas):
    specs = {t: ReplicaSpec(t, number, "Never", Container()) for t, number in replicas.items()}
    return TrainingJob("mnist", "team", specs)


class NameTest(unittest.TestCase):
    def test_pod(self):
        self.assertEqual(pod_name("mnist", "PS", 3), "mnist-ps-3")

    def test_host(self):
        of_job = job(PS=2)
        self.assertEqual(replica_host(of_job, "PS", 1), "mnist-ps-1.team.svc")
        self.assertEqual(replica_host(of_job, "PS", 1, "cluster.local"), "mnist-ps-1.team.svc.cluster.local")

    def test_host_before_0_4(self):
        old = OperatorVersion.parse("0.3.0")
        self.assertEqual(replica_host(job(PS=2), "PS", 1, "cluster.local", old), "mnist-ps-1")
        first = OperatorVersion.parse("0.4.0")
        self.assertEqual(replica_host(job(PS=2), "PS", 1, "", first), "mnist-ps-1.team.svc")

    def test_addresses(self):
        ports = (ContainerPort(9090, "metrics"), ContainerPort(22221, "tfjob-port"))
        specs = {
            "PS": ReplicaSpec("PS", 2, "Never", Container(ports=ports)),
            "Worker": ReplicaSpec("Worker", 1, "Never", Container(ports=(ContainerPort(9090, "metrics"),))),
            "Evaluator": ReplicaSpec("Evaluator", 0, "Never", Container()),
        }
        self.assertEqual(
            cluster_addresses(TrainingJob("mnist", "team", specs)),
            {
                "PS": ["mnist-ps-0.team.svc:22221", "mnist-ps-1.team.svc:22221"],
                "Worker": ["mnist-worker-0.team.svc:2222"],
                "Evaluator": [],
            },
        )


class LeaderTest(unittest.TestCase):
    """The chief or master, or worker 0 where there is neither."""

    def leaders(self, of_job):
        return [
            (replica_type, index)
            for replica_type, spec in of_job.replica_specs.items()
            for index in range(spec.replicas)
            if is_leader(of_job, replica_type, index)
        ]

    def test_chief(self):
        self.assertEqual(self.leaders(job(Chief=1, PS=2, Worker=2, Evaluator=1)), [("Chief", 0)])

    def test_master(self):
        self.assertEqual(self.leaders(job(Master=1, PS=1, Worker=2)), [("Master", 0)])

    def test_worker_0(self):
        self.assertEqual(self.leaders(job(PS=2, Worker=3)), [("Worker", 0)])

    def test_nobody(self):
        self.assertEqual(self.leaders(job(PS=1, Evaluator=1)), [])


class LabelsTest(unittest.TestCase):
    PREFIXED = {
        "training.kubeflow.org/operator-name": "tfjob-controller",
        "training.kubeflow.org/job-name": "mnist",
        "training.kubeflow.org/replica-type": "ps",
        "training.kubeflow.org/replica-index": "1",
    }
    PLAIN = {"group-name": "kubeflow.org", "job-name": "mnist", "replica-type": "ps", "replica-index": "1"}

    def check(self, version, expected):
        found = labels(job(Chief=1, PS=2, Worker=1), "PS", 1, OperatorVersion.parse(version))
        self.assertEqual(found, expected, version)

    def test_since_1_6(self):
        self.assertEqual(labels(job(Chief=1, PS=2, Worker=1), "PS", 1), self.PREFIXED)
        self.check("1.6.0", self.PREFIXED)

    def test_1_4_and_1_5_write_both(self):
        for version in ("1.4.0", "1.5.2"):
            self.check(version, {**self.PREFIXED, **self.PLAIN})

    def test_1_0_to_1_3(self):
        for version in ("1.0.0", "1.3.9"):
            self.check(version, self.PLAIN)

    def test_0_4_and_0_5(self):
        expected = {
            "group-name": "kubeflow.org",
            "tf-job-name": "mnist",
            "tf-replica-type": "ps",
            "tf-replica-index": "1",
        }
        for version in ("0.4.0", "0.5.3"):
            self.check(version, expected)

    def test_0_3(self):
        expected = {
            "group_name": "kubeflow.org",
            "tf_job_name": "mnist",
            "tf-replica-type": "ps",
            "tf-replica-index": "1",
        }
        self.check("0.3.0", expected)

    def test_role_of_the_leader(self):
        keys = {
            "1.9.4": {"training.kubeflow.org/job-role"},
            "1.5.0": {"training.kubeflow.org/job-role", "job-role"},
            "1.0.0": {"job-role"},
            "0.5.3": {"tf-job-role"},
        }
        for text, expected in keys.items():
            version = OperatorVersion.parse(text)
            for of_job, leader in ((job(Chief=1, Worker=2), "Chief"), (job(Worker=2), "Worker")):
                found = labels(of_job, leader, 0, version)
                self.assertEqual({key for key, value in found.items() if value == "master"}, expected)
            self.assertNotIn("master", labels(job(Chief=1, Worker=2), "Worker", 0, version).values())
            self.assertNotIn("master", labels(job(Worker=2), "Worker", 1, version).values())

    def test_every_generation_is_selected_and_read(self):
        newest_version_of = {"1.9.4": 0, "1.5.0": 0, "1.3.0": 1, "0.5.3": 2, "0.3.0": 3}
        for text, expected in newest_version_of.items():
            found = labels(job(Chief=1, PS=2), "PS", 1, OperatorVersion.parse(text))
            matching = [
                number
                for number, selector in enumerate(job_selectors("mnist"))
                if dict(part.split("=") for part in selector.split(",")).items() <= found.items()
            ]
            self.assertEqual(matching[0], expected, text)
            self.assertEqual((label(found, "replica-type"), label(found, "replica-index")), ("ps", "1"))
            self.assertEqual(label(found, "job-role"), "")

    def test_replica_names(self):
        self.assertEqual(replica_names(job(Worker=2, PS=1)), ["worker-0", "worker-1", "ps-0"])
