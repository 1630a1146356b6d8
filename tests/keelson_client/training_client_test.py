"""TrainingClient's methods do what those of the training SDK do, on a cluster in memory."""

import json
import unittest
import unittest.mock

from fake_api_server import pod_labels
from support import CONFIG, FakeClock, FakeKubectl, FakeStream, condition, ended_pod, pod, settings, tfjob

from keelson_client.errors import ClusterError, ErrorKind, InputError, JobFailedError
from keelson_client.manifest import find_job, render
from keelson_client.settings import Mount
from keelson_client.training_client import TrainingClient

FORBIDDEN = ClusterError(ErrorKind.FORBIDDEN, "kubectl: forbidden")
SILENT = ClusterError(ErrorKind.NO_SERVER, "kubectl: refused")


class ClientTest(unittest.TestCase):
    def setUp(self):
        self.clock = FakeClock()
        self.kubectl = FakeKubectl()
        self.client = TrainingClient(
            namespace="ml", kubectl=self.kubectl, clock=self.clock, sleep=self.clock.sleep
        )


class CreateTest(ClientTest):
    def stored(self, kind, name):
        return self.kubectl.objects[kind, name]

    def test_from_the_sdks_parameters(self):
        created = self.client.create_job(
            name="mnist",
            base_image="keelson:1",
            num_chief_replicas=1,
            num_ps_replicas=2,
            num_workers=4,
            resources_per_worker={"cpu": 3, "gpu": 1},
            env_vars={"A": "1"},
            config=CONFIG,
            model_claim=Mount("models", "/model"),
        )
        specs = created["spec"]["tfReplicaSpecs"]
        self.assertEqual(
            {kind: spec["replicas"] for kind, spec in specs.items()},
            {"Chief": 1, "PS": 2, "Worker": 4, "Evaluator": 1},
        )
        container = specs["Worker"]["template"]["spec"]["containers"][0]
        self.assertEqual(container["resources"]["limits"]["nvidia.com/gpu"], 1)
        self.assertEqual(container["resources"]["requests"]["cpu"], "3")
        self.assertEqual(container["env"], [{"name": "A", "value": "1"}])
        self.assertIn("--model_dir=/model/mnist", container["args"])
        self.assertEqual(self.stored("configmap", "mnist-config")["data"], {"job.textproto": CONFIG})
        self.assertEqual({namespace for namespace, _ in self.kubectl.calls}, {"ml"})

    def test_place_of_the_model(self):
        created = self.client.create_job(
            name="second", base_image="k", model_claim=Mount("models", "/model"), model_subdirectory="mnist"
        )
        for spec in created["spec"]["tfReplicaSpecs"].values():
            self.assertIn("--model_dir=/model/mnist", spec["template"]["spec"]["containers"][0]["args"])

    def test_without_a_chief(self):
        created = self.client.create_job(name="mnist", base_image="k", num_chief_replicas=0)
        self.assertEqual(list(created["spec"]["tfReplicaSpecs"]), ["PS", "Worker"])

    def test_from_a_document(self):
        job = find_job(render(settings(config="")))
        self.client.create_job(job, namespace="other")
        self.assertIn(("tfjob", "mnist"), self.kubectl.objects)
        self.assertEqual({namespace for namespace, _ in self.kubectl.calls}, {"other"})

    def test_the_documents_namespace_counts(self):
        self.client.create_job(find_job(render(settings(config="", namespace="own"))))
        self.assertEqual({namespace for namespace, _ in self.kubectl.calls}, {"own"})

    def test_companions_belong_to_the_job(self):
        self.client.create_objects(render(settings(dashboard=True)))
        owner = {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "name": "mnist", "uid": "uid-mnist"}
        for kind, name in (("configmap", "mnist-config"), ("service", "mnist-dashboard")):
            self.assertEqual(self.stored(kind, name)["metadata"]["ownerReferences"], [owner])

    def test_who_may_not_patch_gets_the_job_all_the_same(self):
        self.kubectl.errors["patch configmap"] = FORBIDDEN
        self.client.create_objects(render(settings()))
        self.assertIn(("tfjob", "mnist"), self.kubectl.objects)
        self.kubectl.errors["patch configmap"] = SILENT
        self.kubectl.objects.clear()
        with self.assertRaises(ClusterError):
            self.client.create_objects(render(settings()))

    def test_a_taken_name_is_refused_and_nothing_changed(self):
        self.kubectl.put(tfjob())
        with self.assertRaisesRegex(InputError, "job mnist exists already; .*keelson.py delete mnist"):
            self.client.create_objects(render(settings()))
        self.assertEqual(list(self.kubectl.objects), [("tfjob", "mnist")])

    def test_another_persons_config_map_is_refused(self):
        foreign = self.kubectl.put({"kind": "ConfigMap", "metadata": {"name": "mnist-config"}})
        with self.assertRaisesRegex(InputError, "ConfigMap mnist-config exists already, and was not made by"):
            self.client.create_objects(render(settings()))
        self.assertEqual(list(self.kubectl.objects.values()), [foreign])

    def test_a_config_map_left_behind_is_replaced(self):
        old = render(settings(config="old"))[0]
        old["metadata"]["ownerReferences"] = [{"uid": "gone"}]
        self.kubectl.put(old)
        self.client.create_objects(render(settings()))
        self.assertIn("delete configmap/mnist-config --ignore-not-found", self.kubectl.verbs())
        self.assertEqual(self.stored("configmap", "mnist-config")["data"]["job.textproto"], CONFIG)

    def test_a_refused_job_leaves_nothing_behind(self):
        self.kubectl.errors["create tfjob"] = ClusterError(ErrorKind.INVALID, "kubectl: denied")
        with self.assertRaisesRegex(ClusterError, "denied"):
            self.client.create_objects(render(settings()))
        self.assertEqual(self.kubectl.objects, {})

    def test_who_was_faster_keeps_the_config(self):
        exists = ClusterError(ErrorKind.EXISTS, "kubectl: already exists")
        self.kubectl.errors["create tfjob"] = exists
        with self.assertRaises(ClusterError) as caught:
            self.client.create_objects(render(settings()))
        self.assertIs(caught.exception, exists)
        self.assertNotIn("tfjob", {kind for kind, _ in self.kubectl.objects})
        self.assertIn(("configmap", "mnist-config"), self.kubectl.objects)
        self.assertFalse([verb for verb in self.kubectl.verbs() if verb.startswith("delete")])

    def test_a_refused_config_map_leaves_no_job(self):
        self.kubectl.errors["create configmap"] = FORBIDDEN
        with self.assertRaisesRegex(ClusterError, "forbidden"):
            self.client.create_objects(render(settings()))
        self.assertEqual(self.kubectl.objects, {})

    def test_the_first_error_is_told_when_cleaning_fails_too(self):
        self.kubectl.errors["create tfjob"] = ClusterError(ErrorKind.INVALID, "kubectl: denied")
        self.kubectl.errors["delete configmap"] = FORBIDDEN
        with self.assertRaisesRegex(ClusterError, "denied"):
            self.client.create_objects(render(settings()))

    def test_bad_input(self):
        for text, arguments in (
            ("num_chief_replicas: expected 0 or 1, found 2", {"name": "a", "num_chief_replicas": 2}),
            ("submit: metadata.name", {"name": "A_B", "base_image": "k"}),
            ("image", {"name": "a"}),
            ("metadata.name: expected a name, found none", {"job": _nameless()}),
        ):
            with self.subTest(text), self.assertRaisesRegex(InputError, text):
                self.client.create_job(**arguments)
        self.assertEqual(self.kubectl.calls, [])

    def test_other_kinds(self):
        with self.assertRaisesRegex(InputError, 'job_kind: expected one of TFJob, PyTorchJob, found "MPIJob"'):
            TrainingClient(job_kind="MPIJob")


