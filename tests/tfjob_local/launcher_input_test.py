"""Bad input: one line that says what is wrong, exit code 2, nothing started and nothing written."""

import os
import re
import socket
import subprocess
import unittest
from unittest import mock

import support
from support import manifest, replica
from tfjob_local import command_line

TEMPLATE = """\
apiVersion: template.openshift.io/v1
kind: Template
parameters:
- {name: JOB_NAME, required: true}
- {name: WORKERS, value: "2"}
objects:
- apiVersion: kubeflow.org/v1
  kind: TFJob
  metadata: {name: "${JOB_NAME}"}
  spec:
    tfReplicaSpecs:
      Worker:
        replicas: ${{WORKERS}}
        template: {spec: {containers: [{name: tensorflow, image: "%s"}]}}
"""

# The programs are asked for their flags, and nothing else is started.
POPEN = subprocess.Popen


def ask_for_flags(command, **options):
    if command[1:] != ["--help=json"]:
        raise AssertionError(f"a process was started: {command}")
    return POPEN(command, **options)


class InputTest(support.LauncherTest):
    def refused(self, text, *flags, code=2):
        """The one line, without the manifest's path."""
        path = self.write("job.yaml", text) if text is not None else self.path("job.yaml")
        command = [path, f"--bin_dir={self.path('bin')}", f"--run_dir={self.path('run')}", *flags]
        with mock.patch("subprocess.Popen", ask_for_flags):
            result, output, errors = self.ask(*command)
        self.assertEqual((result, output), (code, ""), errors)
        self.assertFalse(os.path.exists(self.path("run")))
        self.assertTrue(errors.startswith("tfjob_local: "), errors)
        self.assertEqual(errors.count("\n"), 1, errors)
        return errors[len("tfjob_local: ") : -1].replace(f"{path}: ", "").replace(path, "FILE")


