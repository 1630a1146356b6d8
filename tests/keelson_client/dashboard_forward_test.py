"""The page of a job's evaluator on a port of this machine."""

import socket
import unittest

from support import FakeClock, FakeStream, pod, tfjob

from keelson_client.dashboard_forward import DashboardForward, is_free, page_port
from keelson_client.errors import ClusterError, ErrorKind, InputError
from keelson_client.replica_pods import read_pod

LOST = ClusterError(ErrorKind.OTHER, "kubectl: error: lost connection to pod")


def evaluator(phase="Running", args=("--dashboard_port=6006",), uid="e", **status):
    value = pod("evaluator", 0, phase, **status)
    value["metadata"]["uid"] = uid
    value["spec"]["containers"] = [
        {"name": "proxy", "args": ["--dashboard_port=1"]},
        {"name": "tensorflow", "command": ["evaluator"], "args": list(args)},
    ]
    return value


def forwarding(port):
    return [f"Forwarding from 127.0.0.1:{port} -> 6006"]


class FakeCluster:
    """One job and its pods; `streams` is what each port-forward gives, in order."""

    def __init__(self):
        self.job = tfjob("Running")
        self.pods = [evaluator()]
        self.streams = []
        self.opened = []

    def get_job(self, name, namespace=""):
        return self.job

    def get_replica_pods(self, name, namespace=""):
        return [read_pod(value) for value in self.pods]

    def forward_port(self, pod_name, port, pods_port, namespace=""):
        self.opened.append((pod_name, port, pods_port))
        return self.streams.pop(0)


class ForwardTest(unittest.TestCase):
    def setUp(self):
        self.clock = FakeClock()
        self.cluster = FakeCluster()
        self.written = []
        self.notes = []
        self.free = True

    def stream(self, *pieces, error=None):
        self.cluster.streams.append(FakeStream(self.clock, pieces, error))
        return self.cluster.streams[-1]

    def ends(self, time, kind="Succeeded"):
        self.clock.at(time, lambda: setattr(self.cluster, "job", tfjob(kind)))

    def run_forward(self, port=None):
        forward = DashboardForward(
            self.cluster,
            self.written.append,
            self.notes.append,
            self.clock,
            self.clock.sleep,
            lambda port: self.free,
        )
        return forward.run("mnist", ("evaluator", 0), port)

    def test_to_the_end_of_the_job(self):
        stream = self.stream(forwarding(6006), 1.0, ["Handling connection for 6006"], 600.0)
        self.ends(20, "Failed")
        self.assertEqual(self.run_forward().type, "Failed")
        self.assertLess(self.clock.now, 30)
        self.assertTrue(stream.closed)
        self.assertEqual(self.cluster.opened, [("mnist-evaluator-0", 6006, 6006)])
        self.assertEqual(self.written, ["dashboard: http://127.0.0.1:6006/"])
        self.assertEqual(self.notes, [])

    def test_of_a_job_that_has_ended(self):
        self.ends(-1)
        self.clock.advance_to(0)
        self.assertEqual(self.run_forward().type, "Succeeded")
        self.assertEqual(self.cluster.opened, [])

    def test_any_port_where_the_usual_one_is_taken(self):
        self.free = False
        self.stream(forwarding(40123), 600.0)
        self.ends(5)
        self.run_forward()
        self.assertEqual(self.cluster.opened, [("mnist-evaluator-0", 0, 6006)])
        self.assertEqual(self.written, ["dashboard: http://127.0.0.1:40123/"])

    def test_waits_for_the_pod(self):
        waiting = {"name": "tensorflow", "state": {"waiting": {"reason": "ImagePullBackOff"}}}
        self.cluster.pods = []
        self.clock.at(5, lambda: self.cluster.pods.append(evaluator("Pending", containerStatuses=[waiting])))
        self.clock.at(10, lambda: setattr(self.cluster, "pods", [evaluator()]))
        self.stream(forwarding(6006), 600.0)
        self.ends(20)
        self.run_forward()
        waits = "waiting for the pod of evaluator-0"
        self.assertEqual(self.notes, [waits, f"{waits}: ImagePullBackOff"])
        self.assertEqual(len(self.written), 1)

    def test_a_pod_that_comes_back_has_the_same_port(self):
        self.free = False
        self.stream(forwarding(40123), 4.0, error=LOST)
        self.stream(error=ClusterError(ErrorKind.OTHER, "kubectl: pod is not running"))
        self.stream(forwarding(40123), 600.0)
        self.ends(60)
        self.run_forward()
        self.assertEqual([port for _, port, _ in self.cluster.opened], [0, 40123, 40123])
        self.assertEqual(
            self.notes, [f"{LOST}; trying again", "kubectl: pod is not running; trying again"]
        )

    def test_what_trying_again_does_not_mend(self):
        for kind, text in (
            (ErrorKind.FORBIDDEN, "kubectl: pods is forbidden"),
            (ErrorKind.OTHER, "kubectl: Unable to listen on port 7000: address already in use"),
        ):
            self.stream(error=ClusterError(kind, text))
            with self.assertRaisesRegex(ClusterError, text):
                self.run_forward(7000)

    def test_evaluator_without_a_page(self):
        self.cluster.pods = [evaluator(args=["--dashboard_port=0"])]
        with self.assertRaisesRegex(InputError, "^pod mnist-evaluator-0: expected an evaluator with --dash"):
            self.run_forward()


class PagePortTest(unittest.TestCase):
    def test_as_arguments_are_written(self):
        for args in (["--dashboard_port=7"], ["--dashboard_port", "7"], ["--seed=1", "--dashboard_port=7"]):
            self.assertEqual(page_port(evaluator(args=args)), 7)
        for args in ([], ["--no_dashboard_port=7"], ["--dashboard_port=x7"], ["--dashboard_port"]):
            with self.assertRaises(InputError):
                page_port(evaluator(args=args))


class IsFreeTest(unittest.TestCase):
    def test_whether_anybody_listens(self):
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            listener.listen()
            self.assertFalse(is_free(listener.getsockname()[1]))
        self.assertTrue(is_free(0))
