"""From a replica to its program, arguments, environment and directories."""

import os
import unittest

import support
from support import manifest, replica
from tfjob_local.command import CommandBuilder, CommandError, LocalSettings, has_flag, remove_flag
from tfjob_local.manifest import ManifestReader

CLAIM = "volumes: [{name: model, persistentVolumeClaim: {claimName: shared}}]"


class CommandTest(support.TemporaryDirectoryTest):
    def setUp(self):
        super().setUp()
        for name in support.PROGRAMS:
            os.chmod(self.write(f"bin/{name}", ""), 0o755)

    def build(self, text, index=0, tf_config=None, flags=None, training_flags=None, extra_args=(), cores=8):
        """The command of one replica of the manifest's first type."""
        job = ManifestReader(self.write("job.yaml", text)).read()
        settings = LocalSettings(
            bin_dir=self.path("bin"),
            volumes_dir=self.path("volumes"),
            working_dir="/work_dir",
            cores=cores,
            flags=flags or {},
            training_flags=training_flags or {},
            extra_args=extra_args,
        )
        self.builder = CommandBuilder(job, settings)
        return self.builder.build(next(iter(job.replica_specs.values())), index, tf_config)

    def program(self, name):
        return self.path("bin", name)

    def test_program_by_role(self):
        for replica_type, program in (
            ("PS", "ps_server"),
            ("Chief", "chief"),
            ("Master", "chief"),
            ("Evaluator", "evaluator"),
        ):
            command = self.build(manifest(replica(replica_type), replica("Worker")))
            self.assertEqual(command.argv, (self.program(program),))
            self.assertEqual(command.name, f"{replica_type.lower()}-0")
        command = self.build(manifest(replica("Worker", 2), replica("PS")), index=1)
        self.assertEqual(command.argv[0], self.program("worker"))
        self.assertEqual(command.name, "worker-1")

    def test_program_by_command(self):
        container = "command: [/usr/local/bin/ps_server, --a=1]\nargs: [--b=2]"
        text = manifest(replica("PS", container=container), replica("Worker"))
        self.assertEqual(self.build(text).argv, (self.program("ps_server"), "--a=1", "--b=2"))
        self.assertEqual(self.builder.warnings, [])

    def test_foreign_command_is_replaced_and_said(self):
        container = "command: [python, -m, trainer.task]\nargs: [--b=2]"
        text = manifest(replica("PS", container=container), replica("Worker"))
        self.assertEqual(self.build(text).argv, (self.program("ps_server"), "--b=2"))
        self.assertEqual(self.builder.warnings, ["PS: ps_server runs in place of the command python -m trainer.task"])

    def test_missing_program(self):
        os.remove(self.program("ps_server"))
        with self.assertRaisesRegex(CommandError, "ps_server: no such program"):
            self.build(manifest(replica("PS"), replica("Worker")))

    def test_flags_replace_the_manifests(self):
        text = manifest(
            replica("PS", container="args: [--training_steps=1, --model_dir, /model, --seed=3]"), replica("Worker")
        )
        command = self.build(text, flags={"training_steps": "500", "model_dir": "/m"})
        self.assertEqual(
            command.argv, (self.program("ps_server"), "--seed=3", "--training_steps=500", "--model_dir=/m")
        )

    def test_training_flags_are_for_those_who_train(self):
        flags = {"training_flags": {"device": "cuda"}, "flags": {"seed": "1"}}
        worker = replica("Worker", container="args: [--device=cpu, --compute_threads=1]")
        self.assertEqual(
            self.build(manifest(worker, replica("PS")), **flags).argv[1:],
            ("--compute_threads=1", "--seed=1", "--device=cuda"),
        )
        for other in ("PS", "Chief", "Evaluator"):
            command = self.build(manifest(replica(other), replica("Worker")), **flags)
            self.assertEqual(command.argv[1:], ("--seed=1",))
        # The whole job in one process.
        alone = self.build(manifest(replica("Chief")), **flags)
        self.assertEqual(alone.argv, (self.program("chief"), "--seed=1", "--device=cuda"))

    def test_extra_arguments_come_last_and_replace_too(self):
        text = manifest(replica("PS", container="args: [--seed=3]"), replica("Worker"))
        command = self.build(text, flags={"training_steps": "5"}, extra_args=["--seed=4", "--training_steps=6"])
        self.assertEqual(command.argv, (self.program("ps_server"), "--seed=4", "--training_steps=6"))

    def test_workers_share_the_cores(self):
        text = manifest(replica("Worker", 3), replica("PS"))
        command = self.build(text, cores=8)
        self.assertEqual(command.argv[1:], ("--compute_threads=2",))
        self.assertEqual(command.environment["OMP_NUM_THREADS"], os.environ.get("OMP_NUM_THREADS", "2"))
        self.assertEqual(self.build(text, cores=1).argv[1:], ("--compute_threads=1",))

    def test_users_thread_count_stays(self):
        text = manifest(replica("Worker", 2, container="args: [--compute_threads=7]"), replica("PS"))
        self.assertEqual(self.build(text).argv[1:], ("--compute_threads=7",))
        text = manifest(replica("Worker", 2), replica("PS"))
        self.assertEqual(self.build(text, extra_args=["--compute_threads=5"]).argv[1:], ("--compute_threads=5",))

    def test_other_roles_get_no_thread_count(self):
        self.assertEqual(self.build(manifest(replica("PS"), replica("Worker"))).argv[1:], ())

    def test_claim_is_one_directory_for_all(self):
        mounts = "volumeMounts: [{name: model, mountPath: /model}]\n"
        text = manifest(
            replica("PS", 2, container=mounts + "args: [--config=/model/a.txt, /model, /models, --x=y]", pod=CLAIM),
            replica("Worker"),
        )
        shared = self.path("volumes", "shared")
        for index in (0, 1):
            argv = self.build(text, index).argv[1:]
            self.assertEqual(argv, (f"--config={shared}/a.txt", shared, "/models", "--x=y"))
        self.assertTrue(os.path.isdir(shared))

    def test_empty_dir_is_each_replicas_own(self):
        text = manifest(
            replica(
                "PS", 2, container="volumeMounts: [{name: t, mountPath: /tmp/x}]\nargs: [--t=/tmp/x]",
                pod="volumes: [{name: t, emptyDir: {}}]",
            ),
            replica("Worker"),
        )
        self.assertEqual(self.build(text, 1).argv[1:], (f"--t={self.path('volumes', 'ps-1', 't')}",))

    def test_host_path_is_itself(self):
        host = self.path("host")
        text = manifest(
            replica(
                "PS", container="volumeMounts: [{name: d, mountPath: /data, subPath: sub}]\nargs: [--d=/data/f]",
                pod=f"volumes: [{{name: d, hostPath: {{path: {host}}}}}]",
            ),
            replica("Worker"),
        )
        self.assertEqual(self.build(text).argv[1:], (f"--d={host}/sub/f",))

    def test_inner_mount_wins(self):
        text = manifest(
            replica(
                "PS",
                container="volumeMounts: [{name: a, mountPath: /a}, {name: b, mountPath: /a/b}]\n"
                "args: [/a/b/f, /a/f]",
                pod="volumes: [{name: a, emptyDir: {}}, {name: b, emptyDir: {}}]",
            ),
            replica("Worker"),
        )
        own = self.path("volumes", "ps-0")
        self.assertEqual(self.build(text).argv[1:], (f"{own}/b/f", f"{own}/a/f"))

    def test_volume_without_content_is_said(self):
        text = manifest(
            replica(
                "PS",
                container="volumeMounts: [{name: c, mountPath: /c}]",
                pod="volumes: [{name: c, configMap: {name: x}}]",
            ),
            replica("Worker"),
        )
        self.build(text)
        self.assertEqual(self.builder.warnings, ["PS: the volume c (configMap) has no content locally"])

    def test_environment(self):
        env = (
            "env:\n"
            "- {name: PLAIN, value: a}\n"
            "- {name: LATER, value: $(PLAIN)-$$(PLAIN)-$(UNKNOWN)}\n"
            "- {name: DIR, value: /model/x}\n"
            "- {name: POD, valueFrom: {fieldRef: {fieldPath: metadata.name}}}\n"
            "- {name: TIER, valueFrom: {fieldRef: {fieldPath: \"metadata.labels['tier']\"}}}\n"
            "- {name: NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}\n"
            "- {name: KEY, valueFrom: {secretKeyRef: {name: s, key: k}}}\n"
            "args: [--a=$(PLAIN), $$(PLAIN)]\n"
            "volumeMounts: [{name: model, mountPath: /model}]"
        )
        text = manifest(replica("PS", 2, container=env, pod=CLAIM), replica("Worker"))
        text = text.replace("      template:\n", "      template:\n        metadata: {labels: {tier: gold}}\n", 1)
        command = self.build(text, index=1, tf_config="{}")
        self.assertEqual(
            dict(command.environment),
            {
                "PLAIN": "a",
                "LATER": "a-$(PLAIN)-$(UNKNOWN)",
                "DIR": self.path("volumes", "shared", "x"),
                "POD": "job-ps-1",
                "TIER": "gold",
                "TF_CONFIG": "{}",
            },
        )
        self.assertEqual(command.argv[1:], ("--a=a", "$(PLAIN)"))
        self.assertEqual(self.builder.warnings, ["PS: NODE: no spec.nodeName locally"])

    def test_working_directory(self):
        self.assertEqual(self.build(manifest(replica("PS"), replica("Worker"))).working_dir, "/work_dir")
        container = "workingDir: /model/w\nvolumeMounts: [{name: model, mountPath: /model}]"
        text = manifest(replica("PS", container=container, pod=CLAIM), replica("Worker"))
        self.assertEqual(self.build(text).working_dir, self.path("volumes", "shared", "w"))


