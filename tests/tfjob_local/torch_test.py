"""Users' own scripts under DistributedDataParallel, with Debian's PyTorch, unchanged in the launcher."""

import os
import re
import subprocess
import unittest

import support
from pytorch_text import pytorch_job, replica
from trainjob_text import documents, runtime, train_job

SCRIPTS = os.path.join(support.REPOSITORY, "tests", "tfjob_local", "torch_scripts")
PYTHON = "/usr/bin/python3"


def has_torch():
    """Looked for, not imported: that takes seconds."""
    script = "import importlib.util, sys; sys.exit(importlib.util.find_spec('torch') is None)"
    try:
        return subprocess.run([PYTHON, "-c", script], check=False).returncode == 0
    except OSError:
        return False


@unittest.skipUnless(has_torch(), f"{PYTHON} has no torch: apt-get install python3-torch")
class TorchTest(support.LauncherTest):
    def environment(self):
        # The python3 that has Debian's torch.
        return {**super().environment(), "PATH": "/usr/bin:/bin"}

    def run_script(self, words, *replicas, spec=""):
        command = f"command: [{', '.join(words)}]"
        text = pytorch_job(*(replica(t, n, command) for t, n in replicas), spec=spec)
        code, output = self.run_job(text, "--run_commands", "--follow=all")
        self.assertEqual(code, 0, output)
        return output

    def test_send_and_receive(self):
        """What kubeflow's smoke test for PyTorchJobs does."""
        script = os.path.join(SCRIPTS, "send_and_receive.py")
        output = self.run_script(["python3", script], ("Master", 1), ("Worker", 2))
        for peer in (1, 2):
            self.assertIn(f"master-0 | from rank {peer} of 3: 9", output)
        self.assertIn("PyTorchJobSucceeded: PyTorchJob job is successfully completed.", output)

    def test_a_killed_worker_breaks_all_and_they_meet_again(self):
        script, marker = os.path.join(SCRIPTS, "train.py"), self.path("died")
        output = self.run_script(["python3", script, "--dies-at", "'3'", marker], ("Master", 1), ("Worker", 1))
        self.assertIn("worker-0 ended with signal SIGKILL (exit code 137)", output)
        # The master's gradients were on the way to the worker that has died.
        self.assertRegex(output, r"master-0 ended with .*, back-off")
        for name, rank in (("master-0", 0), ("worker-0", 1)):
            self.assertIn(f"{name} | rank {rank} of 2: learned True, same weights True", output)
        self.assertIn("PyTorchJobSucceeded: PyTorchJob job is successfully completed.", output)

    def test_torchrun_with_an_elastic_policy(self):
        # torch 1.13 under Python 3.11 takes no 0 there, its own default.
        launcher = ["python3", "-m", "torch.distributed.run", "--redirects=1", "--tee=1"]
        script = os.path.join(SCRIPTS, "train.py")
        output = self.run_script(
            [*launcher, script, "--steps=10"],
            ("Worker", 2),
            spec='nprocPerNode: "1"\nelasticPolicy: {minReplicas: 1, maxReplicas: 2, maxRestarts: 3}',
        )
        ranks = re.findall(r"rank (\d) of 2: learned True, same weights True", output)
        self.assertEqual(sorted(ranks), ["0", "1"])
        self.assertIn("PyTorchJobSucceeded: PyTorchJob default/job successfully completed.", output)

    def test_torchrun_on_the_nodes_of_a_trainjob(self):
        """It finds the first node, the others and its own place from PET_ variables alone."""
        script = os.path.join(SCRIPTS, "train.py")
        words = ["python3", "-m", "torch.distributed.run", "--redirects=1", "--tee=1", script, "--steps=10"]
        trainer = f"numNodes: 2\nnumProcPerNode: 1\ncommand: [{', '.join(words)}]"
        text = documents(runtime(), train_job(trainer))
        code, output = self.run_job(text, "--run_commands", "--follow=all")
        self.assertEqual(code, 0, output)
        ranks = re.findall(r"rank (\d) of 2: learned True, same weights True", output)
        self.assertEqual(sorted(ranks), ["0", "1"])
        self.assertIn("AllJobsCompleted: jobset completed successfully", output)


if __name__ == "__main__":
    unittest.main()