def _nameless():
    job = find_job(render(settings(config="")))
    job["metadata"] = {"generateName": "mnist-"}
    return job


class ConditionsTest(ClientTest):
    def test_conditions_have_the_sdks_names(self):
        self.kubectl.put(tfjob("Created", "Running"))
        created, running = self.client.get_job_conditions("mnist")
        self.assertEqual((created.type, created.status, created.reason), ("Created", "True", "TFJobCreated"))
        self.assertEqual(running.message, "running")

    def test_is_job(self):
        tests = {
            "Created": self.client.is_job_created,
            "Running": self.client.is_job_running,
            "Restarting": self.client.is_job_restarting,
            "Succeeded": self.client.is_job_succeeded,
            "Failed": self.client.is_job_failed,
        }
        for kind, test in tests.items():
            self.assertTrue(test(job=tfjob(kind)), kind)
            self.assertFalse(test(job=tfjob()), kind)
        self.kubectl.put(tfjob("Succeeded"))
        self.assertTrue(self.client.is_job_succeeded("mnist"))

    def test_a_false_condition_is_none(self):
        job = tfjob()
        job["status"]["conditions"] = [condition("Running", status="False")]
        self.assertFalse(self.client.is_job_running(job=job))

    def test_list(self):
        self.kubectl.put(tfjob(name="a"))
        self.kubectl.put(tfjob(name="b"))
        self.assertEqual([job["metadata"]["name"] for job in self.client.list_jobs()], ["a", "b"])


