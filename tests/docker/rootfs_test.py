"""deploy/docker/make_rootfs.sh, with small programs of this machine in place of Keelson's."""

import os
import shutil
import stat
import subprocess
import tempfile
import unittest

import support

MULTIARCH = subprocess.run(["gcc", "-print-multiarch"], capture_output=True, text=True,
                           timeout=support.DEADLINE_SECONDS, check=True).stdout.strip()


class Maker:
    """A folder with programs, and what make_rootfs.sh makes of them."""

    def __init__(self):
        self._folder = tempfile.TemporaryDirectory()
        self.folder = self._folder.name
        self.root = os.path.join(self.folder, "rootfs")
        self.programs = os.path.join(self.folder, "bin")
        self._tools = os.path.join(self.folder, "tools")
        os.makedirs(self.programs)
        os.makedirs(self._tools)
        for name in support.programs_of_image():
            shutil.copy("/bin/ls", os.path.join(self.programs, name))
        self.tool("busybox", '[ "$1" = --list ] && printf "%s\\n" busybox sh cat')

    def tool(self, name: str, script: str) -> None:
        path = os.path.join(self._tools, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\n{script}\n")
        os.chmod(path, 0o755)

    def make(self, variant: str = "cpu") -> subprocess.CompletedProcess:
        environment = {**os.environ, "PATH": self._tools + ":/usr/bin:/bin:/usr/sbin:/sbin"}
        return subprocess.run(
            [os.path.join(support.FOLDER, "make_rootfs.sh"), variant, self.programs, self.root],
            cwd=support.REPOSITORY, env=environment, capture_output=True, text=True,
            timeout=support.DEADLINE_SECONDS, check=False)

    def remove(self) -> None:
        self._folder.cleanup()


class RootfsTest(unittest.TestCase):
    """All that a container needs is in the folder, and its programs run with nothing but it."""

    @classmethod
    def setUpClass(cls):
        cls.maker = Maker()
        cls.addClassCleanup(cls.maker.remove)
        run = cls.maker.make()
        if run.returncode != 0:
            raise AssertionError(run.stdout + run.stderr)

    def path(self, *names: str) -> str:
        return os.path.join(self.maker.root, *names)

    def text(self, *names: str) -> str:
        with open(self.path(*names), encoding="utf-8") as file:
            return file.read()

    def test_programs_run_with_the_libraries_of_the_folder_alone(self):
        libraries = self.path("usr", "lib", MULTIARCH)
        loaders = [name for name in os.listdir(self.path("lib64")) if name.startswith("ld-")]
        self.assertEqual(len(loaders), 1)
        run = subprocess.run(
            [self.path("lib64", loaders[0]), "--list", "--inhibit-cache", "--library-path", libraries,
             self.path("opt", "keelson", "bin", "chief")],
            capture_output=True, text=True, timeout=support.DEADLINE_SECONDS, check=True)
        found = [line.split(" => ")[1] for line in run.stdout.splitlines() if " => " in line]
        self.assertGreater(len(found), 1)
        for path in found:
            if "/ld-" not in path:
                self.assertTrue(path.startswith(libraries), path)

    def test_scanners_see_which_packages_it_is_made_of(self):
        self.assertLessEqual({"libc6", "base-files"}, set(os.listdir(self.path("var/lib/dpkg/status.d"))))
        self.assertIn("\nVersion: ", self.text("var/lib/dpkg/status.d/libc6"))
        self.assertIn("\nID=", "\n" + self.text("etc/os-release"))

    def test_licences_are_with_it(self):
        for package in os.listdir(self.path("var/lib/dpkg/status.d")):
            self.assertTrue(self.text("usr/share/doc", package, "copyright"), package)

    def test_has_a_shell_and_configs(self):
        self.assertEqual(os.readlink(self.path("bin", "sh")), "busybox")
        self.assertEqual(os.readlink(self.path("usr", "bin", "cat")), "busybox")
        self.assertIn("mnist_cnn.textproto", os.listdir(self.path("opt", "keelson", "configs")))

    def test_whoever_it_runs_as_can_write_the_model_directory(self):
        for name in ("model", "tmp"):
            self.assertEqual(stat.S_IMODE(os.stat(self.path(name)).st_mode), 0o1777, name)

    def test_the_user_of_the_image_has_a_name(self):
        users = {line.split(":")[2] for line in self.text("etc/passwd").splitlines()}
        self.assertEqual(users, {"0", support.dockerfile().last("keelson", "USER").arguments.split(":")[0]})

    def test_nothing_has_the_setuid_bit(self):
        for parent, _, names in os.walk(self.maker.root):
            for name in names:
                mode = os.lstat(os.path.join(parent, name)).st_mode
                self.assertFalse(mode & (stat.S_ISUID | stat.S_ISGID), name)


class NcclTest(unittest.TestCase):
    """An image with CUDA carries NCCL, which is loaded by its name, where there is one."""

    def setUp(self):
        self.maker = Maker()
        self.addCleanup(self.maker.remove)

    def make(self, variant: str, listed: str) -> subprocess.CompletedProcess:
        self.maker.tool("ldconfig", f"echo '{listed}'")
        run = self.maker.make(variant)
        self.assertEqual(run.returncode, 0, run.stderr)
        return run

    def carried(self) -> bool:
        return os.path.isfile(os.path.join(self.maker.root, "usr", "lib", MULTIARCH, "libnccl.so.2"))

    def test_carried(self):
        library = os.path.join(self.maker.folder, "libnccl.so.2.28.9")
        subprocess.run(["gcc", "-shared", "-x", "c", "/dev/null", "-o", library],
                       timeout=support.DEADLINE_SECONDS, check=True)
        listed = f"\tlibnccl.so.2 (libc6,x86-64) => {library}"
        self.assertNotIn("NCCL", self.make("cuda", listed).stdout)
        self.assertTrue(self.carried())

    def test_that_of_the_wheels_is_carried_with_its_licence(self):
        toolkit = os.path.join(self.maker.folder, "cuda")
        os.makedirs(os.path.join(toolkit, "lib"))
        os.makedirs(os.path.join(toolkit, "nvidia_nccl-2.dist-info"))
        for name in ("libcublasLt.so.13", "libnccl.so.2"):
            subprocess.run(["gcc", "-shared", "-x", "c", "/dev/null", f"-Wl,-soname,{name}",
                            "-o", os.path.join(toolkit, "lib", name)],
                           timeout=support.DEADLINE_SECONDS, check=True)
        source = os.path.join(self.maker.folder, "x.c")
        with open(source, "w", encoding="utf-8") as file:
            file.write("int main(void) { return 0; }\n")
        subprocess.run(["gcc", source, "-o", os.path.join(self.maker.programs, "worker"), "-Wl,--no-as-needed",
                        os.path.join(toolkit, "lib", "libcublasLt.so.13"), f"-Wl,-rpath,{toolkit}/lib"],
                       timeout=support.DEADLINE_SECONDS, check=True)
        self.assertNotIn("NCCL", self.make("cuda", "").stdout)
        self.assertTrue(self.carried())
        self.assertTrue(os.path.isdir(os.path.join(self.maker.root, "usr/share/doc/nvidia_nccl-2.dist-info")))

    def test_absent(self):
        self.assertIn("make_rootfs: note: no libnccl.so.2: ", self.make("cuda", "").stdout)
        self.assertFalse(self.carried())

    def test_not_for_cpu(self):
        self.assertNotIn("libnccl", self.make("cpu", "\tlibnccl.so.2 (libc6,x86-64) => /absent").stdout)
        self.assertFalse(self.carried())


class RefusalTest(unittest.TestCase):
    """An image that could not run is not made."""

    def setUp(self):
        self.maker = Maker()
        self.addCleanup(self.maker.remove)

    def test_a_missing_library(self):
        source = os.path.join(self.maker.folder, "x.c")
        library = os.path.join(self.maker.folder, "libabsent.so")
        with open(source, "w", encoding="utf-8") as file:
            file.write("int main(void) { return 0; }\n")
        worker = os.path.join(self.maker.programs, "worker")
        for command in (["gcc", source, "-o", library, "-shared", "-fPIC"],
                        ["gcc", source, "-o", worker, "-Wl,--no-as-needed", library]):
            subprocess.run(command, timeout=support.DEADLINE_SECONDS, check=True)
        os.remove(library)
        run = self.maker.make()
        self.assertEqual(run.returncode, 1)
        self.assertIn(f"make_rootfs: {worker} needs libraries that are not here", run.stderr)
        self.assertIn("libabsent.so => not found", run.stderr)

    def test_a_missing_program(self):
        os.remove(os.path.join(self.maker.programs, "keelson_ctl"))
        run = self.maker.make()
        self.assertEqual(run.returncode, 1)
        self.assertIn("keelson_ctl", run.stderr)
