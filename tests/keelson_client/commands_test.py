"""The commands: what they write, their exit codes, and that bad input changes nothing."""

import contextlib
import io
import json
import os
import subprocess
import sys
import unittest
import unittest.mock

import yaml
from support import (
    CONFIG,
    PROGRAM,
    FakeClock,
    FakeKubectl,
    FakeStream,
    TemporaryDirectoryTest,
    condition,
    ended_pod,
    pod,
    settings,
    tfjob,
)

from keelson_client import commands, local_run
from keelson_client.errors import ClusterError, ErrorKind
from keelson_client.manifest import find_job, render

LINE = "2026-11-22T08:00:00.1Z hello"


class CommandTest(TemporaryDirectoryTest):
    maxDiff = None

    def setUp(self):
        super().setUp()
        self.clock = FakeClock()
        self.kubectl = FakeKubectl()
        self.config = self.write("job.textproto", CONFIG)

    def run_command(self, *argv):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                code = commands.main(argv, self.kubectl, self.clock, self.clock.sleep)
            except SystemExit as exit_request:
                code = exit_request.code
        return code, out.getvalue(), err.getvalue()

    def check(self, argv, code, out=None, err=None):
        found = self.run_command(*argv)
        self.assertEqual(found[0], code, found)
        if out is not None:
            self.assertEqual(found[1], out)
        if err is not None:
            self.assertEqual(found[2], err)
        return found


