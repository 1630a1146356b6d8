"""Tests pods of every generation of the operator, and their status."""

import unittest

from fake_api_server import pod_labels
from support import ended_pod, pod

from keelson_client.replica_pods import find_master, read_pod, sort_pods


class LabelsTest(unittest.TestCase):
    def test_every_generation(self):
        for generation in ("new", "1.3", "v1beta2"):
            with self.subTest(generation):
                found = read_pod(pod("worker", 2, labels=pod_labels("mnist", "worker", 2, generation)))
                self.assertEqual((found.replica_type, found.index), ("worker", 2))
                self.assertEqual(found.replica_name, "worker-2")
                self.assertFalse(found.is_master)

    def test_leader_by_label_of_both_generations(self):
        for generation in ("new", "1.3"):
            with self.subTest(generation):
                found = read_pod(pod("chief", 0, labels=pod_labels("mnist", "chief", 0, generation)))
                self.assertTrue(found.is_master)

    def test_v1alpha2(self):
        labels = {"tf_job_name": "mnist", "tf-replica-type": "PS", "tf-replica-index": "1"}
        found = read_pod(pod(labels=labels))
        self.assertEqual((found.replica_type, found.index), ("ps", 1))

    def test_no_labels(self):
        found = read_pod(pod(labels={"tf-replica-index": "x"}))
        self.assertEqual((found.replica_type, found.index), ("", 0))


class MasterTest(unittest.TestCase):
    def pods(self, *kinds, generation="new"):
        return [read_pod(pod(k, i, labels=pod_labels("m", k, i, generation))) for k, i in kinds]

    def test_chief_or_master(self):
        for kind in ("chief", "master"):
            for generation in ("new", "v1beta2"):
                found = find_master(self.pods(("worker", 0), (kind, 0), generation=generation))
                self.assertEqual(found.replica_type, kind)

    def test_labelled_worker(self):
        labels = pod_labels("m", "worker", 0, "new")
        labels["training.kubeflow.org/job-role"] = "master"
        self.assertEqual(find_master([read_pod(pod("worker", 0, labels=labels))]).replica_name, "worker-0")

    def test_worker_0_where_nobody_is_labelled(self):
        found = find_master(self.pods(("ps", 0), ("worker", 1), ("worker", 0), generation="v1beta2"))
        self.assertEqual(found.replica_name, "worker-0")

    def test_nobody(self):
        self.assertIsNone(find_master(self.pods(("ps", 0), ("worker", 1))))

    def test_order(self):
        mixed = self.pods(
            ("zebra", 0), ("worker", 10), ("worker", 2), ("evaluator", 0), ("ps", 0), ("chief", 0)
        )
        names = [p.replica_name for p in sort_pods(mixed)]
        self.assertEqual(names, ["chief-0", "ps-0", "worker-2", "worker-10", "evaluator-0", "zebra-0"])


class StatusTest(unittest.TestCase):
    def test_running(self):
        found = read_pod(pod())
        self.assertEqual(
            (found.phase, found.started, found.ended, found.state), ("Running", True, False, "Running")
        )
        self.assertEqual((found.node, found.exit_code, found.waiting_for), ("node-1", None, ""))

    def test_ended(self):
        found = read_pod(ended_pod(exit_code=138, message="E lost the chief\n"))
        self.assertEqual((found.exit_code, found.last_words), (138, "E lost the chief"))
        self.assertTrue(found.ended and found.started)

    def test_not_scheduled(self):
        scheduled = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": "0/3 nodes are available: 3 Insufficient nvidia.com/gpu.",
        }
        found = read_pod(pod(phase="Pending", containerStatuses=[], conditions=[scheduled]))
        self.assertFalse(found.started)
        self.assertEqual(found.state, "Unschedulable")
        self.assertEqual(
            found.waiting_for, "Unschedulable: 0/3 nodes are available: 3 Insufficient nvidia.com/gpu."
        )

    def test_image_that_cannot_be_pulled(self):
        waiting = {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "x"'}
        container = {"name": "tensorflow", "restartCount": 0, "state": {"waiting": waiting}}
        found = read_pod(pod(phase="Pending", containerStatuses=[container]))
        self.assertEqual(found.waiting_for, 'ImagePullBackOff: Back-off pulling image "x"')
        self.assertFalse(found.started)

    def test_restarts_of_all_containers_and_the_words_of_the_last_run(self):
        container = {
            "name": "tensorflow",
            "restartCount": 2,
            "state": {"waiting": {"reason": "CrashLoopBackOff"}},
            "lastState": {"terminated": {"exitCode": 1, "message": "E no data"}},
        }
        others = [{"name": "init", "restartCount": 1}]
        found = read_pod(pod(containerStatuses=[container], initContainerStatuses=others))
        self.assertEqual(
            (found.restarts, found.last_words, found.state), (3, "E no data", "CrashLoopBackOff")
        )
        self.assertTrue(found.started)
        self.assertIsNone(found.exit_code)

    def test_evicted(self):
        found = read_pod(pod(phase="Failed", containerStatuses=[], reason="Evicted", message="low on memory"))
        self.assertEqual((found.waiting_for, found.state), ("Evicted: low on memory", "Evicted"))

    def test_other_containers_do_not_count(self):
        sidecar = {"name": "sidecar", "state": {"terminated": {"exitCode": 9}}}
        self.assertIsNone(read_pod(pod(containerStatuses=[sidecar])).exit_code)

    def test_nothing_known(self):
        self.assertEqual(read_pod({}).phase, "Unknown")
