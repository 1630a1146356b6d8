"""TF_CONFIG byte for byte as the operators of all generations write it."""

import unittest

import support  # Puts deploy/ on sys.path.
from tfjob_api.model import Container, ContainerPort, ReplicaSpec, TrainingJob
from tfjob_api.naming import cluster_addresses
from tfjob_api.operator_version import NEWEST, OperatorVersion
from tfjob_api.tf_config import TfConfig

assert support.REPOSITORY


def job(namespace="ns3", dynamic_workers=False, ports=None, **replicas):
    """job(PS=2, Worker=1); `ports`: of the port named tfjob-port, by type."""
    specs = {}
    for replica_type, number in replicas.items():
        port = (ports or {}).get(replica_type)
        container = Container(ports=(ContainerPort(port, "tfjob-port"),) if port else ())
        specs[replica_type] = ReplicaSpec(replica_type, number, "Never", container)
    return TrainingJob("j", namespace, specs, dynamic_workers=dynamic_workers)


def render(of_job, replica_type, index=0, version=NEWEST, domain=""):
    parsed = OperatorVersion.parse(version)
    return TfConfig(of_job, cluster_addresses(of_job, domain, parsed), parsed).render(replica_type, index)


class DenseTest(unittest.TestCase):
    def test_evaluator_is_in_the_cluster_and_keys_are_sorted(self):
        of_job = job(Worker=1, PS=1, Evaluator=1)
        expected = (
            '{"cluster":{"evaluator":["j-evaluator-0.ns3.svc:2222"],"ps":["j-ps-0.ns3.svc:2222"],'
            '"worker":["j-worker-0.ns3.svc:2222"]},"task":{"type":"worker","index":0},'
            '"environment":"cloud"}'
        )
        for version in (NEWEST, "1.2.0"):
            self.assertEqual(render(of_job, "Worker", version=version), expected)

    def test_evaluator_was_not_in_it_before_1_2(self):
        of_job = job(Worker=1, PS=1, Evaluator=1)
        for version in ("1.1.0", "1.0.0", "0.5.3", "0.4.0"):
            self.assertEqual(
                render(of_job, "Evaluator", version=version),
                '{"cluster":{"ps":["j-ps-0.ns3.svc:2222"],"worker":["j-worker-0.ns3.svc:2222"]},'
                '"task":{"type":"evaluator","index":0},"environment":"cloud"}',
            )

    def test_bare_names_before_0_4(self):
        self.assertEqual(
            render(job(Worker=1, PS=1), "Worker", version="0.3.0"),
            '{"cluster":{"ps":["j-ps-0:2222"],"worker":["j-worker-0:2222"]},'
            '"task":{"type":"worker","index":0},"environment":"cloud"}',
        )

    def test_without_evaluator(self):
        self.assertEqual(
            render(job(Worker=1, PS=1), "PS"),
            '{"cluster":{"ps":["j-ps-0.ns3.svc:2222"],"worker":["j-worker-0.ns3.svc:2222"]},'
            '"task":{"type":"ps","index":0},"environment":"cloud"}',
        )

    def test_chief(self):
        self.assertEqual(
            render(job(Worker=2, Chief=1, PS=2), "Chief"),
            '{"cluster":{"chief":["j-chief-0.ns3.svc:2222"],"ps":["j-ps-0.ns3.svc:2222",'
            '"j-ps-1.ns3.svc:2222"],"worker":["j-worker-0.ns3.svc:2222","j-worker-1.ns3.svc:2222"]},'
            '"task":{"type":"chief","index":0},"environment":"cloud"}',
        )

    def test_master_keeps_its_name(self):
        self.assertEqual(
            render(job(Worker=1, Master=1), "Master"),
            '{"cluster":{"master":["j-master-0.ns3.svc:2222"],"worker":["j-worker-0.ns3.svc:2222"]},'
            '"task":{"type":"master","index":0},"environment":"cloud"}',
        )

    def test_port_of_one_type_and_cluster_domain(self):
        self.assertEqual(
            render(job(Worker=1, PS=1, ports={"PS": 22221}), "Worker", domain="cluster.local"),
            '{"cluster":{"ps":["j-ps-0.ns3.svc.cluster.local:22221"],'
            '"worker":["j-worker-0.ns3.svc.cluster.local:2222"]},'
            '"task":{"type":"worker","index":0},"environment":"cloud"}',
        )

    def test_type_without_replicas_is_an_empty_list(self):
        self.assertEqual(
            render(job(Worker=2, PS=0), "Worker", 1),
            '{"cluster":{"ps":[],"worker":["j-worker-0.ns3.svc:2222","j-worker-1.ns3.svc:2222"]},'
            '"task":{"type":"worker","index":1},"environment":"cloud"}',
        )

    def test_addresses_beyond_the_replicas_are_left_out(self):
        before = job(Worker=3)
        now = job(Worker=2)
        of_more = TfConfig(now, cluster_addresses(before)).render("Worker", 1)
        self.assertEqual(of_more, render(now, "Worker", 1))


