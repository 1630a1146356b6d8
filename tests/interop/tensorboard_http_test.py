"""What the real TensorBoard shows of Keelson's runs, asked by its own HTTP interface.

Skipped where Python has no tensorboard; tests/interop/run.sh makes an environment that has it. Needs
the release build's programs, in $KEELSON_BINARY_DIR or build/release/bin.
"""

import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request

import programs

TIMEOUT_SECONDS = 120
HAS_TENSORBOARD = importlib.util.find_spec("tensorboard") is not None
CONFIG = """
model {
  name: "small" input_shape: [28, 28, 1]
  layers { flatten {} }
  layers { name: "out" dense { units: 10 } }
  loss { kind: SOFTMAX_CROSS_ENTROPY }
}
optimizer { OPTIMIZER }
learning_rate { base: RATE }
train { batch_size: 10 max_steps: STEPS summary_steps: 10 histogram_steps: 20 seed: 3 }
checkpoint { save_steps: 40 keep_max: 10 }
evaluation { metrics { accuracy {} } }
data { generated { train_records: 200 eval_records: 50 } }
"""


def train(folder, name, optimizer="sgd {}", rate="0.01", steps=80, exit_code=0):
    config = os.path.join(folder, f"{name}.textproto")
    text = CONFIG.replace("OPTIMIZER", optimizer).replace("RATE", rate).replace("STEPS", str(steps))
    with open(config, "w", encoding="utf-8") as file:
        file.write(text)
    model = os.path.join(folder, "logs", name)
    flags = (f"--config={config}", f"--model_dir={model}")
    programs.run("chief", *flags, exit_code=exit_code, timeout=TIMEOUT_SECONDS)
    return model


class TensorBoard:
    """A server for a folder of runs, without its data server: that one follows several files."""

    def __init__(self, logs):
        self.log = tempfile.NamedTemporaryFile("w+")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tensorboard.main", f"--logdir={logs}", "--port=0", "--host=127.0.0.1",
             "--load_fast=false", "--reload_interval=1"],
            stdout=self.log,
            stderr=subprocess.STDOUT,
        )  # fmt: skip
        self.address = ""
        self.wait(self.find_address)

    def find_address(self):
        with open(self.log.name, encoding="utf-8") as file:
            found = re.search(r"http://127\.0\.0\.1:\d+", file.read())
        self.address = found.group(0) if found else ""
        return bool(found)

    def wait(self, condition):
        until = time.monotonic() + TIMEOUT_SECONDS
        while not condition():
            if time.monotonic() > until or self.process.poll() is not None:
                with open(self.log.name, encoding="utf-8") as file:
                    raise AssertionError(file.read())
            time.sleep(0.2)

    def get(self, path, body=None, **query):
        url = f"{self.address}/data/{path}?{urllib.parse.urlencode(query)}"
        data = json.dumps(body).encode() if body is not None else None
        request = urllib.request.Request(url, data=data, headers={"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as answer:
            return json.load(answer)

    def scalars(self, run, tag):
        """[step, value] by step; none while the run is not loaded."""
        try:
            return [(step, value) for _, step, value in self.get("plugin/scalars/scalars", run=run, tag=tag)]
        except urllib.error.HTTPError:
            return []

    def end(self):
        self.process.terminate()
        self.process.wait()
        self.log.close()


@unittest.skipUnless(HAS_TENSORBOARD, "needs tensorboard: see tests/interop/run.sh")
class TensorBoardHttpTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.logs = os.path.join(folder.name, "logs")
        train(folder.name, "a")
        train(folder.name, "b", optimizer="momentum { momentum: 0.5 }", rate="0.02")
        train(folder.name, "diverged", rate="1e30", exit_code=2)
        # The job continues from an earlier step than it had reported.
        resumed = train(folder.name, "resumed", steps=120)
        for name in os.listdir(resumed):
            if name == "DONE" or name.startswith("model.ckpt-120"):
                os.remove(os.path.join(resumed, name))
        state = os.path.join(resumed, "checkpoint")
        with open(state, encoding="utf-8") as file:
            kept = [line for line in file.read().splitlines() if "timestamp" not in line and "120" not in line]
        kept = [line for line in kept if line.startswith("all_")]
        kept.insert(0, kept[-1].removeprefix("all_").replace("paths", "path"))
        with open(state, "w", encoding="utf-8") as file:
            file.write("\n".join(kept) + "\n")
        train(folder.name, "resumed", steps=120)
        cls.board = TensorBoard(cls.logs)
        cls.addClassCleanup(cls.board.end)
        cls.board.wait(lambda: len(cls.board.scalars("resumed", "loss")) >= 12)
        cls.board.wait(lambda: len(cls.board.scalars("b/eval", "accuracy")) >= 3)

    def test_a_job_has_two_runs(self):
        runs = self.board.get("runs")
        self.assertEqual(
            sorted(runs),
            sorted([name + run for name in ("a", "b", "diverged", "resumed") for run in ("", "/eval")]),
        )
        tags = self.board.get("plugin/histograms/tags")
        self.assertIn("gradients/out/kernel", tags["a"])
        self.assertIn("weights/out/kernel", tags["a/eval"])

    def test_a_resume_shows_one_curve(self):
        steps = [step for step, _ in self.board.scalars("resumed", "loss")]
        self.assertEqual(steps, list(range(10, 121, 10)))

    def test_no_point_is_without_a_number(self):
        for run, tags in self.board.get("plugin/scalars/tags").items():
            for tag in tags:
                for step, value in self.board.scalars(run, tag):
                    if not run.startswith("diverged"):
                        self.assertIsInstance(value, (int, float), f"{run} {tag} {step}")
                        self.assertEqual(value, value, f"{run} {tag} {step}")

    def test_hparams_differ_and_have_states_and_metrics(self):
        experiment = self.board.get("plugin/hparams/experiment", {"experimentName": ""})
        differing = {info["name"] for info in experiment["hparamInfos"] if info.get("differs")}
        self.assertLessEqual({"optimizer", "learning_rate"}, differing)
        metrics = {(info["name"].get("group", ""), info["name"]["tag"]) for info in experiment["metricInfos"]}
        self.assertLessEqual({("", "loss"), ("eval", "accuracy")}, metrics)
        sessions = self.board.get(
            "plugin/hparams/session_groups",
            {
                "experimentName": "",
                "allowedStatuses": ["STATUS_SUCCESS", "STATUS_FAILURE", "STATUS_RUNNING", "STATUS_UNKNOWN"],
                "colParams": [],
                "startIndex": 0,
                "sliceSize": 100,
            },
        )
        states = {group["sessions"][0]["name"]: group["sessions"][0]["status"] for group in sessions["sessionGroups"]}
        self.assertEqual(
            states,
            {
                "a": "STATUS_SUCCESS",
                "b": "STATUS_SUCCESS",
                "diverged": "STATUS_FAILURE",
                "resumed": "STATUS_SUCCESS",
            },
        )


if __name__ == "__main__":
    unittest.main()