class SubmitTest(CommandTest):
    SUBMIT = ("submit", "--name", "mnist", "--image", "keelson:1", "--ps", "2", "--workers", "3")

    def ends(self, time, kind, *pods):
        def end():
            job = self.kubectl.objects["tfjob", "mnist"]
            job["status"] = tfjob("Created", kind)["status"]
            for value in pods:
                self.kubectl.put(value, "pod")

        self.clock.at(time, end)

    def test_dry_run_prints_what_would_be_applied(self):
        code, out, err = self.run_command(
            *self.SUBMIT, "--config", self.config, "--pvc", "models", "--dry_run"
        )
        self.assertEqual((code, err), (0, ""))
        kinds = [d["kind"] for d in yaml.safe_load_all(out)]
        self.assertEqual(kinds, ["ConfigMap", "Secret", *["ServiceAccount"] * 4, "NetworkPolicy", "PodDisruptionBudget", "TFJob"])
        self.assertEqual(self.kubectl.calls, [])

    def test_what_only_concerns_a_laptop_is_not_told(self):
        out = self.check([*self.SUBMIT, "--pvc", "models", "--dashboard", "--dry_run"], 0, err="")[1]
        self.assertIn("kind: Service", out)

    def test_every_flag_reaches_the_manifest(self):
        flags = (
            "--pvc models:/m --model_subdir runs/a --data_pvc digits:/d --secret token --env A=1 --gpus 2 --evaluator --dashboard "
            "--auth_secret mnist-token "
            "--chief_cpu 1 --chief_memory 1Gi --ps_cpu 2 --ps_memory 2Gi --worker_cpu 3 --worker_memory 3Gi "
            "--evaluator_cpu 4 --evaluator_memory 4Gi --training_steps 7 --dynamic_workers "
            "--restart_policy Never --clean_pod_policy All --ttl 1 --deadline 2 --backoff_limit 3 "
            "--node_selector pool=a --toleration spot:NoExecute --service_account trainer "
            "--image_pull_secret registry --namespace ml"
        ).split()
        argv = [*self.SUBMIT, "--config", self.config, *flags, "--dry_run", "--", "--seed=9"]
        out = self.run_command(*argv)[1]
        for expected in (
            "namespace: ml",
            "claimName: models",
            "--model_dir=/m/runs/a",
            "claimName: digits",
            "--data_dir=/d",
            "secretName: token",
            "mountPath: /secrets/token",
            "name: A",
            "nvidia.com/gpu: 2",
            "mnist-dashboard",
            "secretName: mnist-token",
            "--auth_token_file=/etc/keelson-token/token",
            "memory: 1Gi",
            "memory: 2Gi",
            "memory: 3Gi",
            "memory: 4Gi",
            "cpu: '4'",
            "--training_steps=7",
            "enableDynamicWorker: true",
            "restartPolicy: Never",
            "cleanPodPolicy: All",
            "ttlSecondsAfterFinished: 1\n",
            "activeDeadlineSeconds: 2\n",
            "backoffLimit: 3\n",
            "pool: a",
            "key: spot",
            "serviceAccountName: trainer",
            "- name: registry",
            "--seed=9",
        ):
            self.assertIn(expected, out)
        out = self.run_command(*self.SUBMIT, "--no_dynamic_workers", "--no_disruption_budget", "--dry_run")[1]
        self.assertNotIn("enableDynamicWorker", out)
        self.assertNotIn("PodDisruptionBudget", out)
        self.assertNotIn(
            "Evaluator:", self.run_command(*self.SUBMIT, "--pvc", "m", "--no_evaluator", "--dry_run")[1]
        )

    def test_no_follow_returns_at_once(self):
        self.kubectl.put({"kind": "PersistentVolumeClaims", "metadata": {"name": "models"}})
        created = "keelson: job mnist created: chief 1, ps 2, worker 3, evaluator 1\n"
        place = "keelson: its model: mnist in the claim models; a later job with --name mnist resumes it\n"
        self.check([*self.SUBMIT, "--pvc", "models", "--no_follow"], 0, "", created + place)

    def test_each_job_has_its_own_model_in_a_claim(self):
        for flags, model_dir in (
            ((), "/model/mnist"),
            (("--name", "second"), "/model/second"),
            (("--model_subdir", "first"), "/model/first"),
            (("--model_subdir", "."), "/model"),
        ):
            out = self.run_command(*self.SUBMIT, "--pvc", "models", *flags, "--dry_run")[1]
            job = find_job(list(yaml.safe_load_all(out)))
            specs = job["spec"]["tfReplicaSpecs"]
            containers = [spec["template"]["spec"]["containers"][0] for spec in specs.values()]
            self.assertEqual(len(containers), 4)
            for container in containers:
                self.assertIn(f"--model_dir={model_dir}", container["args"])
                mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
                self.assertEqual(mounts, {"model": "/model", "job-token": "/etc/keelson-job-token"})

    def test_it_says_what_resumes_the_model(self):
        flags = ("--pvc", "models", "--model_subdir", "a", "--no_follow")
        err = self.check([*self.SUBMIT, *flags], 0)[2]
        self.assertIn(
            "keelson: its model: a in the claim models; a later job with --model_subdir a resumes it\n", err
        )

    def test_warnings(self):
        err = self.check([*self.SUBMIT, "--no_follow"], 0)[2]
        self.assertIn("keelson: warning: without --pvc the model is lost with the chief's pod\n", err)
        self.kubectl.objects.clear()
        err = self.check([*self.SUBMIT, "--no_follow", "--pvc", "models", "--restart_policy", "Always"], 0)[2]
        self.assertIn("keelson: warning: --pvc: there is no claim models yet; the pods wait for it\n", err)
        self.assertIn("restartPolicy", err)

    def test_follows_to_success(self):
        self.ends(4, "Succeeded", ended_pod(message="done: step 50"))
        self.kubectl.streams.append(FakeStream(self.clock, [[LINE]]))
        _, out, err = self.check(self.SUBMIT, 0)
        self.assertEqual(out, "hello\n")
        self.assertEqual(
            err.splitlines()[-3:],
            [
                "keelson: waiting for the operator to start the job",
                "keelson: job mnist: Succeeded: succeeded",
                "keelson: chief-0: done: step 50",
            ],
        )

    def test_follows_to_failure(self):
        self.ends(4, "Failed", ended_pod(exit_code=143), ended_pod("worker", 1, 2, "E bad data"))
        self.kubectl.streams.append(FakeStream(self.clock, [[LINE]]))
        err = self.check(self.SUBMIT, 1)[2]
        self.assertEqual(
            err.splitlines()[-3:],
            [
                "keelson: job mnist: Failed: failed",
                "keelson: chief-0: exit code 143",
                "keelson: worker-1: exit code 2: E bad data",
            ],
        )

    def test_a_job_that_lost_pods_is_created_again(self):
        lost = "TFJob default/mnist has failed because 1 PS replica(s) failed."
        for flags in ((), ("--wait", "Succeeded")):
            self.kubectl.objects.clear()
            start = self.clock.now
            self.ends(start + 4, "Failed", ended_pod(exit_code=143))
            self.clock.at(start + 4, lambda: self.set_message(lost))
            self.ends(start + 30, "Succeeded", ended_pod(message="done: step 50"))
            self.kubectl.streams = [FakeStream(self.clock, [[LINE]]), FakeStream(self.clock, [[LINE]])]
            err = self.check([*self.SUBMIT, "--pvc", "models", "--resubmit", "1", *flags], 0)[2]
            self.assertEqual(err.count(f"keelson: job mnist: Failed: {lost} No pod has ended with an error"), 1)
            self.assertIn("keelson: job mnist: Succeeded: succeeded\n", err)

    def set_message(self, message):
        self.kubectl.objects["tfjob", "mnist"]["status"]["conditions"][-1]["message"] = message

    def test_a_job_with_an_error_of_its_own_is_not_created_again(self):
        self.ends(4, "Failed", ended_pod("worker", 1, 2, "E bad data"))
        err = self.check([*self.SUBMIT, "--pvc", "models", "--resubmit", "1"], 1)[2]
        self.assertIn("keelson: worker-1: exit code 2: E bad data\n", err)

    def test_wait_for_a_condition(self):
        self.ends(10, "Running")
        err = self.check([*self.SUBMIT, "--wait", "Running"], 0)[2]
        self.assertTrue(err.endswith("keelson: job mnist: Running\n"), err)

    def test_wait_that_the_jobs_end_makes_vain(self):
        self.ends(10, "Failed")
        err = self.check([*self.SUBMIT, "--wait", "Running"], 1)[2]
        self.assertIn("keelson: job mnist: Failed: failed\n", err)

    def test_failure_that_was_waited_for(self):
        self.ends(10, "Failed")
        self.check([*self.SUBMIT, "--wait", "Failed"], 0)

    def test_delete_after(self):
        self.ends(4, "Failed")
        err = self.check([*self.SUBMIT, "--delete_after"], 1)[2]
        self.assertTrue(err.endswith("keelson: job mnist deleted\n"), err)
        self.assertNotIn(("tfjob", "mnist"), self.kubectl.objects)

    def test_timeout(self):
        for flags in ((), ("--wait", "Succeeded")):
            self.kubectl.objects.clear()
            err = self.check([*self.SUBMIT, "--timeout", "30", "--delete_after", *flags], 124)[2]
            self.assertIn("within 30 s; it goes on", err)
            self.assertIn(("tfjob", "mnist"), self.kubectl.objects)

    def test_interrupt_leaves_the_job(self):
        def interrupt(_):
            raise KeyboardInterrupt

        self.clock.sleep = interrupt
        err = self.check(self.SUBMIT, 130)[2]
        self.assertIn("job mnist goes on; keelson.py logs -f --name mnist chief follows it again", err)
        self.assertIn(("tfjob", "mnist"), self.kubectl.objects)

    def test_bad_input_is_one_line_and_changes_nothing(self):
        for flags, text in (
            (("--config", "/nonexistent"), "--config: /nonexistent: No such file or directory"),
            (("--ps", "1", "--workers", "0"), "--workers: expected at least 1 beside 1 parameter servers, found 0"),
            (("--kind", "pytorch"), "--ps: a PyTorchJob has no parameter servers: expected 0, found 2"),
            (("--kind", "pytorch", "--ps", "0", "--pvc", "m", "--evaluator"), "--evaluator: a PyTorchJob has none"),
            (("--name", "Mnist"), 'submit: metadata.name: Invalid value: "Mnist"'),
            (("--name", "a" * 60), "submit: metadata.name"),
            (("--image", ""), "--image: expected an image that the cluster can pull, found none"),
            (("--worker_memory", "x"), "--worker_memory: expected a quantity"),
            (("--env", "A"), "--env: expected KEY=VALUE"),
            (("--pvc", ":/x"), "--pvc: expected NAME or NAME:/path"),
            (("--model_subdir", "a"), "--model_subdir: it is a directory of a claim; give --pvc CLAIM"),
            (("--secret", "s:x"), "--secret: expected an absolute path"),
            (("--auth_secret", "My token"), "--auth_secret: expected the name of a Secret"),
            (("--job_secret", "a/b"), "--job_secret: expected the name of a Secret"),
            (("--secret", "s:/etc/keelson-job-token"), "--secret: /etc/keelson-job-token overlaps"),
            (("--secret", "s:/etc/keelson-token"), "--secret: /etc/keelson-token overlaps"),
            (("--toleration", "=x"), "--toleration: expected KEY"),
            (("--follow", "--wait", "Running"), "--wait: not with --follow"),
            (("--no_follow", "--timeout", "1"), "--timeout: nothing is waited for"),
            (("--no_follow", "--delete_after"), "--delete_after: nothing is waited for"),
            (("--no_follow", "--pvc", "m", "--resubmit", "1"), "--resubmit: nothing is waited for"),
            (("--wait", "Failed", "--pvc", "m", "--resubmit", "1"), "--resubmit: not with --wait Failed"),
            (("--resubmit", "1"), "--resubmit: the model is lost with the chief's pod; give --pvc CLAIM"),
            (("--wait", "Running", "--delete_after"), "--delete_after: the job has not ended"),
            (("--local_flag=--follow",), "--local_flag: only with --local"),
            (("--local", "--dry_run"), "--local: not with --dry_run"),
            (("--", "--model_dir=/m"), "--model_dir=/m after --: submit gives --model_dir=/model itself"),
            (("--training_steps=5", "--", "--training_steps=7"), "--training_steps=7 after --: submit gives"),
            (("--", "--metrics_port", "1"), "--metrics_port after --: submit gives --metrics_port=9090"),
        ):
            with self.subTest(flags):
                err = self.check([*self.SUBMIT, *flags], 2, "")[2]
                self.assertTrue(err.startswith(f"keelson: {text}"), err)
                self.assertEqual(err.count("\n"), 1, err)
        self.assertEqual(self.kubectl.calls, [])

    def test_usage(self):
        for argv in (
            (),
            ("submit",),
            (*self.SUBMIT, "--workers", "-1"),
            (*self.SUBMIT, "--timeout", "0"),
            (*self.SUBMIT, "--wait", "Done"),
            ("list", "--", "--seed=1"),
            ("scale", "--name", "mnist"),
        ):
            self.assertRegex(self.check(argv, 2)[2], r"^keelson: .*; --help lists the flags\n$")

    def test_cluster_errors(self):
        self.kubectl.errors["get tfjob"] = ClusterError(ErrorKind.FORBIDDEN, "kubectl: forbidden")
        err = self.check(self.SUBMIT, 1)[2]
        self.assertTrue(err.endswith("keelson: kubectl: forbidden\n"), err)

    def test_local(self):
        seen = []

        def execute(program, argv):
            with open(argv[2], encoding="utf-8") as file:
                seen.append((argv[1], list(yaml.safe_load_all(file)), argv[3:]))
            raise SystemExit(7)

        with unittest.mock.patch.object(local_run.os, "execv", execute):
            argv = ["submit", "--name", "mnist", "--local", "--config", self.config]
            self.check([*argv, "--local_flag=--follow=all", "--local_flag=--ps=1"], 7)
        ((launcher, documents, flags),) = seen
        self.assertEqual(flags, ["--follow=all", "--ps=1"])
        self.assertTrue(os.path.exists(launcher), launcher)
        kinds = [d["kind"] for d in documents]
        self.assertEqual(kinds, ["ConfigMap", "Secret", *["ServiceAccount"] * 3, "NetworkPolicy", "PodDisruptionBudget", "TFJob"])
        self.assertEqual(self.kubectl.calls, [])