class SingleReplicaTest(unittest.TestCase):
    """A job of one replica is no cluster; before 1.1 its TF_CONFIG had itself."""

    JOBS = (
        (job(Worker=1), "Worker"),
        (job(Worker=1, PS=0), "Worker"),
        (job(Chief=1), "Chief"),
        (job(PS=1), "PS"),
    )

    def test_none(self):
        for of_job, only in self.JOBS:
            for version in (NEWEST, "1.1.0"):
                self.assertIsNone(render(of_job, only, version=version))

    def test_before_1_1(self):
        self.assertEqual(
            render(job(Worker=1), "Worker", version="1.0.0"),
            '{"cluster":{"worker":["j-worker-0.ns3.svc:2222"]},"task":{"type":"worker","index":0},'
            '"environment":"cloud"}',
        )


class SparseTest(unittest.TestCase):
    def setUp(self):
        self.job = job("ns", dynamic_workers=True, Worker=2, PS=2, Chief=1, Evaluator=1)

    def test_worker_knows_itself_and_the_servers(self):
        self.assertEqual(
            render(self.job, "Worker", 1),
            '{"cluster":{"worker":{"1":"j-worker-1.ns.svc:2222"},"ps":["j-ps-0.ns.svc:2222",'
            '"j-ps-1.ns.svc:2222"]},"task":{"type":"worker","index":1}}',
        )

    def test_server_knows_only_itself(self):
        self.assertEqual(
            render(self.job, "PS", 1),
            '{"cluster":{"worker":{},"ps":["j-ps-1.ns.svc:2222"]},"task":{"type":"ps","index":1}}',
        )

    def test_chief_and_evaluator_know_nobody(self):
        for replica_type in ("Chief", "Evaluator"):
            self.assertEqual(
                render(self.job, replica_type),
                '{"cluster":{"worker":{},"ps":[]},"task":{"type":"%s","index":0}}' % replica_type.lower(),
            )

    def test_worker_of_a_job_without_servers(self):
        self.assertEqual(
            render(job("ns", dynamic_workers=True, Worker=2), "Worker"),
            '{"cluster":{"worker":{"0":"j-worker-0.ns.svc:2222"},"ps":null},'
            '"task":{"type":"worker","index":0}}',
        )

    def test_key_before_1_7(self):
        for version in ("1.6.0", "1.1.0"):
            self.assertEqual(
                render(self.job, "PS", 0, version),
                '{"sparseCluster":{"worker":{},"ps":["j-ps-0.ns.svc:2222"]},"task":{"type":"ps","index":0}}',
            )

    def test_before_1_1_the_field_meant_nothing(self):
        of_job = job("ns", dynamic_workers=True, Worker=1, PS=1)
        self.assertEqual(
            render(of_job, "PS", version="1.0.0"),
            '{"cluster":{"ps":["j-ps-0.ns.svc:2222"],"worker":["j-worker-0.ns.svc:2222"]},'
            '"task":{"type":"ps","index":0},"environment":"cloud"}',
        )