class WaitTest(ClientTest):
    def setUp(self):
        super().setUp()
        self.kubectl.put(tfjob("Created"))
        self.notes = []

    def wait(self, **options):
        return self.client.wait_for_job_conditions("mnist", note=self.notes.append, **options)

    def later(self, time, *kinds):
        self.clock.at(time, lambda: self.kubectl.put(tfjob("Created", *kinds)))

    def test_succeeded_is_expected_by_default(self):
        self.later(40, "Running")
        self.later(100, "Running", "Succeeded")
        seen = []
        job = self.wait(callback=lambda job: seen.append(len(job["status"]["conditions"])))
        self.assertTrue(self.client.is_job_succeeded(job=job))
        self.assertEqual(self.clock.now, 105)
        self.assertEqual(seen, [1, 1, 1, 2, 2, 2, 2, 3])

    def test_any_of_several(self):
        self.later(5, "Running")
        self.wait(expected_conditions={"Running", "Succeeded"}, polling_interval=1)
        self.assertEqual(self.clock.now, 5)

    def test_failed_raises(self):
        self.later(5, "Failed")
        with self.assertRaisesRegex(RuntimeError, "job mnist: Failed: failed"):
            self.wait()

    def test_failed_may_be_expected(self):
        self.later(5, "Failed")
        self.assertTrue(self.client.is_job_failed(job=self.wait(expected_conditions={"Failed"})))

    def test_both_failed_and_succeeded_is_failed(self):
        self.later(5, "Succeeded", "Failed")
        with self.assertRaisesRegex(JobFailedError, "Failed"):
            self.wait(expected_conditions={"Restarting"})

    def test_what_can_not_come_any_more(self):
        self.later(5, "Succeeded")
        with self.assertRaisesRegex(JobFailedError, "job mnist: Succeeded"):
            self.wait(expected_conditions={"Failed"})

    def test_timeout(self):
        with self.assertRaisesRegex(TimeoutError, "job mnist: not Succeeded within 40 s; it goes on"):
            self.wait(wait_timeout=40)
        self.assertEqual(self.clock.now, 40)

    def test_unknown_conditions(self):
        for expected, found in (({"Done"}, "Done"), (set(), "none")):
            with self.assertRaisesRegex(InputError, f"found {found}"):
                self.wait(expected_conditions=expected)

    def test_no_job(self):
        self.kubectl.objects.clear()
        with self.assertRaises(ClusterError) as caught:
            self.wait()
        self.assertIs(caught.exception.kind, ErrorKind.NOT_FOUND)

    def test_a_silent_cluster_is_waited_for(self):
        self.clock.at(10, lambda: self.kubectl.errors.update({"get tfjob": SILENT}))
        self.clock.at(200, self.kubectl.errors.clear)
        self.later(250, "Succeeded")
        self.wait()
        self.assertEqual(self.notes, ["kubectl: refused; trying again for 300 s"])

    def test_but_not_for_ever(self):
        self.clock.at(10, lambda: self.kubectl.errors.update({"get tfjob": SILENT}))
        with self.assertRaises(ClusterError):
            self.wait(wait_timeout=None)
        self.assertEqual(self.clock.now, 315)

    def test_and_not_at_the_start(self):
        self.kubectl.errors["get tfjob"] = SILENT
        with self.assertRaises(ClusterError):
            self.wait()
        self.assertEqual(self.clock.now, 0)


