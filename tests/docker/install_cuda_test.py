"""deploy/install_cuda.sh, with a pip that only says how it was called and makes what it would install."""

import os
import re
import shutil
import subprocess

import support

REQUIREMENTS = os.path.join(support.REPOSITORY, "deploy", "cuda_requirements.txt")

# What the wheels have, as pip leaves it.
INSTALLS = '''while [ "$1" != --target ]; do shift; done
root=$2/nvidia
mkdir -p "$root/cu13/bin" "$root/cu13/include" "$root/cu13/lib" "$root/nccl/include" "$root/nccl/lib" "$2/nvidia_nccl.dist-info"
: > "$root/cu13/bin/nvcc"; chmod +x "$root/cu13/bin/nvcc"
: > "$root/cu13/lib/libcudart.so.13"; : > "$root/nccl/lib/libnccl.so.2"; : > "$root/nccl/include/nccl.h"'''


class InstallCudaTest(support.TemporaryDirectoryTest):
    def setUp(self):
        super().setUp()
        self.toolkit = self.path("cache", "keelson", "cuda")
        # The PATH is one folder: this machine may have CUDA.
        for name in ("bash", "chmod", "cmp", "cp", "dirname", "grep", "ln", "mkdir", "mktemp", "mv", "rm", "tail"):
            self.link(name)
        self.write_script("bin/uname", "echo x86_64")
        self.pip(INSTALLS)

    def link(self, name: str) -> None:
        os.makedirs(self.path("bin"), exist_ok=True)
        os.symlink(shutil.which(name), self.path("bin", name))

    def pip(self, install: str) -> None:
        self.write_script("bin/python3", f'[ "$3" = --version ] && exit 0; echo "$*" >> "$LOG"\n{install}')

    def install(self, *arguments: str) -> subprocess.CompletedProcess:
        environment = {"PATH": self.path("bin"), "LOG": self.path("log"), "XDG_CACHE_HOME": self.path("cache"),
                       "CUDA_HOME": self.path("installed")}
        return self.run_program("/bin/bash", os.path.join(support.REPOSITORY, "deploy", "install_cuda.sh"),
                                *arguments, env=environment)

    def expect_failure(self, line: str) -> None:
        """One line, and nothing is left behind."""
        run = self.install()
        self.assertEqual((run.returncode, run.stderr), (1, line + "\n"))
        parent = os.path.dirname(self.toolkit)
        self.assertEqual(os.listdir(parent) if os.path.isdir(parent) else [], [])

    def test_what_it_makes_is_laid_out_as_an_installed_toolkit(self):
        run = self.install()
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        self.assertIn(f"installing CUDA into {self.toolkit} ", run.stdout)
        for path in ("bin/nvcc", "include/nccl.h", "lib64/libcudart.so", "lib/libcudart.so.13", "lib/libnccl.so.2",
                     "nvidia_nccl.dist-info"):
            self.assertTrue(os.path.exists(os.path.join(self.toolkit, path)), path)
        self.assertEqual(os.listdir(os.path.dirname(self.toolkit)), ["cuda"])

    def test_pip_takes_the_pinned_files_alone(self):
        self.install()
        self.assertEqual(len(self.logged()), 1)
        for flag in ("--require-hashes", "--no-deps", "--only-binary :all:", f"--requirement {REQUIREMENTS}"):
            self.assertIn(flag, self.logged()[0])

    def test_every_requirement_is_pinned_with_its_hash(self):
        with open(REQUIREMENTS, encoding="utf-8") as file:
            text = re.sub(r"^#.*\n", "", file.read(), flags=re.MULTILINE).replace("\\\n", "")
        lines = text.splitlines()
        self.assertGreaterEqual(len(lines), 6)
        for line in lines:
            self.assertRegex(line, r"^nvidia-[a-z0-9-]+==[0-9.]+ +--hash=sha256:[0-9a-f]{64}$")

    def test_a_second_time_does_nothing(self):
        self.install()
        run = self.install()
        self.assertEqual((run.returncode, run.stdout, run.stderr, len(self.logged())), (0, "", "", 1))

    def test_other_versions_replace_it(self):
        self.install()
        with open(os.path.join(self.toolkit, "requirements.txt"), "a", encoding="utf-8") as file:
            file.write("# older\n")
        leftover = os.path.join(self.toolkit, "leftover")
        os.mkdir(leftover)
        self.assertEqual(self.install().returncode, 0)
        self.assertEqual(len(self.logged()), 2)
        self.assertFalse(os.path.exists(leftover))

    def test_an_installed_toolkit_is_preferred(self):
        for folder in ("installed/bin", "bin"):
            self.write_script(f"{folder}/nvcc", "true")
            run = self.install()
            self.assertEqual((run.returncode, run.stdout),
                             (0, f"install_cuda: {self.directory}/{folder}/nvcc is there already\n"), run.stderr)
        self.assertEqual(self.logged(), [])

    def test_a_folder_of_somebody_else_is_left_alone(self):
        mine = self.path("mine")
        os.mkdir(mine)
        run = self.install(mine)
        self.assertEqual((run.returncode, run.stderr),
                         (1, f"install_cuda: {mine} is there already and was not made by this script\n"))
        self.assertEqual((os.listdir(mine), self.logged()), ([], []))

    def test_another_architecture(self):
        self.write_script("bin/uname", "echo aarch64")
        self.expect_failure("install_cuda: expected x86_64, found aarch64: install CUDA 13 by hand")
        self.assertEqual(self.logged(), [])

    def test_no_pip(self):
        self.write_script("bin/python3", 'echo "No module named pip" >&2; exit 1')
        self.expect_failure("install_cuda: python3 has no pip: apt-get install python3-pip")

    def test_no_network(self):
        self.pip('echo "WARNING: Retrying (Retry(total=0)) after connection broken by \'NewConnectionError(: no route)\'"\n'
                 'echo "ERROR: No matching distribution found for nvidia-cublas"; exit 1')
        self.expect_failure("install_cuda: pip cannot reach the package index: NewConnectionError(: no route)'")

    def test_a_wheel_with_another_hash(self):
        self.pip('echo Collecting; echo "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES"; echo more; exit 1')
        self.expect_failure("install_cuda: pip failed: ERROR: THESE PACKAGES DO NOT MATCH THE HASHES")
