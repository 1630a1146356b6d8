"""The manifests of jobs of scripts as processes of this machine, as deploy/tfjob_local.py runs them for its user."""

import json
import os
import subprocess
import sys
import threading
import unittest

import support
from real_job import BINARIES, DEADLINE_SECONDS, RealJobTest

from keelson import load_state_dict

# Behind the package: deploy has a keelson.py, too.
sys.path += [os.path.join(support.REPOSITORY, "deploy"), os.path.join(support.REPOSITORY, "tests", "support")]
try:
    import trainjob_text  # Wants it, too.
    import yaml
except ImportError:
    yaml = None

MANIFEST = os.path.join(support.REPOSITORY, "deploy", "tfjob", "pytorch_mnist.yaml")
WITHOUT_SERVERS = os.path.join(support.REPOSITORY, "deploy", "pytorchjob", "pytorch_mnist.yaml")
# In place of train.py and evaluate.py where there is no PyTorch: the same paths, and a line in place of a network.
TRAIN = """
import keelson
def errors(values, xs):
    return [(x, values["w"][0] * x + values["b"].tolist() - (2 * x + 1)) for x in xs]
if __name__ == "__main__":
    records = len(open(keelson.local_path("/data/train")).read().split())
    with keelson.join("line", variables={"w": [0.0], "b": 0.0}, optimizer=keelson.Sgd(lr=0.2), records=records, batch_size=4,
                      epochs=20, model_dir="/model") as job:
        for step in job.steps():
            found = errors(job.values, [record / records for record in step.records])
            gradients = {"w": [2 * sum(e * x for x, e in found) / len(found)], "b": 2 * sum(e for _, e in found) / len(found)}
            step.push(gradients, sum(e * e for _, e in found) / len(found))
"""
# Two nodes run this in two processes each; "{0}" is the test's directory, "{1}" that of the programs.
UNDER_TORCHRUN = """
import os
os.environ["KEELSON_BINARY_DIR"] = "{1}"
import keelson
with keelson.join("line", variables={{"w": [0.0]}}, optimizer=keelson.Sgd(lr=0.01), records=64, batch_size=4, epochs=10,
                  model_dir="{0}/model") as job:
    for step in job.steps():
        step.push({{"w": [sum(step.records) / len(step.records)]}}, 1.0)
print("the end is at epoch", job.epoch, flush=True)
"""
# The page is looked at before the first snapshot is scored.
EVALUATE = """
import keelson
from train import errors
def scores(values, records):
    open(keelson.local_path("/data/looked_at")).read()
    xs = [record / 16 for record in records]
    return [e + 2 * x + 1 for x, e in errors(values, xs)], [2 * x + 1 for x in xs]
keelson.Evaluator("/model", scores, records=16, kind="regression", page=6006).run()
"""


