"""The Dockerfile and .dockerignore against the repository."""

import json
import os
import re
import subprocess
import tempfile
import unittest

import support


class StagesTest(unittest.TestCase):
    """One stage builds; the images are small, without root, and differ in their entry point only."""

    def setUp(self):
        self.file = support.dockerfile()
        self.images = [*support.ROLES, "keelson"]

    def test_one_stage_builds_and_nothing_runs_in_the_others(self):
        running = [name for name, stage in self.file.stages.items() if stage.all("RUN")]
        # Those for PyTorch: the package is put together, and packages of Debian are installed.
        self.assertEqual(running, ["build", "package", "pytorch"])
        for image in self.images:
            self.assertFalse({"package", "pytorch"} & {stage.name for stage in self.file.chain(image)}, image)

    def test_images_hold_nothing_but_what_the_build_collected(self):
        for image in self.images:
            with self.subTest(image):
                chain = self.file.chain(image)
                self.assertEqual(chain[0].base, "scratch")
                copies = [copy for stage in chain for copy in stage.all("COPY") + stage.all("ADD")]
                self.assertEqual([copy.arguments for copy in copies], ["--from=build /rootfs/ /"])

    def test_every_role_has_a_target_that_starts_its_program(self):
        for target, program in support.ROLES.items():
            with self.subTest(target):
                entry_point = self.file.stages[target].all("ENTRYPOINT")
                self.assertEqual([json.loads(entry.arguments) for entry in entry_point], [[program]])

    def test_the_default_image_leaves_the_program_to_the_manifest(self):
        default = list(self.file.stages)[-1]
        self.assertEqual(default, "keelson")
        self.assertIsNone(self.file.last(default, "ENTRYPOINT"))

    def test_nobody_is_root(self):
        for image in [*self.images, "pytorch"]:
            with self.subTest(image):
                # By number: Kubernetes checks runAsNonRoot by it.
                self.assertEqual(self.file.last(image, "USER").arguments, "65532:65532")

    def test_stops_by_sigterm(self):
        for image in [*self.images, "pytorch"]:
            with self.subTest(image):
                self.assertEqual(self.file.last(image, "STOPSIGNAL").arguments, "SIGTERM")

    def test_programs_and_configs_are_found(self):
        self.assertIn("PATH=/opt/keelson/bin:", self.file.last("keelson", "ENV").arguments)
        self.assertEqual(self.file.last("keelson", "WORKDIR").arguments, "/opt/keelson")

    def test_base_images_have_a_version(self):
        for stage in self.file.stages.values():
            if stage.base in self.file.stages or stage.base == "scratch":
                continue
            with self.subTest(stage.base):
                self.assertRegex(stage.base, r"^[a-z0-9./-]+:[0-9][A-Za-z0-9.-]*(@sha256:[0-9a-f]{64})?$")

    def test_files_come_from_stages_before(self):
        seen = []
        for name, stage in self.file.stages.items():
            for copy in stage.all("COPY"):
                if copy.flag("from"):
                    self.assertIn(copy.flag("from"), seen)
            seen.append(name)


class ContextTest(unittest.TestCase):
    """The files that the build needs are in the repository, copied, and sent to the builder; nothing else is
    sent."""

    def setUp(self):
        self.ignore = support.IgnoreFile(support.read(".dockerignore"))
        copies = [copy for stage in support.dockerfile().stages.values() for copy in stage.all("COPY")]
        self.sources = [source for copy in copies if not copy.flag("from") for source in copy.words[:-1]]

    def test_sources_exist(self):
        self.assertGreater(len(self.sources), 10)
        for source in self.sources:
            with self.subTest(source):
                self.assertTrue(os.path.exists(os.path.join(support.REPOSITORY, source)))

    def test_sources_are_sent(self):
        for source in self.sources:
            with self.subTest(source):
                self.assertFalse(self.ignore.ignores(source))

    def test_nothing_else_is_sent(self):
        for path in ("build", "build/release/bin/chief", "runs", ".git", ".git/config", "docs", "README.md",
                     "deploy/tfjob", "deploy/tfjob_local.py", "tests/gpu/__pycache__", "bench/x.pyc"):
            with self.subTest(path):
                self.assertTrue(self.ignore.ignores(path))

    def test_every_folder_that_cmake_enters_is_copied(self):
        folders = re.findall(r"^\s*add_subdirectory\(([^)/]+)", support.read("CMakeLists.txt"), re.MULTILINE)
        self.assertGreater(len(folders), 5)
        for folder in {*folders, "cmake", "configs"}:
            with self.subTest(folder):
                self.assertIn(folder, self.sources)

    def test_scripts_are_copied_before_they_run(self):
        copied = set()
        for instruction in support.dockerfile().stages["build"].instructions:
            if instruction.name == "COPY":
                copied.update(instruction.words[:-1])
            elif instruction.name == "RUN":
                for script in re.findall(r"deploy/[\w/]+\.sh", instruction.arguments):
                    self.assertIn(script, copied)
                    self.assertTrue(os.access(os.path.join(support.REPOSITORY, script), os.X_OK), script)

    def test_the_programs_of_the_image_are_built(self):
        script = support.read("deploy", "docker", "build_programs.sh")
        targets = re.search(r'^ninja .*"\$jobs" (.*)$', script.replace("\\\n", " "), re.MULTILINE).group(1)
        # Some are built by their paths, as libraries have their names.
        names = {os.path.basename(target) for target in targets.split()}
        self.assertEqual(names, {*support.programs_of_image(), *support.programs_of_package()})
        self.assertLessEqual(set(support.ROLES.values()), set(support.programs_of_image()))


