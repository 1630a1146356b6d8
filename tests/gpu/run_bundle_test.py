"""tests/gpu/run_bundle.sh, in a bundle whose programs are shell scripts; and what run.sh refuses."""

import glob
import os
import shutil
import subprocess
import sys
import unittest

FOLDER = os.path.dirname(os.path.abspath(__file__))

sys.path.insert(0, os.path.join(FOLDER, "..", "support"))

from temporary_directory import TemporaryDirectoryTest  # noqa: E402  (needs the path above)

GPU = 'echo "I 2026-11-22T00:00:00.000Z gpu_bench Test GPU, compute capability 9.0"'
NO_GPU = 'echo "E 2026-11-22T00:00:00.000Z gpu_bench no CUDA device: no driver" >&2; exit 2'
PARTS = ["conformance", "layers against float64", "memory check", "race check", "training jobs", "gpu_bench"]
ALL_PASS = """
echo "[==========] 3 tests from 1 test suite ran. (5 ms total)"
echo "[  SKIPPED ] 1 test, listed below:"
"""


class RunBundleTest(TemporaryDirectoryTest):
    def setUp(self):
        super().setUp()
        self.bundle = self.path("keelson-gpu")
        self.logs = self.path("logs")
        os.makedirs(self.bundle)
        shutil.copy(os.path.join(FOLDER, "run_bundle.sh"), os.path.join(self.bundle, "run.sh"))
        # A script is no program that ldd knows.
        self.tool("ldd", "true")
        self.program("bin/gpu_bench", self.bench(GPU))
        self.program("tests/cuda_device_test", ALL_PASS)
        self.program("tests/model_reference_test", ALL_PASS)
        self.program("tests/gpu_job_test", 'echo "MLP: accuracy 0.9712"\n' + ALL_PASS)

    @staticmethod
    def bench(probe, measure='echo "measured $*"'):
        return f'if [ "$1" = --probe ]; then {probe}; else {measure}; fi'

    def program(self, name, script):
        self.write_script(f"keelson-gpu/{name}", script)

    def tool(self, name, script):
        self.write_script(f"tools/{name}", script)

    def run_bundle(self, *flags):
        environment = {**os.environ, "PATH": self.path("tools") + ":/usr/bin:/bin"}
        return self.run_program(self.path("keelson-gpu", "run.sh"), f"--logs={self.logs}", *flags, env=environment)

    def results(self, output):
        """The result of each part: the first two columns."""
        lines = [line for line in output.splitlines() if line.startswith(("ok ", "failed ", "skipped "))]
        return {line[9:39].strip(): line[:9].strip() for line in lines}

    def test_runs_every_part_and_shows_what_was_measured(self):
        self.tool("compute-sanitizer", 'while [ "$1" != bin/gpu_bench ]; do shift; done; exec "$@"')
        run = self.run_bundle()
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assertEqual(self.results(run.stdout), {part: "ok" for part in PARTS})
        self.assertIn("Test GPU, compute capability 9.0", run.stdout)
        self.assertIn("3 tests, 1 skipped", run.stdout)
        self.assertIn("MLP: accuracy 0.9712", run.stdout)
        self.assertIn("measured --markdown", run.stdout)
        self.assertIn("6 ok, 0 failed, 0 skipped", run.stdout)

    def test_without_a_gpu_every_part_is_skipped_by_name_and_nothing_is_measured(self):
        self.program("bin/gpu_bench", self.bench(NO_GPU))
        run = self.run_bundle()
        self.assertEqual(run.returncode, 77, run.stdout + run.stderr)
        self.assertEqual(self.results(run.stdout), {part: "skipped" for part in PARTS})
        self.assertEqual(run.stdout.count("no CUDA device: no driver"), len(PARTS) + 1)
        self.assertIn("nothing was measured: no CUDA device: no driver", run.stdout)

    def test_a_missing_library_is_no_gpu(self):
        self.tool("ldd", "echo '  libcublasLt.so.99 => not found'")
        run = self.run_bundle()
        self.assertEqual(run.returncode, 77, run.stdout + run.stderr)
        self.assertIn("libcublasLt.so.99 not found; set LD_LIBRARY_PATH", run.stdout)

    def test_a_failure_shows_the_end_of_its_log_and_the_others_run(self):
        self.program("tests/cuda_device_test", 'echo "expected 1, found 2"; exit 1')
        run = self.run_bundle()
        self.assertEqual(run.returncode, 1)
        self.assertEqual(self.results(run.stdout)["conformance"], "failed")
        self.assertEqual(self.results(run.stdout)["gpu_bench"], "ok")
        self.assertIn("| expected 1, found 2", run.stdout)
        self.assertIn("exit code 1", run.stdout)

    def test_is_bounded_in_time(self):
        self.program("tests/cuda_device_test", "exec sleep 50")
        # The first part has to start within the time, also on a busy machine.
        run = self.run_bundle("--seconds=3")
        self.assertEqual(run.returncode, 1)
        self.assertIn("stopped after", run.stdout)
        self.assertIn("no time left of 3 s", run.stdout)

    @unittest.skipIf(glob.glob("/usr/local/cuda*/**/compute-sanitizer", recursive=True), "it is here")
    def test_without_compute_sanitizer_its_parts_are_skipped(self):
        run = self.run_bundle()
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assertEqual(self.results(run.stdout)["memory check"], "skipped")
        self.assertIn("compute-sanitizer not found", run.stdout)

    def test_a_gpu_that_compute_sanitizer_does_not_know_is_no_failure(self):
        self.tool("compute-sanitizer", 'echo "Error: Device not supported"; exit 1')
        run = self.run_bundle()
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assertEqual(self.results(run.stdout)["race check"], "skipped")

    def test_on_the_emulated_gpu_the_run_is_short_and_says_what_it_is(self):
        with open(os.path.join(self.bundle, "emulated"), "w", encoding="utf-8"):
            pass
        self.tool("compute-sanitizer", "exit 1")
        run = self.run_bundle()
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assertIn("the GPU is emulated: figures say nothing", run.stdout)
        self.assertIn("measured --markdown --smoke", run.stdout)
        self.assertEqual(self.results(run.stdout)["memory check"], "skipped")

    def test_refuses_flags_that_it_does_not_know(self):
        for flags in (["--speed"], ["--seconds=soon"], ["--seconds"]):
            run = self.run_bundle(*flags)
            self.assertEqual(run.returncode, 2, flags)
            self.assertIn("run.sh: ", run.stderr)


class RunTest(TemporaryDirectoryTest):
    def run_script(self, *flags):
        return self.run_program(os.path.join(FOLDER, "run.sh"), *flags)

    def test_refuses_flags_that_it_does_not_know(self):
        for flags in (["--fast"], ["--bundle"], ["--build="]):
            run = self.run_script(*flags)
            self.assertEqual(run.returncode, 2, flags)
            self.assertIn("tests/gpu/run.sh: ", run.stderr)

    def test_a_folder_without_a_bundle_is_refused(self):
        run = self.run_script("--bundle", self.directory)
        self.assertEqual(run.returncode, 2)
        self.assertIn("found no run.sh", run.stderr)

    def test_a_bundle_is_unpacked_and_run_with_the_flags(self):
        self.write_script("keelson-gpu/run.sh", 'echo "ran with $*"; exit 77')
        archive = self.path("keelson-gpu.tar.xz")
        subprocess.run(["tar", "-C", self.directory, "-cJf", archive, "keelson-gpu"], check=True)
        run = self.run_script("--output", self.path("there"), "--bundle", archive, "--", "--seconds=5")
        self.assertEqual(run.returncode, 77, run.stderr)
        self.assertIn("ran with --seconds=5", run.stdout)