class ManifestTest(InputTest):
    def test_no_replica_specs(self):
        text = "apiVersion: kubeflow.org/v1\nkind: TFJob\nmetadata: {name: j}\nspec: {}\n"
        self.assertEqual(self.refused(text), "spec.tfReplicaSpecs: Required value: must be required")

    def test_no_container_named_tensorflow(self):
        text = manifest(replica("Worker")).replace("name: tensorflow", "name: main")
        self.assertIn("must have at least one container with name tensorflow", self.refused(text))

    def test_two_chiefs(self):
        self.assertIn(
            "must not have more than 1 Chief or Master role",
            self.refused(manifest(replica("Chief"), replica("Master"), replica("Worker"))),
        )
        self.assertIn("spec.tfReplicaSpecs.Chief.replicas: ", self.refused(manifest(replica("Chief", 2))))

    def test_unknown_replica_type(self):
        line = self.refused(manifest(replica("Chief"), replica("Trainer")))
        self.assertIn("Trainer", line)
        self.assertIn("Chief, Evaluator, Master, PS, Worker", line)

    def test_jobs_that_could_never_end(self):
        for specs in ([replica("Evaluator")], [replica("PS")], [replica("Worker", 0), replica("PS")]):
            self.assertIn("spec.tfReplicaSpecs", self.refused(manifest(*specs)))

    def test_jobs_without_servers(self):
        """The workers have the variables, and what runs is what would run beside servers."""
        for specs, programs in (
            ([replica("Worker", 2)], ["worker", "worker"]),
            ([replica("Chief"), replica("Worker", 2), replica("Evaluator")], ["chief", "worker", "worker", "evaluator"]),
            ([replica("Master"), replica("Worker")], ["chief", "worker"]),
            ([replica("Chief"), replica("PS", 0), replica("Worker")], ["chief", "worker"]),
            ([replica("Worker", 2, container="command: [python, -m, train]")], ["worker", "worker"]),
            ([replica("Chief")], ["chief"]),
        ):
            path = self.write("job.yaml", manifest(*specs))
            code, output, errors = self.ask(path, f"--bin_dir={self.path('bin')}", "--dry_run")
            self.assertEqual((code, errors), (0, ""), specs)
            started = re.findall(r"^  program +\S+/(\w+)$", output, re.MULTILINE)
            self.assertEqual(started, programs)

    def test_servers_may_be_added(self):
        path = self.write("job.yaml", manifest(replica("Worker", 2)))
        code, output, errors = self.ask(path, f"--bin_dir={self.path('bin')}", "--dry_run", "--ps=1")
        self.assertEqual((code, errors), (0, ""))
        self.assertIn("/ps_server\n", output)

    def test_name_too_long(self):
        self.assertIn(
            "metadata.name: ", self.refused(manifest(replica("Chief"), replica("Worker"), name="j" * 60))
        )

    def test_yaml_syntax_error_has_its_line(self):
        self.assertRegex(self.refused("kind: TFJob\nspec: [\n"), r"^FILE:3:1: not YAML: ")

    def test_missing_file(self):
        self.assertEqual(self.refused(None), "No such file or directory")

    def test_undefined_template_parameter(self):
        line = self.refused(TEMPLATE % "${REGISTRY}/x", "--param=JOB_NAME=a")
        self.assertIn("REGISTRY", line)

    def test_missing_and_unknown_template_parameters(self):
        self.assertIn("JOB_NAME", self.refused(TEMPLATE % "x"))
        self.assertIn("COLOR", self.refused(TEMPLATE % "x", "--param=JOB_NAME=a", "--param=COLOR=b"))

    def test_template_that_is_right(self):
        path = self.write("job.yaml", TEMPLATE % "x")
        code, output, _ = self.ask(
            path, f"--bin_dir={self.path('bin')}", "--param=JOB_NAME=a", "--param=WORKERS=3", "--ps=1", "--dry_run"
        )
        self.assertEqual(code, 0)
        self.assertIn("job a: 3 worker, 1 ps; ", output)

    def test_several_jobs_need_a_choice(self):
        text = "---\n".join(manifest(replica("Chief"), name=name) for name in ("one", "two"))
        line = self.refused(text)
        self.assertIn("one", line)
        self.assertIn("two", line)
        self.assertIn("three", self.refused(text, "--job=three"))

    def test_missing_config_map(self):
        container = "env: [{name: A, valueFrom: {configMapKeyRef: {name: settings, key: a}}}]"
        line = self.refused(manifest(replica("Chief", container=container)))
        self.assertIn('no ConfigMap "settings"', line)


    def test_key_that_leads_out_of_its_volume(self):
        pod = "volumes: [{name: c, configMap: {name: settings}}]"
        config = "kind: ConfigMap\nmetadata: {name: settings}\ndata: {../../../x: content}\n---\n"
        text = config + manifest(replica("Chief", pod=pod))
        for flags in ((), ("--dry_run",)):
            line = self.refused(text, *flags)
            self.assertRegex(line, r"^ConfigMap settings: data: expected a key of .*, found \"(\.\./){3}x\"$")


