"""deploy/docker/install_cuda.sh, with apt, dpkg and curl that only say how they were called."""

import os
import subprocess
import tempfile
import unittest

import support


class InstallCudaTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.log = os.path.join(self.folder, "log")
        self.tool("apt-get", 'echo "apt-get $*" >> "$LOG"')
        self.tool("curl", 'echo "curl $*" >> "$LOG"; while [ "$1" != --output ]; do shift; done; : > "$2"')
        self.dpkg("amd64")

    def tool(self, name: str, script: str) -> None:
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\n{script}\n")
        os.chmod(path, 0o755)

    def dpkg(self, architecture: str) -> None:
        self.tool("dpkg",
                  f'[ "$1" = --print-architecture ] && echo {architecture} || echo "dpkg $*" >> "$LOG"')

    def install(self) -> subprocess.CompletedProcess:
        environment = {"PATH": self.folder + ":/usr/bin:/bin", "LOG": self.log, "TMPDIR": self.folder,
                       "CUDA_HOME": os.path.join(self.folder, "cuda")}
        return subprocess.run([os.path.join(support.FOLDER, "install_cuda.sh")], env=environment,
                              capture_output=True, text=True, timeout=support.DEADLINE_SECONDS, check=False)

    def calls(self):
        if not os.path.exists(self.log):
            return []
        with open(self.log, encoding="utf-8") as file:
            return file.read().splitlines()

    def test_trusts_the_repository_before_it_installs_from_it(self):
        run = self.install()
        self.assertEqual(run.returncode, 0, run.stderr)
        calls = self.calls()
        self.assertEqual([" ".join(call.split()[:2]) for call in calls],
                         ["apt-get update", "apt-get install", "curl --fail", "dpkg --install",
                          "apt-get update", "apt-get install"])
        self.assertIn("/repos/debian12/x86_64/cuda-keyring_", calls[2])
        for package in ("cuda-nvcc-13-0", "cuda-cudart-dev-13-0", "libcublas-dev-13-0", "libnccl2=*+cuda13.0",
                        "libnccl-dev=*+cuda13.0"):
            self.assertIn(package, calls[-1].split())
        for call in calls:
            if call.startswith("apt-get install"):
                self.assertIn("--no-install-recommends", call)

    def test_leaves_a_build_image_with_cuda_as_it_is(self):
        self.tool("cuda/bin/nvcc", "true")
        run = self.install()
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(run.stdout, f"install_cuda: {self.folder}/cuda is in the build image\n")
        self.assertEqual(self.calls(), [])

    def test_refuses_an_architecture_without_packages(self):
        self.dpkg("arm64")
        run = self.install()
        self.assertEqual(run.returncode, 1)
        self.assertEqual(run.stderr,
                         "install_cuda: expected amd64, found arm64: use a BUILD_IMAGE that has CUDA\n")
        self.assertEqual(self.calls(), [])

    def test_a_failed_download_ends_it(self):
        self.tool("curl", 'echo "curl: no route" >&2; exit 7')
        run = self.install()
        self.assertEqual(run.returncode, 7)
        self.assertEqual(run.stderr, "curl: no route\n")
        self.assertFalse(any(call.startswith("dpkg") for call in self.calls()))


if __name__ == "__main__":
    unittest.main()
