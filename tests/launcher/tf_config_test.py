"""TF_CONFIG byte for byte as the operator writes it."""

import json
import unittest

import support
from tfjob_local.addresses import PortAllocator, local_addresses
from tfjob_local.job import Container, ReplicaSpec, TFJob
from tfjob_local.tf_config import TfConfig


def job(dynamic_workers=False, **replicas):
    specs = {t: ReplicaSpec(t, n, "Never", Container()) for t, n in replicas.items()}
    return TFJob("j", "ns3", specs, dynamic_workers=dynamic_workers)


def addresses(of_job, namespace="ns3", domain="", ports=None):
    """The operator's: JOB-TYPE-INDEX.NAMESPACE.svc[.DOMAIN]:PORT."""
    return {
        t: [
            f"{of_job.name}-{t.lower()}-{i}.{namespace}.svc{domain}:{(ports or {}).get(t, 2222)}"
            for i in range(spec.replicas)
        ]
        for t, spec in of_job.replica_specs.items()
    }


class DenseTest(unittest.TestCase):
    def test_evaluator_is_in_the_cluster_and_keys_are_sorted(self):
        of_job = job(Worker=1, PS=1, Evaluator=1)
        self.assertEqual(
            TfConfig(of_job, addresses(of_job)).render("Worker", 0),
            '{"cluster":{"evaluator":["j-evaluator-0.ns3.svc:2222"],"ps":["j-ps-0.ns3.svc:2222"],'
            '"worker":["j-worker-0.ns3.svc:2222"]},"task":{"type":"worker","index":0},'
            '"environment":"cloud"}',
        )

    def test_without_evaluator(self):
        of_job = job(Worker=1, PS=1)
        self.assertEqual(
            TfConfig(of_job, addresses(of_job)).render("PS", 0),
            '{"cluster":{"ps":["j-ps-0.ns3.svc:2222"],"worker":["j-worker-0.ns3.svc:2222"]},'
            '"task":{"type":"ps","index":0},"environment":"cloud"}',
        )

    def test_chief(self):
        of_job = job(Worker=2, Chief=1, PS=2)
        self.assertEqual(
            TfConfig(of_job, addresses(of_job)).render("Chief", 0),
            '{"cluster":{"chief":["j-chief-0.ns3.svc:2222"],"ps":["j-ps-0.ns3.svc:2222",'
            '"j-ps-1.ns3.svc:2222"],"worker":["j-worker-0.ns3.svc:2222","j-worker-1.ns3.svc:2222"]},'
            '"task":{"type":"chief","index":0},"environment":"cloud"}',
        )

    def test_master_keeps_its_name(self):
        of_job = job(Worker=1, Master=1)
        self.assertEqual(
            TfConfig(of_job, addresses(of_job)).render("Master", 0),
            '{"cluster":{"master":["j-master-0.ns3.svc:2222"],"worker":["j-worker-0.ns3.svc:2222"]},'
            '"task":{"type":"master","index":0},"environment":"cloud"}',
        )

    def test_port_of_one_type_and_cluster_domain(self):
        of_job = job(Worker=1, PS=1)
        named = addresses(of_job, domain=".cluster.local", ports={"PS": 22221})
        self.assertEqual(
            TfConfig(of_job, named).render("Worker", 0),
            '{"cluster":{"ps":["j-ps-0.ns3.svc.cluster.local:22221"],'
            '"worker":["j-worker-0.ns3.svc.cluster.local:2222"]},'
            '"task":{"type":"worker","index":0},"environment":"cloud"}',
        )

    def test_type_without_replicas_is_an_empty_list(self):
        of_job = job(Worker=2, PS=0)
        self.assertEqual(
            TfConfig(of_job, addresses(of_job)).render("Worker", 1),
            '{"cluster":{"ps":[],"worker":["j-worker-0.ns3.svc:2222","j-worker-1.ns3.svc:2222"]},'
            '"task":{"type":"worker","index":1},"environment":"cloud"}',
        )

    def test_none_for_a_single_replica(self):
        for of_job, only in ((job(Worker=1), "Worker"), (job(Worker=1, PS=0), "Worker"), (job(Chief=1), "Chief")):
            self.assertIsNone(TfConfig(of_job, addresses(of_job)).render(only, 0))