class PodsTest(ClientTest):
    def setUp(self):
        super().setUp()
        for kind, index in (("chief", 0), ("ps", 0), ("worker", 0), ("worker", 1)):
            self.kubectl.put(pod(kind, index), "pod")

    def test_all(self):
        names = self.client.get_job_pod_names("mnist")
        self.assertEqual(names, ["mnist-chief-0", "mnist-ps-0", "mnist-worker-0", "mnist-worker-1"])

    def test_chosen(self):
        def names(**chosen):
            return self.client.get_job_pod_names("mnist", **chosen)

        self.assertEqual(names(is_master=True), ["mnist-chief-0"])
        self.assertEqual(names(replica_type="Worker"), ["mnist-worker-0", "mnist-worker-1"])
        self.assertEqual(names(replica_type="worker", replica_index=1), ["mnist-worker-1"])
        self.assertEqual(names(replica_index=0), ["mnist-chief-0", "mnist-ps-0", "mnist-worker-0"])
        self.assertEqual(names(replica_type="evaluator"), [])

    def test_documents(self):
        (document,) = self.client.get_job_pods("mnist", replica_type="ps")
        self.assertEqual(document, pod("ps", 0))

    def test_older_operators_labels(self):
        for generation in ("1.3", "v1beta2"):
            with self.subTest(generation):
                self.kubectl.objects.clear()
                self.kubectl.put(pod("chief", 0, labels=pod_labels("mnist", "chief", 0, generation)), "pod")
                self.assertEqual(self.client.get_job_pod_names("mnist", is_master=True), ["mnist-chief-0"])

    def test_other_jobs_pods(self):
        self.assertEqual(self.client.get_job_pods("other"), [])

    def test_claims(self):
        self.kubectl.put({"kind": "PersistentVolumeClaims", "metadata": {"name": "models"}})
        self.assertTrue(self.client.find_claim("models"))
        self.assertFalse(self.client.find_claim("other"))
        self.kubectl.errors["get persistentvolumeclaims"] = FORBIDDEN
        self.assertTrue(self.client.find_claim("other"))
        self.kubectl.errors["get persistentvolumeclaims"] = SILENT
        with self.assertRaises(ClusterError):
            self.client.find_claim("other")


class LogsTest(ClientTest):
    def setUp(self):
        super().setUp()
        for kind, index in (("chief", 0), ("worker", 0), ("worker", 1)):
            self.kubectl.put(pod(kind, index), "pod")
            self.kubectl.logs[f"mnist-{kind}-{index}"] = f"log of {kind}-{index}"

    def test_the_leaders_by_default(self):
        logs, events = self.client.get_job_logs("mnist")
        self.assertEqual((logs, events), ({"mnist-chief-0": "log of chief-0"}, {}))
        self.assertIn(
            ["logs", "mnist-chief-0", "--container=tensorflow"], [call for _, call in self.kubectl.calls]
        )

    def test_of_a_type(self):
        logs, _ = self.client.get_job_logs("mnist", replica_type="Worker")
        self.assertEqual(sorted(logs), ["mnist-worker-0", "mnist-worker-1"])

    def test_events(self):
        self.kubectl.put(tfjob())
        for i, (involved, time) in enumerate(
            [
                ("mnist", "2"),
                ("mnist-chief-0", "3"),
                ("mnist-chief-0", "1"),
                ("mnist-worker-0", "1"),
                ("mnist-2-worker-0", "1"),
                ("mnist2", "1"),
            ]
        ):
            event = {
                "involvedObject": {"name": involved},
                "type": "Normal",
                "reason": f"R{time}",
                "message": "m",
            }
            self.kubectl.put({"metadata": {"name": str(i)}, **event, "lastTimestamp": time}, "events")
        found = self.client.get_job_events("mnist")
        self.assertEqual(sorted(found), ["mnist", "mnist-chief-0", "mnist-worker-0"])
        _, events = self.client.get_job_logs("mnist", verbose=True)
        self.assertEqual(
            events, {"mnist": ["Normal R2: m"], "mnist-chief-0": ["Normal R1: m", "Normal R3: m"]}
        )

    def test_events_of_an_earlier_job_of_the_name_are_not_its_own(self):
        self.kubectl.put(tfjob())["metadata"]["creationTimestamp"] = "2026-11-22T08:00:00Z"
        cases = (
            ("mnist", "u0", "2026-11-22T09:00:00Z"),
            ("mnist", "u1", "2026-11-22T08:00:00Z"),
            ("mnist-chief-0", "c0", "2026-11-22T07:59:59Z"),
            ("mnist-chief-0", "c1", "2026-11-22T08:00:00.000123Z"),
        )
        for i, (involved, uid, time) in enumerate(cases):
            about = {"name": involved, "uid": uid}
            event = {"involvedObject": about, "type": "Warning", "reason": uid, "message": "m"}
            self.kubectl.put({"metadata": {"name": str(i)}, **event, "eventTime": time}, "events")
        events = self.client.get_job_events("mnist")
        self.assertEqual(events, {"mnist": ["Warning u1: m"], "mnist-chief-0": ["Warning c1: m"]})

    def test_follow_prints_and_returns_none(self):
        self.kubectl.put(tfjob("Succeeded"))
        self.kubectl.put(ended_pod(), "pod")
        self.kubectl.streams.append(FakeStream(self.clock, [["2026-11-22T08:00:00Z line"]]))
        with unittest.mock.patch("builtins.print") as printed:
            logs, _ = self.client.get_job_logs("mnist", follow=True)
        self.assertEqual(logs, {})
        printed.assert_called_once_with("line")