class FlagsTest(unittest.TestCase):
    def test_remove_flag(self):
        args = ["--a=1", "--b", "2", "-c=3", "--verbose", "--b_more=4", "plain"]
        self.assertEqual(remove_flag(args, "b"), ["--a=1", "-c=3", "--verbose", "--b_more=4", "plain"])
        self.assertEqual(remove_flag(args, "a"), args[1:])
        self.assertEqual(remove_flag(args, "c"), args[:3] + args[4:])
        self.assertEqual(remove_flag(["--verbose", "--a=1"], "verbose"), ["--a=1"])

    def test_has_flag(self):
        self.assertTrue(has_flag(["--a=1"], "a"))
        self.assertTrue(has_flag(["--a", "1"], "a"))
        self.assertFalse(has_flag(["--ab=1", "a"], "a"))


class LaunchedTest(support.LauncherTest):
    def test_all_flags_reach_every_role(self):
        for name in support.PROGRAMS:
            self.set_program(name, 'pwd; for a in "$@"; do echo "$a"; done')
        os.mkdir(self.path("data"))
        self.write("my.textproto", "")
        text = manifest(replica("Chief"), replica("PS"), replica("Worker"), replica("Evaluator"))
        code, output = self.run_job(
            text, "--ps=2", "--workers=0", "--data_dir=data", "--config=my.textproto", "--training_steps=7",
            "--model_dir=m", "--", "--seed=1", "--note=a b",
        )
        self.assertEqual(code, 0, output)
        expected = [
            support.REPOSITORY,
            f"--model_dir={self.path('m')}",
            f"--data_dir={self.path('data')}",
            f"--config={self.path('my.textproto')}",
            "--training_steps=7",
            "--seed=1",
            "--note=a b",
        ]
        for name in ("chief-0", "ps-0", "ps-1", "evaluator-0"):
            self.assertEqual(self.read("run", "logs", f"{name}.log").splitlines(), expected)
        self.assertFalse(os.path.exists(self.path("run", "logs", "worker-0.log")))

    def test_the_device_reaches_the_workers(self):
        for name in ("ps_server", "worker"):
            self.set_program(name, 'echo "$@"')
        text = manifest(replica("PS"), replica("Worker", container="args: [--compute_threads=1]"))
        code, output = self.run_job(text, "--device=cuda:0,1", "--precision", "tf32")
        self.assertEqual(code, 0, output)
        self.assertIn(" --device=cuda:0,1 --precision=tf32", self.read("run", "logs", "worker-0.log"))
        self.assertNotIn("--device", self.read("run", "logs", "ps-0.log"))

    def test_model_directory_of_its_own(self):
        self.set_program("chief", 'echo "$@"')
        text = manifest(replica("Chief", container="args: [--model_dir=/model]"), replica("Worker"))
        code, output = self.run_job(text)
        self.assertEqual(code, 0, output)
        self.assertEqual(self.read("run", "logs", "chief-0.log"), f"--model_dir={self.path('run', 'model')}\n")
        self.assertTrue(os.path.isdir(self.path("run", "model")))


if __name__ == "__main__":
    unittest.main()
