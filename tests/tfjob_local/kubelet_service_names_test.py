"""Service names of the job's replicas lead to their local addresses."""

import kubelet_support
from kubelet_support import addresses, job, spec
from tfjob_api.job_kind import PYTORCH_JOB
from tfjob_api.model import ContainerPort
from tfjob_local.kubelet.plan import PlanError
from tfjob_local.kubelet.service_names import ServiceNames


class ServiceNamesTest(kubelet_support.WarningsTest):
    def setUp(self):
        super().setUp()
        port = (ContainerPort(3333, "tfjob-port"),)
        tfjob = job(spec("PS", 3), spec("Worker", 2, ports=port), spec("Chief"), name="mnist")
        self.names = ServiceNames(tfjob, addresses(tfjob), self.warn)

    def translate(self, text):
        return self.names.translate(text, "Worker: args")

    def test_every_form_of_a_name(self):
        for name in (
            "mnist-ps-1:2222",
            "mnist-ps-1.default:2222",
            "mnist-ps-1.default.svc:2222",
            "mnist-ps-1.kubeflow.svc.cluster.local:2222",
        ):
            self.assertEqual(self.translate(name), "127.0.0.1:10001")

    def test_in_a_text(self):
        text = "--ps_hosts=mnist-ps-0.d.svc:2222,mnist-ps-2:2222 grpc://mnist-worker-1:3333/x"
        self.assertEqual(
            self.translate(text), "--ps_hosts=127.0.0.1:10000,127.0.0.1:10002 grpc://127.0.0.1:10101/x"
        )

    def test_patterns(self):
        for text, expected in (
            ("mnist-ps-{0..2}.default.svc:2222", "127.0.0.1:10000,127.0.0.1:10001,127.0.0.1:10002"),
            ("mnist-ps-{1..1}:2222", "127.0.0.1:10001"),
            ("a,mnist-worker-{0..1}:3333,b", "a,127.0.0.1:10100,127.0.0.1:10101,b"),
        ):
            self.assertEqual(self.translate(text), expected)

    def test_other_names_stay(self):
        for text in (
            "mnist-ps-0", "other-mnist-ps-0:2222", "mnist-ps:2222", "mnist-ps-x:2222", "mnist-psx-0:2222",
            "ps.mnist-ps-0:2222", "MNIST-PS-0:2222",
        ):
            self.assertEqual(self.translate(text), text)
        self.assertEqual(self.warnings, [])

    def test_other_ports_stay_and_are_said(self):
        self.assertEqual(self.translate("mnist-ps-0:9090"), "mnist-ps-0:9090")
        self.assertEqual(
            self.warnings,
            [
                "Worker: args: mnist-ps-0:9090: only the port named tfjob-port has a local address, "
                "left as it is"
            ],
        )

    def test_unknown_replicas_are_refused(self):
        for text, expected in (
            ("mnist-ps-3:2222", 'no replica "ps-3", the job has ps-0 to ps-2'),
            ("mnist-ps-{0..3}.default:2222", 'no replica "ps-3", the job has ps-0 to ps-2'),
            ("mnist-chief-1:2222", 'no replica "chief-1", the job has chief-0'),
            ("mnist-evaluator-0:2222", 'no replica "evaluator-0", the job has none'),
            ("mnist-ps-{2..0}:2222", "expected a range that rises, found 2..0"),
        ):
            with self.assertRaises(PlanError) as caught:
                self.translate(text)
            self.assertEqual(str(caught.exception), f"Worker: args: {text}: {expected}")


class OwnHostsTest(kubelet_support.WarningsTest):
    """A PyTorchJob's names: MASTER_ADDR has no port, and each replica has a host of its own."""

    def setUp(self):
        super().setUp()
        specs = (spec("Master", kind=PYTORCH_JOB), spec("Worker", 2, kind=PYTORCH_JOB))
        tfjob = job(*specs, name="mnist", namespace="ml", kind=PYTORCH_JOB)
        addresses = {"Master": ["127.1.2.1:7000"], "Worker": ["127.1.2.2:7000", "127.1.2.3:7000"]}
        self.names = ServiceNames(tfjob, addresses, self.warn)

    def test_names_with_and_without_ports(self):
        for text, expected in (
            ("mnist-master-0", "127.1.2.1"),
            ("--master_addr=mnist-master-0.ml.svc --master_port=1", "--master_addr=127.1.2.1 --master_port=1"),
            ("mnist-worker-1,mnist-worker-0", "127.1.2.3,127.1.2.2"),
            # The kind's port is the one here, any other stays on the replica's host.
            ("tcp://mnist-master-0:23456", "tcp://127.1.2.1:7000"),
            ("--rdzv_endpoint=mnist-worker-0:29500", "--rdzv_endpoint=127.1.2.2:29500"),
        ):
            self.assertEqual(self.names.translate(text, "w"), expected)
        self.assertEqual(self.warnings, [])

    def test_names_of_files_stay(self):
        for text in (
            "/logs/mnist-master-0", "mnist-master-0.log", "mnist-master-0/x", "mnist-master-0-x", "x-mnist-master-0",
            "other-mnist-master-0",
        ):  # fmt: skip
            self.assertEqual(self.names.translate(text, "w"), text)

    def test_no_such_replica(self):
        with self.assertRaisesRegex(PlanError, '^w: mnist-worker-2: no replica "worker-2", the job has worker-0 to worker-1$'):
            self.names.translate("mnist-worker-2", "w")