class ManifestTest(RealJobTest):
    def setUp(self):
        super().setUp()
        self.needs("evaluator")
        if yaml is None:
            self.skipTest("no package yaml, which the launcher needs")
        self.data = os.path.join(self.directory, "data")
        os.makedirs(self.data)
        self.run_dir = os.path.join(self.directory, "run")
        self.of_data = f"--pvc=pytorch-mnist-data={self.data}"

    def run_manifest(self, path, *flags, on_page=lambda: None):
        """The launcher's output; `on_page` is called when a dashboard answers."""
        launcher = os.path.join(support.REPOSITORY, "deploy", "tfjob_local.py")
        command = [sys.executable, launcher, path, f"--bin_dir={BINARIES}", f"--run_dir={self.run_dir}", *flags]
        lines = []
        with subprocess.Popen(command, env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True) as process:  # fmt: skip
            deadline = threading.Timer(DEADLINE_SECONDS, process.kill)
            deadline.start()
            try:
                for line in process.stdout:
                    lines.append(line)
                    if line.startswith("dashboard: http://127.0.0.1:"):
                        on_page()
            finally:
                deadline.cancel()
        self.assertEqual(process.returncode, 0, "".join(lines) + self.logs())
        return "".join(lines)

    def logs(self):
        logs = os.path.join(self.run_dir, "logs")
        found = []
        for name in sorted(os.listdir(logs)) if os.path.isdir(logs) else ():
            with open(os.path.join(logs, name), encoding="utf-8") as file:
                found.append(f"{name}: {file.read()[-2000:]}")
        return "\n".join(found)

    def evaluation(self):
        with open(os.path.join(self.run_dir, "model", "eval", "metrics.jsonl"), encoding="utf-8") as file:
            return [json.loads(line) for line in file][-1]

    def test_with_scripts_of_arrays(self):
        for name, text in (("train.py", TRAIN), ("evaluate.py", EVALUATE)):
            self.path_of(f"data/{name}", text)
        self.path_of("data/train", "x " * 16)
        looked_at = os.path.join(self.data, "looked_at")
        os.mkfifo(looked_at)

        def look():
            with open(looked_at, "w", encoding="utf-8"):
                os.rename(looked_at, f"{looked_at}.before")
                self.path_of("data/looked_at", "")

        with open(MANIFEST, encoding="utf-8") as file:
            documents = list(yaml.safe_load_all(file))
        for replica_type, script in (("Worker", "train.py"), ("Evaluator", "evaluate.py")):
            (pod,) = documents[-1]["spec"]["tfReplicaSpecs"][replica_type]["template"]["spec"]["containers"]
            self.assertEqual(pod["command"], ["python3", f"/opt/keelson/examples/{script}"])
            pod.update(image="own", command=[sys.executable, f"/data/{script}"])
        path = self.path_of("job.json", json.dumps({"apiVersion": "v1", "kind": "List", "items": documents}))
        output = self.run_manifest(path, self.of_data, "--dashboard_port=0", "--image=own=as-is", on_page=look)
        self.assertIn("job pytorch-mnist succeeded, final step 80", output)
        self.assertTrue(os.path.exists(f"{looked_at}.before"), output)
        evaluation = self.evaluation()
        self.assertEqual((evaluation["step"], evaluation["examples"]), (80, 16))
        # It is 4.2 at first; how far 80 asynchronous steps get depends on how their gradients meet.
        self.assertLess(evaluation["loss"], 0.5)

    def write_digits(self):
        try:
            import torch  # noqa: F401
            from torch_programs_test import make_digits, write_idx
        except ImportError:
            self.skipTest("no package torch")
        write_idx(self.data, "train", *make_digits(2000, 0))
        write_idx(self.data, "t10k", *make_digits(500, 1))

    def test_a_pytorchjob_without_servers(self):
        self.write_digits()
        output = self.run_manifest(WITHOUT_SERVERS, self.of_data)
        self.assertIn("job pytorchjob-mnist succeeded", output)
        model_dir = os.path.join(self.run_dir, "volumes", "pytorchjob-mnist-model")
        with open(os.path.join(model_dir, "status.json"), encoding="utf-8") as file:
            status = json.load(file)
        # Five epochs of steps of three batches of 64.
        self.assertEqual((status["step"], status["phase"]), (55, "DONE"))
        self.assertEqual(sorted(shard["host"] for shard in status["servers"]), ["chief-0", "worker-0", "worker-1"])

    def test_torchrun_on_the_nodes_of_a_trainjob(self):
        try:
            import torch  # noqa: F401
        except ImportError:
            self.skipTest("no package torch")
        script = self.write("line.py", UNDER_TORCHRUN.format(self.directory, BINARIES))
        words = [sys.executable, "-m", "torch.distributed.run", "--redirects=1", "--tee=1", script]
        trainer = f"numNodes: 2\nnumProcPerNode: 2\ncommand: [{', '.join(words)}]"
        path = self.path_of("job.yaml", trainjob_text.documents(trainjob_text.runtime(), trainjob_text.train_job(trainer)))
        output = self.run_manifest(path, "--run_commands", "--follow=all")
        self.assertEqual(output.count("the end is at epoch 10.0"), 4, output)
        state = load_state_dict(os.path.join(self.directory, "model"))
        # A step has the 16 records of four batches.
        self.assertEqual(state.step, 40)
        self.assertAlmostEqual(state["w"].data.cast("f")[0], -0.01 * 40 * 31.5, delta=1e-4)

    def test_as_it_is(self):
        self.write_digits()
        output = self.run_manifest(MANIFEST, self.of_data, "--dashboard_port=0")
        self.assertIn("job pytorch-mnist succeeded, final step 160", output)
        evaluation = self.evaluation()
        self.assertEqual((evaluation["step"], evaluation["examples"]), (160, 500))
        self.assertGreaterEqual(evaluation["accuracy"], 0.97)


if __name__ == "__main__":
    unittest.main()
