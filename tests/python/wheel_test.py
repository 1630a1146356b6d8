"""The wheel that deploy/make_wheel.py makes of the package and the tests' programs."""

import base64
import hashlib
import os
import subprocess
import sys
import unittest
import zipfile

import support
from real_job import BINARIES, DEADLINE_SECONDS, RealJobTest

MAKE = os.path.join(support.REPOSITORY, "deploy", "make_wheel.py")
SCRIPT = """
import keelson
with keelson.join("line", variables={"w": [0.0]}, optimizer=keelson.Sgd(lr=1), records=8, batch_size=2, epochs=1,
                  model_dir="MODEL") as job:
    for step in job.steps():
        step.push({"w": [-1.0]}, loss=1.0)
print(keelson.__file__, keelson.load_state_dict("MODEL")["w"].elements().tolist())
"""


class WheelTest(RealJobTest):
    def make(self, *arguments):
        return subprocess.run([sys.executable, MAKE, f"--bin_dir={BINARIES}", *arguments],
                              capture_output=True, text=True, timeout=DEADLINE_SECONDS)  # fmt: skip

    def test_a_script_runs_with_what_is_in_the_wheel(self):
        self.needs("evaluator")
        made = self.make(f"--out={self.directory}")
        self.assertEqual(made.returncode, 0, made.stderr)
        (name,) = (name for name in os.listdir(self.directory) if name.endswith(".whl"))
        self.assertRegex(name, r"^keelson-[\d.]+-py3-none-manylinux_2_\d+_x86_64\.whl$")
        site = os.path.join(self.directory, "site")
        with zipfile.ZipFile(os.path.join(self.directory, name)) as wheel:
            self.check_record(wheel)
            for entry in wheel.infolist():
                # As pip does: the bits with which a file may be run, and no others.
                os.chmod(wheel.extract(entry, site), 0o755 if entry.external_attr >> 16 & 0o111 else 0o644)
        self.check_run(site)

    def test_a_script_runs_with_what_is_in_the_folder(self):
        self.needs("evaluator")
        site = os.path.join(self.directory, "site")
        made = self.make(f"--folder={site}")
        self.assertEqual((made.returncode, made.stdout), (0, f"{site}/keelson\n"), made.stderr)
        self.assertEqual(os.listdir(site), ["keelson"])
        self.check_run(site)
        made = self.make(f"--folder={site}")
        self.assertEqual(made.returncode, 1)
        self.assertEqual(made.stderr, f"make_wheel: {site}/keelson: expected nothing there, found something\n")

    def check_run(self, site):
        script = self.path_of("train.py", SCRIPT.replace("MODEL", self.model_dir))
        environment = {**self.environment, "PYTHONPATH": site}
        del environment["KEELSON_BINARY_DIR"]
        run = subprocess.run([sys.executable, script], env=environment, cwd=self.directory, capture_output=True, text=True,
                             timeout=DEADLINE_SECONDS)  # fmt: skip
        self.assertEqual(run.stdout, f"{site}/keelson/__init__.py [4.0]\n", run.stderr)

    def check_record(self, wheel):
        """All files, with their sums."""
        (record,) = (name for name in wheel.namelist() if name.endswith("/RECORD"))
        listed = [line.split(",") for line in wheel.read(record).decode().splitlines()]
        self.assertEqual([name for name, _, _ in listed], wheel.namelist())
        for name, digest, size in listed:
            if name != record:
                content = wheel.read(name)
                found = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
                self.assertEqual((digest, int(size)), (f"sha256={found}", len(content)))
        self.assertIn("keelson/torch/optimizer.py", wheel.namelist())
        self.assertIn("keelson/py.typed", wheel.namelist())

    def test_programs_that_are_not_there_are_named(self):
        made = subprocess.run([sys.executable, MAKE, "--bin_dir=/nonexistent", f"--out={self.directory}"],
                              capture_output=True, text=True, timeout=DEADLINE_SECONDS)  # fmt: skip
        self.assertEqual(made.returncode, 1)
        self.assertIn("make_wheel: /nonexistent/chief: expected a program, found none", made.stderr)


if __name__ == "__main__":
    unittest.main()