class SparseTest(unittest.TestCase):
    def setUp(self):
        self.job = job(dynamic_workers=True, Worker=2, PS=2, Chief=1, Evaluator=1)
        self.config = TfConfig(self.job, addresses(self.job, namespace="ns"))

    def test_worker_knows_itself_and_the_servers(self):
        self.assertEqual(
            self.config.render("Worker", 1),
            '{"cluster":{"worker":{"1":"j-worker-1.ns.svc:2222"},"ps":["j-ps-0.ns.svc:2222",'
            '"j-ps-1.ns.svc:2222"]},"task":{"type":"worker","index":1}}',
        )

    def test_server_knows_only_itself(self):
        self.assertEqual(
            self.config.render("PS", 1),
            '{"cluster":{"worker":{},"ps":["j-ps-1.ns.svc:2222"]},"task":{"type":"ps","index":1}}',
        )

    def test_chief_and_evaluator_know_nobody(self):
        for replica_type in ("Chief", "Evaluator"):
            self.assertEqual(
                self.config.render(replica_type, 0),
                '{"cluster":{"worker":{},"ps":[]},"task":{"type":"%s","index":0}}' % replica_type.lower(),
            )

    def test_worker_of_a_job_without_servers(self):
        of_job = job(dynamic_workers=True, Worker=2)
        self.assertEqual(
            TfConfig(of_job, addresses(of_job, namespace="ns")).render("Worker", 0),
            '{"cluster":{"worker":{"0":"j-worker-0.ns.svc:2222"},"ps":null},'
            '"task":{"type":"worker","index":0}}',
        )


class LocalAddressesTest(unittest.TestCase):
    def test_every_replica_of_two_launchers_has_a_port_of_its_own(self):
        of_job = job(Worker=20, PS=20)
        with PortAllocator() as first, PortAllocator() as second:
            together = [local_addresses(of_job, first), local_addresses(of_job, second)]
        every = [address for a in together for of_type in a.values() for address in of_type]
        self.assertEqual(len(every), 80)
        self.assertEqual(len(set(every)), 80)
        self.assertTrue(all(address.startswith("127.0.0.1:") for address in every))


class LaunchedTest(support.LauncherTest):
    def test_each_replica_gets_its_own(self):
        for name in support.PROGRAMS:
            self.set_program(name, 'printf %s "$TF_CONFIG"')
        text = support.manifest(
            support.replica("Chief"), support.replica("PS", 2), support.replica("Worker"), support.replica("Evaluator")
        )
        code, _ = self.run_job(text)
        self.assertEqual(code, 0)
        seen = {}
        for name in ("chief-0", "ps-0", "ps-1", "worker-0", "evaluator-0"):
            written = self.read("run", "logs", f"{name}.log")
            seen[name] = json.loads(written)
            self.assertEqual(written, json.dumps(seen[name], separators=(",", ":")))
            task = seen[name]["task"]
            self.assertEqual(f"{task['type']}-{task['index']}", name)
        clusters = [config["cluster"] for config in seen.values()]
        self.assertTrue(all(cluster == clusters[0] for cluster in clusters))
        self.assertEqual(list(clusters[0]), ["chief", "evaluator", "ps", "worker"])

    def test_single_replica_gets_none_and_runs_the_whole_job(self):
        self.set_program("chief", 'echo "chief [${TF_CONFIG-unset}]"')
        code, _ = self.run_job(support.manifest(support.replica("Worker")))
        self.assertEqual(code, 0)
        self.assertEqual(self.read("run", "logs", "worker-0.log"), "chief [unset]\n")


if __name__ == "__main__":
    unittest.main()
