"""Jobs that lost pods are created again; jobs with an error of their own are not."""

import unittest

from support import FakeClock, FakeKubectl, condition, ended_pod, pod, settings, tfjob

from keelson_client.errors import ClusterError, ErrorKind
from keelson_client.manifest import find_job, render
from keelson_client.replica_pods import read_pod
from keelson_client.resubmission import Resubmission, countdown, lost_pods
from keelson_client.training_client import TrainingClient
from tfjob_api.conditions import JobCondition

LOST = "TFJob default/mnist has failed because 1 Worker replica(s) failed."


def fail(job, message=LOST):
    job["status"] = {"conditions": [condition("Created"), condition("Failed", message=message)]}
    return job


class LostPodsTest(unittest.TestCase):
    def is_lost(self, *pods, kind="Failed", message=LOST):
        return lost_pods(JobCondition(kind, "True", message=message), [read_pod(value) for value in pods])

    def test_pods_without_an_error_of_their_own(self):
        self.assertTrue(self.is_lost())
        self.assertTrue(self.is_lost(pod(), pod("worker", 1)))
        self.assertTrue(self.is_lost(ended_pod(exit_code=143), ended_pod("worker", 1, 138), ended_pod("ps")))
        # Lost with its node: the pod has failed, and nobody saw its container's end.
        self.assertTrue(self.is_lost(pod(phase="Failed", reason="NodeLost")))

    def test_errors_that_would_come_again(self):
        for code in (1, 2, 126, 127):
            self.assertFalse(self.is_lost(ended_pod(exit_code=143), ended_pod("worker", 1, code)), code)

    def test_other_ends(self):
        self.assertFalse(self.is_lost(kind="Succeeded"))
        for message in (
            'job "mnist" is failing because "Worker" replica(s) failed.',
            "Job mnist has failed because it has reached the specified backoff limit",
            "Job mnist has failed because it was active longer than specified deadline",
        ):
            self.assertFalse(self.is_lost(message=message), message)


class CountdownTest(unittest.TestCase):
    def test_seconds_left(self):
        clock = FakeClock()
        left = countdown(5.0, clock)
        clock.sleep(3)
        self.assertEqual(left(), 2.0)
        clock.sleep(3)
        self.assertEqual(left(), 0.0)
        self.assertIsNone(countdown(None, clock)())


class ResubmissionTest(unittest.TestCase):
    def setUp(self):
        self.kubectl = FakeKubectl()
        clock = FakeClock()
        self.client = TrainingClient(kubectl=self.kubectl, clock=clock, sleep=clock.sleep)
        self.notes = []

    def resubmission(self, times):
        return Resubmission(self.client, times, self.notes.append)

    @property
    def job(self):
        return self.kubectl.objects["tfjob", "mnist"]

    def test_the_same_objects_are_created_again(self):
        documents = render(settings(dashboard=True))
        self.client.create_objects(documents)
        wanted = {(d["kind"], d["metadata"]["name"]): dict(d) for d in documents}
        token = self.kubectl.objects["secret", "mnist-job-token"]["stringData"]
        # What the servers add.
        fail(self.job)["metadata"].update(uid="first", resourceVersion="7")
        self.kubectl.objects["service", "mnist-dashboard"]["spec"]["clusterIP"] = "10.0.0.7"
        for (kind, _), value in self.kubectl.objects.items():
            if kind != "tfjob":
                value["metadata"]["ownerReferences"] = [{"uid": "first"}]
        self.kubectl.put(
            {
                "kind": "Secret",
                "metadata": {"name": "other", "labels": {"app.kubernetes.io/managed-by": "keelson"}},
            }
        )
        self.assertTrue(self.resubmission(1).try_again("mnist"))
        self.assertEqual(self.job["metadata"]["uid"], "uid-mnist")
        self.assertNotIn("status", self.job)
        self.assertNotIn("resourceVersion", self.job["metadata"])
        self.assertEqual(self.job["spec"], find_job(documents)["spec"])
        for (kind, name), document in wanted.items():
            created = self.kubectl.objects[kind.lower(), name]
            self.assertEqual(created.get("spec"), document.get("spec"), kind)
            if kind != "TFJob":
                (owner,) = created["metadata"]["ownerReferences"]
                self.assertEqual(owner["uid"], "uid-mnist")
        self.assertNotIn("clusterIP", self.kubectl.objects["service", "mnist-dashboard"]["spec"])
        self.assertEqual(self.kubectl.objects["secret", "mnist-job-token"]["stringData"], token)
        (note,) = self.notes
        self.assertTrue(note.startswith(f"job mnist: Failed: {LOST} No pod has ended with an error"), note)

    def test_so_often_and_no_more(self):
        self.client.create_objects(render(settings()))
        resubmission = self.resubmission(2)
        for _ in range(2):
            fail(self.job)
            self.assertTrue(resubmission.try_again("mnist"))
        fail(self.job)
        self.assertFalse(resubmission.try_again("mnist"))
        self.assertEqual(len(self.notes), 2)

    def test_nothing_changes_for_other_jobs(self):
        self.kubectl.put(fail(tfjob()))
        self.kubectl.put(ended_pod("worker", 1, 2), "pod")
        self.assertFalse(self.resubmission(1).try_again("mnist"))
        self.kubectl.put(tfjob("Running"))
        self.assertFalse(self.resubmission(1).try_again("mnist"))
        self.assertFalse(any(verb.startswith(("delete", "create")) for verb in self.kubectl.verbs()))

    def test_secrets_that_may_not_be_read(self):
        self.kubectl.put(fail(tfjob()))
        self.kubectl.errors["get secret"] = ClusterError(ErrorKind.FORBIDDEN, "kubectl: forbidden")
        with self.assertRaisesRegex(ClusterError, "forbidden"):
            self.resubmission(1).try_again("mnist")
        self.assertIn(("tfjob", "mnist"), self.kubectl.objects)