class FlagTest(InputTest):
    text = manifest(replica("Chief"), replica("PS"), replica("Worker"))

    def test_values(self):
        for flag, expected in (
            ("--workers=many", 'argument --workers: expected a whole number >= 0, found "many"'),
            (
                "--operator_version=new",
                'argument --operator_version: expected a version such as 1.9.4, found "new"',
            ),
            ("--gpus=first", 'argument --gpus: expected GPUs such as 0,1 or none, found "first"'),
            ("--gpus=0,0", 'argument --gpus: expected each GPU once, found "0,0"'),
            (
                "--dashboard_port=page",
                'argument --dashboard_port: expected a port of 0..65535 or none, found "page"',
            ),
            (
                "--dashboard_port=65536",
                'argument --dashboard_port: expected a port of 0..65535 or none, found "65536"',
            ),
            ("--param=x", 'argument --param: expected NAME=VALUE, found "x"'),
            ("--work=1", "unrecognized arguments: --work=1"),
            ("--color=red", "argument --color: invalid choice: 'red' (choose from auto, always, never)"),
        ):
            # Python 3.12 and later name the choices without quotes.
            refusal = re.sub(r"'(auto|always|never)'", r"\1", self.refused(self.text, flag))
            self.assertEqual(refusal, f"{expected}; --help lists the flags")

    def test_paths(self):
        file = self.write("file", "")
        for flag, expected in (
            ("--data_dir=/none", "--data_dir /none: no such directory"),
            ("--config=/none", "--config /none: no such file"),
            ("--auth_token_file=/none", "--auth_token_file /none: no such file"),
            (f"--model_dir={file}", f"--model_dir {file}: expected a directory"),
            (
                "--pvc=models=/x",
                '--pvc models=/x: no replica has a volume of the claim "models", there is none at all',
            ),
        ):
            self.assertEqual(self.refused(self.text, flag), expected)

    def test_port_of_the_page_that_is_taken(self):
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            listener.listen()
            port = listener.getsockname()[1]
            text = manifest(replica("Chief"), replica("PS"), replica("Evaluator"))
            line = self.refused(text, f"--dashboard_port={port}")
        self.assertEqual(line, f"--dashboard_port {port}: the port is taken")

    def test_programs(self):
        self.assertEqual(
            self.refused(self.text, f"--bin_dir={self.directory}"),
            f"{self.path('chief')}: no such program; deploy/run_local.sh builds it",
        )
        self.assertEqual(
            self.refused(self.text, "--image=keelson"),
            '--image: expected PATTERN=WHAT, WHAT being role, as-is or a directory, found "keelson"',
        )

    def test_whom_to_follow(self):
        self.assertEqual(
            self.refused(self.text, "--follow=chief,worker-1"),
            '--follow: expected one of all, none, chief, ps, worker, chief-0, ps-0, worker-0; found "worker-1"',
        )

    def test_no_manifest(self):
        code, _, errors = self.ask()
        self.assertEqual(code, 2)
        self.assertIn("the following arguments are required: MANIFEST", errors)


class CommandTest(support.LauncherTest):
    def test_bad_arguments(self):
        for arguments, expected in (
            (["scale"], "the following arguments are required: ROLE=N"),
            (["scale", "worker"], 'argument ROLE=N: expected NAME=VALUE, found "worker"'),
            (["scale", "worker=-1"], 'argument ROLE=N: expected a whole number >= 0, found "-1"'),
            (["kill"], "the following arguments are required: REPLICA"),
            (["status", "-o", "xml"], "argument -o/--output: invalid choice: 'xml'"),
        ):
            code, _, errors = self.ask(*arguments)
            self.assertEqual(code, 2)
            self.assertTrue(errors.startswith(f"tfjob_local: {expected}"), errors)

    def test_nothing_runs(self):
        for arguments in (
            ["status"],
            ["scale", "worker=2"],
            ["kill", "worker-0"],
            ["suspend"],
            ["resume"],
            ["stop"],
        ):
            code, output, errors = self.ask(*arguments)
            self.assertEqual((code, output), (1, ""))
            self.assertEqual(errors, "tfjob_local: no job is running on this machine for this user\n")

    def test_damaged_state(self):
        self.write("run/state.json", "{")
        code, _, errors = self.ask("status", "--run_dir", self.path("run"))
        self.assertEqual(code, 1)
        self.assertIn("state.json: expected the state of a job as JSON: ", errors)
        self.write("run/state.json", "[]")
        self.assertIn("found other JSON", self.ask("status", "--run_dir", self.path("run"))[2])

    def test_unusable_directory_of_the_sockets(self):
        with mock.patch.object(self, "environment", return_value={"XDG_RUNTIME_DIR": self.path("none")}):
            code, _, errors = self.ask("status")
        self.assertEqual(code, 1)
        self.assertIn("none/keelson: No such file or directory", errors)


class InterruptTest(support.LauncherTest):
    def test_before_anything_was_started(self):
        with mock.patch.object(command_line, "run_job", side_effect=KeyboardInterrupt):
            self.assertEqual(self.ask(self.write("job.yaml", "")), (130, "", ""))


