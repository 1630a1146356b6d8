"""Which program stands for an image and its command."""

import os

import kubelet_support
import support
from kubelet_support import spec
from tfjob_api.model import ADDED_SERVERS, Container
from tfjob_local.kubelet.plan import PlanError
from tfjob_local.kubelet.programs import ImageMap, ProgramResolver, Words
from tfjob_local.kubelet.scripts import Scripts


class ProgramsTest(kubelet_support.WarningsTest):
    def setUp(self):
        super().setUp()
        for name in support.PROGRAMS:
            self.write_script(f"bin/{name}", support.program_script(name))
        self.write_script("bin/keelson_ckpt", "")

    def resolver(self, *rules):
        return ProgramResolver(
            ImageMap.parse(rules, self.path("bin")), self.warn, lambda: False, Scripts(self.path("python"), self.path("bin")), False
        )

    def resolve(self, replica_type, words, rules=(), alone=False, image="keelson"):
        replica_spec = spec(replica_type, image=image)
        return self.resolver(*rules).main_program(replica_spec, words, alone, lambda path: False)

    def main(self, *command, replica_type="Worker", args=(), environment=(), **options):
        """(program, its arguments)"""
        found = self.resolve(replica_type, Words(command, args, dict(environment)), **options)
        return os.path.relpath(found.path, self.directory), list(found.args)

    def init(self, *words, rules=()):
        container = Container("fill", "busybox")
        found = self.resolver(*rules).init_program("Worker", container, words, ("--x",))
        return found and (found.path, list(found.args))

    def assert_refused(self, text, call):
        with self.assertRaises(PlanError) as caught:
            call()
        self.assertEqual(str(caught.exception), text)

    def test_by_role(self):
        for replica_type, program in (
            ("PS", "ps_server"), ("Chief", "chief"), ("Master", "chief"), ("Worker", "worker"),
            ("Evaluator", "evaluator"),
        ):
            self.assertEqual(self.main(replica_type=replica_type), (f"bin/{program}", []))
        self.assertEqual(self.main(replica_type="Worker", alone=True), ("bin/chief", []))

    def test_one_of_the_four_by_its_name(self):
        found = self.main("/usr/local/bin/ps_server", "--a=1", args=("--b=2",))
        self.assertEqual(found, ("bin/ps_server", ["--a=1", "--b=2"]))
        found = self.main("sh", "-c", "exec chief --a=1", alone=True)
        self.assertEqual(found, ("bin/chief", ["--a=1"]))
        self.assertEqual(self.warnings, [])

    def test_foreign_command_is_replaced_and_said(self):
        found = self.main("python", "-m", "trainer.task", args=("--batch_size=32", "--beta=1"))
        self.assertEqual(found, ("bin/worker", ["--batch_size=32"]))
        self.assertEqual(
            self.warnings,
            [
                "Worker: worker runs in place of the command python -m trainer.task",
                "--beta: nothing in Keelson's programs means the same, left out",
            ],
        )

    def test_foreign_command_in_args(self):
        self.assertEqual(self.main(args=("python", "x.py", "--lr=1")), ("bin/worker", ["--learning_rate=1"]))
        self.assertEqual(
            self.warnings, ["Worker: worker runs in place of the command python x.py --lr=1"]
        )

    def test_long_commands_are_shortened(self):
        self.main("sh", "-c", "echo " + "x" * 500)
        self.assertLess(len(self.warnings[0]), 180)

    def test_args_of_the_images_own_program_are_translated(self):
        found = self.main(args=("--lr=1", "--seed=2"))
        self.assertEqual(found, ("bin/worker", ["--learning_rate=1", "--seed=2"]))
        self.assertEqual(self.warnings, [])

    def test_servers_with_the_template_of_workers(self):
        pod = {"annotations": {ADDED_SERVERS: "Worker"}}
        words = Words(("sh", "-c", "exec worker --device=cpu --seed=3"))
        found = self.resolver().main_program(spec("PS", pod=pod), words, False, lambda path: False)
        self.assertEqual((os.path.basename(found.path), found.args), ("ps_server", ("--seed=3",)))
        self.assertEqual(self.warnings, [])

    def test_environment_of_a_foreign_command(self):
        environment = {"BATCH": "16", "TF_TRAIN_STEPS": "200"}
        script = ("sh", "-c", "python train.py --batch_size=$BATCH")
        found = self.main(*script, environment=environment)
        self.assertEqual(found, ("bin/worker", ["--batch_size=16", "--training_steps=200"]))
        self.assertEqual(self.warnings[1:], ["env TF_TRAIN_STEPS is taken as --training_steps=200"])
        found = self.main("sh", "-c", "exec worker --batch_size=$BATCH", environment=environment)
        self.assertEqual(found, ("bin/worker", ["--batch_size=16"]))

    def test_missing_program(self):
        os.remove(self.path("bin/worker"))
        text = f"{self.path('bin/worker')}: no such program; deploy/run_local.sh builds it"
        self.assert_refused(text, self.main)
        os.mkdir(self.path("bin/worker"))
        self.assert_refused(text, self.main)

    def test_as_is(self):
        own = self.write_script("own", "")
        found = self.main(own, "--a", rules=("keelson*=as-is",), args=("--b",), image="keelson:1")
        self.assertEqual(found, ("own", ["--a", "--b"]))
        self.assertEqual(self.main("worker", rules=("*=as-is",)), ("bin/worker", []))
        self.assertTrue(self.main("sh", "-c", "x", rules=("*=as-is",))[0].endswith("/sh"))
        self.assertEqual(self.warnings, [])

    def test_as_is_elsewhere_on_this_machine(self):
        self.assertEqual(self.main("/not/here/chief", rules=("*=as-is",)), ("bin/chief", []))
        chief = self.path("bin/chief")
        self.assertEqual(self.warnings, [f"Worker: {chief} runs in place of /not/here/chief"])

    def test_as_is_needs_a_command_that_is_here(self):
        self.assert_refused(
            "Worker: --image keelson=as-is: expected a command in the manifest, found none (the image's own "
            "is not known here)",
            lambda: self.main(rules=("*=as-is",)),
        )
        self.assert_refused(
            'Worker: command: no program "/opt/no-such-program" on this machine',
            lambda: self.main("/opt/no-such-program", rules=("*=as-is",)),
        )

    def test_directory(self):
        self.write_script("mine/train", "")
        self.write_script("mine/worker", "")
        rules = (f"keelson={self.path('mine')}",)
        self.assertEqual(self.main("/opt/train", "--a", rules=rules), ("mine/train", ["--a"]))
        self.assertEqual(self.main(rules=rules, args=("--b",)), ("mine/worker", ["--b"]))
        text = f"Worker: {self.path('mine', 'python')}: no such program"
        self.assert_refused(text, lambda: self.main("python", rules=rules))

    def test_flags_are_asked_of_the_namesake_in_bin_dir(self):
        self.write_script("mine/worker", "#!/bin/sh\necho this is nobody to ask\n")
        rules = (f"keelson={self.path('mine')}",)
        self.assertIn("precision", self.resolve("Worker", Words(), rules).flags)
        os.remove(self.path("bin/worker"))
        with self.assertRaisesRegex(PlanError, "mine/worker: --help=json: expected a list of flags"):
            self.resolve("Worker", Words(), rules)

    def test_first_rule_that_matches_decides(self):
        images = ImageMap.parse(("a*=as-is", "ab=role", f"*={self.directory}"), self.directory)
        self.assertEqual([images.lookup(i) for i in ("ab", "b/a:1")], ["as-is", self.directory])
        self.assertEqual(ImageMap.parse((), self.directory).lookup("x"), "role")

    def test_bad_rules(self):
        for text in ("x", "=role", "x="):
            with self.assertRaisesRegex(ValueError, f'expected PATTERN=WHAT, .*, found "{text}"'):
                ImageMap.parse((text,), self.directory)
        with self.assertRaises(ValueError) as caught:
            ImageMap.parse(("x=/no/such",), self.directory)
        self.assertEqual(
            str(caught.exception), '"x=/no/such": expected role, as-is or a directory, found "/no/such"'
        )

    def test_init_container_runs_its_own_command(self):
        path, args = self.init("sh", "-c", "x")
        self.assertTrue(path.endswith("/sh"), path)
        self.assertEqual(args, ["-c", "x", "--x"])
        self.assertEqual(self.init("keelson_ckpt"), (self.path("bin/keelson_ckpt"), ["--x"]))
        self.write_script("mine/fill", "")
        found = self.init("fill", rules=(f"*={self.path('mine')}",))
        self.assertEqual(found, (self.path("mine/fill"), ["--x"]))

    def test_init_container_without_command_is_skipped(self):
        self.assertIsNone(self.init())
        self.assertEqual(
            self.warnings,
            ["Worker: init container fill: skipped, the command of the image busybox is not known here"],
        )

    def test_init_container_without_program(self):
        self.assert_refused(
            'Worker: init container fill: command: no program "no-such-program" on this machine',
            lambda: self.init("no-such-program"),
        )
