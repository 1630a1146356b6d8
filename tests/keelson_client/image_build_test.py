"""keelson.py build: which commands run, and what becomes of their exit codes."""

import os
import sys
import unittest

from support import PROGRAM, REPOSITORY, TemporaryDirectoryTest

from keelson_client.errors import InputError
from keelson_client.image_build import BuildSettings, plan_build, run_commands


def installed(*programs):
    return lambda name: f"/usr/bin/{name}" if name in programs else None


class PlanTest(unittest.TestCase):
    def test_build(self):
        (build,) = plan_build(BuildSettings("keelson:1"), installed("podman", "buildah"))
        dockerfile = os.path.join(REPOSITORY, "deploy", "docker", "Dockerfile")
        self.assertEqual(
            build,
            [
                "podman",
                "build",
                f"--file={dockerfile}",
                "--build-arg=VARIANT=cpu",
                "--tag=keelson:1",
                REPOSITORY,
            ],
        )

    def test_the_dockerfile_is_there_and_takes_the_arguments(self):
        settings = BuildSettings("keelson:1", base_image="debian:13", builder="docker")
        (build,) = plan_build(settings, installed("docker"))
        arguments = {a.partition("=")[0]: a.partition("=")[2] for a in build if a.startswith("--")}
        with open(arguments["--file"], encoding="utf-8") as file:
            text = file.read()
        for argument in build:
            if argument.startswith("--build-arg="):
                self.assertIn(f"ARG {argument.split('=')[1]}=", text)

    def test_registry_and_push(self):
        settings = BuildSettings(
            "keelson:1", "registry.example.com/me/", builder="buildah", variant="cuda", push=True
        )
        build, push = plan_build(settings, installed("docker", "buildah"))
        self.assertIn("--build-arg=VARIANT=cuda", build)
        self.assertIn("--tag=registry.example.com/me/keelson:1", build)
        self.assertEqual(push, ["buildah", "push", "registry.example.com/me/keelson:1"])

    def test_base_image(self):
        (build,) = plan_build(BuildSettings("k", base_image="debian:13"), installed("docker"))
        self.assertIn("--build-arg=BUILD_IMAGE=debian:13", build)

    def test_no_builder(self):
        with self.assertRaisesRegex(
            InputError, "expected one of docker, podman, buildah in PATH, found none"
        ):
            plan_build(BuildSettings("k"), installed())
        with self.assertRaisesRegex(InputError, "--builder: podman is not in PATH"):
            plan_build(BuildSettings("k", builder="podman"), installed("docker"))


class RunTest(unittest.TestCase):
    def run_all(self, *scripts):
        notes = []
        code = run_commands([["sh", "-c", script] for script in scripts], notes.append)
        return code, notes

    def test_all_succeed(self):
        self.assertEqual(self.run_all("exit 0", "exit 0"), (0, ["sh -c exit 0"] * 2))

    def test_the_first_failure_ends_it(self):
        code, notes = self.run_all("exit 3", "exit 0")
        self.assertEqual((code, notes[-1]), (3, "sh -c: exit code 3"))
        self.assertEqual(len(notes), 2)

    def test_signal(self):
        self.assertEqual(self.run_all("kill -9 $$")[0], 137)


class CommandTest(TemporaryDirectoryTest):
    """The command with a script as the builder."""

    def build(self, script, *flags):
        self.write_script("podman", script)
        return self.run_program(
            *(sys.executable, PROGRAM, "build", "--image", "k:1", "--builder", "podman", *flags),
            env={**os.environ, "PATH": f"{self.directory}:{os.environ['PATH']}"},
        )

    def test_builds_and_pushes(self):
        done = self.build('echo "$1"', "--push")
        self.assertEqual((done.returncode, done.stdout), (0, "build\npush\n"))

    def test_failure(self):
        done = self.build("exit 9")
        self.assertEqual(done.returncode, 1)
        self.assertIn("keelson: podman build: exit code 9", done.stderr)

    def test_dry_run(self):
        done = self.build("exit 9", "--dry_run")
        self.assertEqual(done.returncode, 0)
        self.assertTrue(done.stdout.startswith("podman build --file="))
