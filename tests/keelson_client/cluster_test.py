"""The commands with the real kubectl, against a small API server on this machine."""

import contextlib
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import unittest
import unittest.mock

import yaml
from fake_api_server import FakeApiServer
from support import CONFIG, PROGRAM, TemporaryDirectoryTest, settings

from keelson_client import commands
from keelson_client.errors import ClusterError, ErrorKind
from keelson_client.kubectl import KubectlProgram
from keelson_client.manifest import find_job, render
from keelson_client.training_client import TrainingClient

KUBECTL = shutil.which("kubectl")
# Only a broken client needs so long.
DEADLINE_SECONDS = 60
SUBMIT = ("submit", "--name", "mnist", "--image", "keelson:1", "--ps", "2", "--workers", "2")


def short_sleep(seconds):
    time.sleep(min(seconds, 0.2))


@unittest.skipUnless(KUBECTL, "kubectl is not installed")
class ClusterTest(TemporaryDirectoryTest):
    def setUp(self):
        super().setUp()
        self.server = FakeApiServer()
        self.addCleanup(self.server.close)
        self.kubeconfig = self.write_kubeconfig(self.server.address)
        self.config = self.write("job.textproto", CONFIG)
        # kubectl keeps what it discovered of a cluster there.
        home = unittest.mock.patch.dict(os.environ, {"HOME": self.directory})
        home.start()
        self.addCleanup(home.stop)
        self.players = []
        self.failures = []

    def write_kubeconfig(self, address):
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "c", "cluster": {"server": address}}],
            "users": [{"name": "u", "user": {}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "x",
        }
        return self.write("kubeconfig", json.dumps(config))

    def play(self, operator):
        """`operator` runs beside the command when a job is created."""

        def run(job):
            try:
                operator(job["metadata"]["name"])
            except AssertionError as error:
                self.failures.append(error)
                # A wait ends when the operator gave up.
                self.server.set_condition("mnist", "Failed", str(error))

        def start(job):
            player = threading.Thread(target=run, args=(job,))
            self.players.append(player)
            player.start()

        self.server.on_job = start

    def run_command(self, *argv):
        own, dashes = list(argv), []
        if "--" in own:
            dashes = own[own.index("--") :]
            own = own[: own.index("--")]
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = commands.main([*own, "--kubeconfig", self.kubeconfig, *dashes], sleep=short_sleep)
        for player in self.players:
            player.join(DEADLINE_SECONDS)
        self.assertEqual(self.failures, [])
        return code, out.getvalue(), err.getvalue()

    def client(self, **options):
        kubectl = KubectlProgram(KUBECTL, kubeconfig=self.kubeconfig)
        return TrainingClient(kubectl=kubectl, sleep=short_sleep, **options)

    def stored(self, resource, name="mnist", namespace="default"):
        return self.server.objects[resource, namespace, name]


class SubmitTest(ClusterTest):
    def test_what_is_created_is_what_dry_run_prints(self):
        flags = ("--config", self.config, "--pvc", "models", "--dashboard")
        code, _, err = self.run_command(*SUBMIT, *flags, "--no_follow", "--", "--seed=7")
        self.assertEqual(code, 0, err)
        printed = self.run_command(*SUBMIT, *flags, "--dry_run", "--", "--seed=7")[1]
        self.assertIn("--seed=7", printed)
        config, secret, *accounts, policy, budget, job, service = yaml.safe_load_all(printed)
        created = self.stored("tfjobs")
        self.assertEqual(created["spec"], job["spec"])
        self.assertEqual(self.stored("services", "mnist-dashboard")["spec"], service["spec"])
        self.assertEqual(self.stored("configmaps", "mnist-config")["data"], config["data"])
        self.assertEqual(self.stored("networkpolicies")["spec"], policy["spec"])
        self.assertEqual(self.stored("poddisruptionbudgets")["spec"], budget["spec"])
        self.assertEqual(len(accounts), 4)
        # Each one is made anew.
        self.assertNotEqual(self.stored("secrets", "mnist-job-token")["stringData"], secret["stringData"])
        beside = [("serviceaccounts", account["metadata"]["name"]) for account in accounts]
        beside += [("configmaps", "mnist-config"), ("networkpolicies", "mnist"), ("secrets", "mnist-job-token")]
        beside += [("services", "mnist-dashboard"), ("poddisruptionbudgets", "mnist")]
        for resource, name in beside:
            (owner,) = self.stored(resource, name)["metadata"]["ownerReferences"]
            self.assertEqual(owner["uid"], created["metadata"]["uid"])

    def test_follows_over_a_lost_connection_and_a_new_pod_to_success(self):
        def operator(name):
            self.server.wait_for_request("GET pods")
            self.server.make_pods(name)
            self.server.log("mnist-chief-0", "one", "two")
            self.server.wait_for_request("OPEN mnist-chief-0")
            self.server.cut_logs("mnist-chief-0")
            self.server.wait_for_request("OPEN mnist-chief-0", 2)
            self.server.delete_pod("mnist-chief-0")
            self.server.make_pod(name, "chief", 0)
            self.server.log("mnist-chief-0", "three")
            self.server.wait_for_request("OPEN mnist-chief-0", 3)
            self.server.end_pod("mnist-chief-0", message="done: step 50")
            self.server.set_condition(name, "Succeeded", "all is well")

        self.play(operator)
        code, out, err = self.run_command(*SUBMIT)
        self.assertEqual((code, out), (0, "one\ntwo\nthree\n"), err)
        self.assertIn("keelson: waiting for the operator to start the job\n", err)
        self.assertTrue(
            err.endswith("keelson: job mnist: Succeeded: all is well\nkeelson: chief-0: done: step 50\n"), err
        )

    def test_failure_and_delete_after(self):
        def operator(name):
            self.server.make_pods(name)
            self.server.end_pod("mnist-worker-1", 2, "E bad data")
            self.server.set_condition(name, "Failed", "1 Worker replica(s) failed")
            self.server.end_pod("mnist-chief-0", 143)

        self.play(operator)
        code, _, err = self.run_command(*SUBMIT, "--config", self.config, "--delete_after")
        self.assertEqual(code, 1)
        self.assertIn("keelson: job mnist: Failed: 1 Worker replica(s) failed\n", err)
        self.assertIn("keelson: worker-1: exit code 2: E bad data\n", err)
        self.assertEqual(self.server.objects, {})

    def test_a_job_that_lost_a_pod_is_created_again(self):
        flags = ("--config", self.config, "--pvc", "models", "--dashboard", "--no_follow")
        self.assertEqual(self.run_command(*SUBMIT, *flags)[0], 0)
        before = {key: value for key, value in self.server.objects.items() if key[0] != "pods"}
        lost = "TFJob default/mnist has failed because 1 PS replica(s) failed."
        self.server.set_condition("mnist", "Failed", lost)
        self.play(lambda name: self.server.set_condition(name, "Succeeded", "all is well"))
        code, _, err = self.run_command("wait", "--resubmit=1", "mnist")
        self.assertEqual(code, 0, err)
        self.assertIn(f"keelson: job mnist: Failed: {lost} No pod has ended with an error of its own", err)
        self.assertTrue(err.endswith("keelson: job mnist: Succeeded: all is well\n"), err)
        self.assertEqual(set(self.server.objects), set(before))
        owner = self.stored("tfjobs")["metadata"]["uid"]
        self.assertNotEqual(owner, before["tfjobs", "default", "mnist"]["metadata"]["uid"])
        for key, old in before.items():
            new = self.server.objects[key]
            for field in ("spec", "data", "stringData"):
                self.assertEqual(new.get(field), old.get(field), key)
            if key[0] != "tfjobs":
                self.assertEqual(new["metadata"]["ownerReferences"][0]["uid"], owner, key)

    def test_the_webhook_refuses(self):
        denied = 'admission webhook "v" denied the request: spec.tfReplicaSpecs: Required value'
        self.server.refusals["POST tfjobs"] = (400, "BadRequest", denied)
        code, _, err = self.run_command(*SUBMIT, "--config", self.config)
        self.assertEqual(code, 1)
        self.assertIn("denied the request: spec.tfReplicaSpecs: Required value", err.splitlines()[-1])
        self.assertEqual(self.server.objects, {})

    def test_interrupt_leaves_job_and_no_process(self):
        self.play(lambda name: (self.server.make_pods(name), self.server.log("mnist-chief-0", "one")))
        process = subprocess.Popen(
            [sys.executable, PROGRAM, *SUBMIT, "--kubeconfig", self.kubeconfig],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            start_new_session=True,
        )
        watchdog = threading.Timer(DEADLINE_SECONDS, process.kill)
        watchdog.start()
        self.addCleanup(watchdog.cancel)
        self.assertEqual(process.stdout.readline(), "one\n")
        # The whole group, as a terminal does.
        os.killpg(process.pid, signal.SIGINT)
        _, err = process.communicate()
        self.assertEqual(process.returncode, 130, err)
        self.assertNotIn("Traceback", err)
        self.assertIn("job mnist goes on", err)
        self.stored("tfjobs")
        with self.assertRaises(ProcessLookupError):
            os.killpg(process.pid, 0)


class OtherCommandsTest(ClusterTest):
    def setUp(self):
        super().setUp()
        self.server.put("tfjobs", find_job(render(settings())))
        self.server.make_pods("mnist")
        self.server.set_condition("mnist", "Running")

    def test_status(self):
        self.server.log("mnist-chief-0", "2026-11-22T08:00:00Z step=7 loss=0.5")
        self.server.add_event("mnist-worker-1", "FailedMount", "no such claim")
        code, out, _ = self.run_command("status", "mnist")
        self.assertEqual(code, 0)
        for text in (
            "default/mnist  Running",
            "worker-1      mnist-worker-1",
            "step=7 loss=0.5",
            "FailedMount",
        ):
            self.assertIn(text, out)

    def test_logs(self):
        self.server.log("mnist-worker-1", *(f"line {i}" for i in range(5)))
        found = self.run_command("logs", "worker", "1", "--name", "mnist", "--tail", "2")
        self.assertEqual(found[:2], (0, "line 3\nline 4\n"))

    def test_pods_of_older_operators(self):
        for key in [key for key in self.server.objects if key[0] == "pods"]:
            del self.server.objects[key]
        self.server.make_pods("mnist", "v1beta2")
        names = self.client().get_job_pod_names("mnist", is_master=True)
        self.assertEqual(names, ["mnist-chief-0"])

    def test_scale(self):
        code, _, err = self.run_command("scale", "--name", "mnist", "--workers", "5")
        self.assertEqual(code, 0, err)
        specs = self.stored("tfjobs")["spec"]["tfReplicaSpecs"]
        self.assertEqual((specs["Worker"]["replicas"], specs["PS"]["replicas"]), (5, 2))
        self.assertIn("template", specs["Worker"])

    def test_wait_and_delete(self):
        self.server.set_condition("mnist", "Succeeded", "well")
        self.assertEqual(self.run_command("wait")[2], "keelson: job mnist: Succeeded: well\n")
        self.assertEqual(self.run_command("delete", "mnist")[0], 0)
        self.assertEqual(self.server.objects, {})

    def test_namespace(self):
        self.server.put("tfjobs", {"metadata": {"name": "other"}, "spec": {}}, "ml")
        self.assertIn("other", self.run_command("list", "--namespace", "ml")[1])

    def test_claims(self):
        self.server.put("persistentvolumeclaims", {"metadata": {"name": "models"}})
        self.assertTrue(self.client().find_claim("models"))
        self.assertFalse(self.client().find_claim("other"))

    def test_logs_of_the_sdk(self):
        self.server.log("mnist-chief-0", "one")
        self.server.add_event("mnist-chief-0", "Pulled", "image", "Normal")
        logs, events = self.client().get_job_logs("mnist", verbose=True)
        self.assertEqual(logs, {"mnist-chief-0": "one\n"})
        self.assertEqual(events, {"mnist-chief-0": ["Normal Pulled: image"]})


class ErrorTest(ClusterTest):
    """Errors of the real kubectl are classified, whatever its version."""

    def kind_of(self, call):
        with self.assertRaises(ClusterError) as caught:
            call()
        return caught.exception.kind

    def test_forbidden(self):
        message = 'tfjobs.kubeflow.org is forbidden: User "u" cannot list resource "tfjobs"'
        self.server.refusals["GET tfjobs"] = (403, "Forbidden", message)
        code, _, err = self.run_command("list")
        self.assertEqual((code, err.count("\n")), (1, 1), err)
        self.assertIn("cannot list resource", err)

    def test_forbidden_log(self):
        self.server.put("tfjobs", find_job(render(settings())))
        self.server.make_pods("mnist")
        self.server.refusals["GET pods/log"] = (403, "Forbidden", 'pods "p" is forbidden: no logs')
        code, _, err = self.run_command("logs", "-f", "--name", "mnist", "chief")
        self.assertEqual(code, 1)
        self.assertIn("is forbidden: no logs", err.splitlines()[-1])

    def test_unauthorized(self):
        self.server.refusals["GET tfjobs"] = (401, "Unauthorized", "Unauthorized")
        self.assertIs(self.kind_of(self.client().list_jobs), ErrorKind.UNAUTHORIZED)

    def test_not_found(self):
        self.assertIs(self.kind_of(lambda: self.client().get_job("mnist")), ErrorKind.NOT_FOUND)

    def test_no_operator(self):
        self.server.has_operator = False
        self.assertIs(self.kind_of(lambda: self.client().get_job("mnist")), ErrorKind.NO_OPERATOR)
        code, _, err = self.run_command(*SUBMIT, "--config", self.config)
        self.assertEqual(code, 1)
        self.assertTrue(
            err.splitlines()[-1].startswith("keelson: the TFJob operator is not installed: "), err
        )
        self.assertEqual(self.server.objects, {})

    def test_no_server(self):
        self.server.close()
        self.addCleanup(setattr, self.server, "close", None)
        self.server.close = lambda: None
        self.assertIs(self.kind_of(self.client().list_jobs), ErrorKind.NO_SERVER)

    def test_no_kubeconfig(self):
        kubectl = KubectlProgram(KUBECTL, kubeconfig=os.path.join(self.directory, "absent"))
        kind = self.kind_of(TrainingClient(kubectl=kubectl).list_jobs)
        self.assertIn(kind, (ErrorKind.NO_SERVER, ErrorKind.OTHER))

    def test_no_such_context(self):
        kubectl = KubectlProgram(KUBECTL, context="absent", kubeconfig=self.kubeconfig)
        with self.assertRaisesRegex(ClusterError, 'context "absent" does not exist|context was not found'):
            TrainingClient(kubectl=kubectl).list_jobs()
