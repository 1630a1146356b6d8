"""PyTorchJobs in the launcher: what is planned for them, and scripts that are run with shell scripts in Python's place."""

import os
import re
import unittest

import support
from pytorch_text import pytorch_job, replica

EXAMPLES = os.path.join(support.REPOSITORY, "tests", "tfjob_api", "pytorch_jobs.yaml")
GLOO = "args: [--backend, gloo, --epochs=1, --batch-size=32, --lr, '0.1']"
# What operator and container runtime set for a master, in the order in which --dry_run prints it.
MASTERS = """\
HOSTNAME=job-master-0
MASTER_ADDR=127.a.b.1
MASTER_PORT=23456
PET_MASTER_ADDR=127.a.b.1
PET_MASTER_PORT=23456
PET_NNODES=3
PET_NODE_RANK=0
PET_NPROC_PER_NODE=auto
PYTHONUNBUFFERED=1
RANK=0
WORLD_SIZE=3
""".splitlines()


class DryRunTest(support.LauncherTest):
    def dry_run(self, path, *flags):
        """Replica name -> its section; warnings."""
        command = [path, f"--bin_dir={self.path('bin')}", f"--run_dir={self.path('run')}", "--dry_run", *flags]
        code, output, errors = self.ask(*command)
        self.assertEqual((code, errors), (0, ""))
        sections = {re.split("  ", text, maxsplit=1)[0]: text for text in output.split("\n\n")[1:] if text.strip()}
        return sections, re.findall(r"^warning: (.*)$", output, re.MULTILINE)

    def plan(self, text, *flags):
        return self.dry_run(self.write("job.yaml", text), *flags)

    @staticmethod
    def values(section, what):
        return re.findall(rf"^  {what} +(.*)$", section, re.MULTILINE)

    def test_what_the_real_operator_was_given(self):
        for job, replicas in (("mnist-pytorch", 3), ("elastic", 2), ("nproc", 2)):
            sections, _ = self.dry_run(EXAMPLES, "--job", job, "--run_commands")
            self.assertEqual(len(sections), replicas)
            for section in sections.values():
                self.assertEqual(self.values(section, "program"), [self.path("bin", "worker")])

    def test_the_environment_leads_to_the_masters_own_host(self):
        script = self.write("train.py", "")
        text = pytorch_job(*(replica(t, n, f"command: [python3, {script}]") for t, n in (("Master", 1), ("Worker", 2))))
        sections, warnings = self.plan(text, "--run_commands")
        self.assertEqual(warnings, [])
        own = r"PYTHONPATH|KEELSON_|PATH=|OMP_"
        seen = [v for v in self.values(sections["master-0"], "env") if not re.match(own, v)]
        port = seen[2].partition("=")[2]
        # Another program of this machine may have the port.
        expected = [line.replace("23456", port) for line in MASTERS]
        self.assertEqual([re.sub(r"127\.\d+\.\d+\.", "127.a.b.", v) for v in seen], expected)
        for name, rank in (("worker-0", "1"), ("worker-1", "2")):
            variables = dict(v.split("=", 1) for v in self.values(sections[name], "env"))
            self.assertEqual((variables["RANK"], variables["PET_NODE_RANK"]), (rank, rank))
            self.assertEqual(f"MASTER_ADDR={variables['MASTER_ADDR']}", seen[1])
            self.assertEqual(self.values(sections[name], "waits for"), ["master-0"])
            self.assertEqual(self.values(sections[name], "argument")[0], script)

    def test_scripts_of_this_machine_need_leave(self):
        script = self.write("train.py", "")
        text = pytorch_job(replica("Master", container=f"command: [python3, {script}]"))
        sections, warnings = self.plan(text)
        self.assertEqual(self.values(sections["master-0"], "program"), [self.path("bin", "worker")])
        hint = f"--run_commands runs {script}, which is on this machine"
        self.assertEqual(warnings, [f"Master: worker runs in place of the command python3 {script}; {hint}"])

    def test_a_script_that_is_not_here_is_keelsons_worker(self):
        command = "command: [python, /opt/mnist.py]\n" + GLOO
        sections, warnings = self.plan(pytorch_job(replica("Master", container=command), replica("Worker", 1, command)))
        for name in ("master-0", "worker-0"):
            arguments = self.values(sections[name], "argument")
            self.assertLessEqual({"--batch_size=32", "--epochs=1", "--learning_rate=0.1"}, set(arguments))
            self.assertFalse([a for a in arguments if "backend" in a or "gloo" in a])
            variables = self.values(sections[name], "env")
            self.assertIn("WORLD_SIZE=2", variables)
            # Keelson's program does not read it.
            self.assertNotIn("PYTHONUNBUFFERED=1", variables)
        self.assertIn("--backend: nothing in Keelson's programs means the same, left out", warnings)
        self.assertIn("Worker: worker runs in place of the command python /opt/mnist.py", warnings)

    def test_examples_of_the_operators_repository(self):
        """Jobs in the shapes of its simple.yaml, pytorch_job_mnist_gloo.yaml, pytorch_job_sendrecv.yaml and elastic/echo:
        flags that mean the same are kept, and the rest is said."""
        simple = 'command: ["python3", "/opt/pytorch-mnist/mnist.py", "--epochs=1"]'
        gloo = 'args: ["--backend", "gloo"]\nresources: {limits: {nvidia.com/gpu: 1}}'
        echo = "env: [{name: LOGLEVEL, value: DEBUG}]\n"
        echo += "command: [python, -m, torch.distributed.run, --rdzv_backend=c10d, ./echo.py, --lr=1]"
        elastic = "elasticPolicy: {rdzvBackend: c10d, minReplicas: 1, maxReplicas: 2, maxRestarts: 100}"
        meaningless = "nothing in Keelson's programs means the same, left out"
        for container, workers, spec, expected, said in (
            (simple, 1, "", ["--epochs=1"], [
                "Master: worker runs in place of the command python3 /opt/pytorch-mnist/mnist.py --epochs=1",
                "Worker: worker runs in place of the command python3 /opt/pytorch-mnist/mnist.py --epochs=1",
            ]),
            (gloo, 1, "", [], [f"--backend: {meaningless}"]),
            ("", 3, "", [], []),
            (echo, 2, elastic, ["--learning_rate=1"], [
                "left out without --run_commands: env LOGLEVEL (Worker: Keelson's programs do not read it)",
                "Worker: worker runs in place of the command python -m torch.distributed.run --rdzv_backend=c10d ./echo.py --lr=1",
            ]),
        ):  # fmt: skip
            master = [] if spec else [replica("Master", 1, container)]
            sections, warnings = self.plan(
                pytorch_job(*master, replica("Worker", workers, container), spec=spec), "--gpus=0,1", "--dashboard_port=none"
            )
            self.assertEqual(len(sections), workers + len(master))
            self.assertEqual([w for w in warnings if not w.startswith("--gpus")], said)
            for section in sections.values():
                own = r"--(model_dir|job_token_file|compute_threads)="
                kept = [a for a in self.values(section, "argument") if not re.match(own, a)]
                self.assertEqual(kept, expected)

    def test_an_elastic_job_meets_at_worker_0(self):
        elastic = "elasticPolicy: {minReplicas: 1, maxReplicas: 2}"
        sections, _ = self.plan(pytorch_job(replica("Worker", 2), spec=elastic))
        for name in ("worker-0", "worker-1"):
            variables = dict(v.split("=", 1) for v in self.values(sections[name], "env"))
            self.assertRegex(variables["PET_RDZV_ENDPOINT"], r"^127\.\d+\.\d+\.1:\d+$")
            self.assertNotIn("RANK", variables)
            # By it Keelson's worker knows its number.
            self.assertEqual(variables["HOSTNAME"], f"job-{name}")
            self.assertEqual(self.values(sections[name], "waits for"), [])

    def test_all_train_and_share_the_cores(self):
        sections, _ = self.plan(pytorch_job(replica("Master"), replica("Worker", 2)), "--device=cpu")
        threads = max(1, len(os.sched_getaffinity(0)) // 3)
        for section in sections.values():
            self.assertIn(f"--compute_threads={threads}", self.values(section, "argument"))
            self.assertIn("--device=cpu", self.values(section, "argument"))

    def test_servers_cannot_be_added(self):
        path = self.write("job.yaml", pytorch_job(replica("Master")))
        code, _, errors = self.ask(path, f"--bin_dir={self.path('bin')}", "--ps=2", "--dry_run")
        where = f"tfjob_local: {path}: spec.pytorchReplicaSpecs.PS"
        self.assertEqual((code, errors), (2, f"{where}: not in the manifest, but 2 replicas are asked for\n"))


class RunTest(support.LauncherTest):
    def test_the_masters_success_is_the_jobs(self):
        self.set_program(
            "worker",
            'echo "rank $RANK of $WORLD_SIZE" >> "$OUT/started"; while ! grep -q "rank 1" "$OUT/started"; do sleep 0.01; done',
        )
        code, output = self.run_job(pytorch_job(replica("Master"), replica("Worker")))
        self.assertEqual(code, 0, output)
        self.assertEqual(sorted(self.read("started").splitlines()), ["rank 0 of 2", "rank 1 of 2"])
        self.assertIn("PyTorchJobSucceeded: PyTorchJob job is successfully completed.", output)

    def test_a_missing_python_is_the_launchers(self):
        script = self.write("app/train.py", "import os; print('rank', os.environ['RANK'], 'in', os.getcwd())")
        container = "command: [python2.99, train.py]\nworkingDir: " + os.path.dirname(script)
        code, output = self.run_job(pytorch_job(replica("Master", container=container)), "--run_commands", "--follow=all")
        self.assertEqual(code, 0, output)
        self.assertIn(f"rank 0 in {self.path('app')}", output)
        self.assertRegex(output, "Master: .*python.* runs in place of python2.99, which this machine does not have")


if __name__ == "__main__":
    unittest.main()