class DryRunTest(support.LauncherTest):
    def test_shows_what_would_run(self):
        container = (
            "command: [worker]\nargs: [--data_dir=/data]\n" "volumeMounts: [{name: d, mountPath: /data}]"
        )
        pod = "volumes: [{name: d, persistentVolumeClaim: {claimName: digits}}]"
        path = self.write(
            "job.yaml", manifest(replica("Chief"), replica("PS"), replica("Worker", container=container, pod=pod))
        )
        code, output, errors = self.ask(
            "run",
            path,
            f"--bin_dir={self.path('bin')}",
            "--dry_run",
            f"--pvc=digits={self.path('d')}",
            "--training_steps=7",
            f"--auth_token_file={self.write('token', '')}",
            "--",
            "--seed=3",
        )
        self.assertEqual((code, errors), (0, ""))
        worker = output[output.index("worker-0  (restartPolicy Never, grace period 30 s)\n") :]
        self.assertIn(f"  program    {self.path('bin', 'worker')}\n", worker)
        self.assertIn(f"  argument   --data_dir={self.path('d')}\n", worker)
        self.assertIn("  argument   --training_steps=7\n", worker)
        self.assertIn("  argument   --seed=3\n", worker)
        self.assertIn(f"  argument   --auth_token_file={self.path('token')}\n", worker)
        self.assertIn('  env        TF_CONFIG={"cluster":{"chief":["127.0.0.1:', worker)
        self.assertIn(f"  mount      /data -> {self.path('d')}\n", worker)
        self.assertFalse(os.path.exists(self.path("d")))

    def test_gpus_that_nobody_asks_for(self):
        path = self.write("job.yaml", manifest(replica("Chief")))
        _, output, _ = self.ask(path, f"--bin_dir={self.path('bin')}", "--dry_run", "--gpus=0")
        self.assertIn(
            "warning: --gpus: no replica has a limit of nvidia.com/gpu, all see every GPU\n", output
        )

    def test_gpus_are_dealt_out(self):
        container = "resources: {limits: {nvidia.com/gpu: 1}}"
        text = manifest(
            replica("Chief"),
            replica("PS"),
            replica("Worker", 2, container=container),
            spec="runPolicy: {cleanPodPolicy: Running}",
        )
        path = self.write("job.yaml", text)
        _, output, _ = self.ask(path, f"--bin_dir={self.path('bin')}", "--dry_run", "--gpus=4,7")
        self.assertIn("  env        CUDA_VISIBLE_DEVICES=4\n", output)
        self.assertIn("  env        CUDA_VISIBLE_DEVICES=7\n", output)
        self.assertNotIn("warning", output)


class ModelDirectoryTest(support.LauncherTest):
    def dry_run(self, *flags):
        container = "args: [--model_dir=/claims/model]\nvolumeMounts: [{name: m, mountPath: /claims}]"
        pod = "volumes: [{name: m, persistentVolumeClaim: {claimName: models}}]"
        path = self.write(
            "job.yaml", manifest(replica("Chief", container=container, pod=pod), replica("PS"), replica("Worker"))
        )
        _, output, errors = self.ask(
            path, f"--bin_dir={self.path('bin')}", f"--run_dir={self.path('run')}", "--dry_run", *flags
        )
        self.assertEqual(errors, "")
        return [line.split("=")[1] for line in output.splitlines() if "--model_dir=" in line]

    def test_is_the_runs_unless_it_is_given(self):
        self.assertEqual(self.dry_run(), [self.path("run", "model")] * 3)
        self.assertEqual(self.dry_run("--model_dir=/m"), ["/m"] * 3)

    def test_is_the_manifests_in_a_claim_that_is_given(self):
        self.assertEqual(self.dry_run(f"--pvc=models={self.path('c')}"), [self.path("c", "model")] * 3)
        self.assertEqual(self.dry_run(f"--pvc=models={self.path('c')}", "--model_dir=/m"), ["/m"] * 3)