class OtherCommandsTest(CommandTest):
    def setUp(self):
        super().setUp()
        self.kubectl.put(tfjob("Running"))
        self.kubectl.put(pod(), "pod")
        self.kubectl.put(pod("worker", 1), "pod")

    def test_status(self):
        self.kubectl.logs["mnist-chief-0"] = "2026-11-22T08:00:00Z step=7 loss=0.5\n"
        out = self.check(["status"], 0)[1]
        self.assertIn("default/mnist  Running", out)
        self.assertIn("progress: step=7 loss=0.5", out)
        self.kubectl.put(ended_pod(message="done: step 50"), "pod")
        self.assertIn("progress: done: step 50", self.check(["status", "mnist"], 0)[1])

    def test_status_without_a_log(self):
        self.kubectl.errors["logs pod"] = ClusterError(ErrorKind.FORBIDDEN, "kubectl: forbidden")
        out = self.check(["status"], 0)[1]
        self.assertNotIn("progress", out)
        del self.kubectl.objects["pod", "mnist-chief-0"]
        self.assertNotIn("progress", self.check(["status"], 0)[1])

    def test_status_for_programs(self):
        out = self.check(["status", "-o", "json"], 0)[1]
        self.assertEqual(json.loads(out), self.kubectl.objects["tfjob", "mnist"])
        out = self.check(["status", "-o", "yaml"], 0)[1]
        self.assertEqual(yaml.safe_load(out), self.kubectl.objects["tfjob", "mnist"])

    def test_list(self):
        self.assertIn("mnist   Running", self.check(["list"], 0)[1])
        listed = json.loads(self.check(["list", "-o", "json"], 0)[1])
        self.assertEqual([job["metadata"]["name"] for job in listed["items"]], ["mnist"])
        self.kubectl.objects.clear()
        self.check(["list"], 0, "no TFJobs\n")

    def test_the_only_job_needs_no_name(self):
        self.kubectl.put(tfjob(name="other"))
        expected = "keelson: expected the name of a job where there is not just one, found mnist, other\n"
        self.check(["status"], 2, "", expected)
        self.kubectl.objects.clear()
        self.check(["scale", "--workers", "1"], 2, "", expected.replace("mnist, other", "none"))

    def test_logs(self):
        self.kubectl.streams.append(FakeStream(self.clock, [["one"], ["two"]]))
        self.check(["logs", "worker", "1", "--tail", "5", "--previous"], 0, "one\ntwo\n", "")
        call = self.kubectl.calls[-1][1]
        self.assertEqual(call, ["logs", "mnist-worker-1", "--container=tensorflow", "--previous", "--tail=5"])

    def test_logs_of_a_master(self):
        self.kubectl.objects.clear()
        self.kubectl.put(tfjob(replicas={"Master": 1}))
        self.kubectl.put(pod("master"), "pod")
        self.kubectl.streams.append(FakeStream(self.clock, [["one"]]))
        self.check(["logs", "chief"], 0, "one\n")

    def test_logs_of_nobody(self):
        for argv, code, text in (
            (["logs", "boss"], 2, 'expected chief, master, ps, worker or evaluator, found "boss"'),
            (["logs", "evaluator"], 2, "expected one of chief, ps, worker, found evaluator"),
            (["logs", "worker", "3"], 2, "expected a worker of 0..2, found 3"),
            (["logs", "worker-2"], 1, "job mnist: there is no pod of worker-2 now"),
            (["logs", "chief", "-f", "--tail", "1"], 2, "--follow: not with --previous or --tail"),
            (["logs", "chief", "--timeout", "1"], 2, "--timeout: only with --follow"),
        ):
            with self.subTest(argv):
                self.check(argv, code, "", f"keelson: {text}\n")
        self.kubectl.put(tfjob(replicas={"Worker": 1}))
        hint = "keelson: expected one of worker, found chief; worker 0 leads this job\n"
        self.check(["logs", "chief"], 2, "", hint)

    def test_logs_that_end_in_an_error(self):
        error = ClusterError(ErrorKind.OTHER, "kubectl: gone")
        self.kubectl.streams.append(FakeStream(self.clock, [["one"]], error))
        self.check(["logs", "chief"], 1, "one\n", "keelson: kubectl: gone\n")

    def test_logs_follow(self):
        self.kubectl.put(tfjob("Failed"))
        self.kubectl.put(ended_pod("worker", 1, 1), "pod")
        self.kubectl.streams.append(FakeStream(self.clock, [[LINE]]))
        self.check(["logs", "-f", "worker", "1"], 0, "hello\n", "keelson: job mnist: Failed: failed\n")

    def put_evaluator(self, *args):
        self.kubectl.put(tfjob("Running", replicas={"Chief": 1, "Evaluator": 1}))
        value = pod("evaluator")
        value["spec"]["containers"] = [{"name": "tensorflow", "command": ["evaluator"], "args": list(args)}]
        self.kubectl.put(value, "pod")

    def test_dashboard(self):
        self.put_evaluator("--dashboard_port=6006")
        self.clock.at(3, lambda: self.kubectl.put(tfjob("Succeeded", replicas={"Evaluator": 1})))
        lines = ["Forwarding from 127.0.0.1:7001 -> 6006", "Handling connection for 7001"]
        self.kubectl.streams.append(FakeStream(self.clock, [lines, 60.0]))
        self.check(
            ["dashboard", "mnist", "--port", "7001"],
            0,
            "dashboard: http://127.0.0.1:7001/\n",
            "keelson: job mnist: Succeeded: succeeded\n",
        )
        forward = [call for _, call in self.kubectl.calls if call[0] == "port-forward"]
        expected = ["port-forward", "pod/mnist-evaluator-0", "--address=127.0.0.1", "7001:6006"]
        self.assertEqual(forward, [expected])

    def test_dashboard_of_a_job_that_fails(self):
        self.put_evaluator("--dashboard_port=6006")
        self.clock.at(3, lambda: self.kubectl.put(tfjob("Failed", replicas={"Evaluator": 1})))
        self.kubectl.streams.append(FakeStream(self.clock, [60.0]))
        self.check(["dashboard"], 1, "", "keelson: job mnist: Failed: failed\n")

    def test_dashboard_of_nobody(self):
        missing = "keelson: expected one of chief, ps, worker, found evaluator\n"
        self.check(["dashboard"], 2, "", missing)
        self.put_evaluator("--metrics_port=9090")
        err = self.check(["dashboard"], 2, "")[2]
        found = "expected an evaluator with --dashboard_port=N, found none; submit has --dashboard"
        self.assertEqual(err, f"keelson: pod mnist-evaluator-0: {found}\n")
        self.check(["dashboard", "--index", "1"], 2, "", "keelson: expected an evaluator of 0..0, found 1\n")
        for port in ("x", "65536"):
            self.assertIn("expected a port of 0..65535", self.check(["dashboard", "--port", port], 2)[2])

    def test_scale(self):
        self.check(["scale", "--workers", "5"], 0)
        specs = self.kubectl.objects["tfjob", "mnist"]["spec"]["tfReplicaSpecs"]
        self.assertEqual(specs["Worker"]["replicas"], 5)

    def test_scale_warns_where_the_operator_may_fail_the_job(self):
        warning = "keelson: warning: without enableDynamicWorker the operator may fail the job"
        self.assertIn(warning, self.check(["scale", "--workers", "2"], 0)[2])
        self.assertNotIn("warning", self.check(["scale", "--workers", "4"], 0)[2])
        self.kubectl.objects["tfjob", "mnist"]["spec"]["enableDynamicWorker"] = True
        self.assertNotIn("warning", self.check(["scale", "--workers", "1"], 0)[2])

    def test_wait(self):
        self.clock.at(9, lambda: self.kubectl.put(tfjob("Running", "Succeeded")))
        self.check(["wait"], 0, "", "keelson: job mnist: Succeeded: succeeded\n")
        self.check(["wait", "mnist", "--for", "Failed", "--for", "Running"], 0)
        self.check(["wait", "--for", "Failed"], 1, "", "keelson: job mnist: Succeeded: succeeded\n")

    def test_wait_over_the_loss_of_pods(self):
        lost = condition("Failed", message="TFJob default/mnist has failed because 1 PS replica(s) failed.")
        self.kubectl.put({**tfjob(), "status": {"conditions": [lost]}})
        self.kubectl.objects["tfjob", "mnist"]["spec"] = find_job(render(settings()))["spec"]
        self.clock.at(9, lambda: self.kubectl.put(tfjob("Succeeded")))
        err = self.check(["wait", "--resubmit", "1"], 0, "")[2]
        self.assertIn("keelson: job mnist: Succeeded: succeeded\n", err)
        self.assertIn("delete tfjobs.kubeflow.org mnist", self.kubectl.verbs())
        self.assertIn("create --filename=- -o", self.kubectl.verbs())
        wrong = "keelson: --resubmit: not with --for Failed\n"
        self.check(["wait", "--resubmit", "1", "--for", "Failed"], 2, "", wrong)

    def test_wait_gives_up(self):
        self.check(
            ["wait", "--timeout", "9"], 124, "", "keelson: job mnist: not Succeeded within 9 s; it goes on\n"
        )

    def test_delete(self):
        self.check(["delete", "mnist"], 0, "", "keelson: job mnist deleted\n")
        self.check(["delete", "mnist"], 1, "", "keelson: kubectl: tfjob mnist not found\n")

    def test_interrupt(self):
        def interrupt(_):
            raise KeyboardInterrupt

        self.clock.sleep = interrupt
        self.check(["wait"], 130, "", "")

    def test_a_reader_that_has_seen_enough(self):
        reader, writer = os.pipe()
        os.close(reader)
        with os.fdopen(writer, "wb") as output:
            done = subprocess.run(
                [sys.executable, PROGRAM, "submit", "--name", "m", "--image", "i", "--dry_run"],
                stdout=output,
                stderr=subprocess.PIPE,
                encoding="utf-8",
                timeout=60,
                check=False,
            )
        self.assertEqual((done.returncode, done.stderr), (1, ""))
