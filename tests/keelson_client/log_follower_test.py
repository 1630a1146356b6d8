"""A log is followed from the first pod to the end of the job, each line once."""

import unittest

from support import FakeClock, FakeStream, ended_pod, pod, tfjob

from keelson_client.errors import ClusterError, ErrorKind
from keelson_client.log_follower import LogFollower
from keelson_client.replica_pods import read_pod

SILENT = ClusterError(ErrorKind.NO_SERVER, "kubectl: refused")
LOST = ClusterError(ErrorKind.OTHER, "kubectl: connection lost")


def lines(*numbers):
    return [f"2026-11-22T08:00:{n:02}.000000001Z line {n}" for n in numbers]


class FakeCluster:
    """One job and its pods; `streams` is what each opened log gives, in order."""

    def __init__(self, clock):
        self.clock = clock
        self.job = tfjob("Running")
        self.pods = []
        self.streams = []
        self.opened = []
        self.error = None

    def get_job(self, name, namespace=""):
        if self.error:
            raise self.error
        return self.job

    def get_replica_pods(self, name, namespace=""):
        if self.error:
            raise self.error
        return [read_pod(value) for value in self.pods]

    def stream_log(self, pod_name, namespace="", flags=()):
        self.opened.append((pod_name, [flag for flag in flags if flag.startswith("--since")]))
        return self.streams.pop(0)