class ChangeTest(ClientTest):
    def test_scale(self):
        self.kubectl.put(tfjob("Running"))
        job = self.client.scale("mnist", 5)
        self.assertEqual(job["spec"]["tfReplicaSpecs"]["Worker"], {"replicas": 5})
        self.assertEqual(job["spec"]["tfReplicaSpecs"]["PS"], {"replicas": 2})
        self.client.scale("mnist", 0)

    def test_scale_keeps_the_manifests_spelling(self):
        self.kubectl.put(tfjob(replicas={"master": 1, "WORKER": 1}))
        self.client.scale("mnist", 2)
        specs = self.kubectl.objects["tfjob", "mnist"]["spec"]["tfReplicaSpecs"]
        self.assertEqual(specs, {"master": {"replicas": 1}, "WORKER": {"replicas": 2}})

    def test_scale_refuses(self):
        for job, workers, text in (
            (tfjob("Succeeded"), 2, "job mnist: Succeeded; only a job that goes on can be scaled"),
            (tfjob(replicas={"Chief": 1, "PS": 1}), 2, "expected workers, found only chief, ps"),
            (tfjob(replicas={"Worker": 2}), 0, "expected at least 1, found 0: worker 0 leads this job"),
            (tfjob(), -1, "expected at least 0, found -1"),
        ):
            self.kubectl.put(job)
            with self.subTest(text), self.assertRaisesRegex(InputError, text):
                self.client.scale("mnist", workers)
        self.assertNotIn("patch", {call[0] for _, call in self.kubectl.calls})

    def test_update(self):
        self.kubectl.put(tfjob())
        job = self.client.update_job({"spec": {"runPolicy": {"suspend": True}}}, "mnist")
        self.assertTrue(job["spec"]["runPolicy"]["suspend"])
        patch = next(call for _, call in self.kubectl.calls if call[0] == "patch")
        self.assertIn("--type=merge", patch)
        self.assertEqual(json.loads(patch[-3].partition("=")[2]), {"spec": {"runPolicy": {"suspend": True}}})

    def test_delete_takes_the_pods_along(self):
        self.kubectl.put(tfjob())
        self.client.delete_job("mnist")
        self.assertEqual(self.kubectl.objects, {})
        delete = next(call for _, call in self.kubectl.calls if call[0] == "delete")
        self.assertIn("--cascade=foreground", delete)

    def test_delete_waits_until_it_is_gone(self):
        job = self.kubectl.put(tfjob())
        original = self.kubectl.run

        def slow(arguments, namespace="", input_text=""):
            result = original(arguments, namespace, input_text)
            if arguments[0] == "delete":
                self.kubectl.put(job)
            return result

        self.kubectl.run = slow
        self.clock.at(7, self.kubectl.objects.clear)
        self.client.delete_job("mnist")
        self.assertEqual(self.clock.now, 7)
        self.kubectl.put(job)
        with self.assertRaisesRegex(TimeoutError, "job mnist: deleted, but still there after 3 s"):
            self.client.delete_job("mnist", wait_timeout=3)
        self.client.delete_job("mnist", wait_timeout=None)

    def test_delete_of_nothing(self):
        with self.assertRaises(ClusterError) as caught:
            self.client.delete_job("mnist")
        self.assertIs(caught.exception.kind, ErrorKind.NOT_FOUND)
