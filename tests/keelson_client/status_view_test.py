"""The tables of status and list."""

import datetime
import unittest

from support import ended_pod, pod, tfjob

from keelson_client.events import Event
from keelson_client.replica_pods import read_pod
from keelson_client.status_view import find_progress, render_age, render_job, render_jobs

NOW = datetime.datetime(2026, 11, 22, 8, 0, 0, tzinfo=datetime.timezone.utc)


def job_of(*kinds, created="2026-11-22T07:50:00Z"):
    job = tfjob(*kinds)
    job["metadata"]["creationTimestamp"] = created
    return job


class AgeTest(unittest.TestCase):
    def test_ages(self):
        for time, expected in (
            ("2026-11-22T07:59:15Z", "45s"),
            ("2026-11-22T07:48:00Z", "12m"),
            ("2026-11-22T04:48:00Z", "3h12m"),
            ("2026-11-17T08:00:00Z", "5d"),
            ("2026-11-22T08:00:05Z", "0s"),
            ("", "-"),
        ):
            self.assertEqual(render_age(time, NOW), expected)


class ListTest(unittest.TestCase):
    def test_jobs(self):
        done, new = job_of("Created", "Running", "Succeeded"), job_of()
        done["status"]["replicaStatuses"] = {"Chief": {"succeeded": 1}, "Worker": {"active": 2, "failed": 1}}
        self.assertEqual(
            render_jobs([done, new], NOW),
            "NAME    STATE       AGE   REPLICAS\n"
            "mnist   Succeeded   10m   chief 0/1 (1 succeeded), ps 2, worker 2/3 (1 failed)\n"
            "mnist   -           10m   chief 1, ps 2, worker 3",
        )

    def test_failed_wins(self):
        self.assertIn("Failed", render_jobs([job_of("Failed", "Succeeded")], NOW))


class JobTest(unittest.TestCase):
    maxDiff = None

    def test_whole_view(self):
        pods = [read_pod(pod("chief", 0)), read_pod(ended_pod("worker", 0, 2, "E bad data"))]
        waiting = {"name": "tensorflow", "state": {"waiting": {"reason": "ErrImagePull", "message": "no"}}}
        pods.append(read_pod(pod("worker", 1, "Pending", containerStatuses=[waiting])))
        warning = "Warning Failed: pull"
        found = [Event("Normal Scheduled: x"), Event(warning, "2026-11-22T07:50:01Z")]
        events = {"mnist-worker-1": [*found, Event(warning, "2026-11-22T07:57:00Z")]}
        text = render_job(job_of("Created"), pods, "step=7 loss=0.5", events, NOW)
        self.assertEqual(
            text,
            "default/mnist  Created  10m  chief 1, ps 2, worker 3\n"
            "\n"
            "CONDITION   STATUS   AGE   REASON         MESSAGE\n"
            "Created     True     -     TFJobCreated   created\n"
            "\n"
            "REPLICA    POD              STATE          RESTARTS   EXIT   NODE     AGE\n"
            "chief-0    mnist-chief-0    Running        0          -      node-1   -\n"
            "worker-0   mnist-worker-0   Failed         0          2      node-1   -\n"
            "worker-1   mnist-worker-1   ErrImagePull   0          -      node-1   -\n"
            "\n"
            "progress: step=7 loss=0.5\n"
            "\n"
            "worker-0: E bad data\n"
            "\n"
            "worker-1: ErrImagePull: no\n"
            "\n"
            "mnist-worker-1: Failed: pull (3m ago)",
        )

    def test_nothing_happened_yet(self):
        text = render_job(job_of(), [], "", {}, NOW)
        expected = "default/mnist  not seen by the operator  10m  chief 1, ps 2, worker 3\n\nno pods"
        self.assertEqual(text, expected)

    def test_only_the_newest_warnings(self):
        events = {"mnist": [Event(f"Warning R{i}: m") for i in range(9)]}
        text = render_job(job_of(), [], "", events, NOW)
        self.assertEqual(text.splitlines()[-5:], [f"mnist: R{i}: m" for i in range(4, 9)])

    def test_no_warnings_of_a_job_that_has_succeeded(self):
        events = {"mnist": [Event("Warning R: m")]}
        self.assertNotIn("R: m", render_job(job_of("Succeeded"), [], "", events, NOW))


class ProgressTest(unittest.TestCase):
    def test_newest_report(self):
        log = (
            "I 2026-11-22T07:45:40.504Z chief-0 training from the start: step 0 of 50\n"
            "2026-11-22T07:45:40.860Z step=50 loss=1.36646 steps_per_second=244.968\n"
            "2026-11-22T07:45:41.860Z step=100 loss=1.2\n"
            "I 2026-11-22T07:45:42.612Z chief-0 snapshot of step 100: 5 bytes\n"
        )
        self.assertEqual(find_progress(log), "step=100 loss=1.2")

    def test_none(self):
        self.assertEqual(find_progress("misstep=1\nnothing\n"), "")