class FollowTest(unittest.TestCase):
    def setUp(self):
        self.clock = FakeClock()
        self.cluster = FakeCluster(self.clock)
        self.written = []
        self.notes = []

    def stream(self, *pieces, error=None):
        self.cluster.streams.append(FakeStream(self.clock, pieces, error))
        return self.cluster.streams[-1]

    def follow(self, **options):
        follower = LogFollower(
            self.cluster, self.written.append, self.notes.append, self.clock, self.clock.sleep
        )
        return follower.follow("mnist", **options)

    def at(self, time, **changes):
        def change():
            for name, value in changes.items():
                setattr(self.cluster, name, value)

        self.clock.at(time, change)

    def finish(self, time, *kinds, pods=None):
        self.at(time, job=tfjob("Running", *(kinds or ("Succeeded",))), pods=pods or [ended_pod()])

    def check_written(self, *numbers):
        self.assertEqual(self.written, [f"line {n}" for n in numbers])

    def test_to_the_end_of_the_job(self):
        self.cluster.pods = [pod()]
        self.stream(lines(1, 2), 30, lines(3), 1)
        # Lines between the stream's end and the pod's.
        self.stream(lines(1, 2, 3, 4))
        self.finish(31)
        self.assertEqual(self.follow().type, "Succeeded")
        self.check_written(1, 2, 3, 4)
        self.assertEqual(self.notes, [])

    def test_a_job_that_had_ended_before(self):
        self.cluster.job = tfjob("Succeeded")
        self.cluster.pods = [ended_pod()]
        self.stream(lines(1, 2))
        self.assertEqual(self.follow().type, "Succeeded")
        self.check_written(1, 2)
        self.assertEqual(self.clock.now, 0)

    def test_the_pod_is_not_there_yet(self):
        scheduled = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": "0/1 nodes",
        }
        pending = pod(phase="Pending", containerStatuses=[], conditions=[scheduled])
        self.at(10, pods=[pending])
        self.at(20, pods=[pod(phase="Pending")])
        self.at(30, pods=[pod()])
        self.stream(lines(1), 5)
        self.stream(lines(1))
        self.finish(35)
        self.follow()
        self.check_written(1)
        self.assertEqual(
            self.notes,
            [
                "waiting for the pod of the chief",
                "waiting for pod mnist-chief-0: Unschedulable: 0/1 nodes",
                "waiting for pod mnist-chief-0: Pending",
            ],
        )

    def test_nobody_starts_the_job(self):
        self.cluster.job = tfjob()
        self.at(10, job=tfjob("Created", "Suspended"))
        self.at(20, job=tfjob("Created"))
        self.finish(30, pods=[pod(phase="Pending")])
        self.follow()
        self.assertEqual(
            self.notes[:3],
            [
                "waiting for the operator to start the job",
                "the job is suspended",
                "waiting for the pod of the chief",
            ],
        )

    def test_a_lost_connection(self):
        self.cluster.pods = [pod()]
        self.stream(lines(1, 2), error=LOST)
        self.stream(lines(1, 2, 3), 10)
        self.stream(lines(3))
        self.finish(12)
        self.follow()
        self.check_written(1, 2, 3)
        since = ["--since-time=2026-11-22T08:00:02.000000001Z"]
        self.assertEqual(self.cluster.opened[1], ("mnist-chief-0", since))

    def test_a_new_pod_of_the_same_name_begins_anew(self):
        self.cluster.pods = [pod()]
        new = pod()
        new["metadata"]["uid"] = "second"
        self.stream(lines(8, 9), 1)
        self.stream(lines(1), 10)
        self.stream(lines(1, 2))
        self.at(1, pods=[])
        self.at(4, pods=[new])
        end = ended_pod()
        end["metadata"]["uid"] = "second"
        self.finish(13, pods=[end])
        self.follow()
        self.check_written(8, 9, 1, 2)
        self.assertEqual(self.cluster.opened[1], ("mnist-chief-0", []))
        self.assertEqual(self.notes, ["waiting for the pod of the chief"])

    def test_a_restart_in_place(self):
        self.cluster.pods = [pod()]
        crashed = {
            "name": "tensorflow",
            "restartCount": 1,
            "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}},
            "lastState": {"terminated": {"exitCode": 1}},
        }
        self.stream(lines(1), 1)
        for _ in range(4):
            self.stream(lines(1))
        self.stream(lines(2), 10)
        self.stream(lines(2))
        self.at(1, pods=[pod(containerStatuses=[crashed])])
        self.at(10, pods=[pod()])
        self.finish(20)
        self.follow()
        self.check_written(1, 2)
        self.assertEqual(self.notes, ["waiting for pod mnist-chief-0: CrashLoopBackOff: back-off 10s"])

    def test_a_pod_that_runs_on_after_the_end_is_left(self):
        self.cluster.pods = [pod()]
        stream = self.stream(lines(1), 20, lines(2), 4, lines(3), 1000)
        self.at(19, job=tfjob("Failed"))
        self.assertEqual(self.follow().type, "Failed")
        self.check_written(1, 2, 3)
        self.assertTrue(stream.closed)
        self.assertLess(self.clock.now, 40)

    def test_the_job_ends_between_the_pods_end_and_the_next_look(self):
        self.cluster.pods = [ended_pod()]
        self.stream(lines(1))
        self.at(10, job=tfjob("Succeeded"))
        self.follow()
        self.check_written(1)
        self.assertEqual(len(self.cluster.opened), 1)

    def test_the_log_cannot_be_read_at_the_end(self):
        self.cluster.job = tfjob("Failed")
        self.cluster.pods = [ended_pod(exit_code=1)]
        self.stream(error=LOST)
        self.assertEqual(self.follow().type, "Failed")

    def test_the_pod_is_gone_at_the_end(self):
        self.cluster.job = tfjob("Succeeded")
        self.follow()
        self.assertEqual(self.notes, ["no log: the pod of the chief is gone"])

    def test_the_pod_never_started(self):
        self.cluster.job = tfjob("Failed")
        self.cluster.pods = [pod(phase="Pending")]
        self.follow()
        self.assertEqual(self.notes, ["no log: the pod of the chief never started"])

    def test_another_replica(self):
        self.cluster.job = tfjob("Succeeded")
        self.cluster.pods = [ended_pod(), ended_pod("worker", 0), ended_pod("worker", 1)]
        self.stream(lines(1))
        self.follow(replica=("worker", 1))
        self.assertEqual(self.cluster.opened[0][0], "mnist-worker-1")

    def test_timeout_while_waiting(self):
        with self.assertRaisesRegex(TimeoutError, "job mnist: not ended within 30 s; it goes on"):
            self.follow(timeout=30)
        self.assertEqual(self.clock.now, 30)

    def test_timeout_while_reading(self):
        self.cluster.pods = [pod()]
        stream = self.stream(lines(1), 1000)
        with self.assertRaises(TimeoutError):
            self.follow(timeout=30)
        self.assertTrue(stream.closed)
        self.assertLess(self.clock.now, 40)

    def test_the_job_is_deleted(self):
        self.cluster.pods = [pod()]
        stream = self.stream(lines(1), 1000)
        gone = ClusterError(ErrorKind.NOT_FOUND, "kubectl: not found")
        self.at(10, error=gone)
        with self.assertRaises(ClusterError) as caught:
            self.follow()
        self.assertIs(caught.exception, gone)
        self.assertTrue(stream.closed)

    def test_logs_are_forbidden(self):
        self.cluster.pods = [pod()]
        self.stream(error=ClusterError(ErrorKind.FORBIDDEN, "kubectl: forbidden"))
        with self.assertRaisesRegex(ClusterError, "forbidden"):
            self.follow()

    def test_the_cluster_is_silent_for_a_while(self):
        self.cluster.pods = [pod()]
        self.stream(lines(1), error=LOST)
        self.stream(lines(1, 2))
        self.clock.at(1, lambda: setattr(self.cluster, "error", SILENT))
        self.clock.at(100, lambda: setattr(self.cluster, "error", None))
        self.finish(100)
        self.follow()
        self.check_written(1, 2)
        self.assertEqual(self.notes, ["kubectl: refused; trying again for 300 s"])

    def test_lines_without_a_time(self):
        self.cluster.job = tfjob("Succeeded")
        self.cluster.pods = [ended_pod()]
        self.stream(["failed to watch file: no space", "2026-11-22T08:00:01Z", "2026-11-22T08:00:02Z  x"])
        self.follow()
        self.assertEqual(self.written, ["failed to watch file: no space", "", " x"])