class PytorchTest(unittest.TestCase):
    """Debian's Python finds PyTorch and the package, and manifests find the scripts."""

    def setUp(self):
        self.stage = support.dockerfile().stages["pytorch"]
        self.copies = {copy.words[-1]: copy for copy in self.stage.all("COPY")}

    def test_only_pytorch_is_installed_and_no_lists_stay(self):
        (run,) = self.stage.all("RUN")
        installed = re.search(r"apt-get install (.*?) &&", run.arguments).group(1).split()
        self.assertEqual([word for word in installed if not word.startswith("-")], ["python3-torch"])
        self.assertIn("--no-install-recommends", installed)
        self.assertIn("rm -rf /var/lib/apt/lists/*", run.arguments)

    def test_the_user_has_a_name_and_the_number_of_the_other_images(self):
        (run,) = self.stage.all("RUN")
        (user,) = self.stage.all("USER")
        added = re.search(r"groupadd --gid (\d+) keelson && +useradd --uid (\d+) --gid (\d+) ", run.arguments)
        self.assertEqual({f"{number}:{number}" for number in added.groups()}, {user.arguments})
        self.assertEqual(user.arguments, support.dockerfile().last("keelson", "USER").arguments)

    def test_the_package_is_where_debians_python_looks(self):
        copy = self.copies["/usr/lib/python3/dist-packages/"]
        (made,) = support.dockerfile().stages["package"].all("RUN")
        self.assertEqual(copy.arguments.split()[:2], ["--from=package", "/package/"])
        self.assertEqual(made.arguments, "deploy/make_wheel.py --folder /package")

    def test_the_scripts_of_manifests_are_there(self):
        manifest = support.read("deploy", "tfjob", "pytorch_mnist.yaml")
        scripts = re.findall(r"command: \[python3, (.*)\]", manifest)
        self.assertEqual(len(scripts), 2)
        (source,) = self.copies["/opt/keelson/examples"].words[:-1]
        for script in scripts:
            folder, _, name = script.rpartition("/")
            self.assertEqual(folder, "/opt/keelson/examples")
            self.assertTrue(os.path.isfile(os.path.join(support.REPOSITORY, source, name)), name)


class VariantTest(unittest.TestCase):
    """CUDA is fetched for the variant that has it, and an unknown one is refused."""

    def install(self, variant: str) -> subprocess.CompletedProcess:
        commands = [run.arguments for run in support.dockerfile().stages["build"].all("RUN")
                    if "--cuda" in run.arguments]
        self.assertEqual(len(commands), 1)
        with tempfile.TemporaryDirectory() as folder:
            script = os.path.join(folder, "deploy", "install_deps.sh")
            os.makedirs(os.path.dirname(script))
            with open(script, "w", encoding="utf-8") as file:
                file.write("#!/bin/sh\necho fetches $*\n")
            os.chmod(script, 0o755)
            return subprocess.run(
                ["/bin/sh", "-c", commands[0]], cwd=folder, env={**os.environ, "VARIANT": variant},
                capture_output=True, text=True, timeout=support.DEADLINE_SECONDS, check=False)

    def test_cpu_fetches_nothing(self):
        run = self.install("cpu")
        self.assertEqual((run.returncode, run.stdout), (0, ""))

    def test_cuda(self):
        run = self.install("cuda")
        self.assertEqual((run.returncode, run.stdout), (0, "fetches --cuda\n"))

    def test_another_is_refused(self):
        run = self.install("gpu")
        self.assertEqual((run.returncode, run.stderr), (2, "VARIANT=gpu: expected cpu or cuda\n"))


class SupportTest(unittest.TestCase):
    """The readers above see what Docker would."""

    def test_ignore_file(self):
        ignore = support.IgnoreFile("*\n!a\n!b/c\n**/*.pyc\n")
        self.assertTrue(ignore.ignores("x"))
        self.assertTrue(ignore.ignores("b/d"))
        self.assertFalse(ignore.ignores("a/deep/file"))
        self.assertFalse(ignore.ignores("b/c/file"))
        self.assertTrue(ignore.ignores("a/deep/file.pyc"))

    def test_dockerfile(self):
        file = support.Dockerfile(
            "# x\nARG V=1\nFROM d:${V} AS one\nRUN a && \\\n  b\nFROM one AS two\nUSER 5\n")
        self.assertEqual([stage.base for stage in file.chain("two")], ["d:1", "one"])
        self.assertEqual(file.last("two", "RUN").arguments.split(), ["a", "&&", "b"])
        self.assertIsNone(file.last("one", "USER"))
