"""Scripts with arrays on Keelson's own programs."""

import importlib.util
import json
import math
import os
import shutil
import subprocess
import sys
import unittest

import support
from real_job import BINARIES, DEADLINE_SECONDS, RealJobTest, free_ports
from script_cluster import ScriptCluster

import keelson

RECORDS = 16
# Fits a line to 2 x + 1 at the points 0, 1/16, ...
SCRIPT = """
import keelson
with keelson.join("line", variables={"w": [0.0], "b": 0.0}, optimizer=keelson.OPTIMIZER, records=16, seed=3,
                  ARGUMENTS) as job:
    first = job.global_step
    for step in job.steps():
        w, b = job.values["w"][0], job.values["b"].tolist()
        errors = [(r / 16, w * r / 16 + b - (2 * r / 16 + 1)) for r in step.records]
        loss = sum(e * e for _, e in errors) / len(errors)
        gradients = {"w": [2 * sum(e * x for x, e in errors) / len(errors)], "b": 2 * sum(e for _, e in errors) / len(errors)}
        assert step.push(gradients, loss)
        print(step.number, *step.records, flush=True)
        DO
print("end", first, job.global_step, job.values["w"][0], job.values["b"].tolist())
"""


# The same, evaluated at the points between.
EVALUATED = """
import keelson
def scores(values, records):
    xs = [(r + 0.5) / 16 for r in records]
    return [values["w"][0] * x + values["b"].tolist() for x in xs], [2 * x + 1 for x in xs]
with keelson.join("line", variables={"w": [0.0], "b": 0.0}, optimizer=keelson.Momentum(lr=0.2), records=16, batch_size=4,
                  epochs=40, model_dir=MODEL_DIR, evaluation=keelson.Evaluation(metrics=["mean_squared_error"])) as job:
    keelson.Evaluator(job, scores, records=16, kind="regression", batch_size=5).start()
    for step in job.steps():
        w, b = job.values["w"][0], job.values["b"].tolist()
        errors = [(r / 16, w * r / 16 + b - (2 * r / 16 + 1)) for r in step.records]
        step.push({"w": [2 * sum(e * x for x, e in errors) / len(errors)], "b": 2 * sum(e for _, e in errors) / len(errors)},
                  sum(e * e for _, e in errors) / len(errors))
        if step.number == 4:
            saved = job.save()
            job.log("twice", 2.0)
    assert job.save() == 160
    given, wanted = scores(job.values, range(16))
    print(saved, sum((a - b) ** 2 for a, b in zip(given, wanted)) / 16)
"""


# A server and a client of gRPC in the script's own process, and children that it forks.
BESIDE_GRPC = """
import concurrent.futures, os, sys
IMPORTS

class Echo(grpc.GenericRpcHandler):
    def service(self, call):
        return grpc.unary_unary_rpc_method_handler(lambda request, context: request)

server = grpc.server(concurrent.futures.ThreadPoolExecutor(2))
server.add_generic_rpc_handlers([Echo()])
channel = grpc.insecure_channel(f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}")
server.start()
message = google.protobuf.descriptor_pb2.FileDescriptorProto(name="it")
echo = channel.unary_unary("/s/echo", lambda m: m.SerializeToString(), google.protobuf.descriptor_pb2.FileDescriptorProto.FromString)
with keelson.join("line", variables={"w": [0.0]}, optimizer=keelson.Sgd(lr=0.1), records=16, batch_size=4, max_steps=8,
                  model_dir=MODEL_DIR) as job:
    for step in job.steps():
        assert echo(message, timeout=60).name == "it"
        child = os.fork()
        if child == 0:
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        if "tensorflow" in sys.modules:
            assert float(tensorflow.reduce_sum(tensorflow.constant([1.0, 2.0]))) == 3.0
        assert step.push({"w": [1.0]}, loss=1.0)
server.stop(None)
print("ended at", job.global_step)
"""


def scores(values, records):
    xs = [(record + 0.5) / 16 for record in records]
    return [values["w"][0] * x + values["b"].tolist() for x in xs], [2 * x + 1 for x in xs]


class ProgramsTest(RealJobTest):
    def script(self, arguments, do="pass", optimizer="Momentum(lr=0.2)"):
        arguments = {"model_dir": self.model_dir, "batch_size": 4, **arguments}
        text = ", ".join(
            f"{name}={value if name == 'consistency' else repr(value)}" for name, value in arguments.items()
        )
        return self.write(
            "train.py", SCRIPT.replace("OPTIMIZER", optimizer).replace("ARGUMENTS", text).replace("DO", do)
        )

    def run_script(self, arguments, **environment):
        """The records of each step, and the words of the last line."""
        with self.start(self.script(arguments), **environment) as process:
            output, errors = process.communicate(timeout=DEADLINE_SECONDS)
        self.assertEqual(process.returncode, 0, errors)
        *steps, last = output.splitlines()
        return [[int(n) for n in line.split()[1:]] for line in steps], last.split()[1:]

    def values(self):
        state = keelson.load_state_dict(self.model_dir)
        return state["w"].elements()[0], state["b"].elements().tolist()

    def test_a_line_is_fitted(self):
        steps, (first, last, w, b) = self.run_script({"epochs": 40, "batch_size": 5, "debug": True})
        self.assertEqual([len(records) for records in steps], [5, 5, 5, 1] * 40)
        for epoch in range(40):
            self.assertEqual(sorted(sum(steps[4 * epoch : 4 * epoch + 4], [])), list(range(RECORDS)))
        self.assertEqual((first, last), ("0", "160"))
        self.assertAlmostEqual(float(w), 2, delta=0.05)
        self.assertAlmostEqual(float(b), 1, delta=0.05)
        self.assertEqual(self.values(), (float(w), float(b)))
        self.assert_nothing_runs()

    def test_rows_of_a_table_are_trained(self):
        """Adagrad with a gradient of row - record number, for each id by itself: as computed here. With rounds, too, and
        beside a table of which no row is asked for."""
        for consistency in (keelson.Async(), keelson.Sync(1)):
            rows = {record % 5: [0.5, 0.0] for record in range(RECORDS)}  # the value, and the sum of squares
            given = {"records": RECORDS, "batch_size": 4, "max_steps": 32, "model_dir": self.model_dir}
            table = keelson.Table(1, keelson.Adagrad(lr=0.5), init=0.5)
            with keelson.join("rows", tables={"ids": table, "others": keelson.Table(3)},
                              variables={"w": [1.0]}, optimizer=keelson.Sgd(lr=0.1), consistency=consistency,
                              **given) as job:  # fmt: skip
                for step in job.steps():
                    ids = [record % 5 for record in step.records]
                    found = step.rows("ids", ids)
                    gradient = [[0.0] for _ in set(ids)]
                    sums = dict.fromkeys(ids, 0.0)
                    for record, one, position in zip(step.records, ids, found.positions):
                        self.assertAlmostEqual(found.values[position, 0], rows[one][0], delta=1e-5)
                        gradient[position][0] += found.values[position, 0] - record
                        sums[one] += rows[one][0] - record
                    for one, g in sums.items():
                        rows[one][1] += g * g
                        rows[one][0] -= 0.5 * g / (rows[one][1] ** 0.5 + 1e-10) if g else 0
                    none = {"others": []} if step.number % 2 else {}
                    self.assertEqual(step.rows("others", []).values.shape, (0, 3))
                    self.assertTrue(step.push({"w": [0.0], "ids": gradient, **none}, 0.5))
            keys, values = keelson.load_state_dict(self.model_dir).tables["ids"]
            self.assertEqual(sorted(keys.data.cast("q")), [0, 1, 2, 3, 4])
            for one, value in zip(keys.data.cast("q"), values.elements().tolist()):
                self.assertAlmostEqual(value[0], rows[one][0], delta=1e-5)
            shutil.rmtree(self.model_dir)
        self.assert_nothing_runs()

    def test_a_loss_that_is_not_finite_and_one_that_grows_end_the_job(self):
        for loss_of, words in (
            (lambda step: math.nan, r"^the training loss is not finite near step \d+; lower lr, or bound the gradients: clip_grad_norm_"),
            (lambda step: 10.0 ** (8 * step), r"^training has diverged near step \d+: the mean .*, expected at most .*; lower lr"),
        ):
            given = {"records": RECORDS, "batch_size": 4, "max_steps": 8, "model_dir": self.model_dir}
            with self.subTest(words=words), self.assertRaisesRegex(keelson.Diverged, words) as raised:
                with keelson.join("line", variables={"w": [0.0]}, optimizer=keelson.Sgd(lr=0.1), **given) as job:
                    for step in job.steps():
                        step.push({"w": [1.0]}, loss_of(step.number))
            self.assertEqual(raised.exception.exit_code, 2)
            self.assert_nothing_runs()
            shutil.rmtree(self.model_dir)

    def test_a_script_evaluates_its_job(self):
        self.needs("evaluator")

        def evaluations():
            with open(os.path.join(self.model_dir, "eval", "metrics.jsonl"), encoding="utf-8") as file:
                return [json.loads(line) for line in file]

        script = self.write("train.py", EVALUATED.replace("MODEL_DIR", repr(self.model_dir)))
        with self.start(script) as process:
            output, errors = process.communicate(timeout=DEADLINE_SECONDS)
        self.assertEqual(process.returncode, 0, errors)
        self.assertRegex(errors, r"keelson: the page of the evaluation: http://127\.0\.0\.1:\d+/")
        saved, loss = output.split()
        steps = {evaluation["step"]: evaluation for evaluation in evaluations()}
        self.assertIn(160, steps)
        self.assertIn(int(saved), {5, *steps})
        self.assertAlmostEqual(steps[160]["loss"], float(loss), delta=1e-5)
        self.assertEqual(steps[160]["loss"], steps[160]["mean_squared_error"])
        self.assertEqual(steps[160]["examples"], 16)
        with open(os.path.join(self.model_dir, "eval", "reports", "160.json"), encoding="utf-8") as file:
            self.assertEqual(json.load(file)["kind"], "regression")
        with open(os.path.join(self.model_dir, "status.json"), encoding="utf-8") as file:
            self.assertEqual(json.load(file)["logged"], {"twice": 2.0})
        self.assert_nothing_runs()
        # Once more, of a job that is done, which nobody but the evaluation runs.
        os.rename(os.path.join(self.model_dir, "eval"), os.path.join(self.model_dir, "eval-before"))
        keelson.Evaluator(self.model_dir, scores, records=16, kind="regression", page=None).run()
        again = {evaluation["step"]: evaluation for evaluation in evaluations()}
        self.assertEqual(again[160]["loss"], steps[160]["loss"])

    def test_a_script_has_other_users_of_grpc_and_protobuf(self):
        """Imported before the package or after it, with calls and forks while the job runs. TensorFlow, too, where it is."""
        if importlib.util.find_spec("grpc") is None:
            self.skipTest("no package grpc")
        others = "import grpc, google.protobuf.descriptor_pb2\n"
        if importlib.util.find_spec("tensorflow") is not None:
            others += "import tensorflow\n"
        for imports in (f"{others}import keelson", f"import keelson\n{others}"):
            text = BESIDE_GRPC.replace("IMPORTS", imports).replace("MODEL_DIR", repr(self.model_dir))
            with self.subTest(imports=imports), self.start(self.write("beside.py", text)) as process:
                output, errors = process.communicate(timeout=DEADLINE_SECONDS)
                self.assertEqual((process.returncode, output), (0, "ended at 8\n"), errors)
            self.assert_nothing_runs()
            shutil.rmtree(self.model_dir)

    def test_a_job_is_gone_on_with(self):
        steps, (_, _, w, b) = self.run_script({"max_steps": 10})
        # It is done: nothing is computed, and the values are there.
        self.assertEqual(self.run_script({"max_steps": 10}), ([], ["10", "10", w, b]))
        more, (first, last, _, _) = self.run_script({"max_steps": 14})
        self.assertEqual((len(more), first, last), (4, "10", "14"))
        whole = sum((steps + more)[8:12], [])
        self.assertEqual(sorted(whole), list(range(RECORDS)))
        self.assertEqual(keelson.load_state_dict(self.model_dir).step, 14)
        self.assertEqual(keelson.load_state_dict(self.model_dir, step=10).step, 10)
        with self.assertRaisesRegex(keelson.Error, "keelson_ckpt export: "):
            keelson.load_state_dict(self.model_dir, step=11)
        with self.assertRaises(keelson.JoinError):
            keelson.join("line", variables={"w": [0.0, 0.0], "b": 0.0}, optimizer=keelson.Sgd(lr=1), records=16,
                         batch_size=4, max_steps=20, model_dir=self.model_dir).__enter__()  # fmt: skip
        self.assert_nothing_runs()

    def test_a_job_begins_with_a_saved_model(self):
        keelson.save(self.model_dir, {"w": [2.0], "b": 1.0}, step=4)
        steps, words = self.run_script({"max_steps": 5})
        self.assertEqual((len(steps), words), (1, ["4", "5", "2.0", "1.0"]))

    def test_a_killed_script_leaves_nothing_behind(self):
        script = self.script({"max_steps": 1_000_000}, "step.number == 20 and sys.stdin.read()")
        with self.start(script) as process:
            while not process.stdout.readline().startswith("20 "):
                self.assertIsNone(process.poll())
            self.assertEqual(len(self.processes()), 3)
            process.kill()
        self.assert_nothing_runs()
        # What it had done is in a snapshot.
        self.assertEqual(keelson.load_state_dict(self.model_dir).step, 21)

    def test_scripts_are_the_workers_of_a_tfjob(self):
        # A momentum as high as elsewhere diverges with gradients that are a step old.
        script = self.script({"epochs": 20}, optimizer="Sgd(lr=0.2)")

        def replicas(count, image, *command, env=()):
            container = {"name": "tensorflow", "image": image, "command": command, "env": env}
            template = {"spec": {"containers": [container]}}
            return {"replicas": count, "restartPolicy": "ExitCode", "template": template}

        env = [{"name": "KEELSON_BINARY_DIR", "value": BINARIES}]
        specs = {
            "Chief": replicas(1, "keelson", "chief"),
            "PS": replicas(2, "keelson", "ps_server"),
            "Worker": replicas(2, "my-pytorch", sys.executable, script, env=env),
        }
        job = {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": {"name": "line"}}
        manifest = self.path_of("job.json", json.dumps({**job, "spec": {"tfReplicaSpecs": specs}}))
        run = subprocess.run(
            [
                os.path.join(support.REPOSITORY, "deploy", "tfjob_local.py"), manifest, "--image=my-pytorch=as-is",
                f"--bin_dir={BINARIES}", f"--model_dir={self.model_dir}", "--config=script",
                f"--run_dir={self.directory}/run", "--dashboard_port=none",
            ],
            env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=DEADLINE_SECONDS,
        )  # fmt: skip
        self.assertIn("job line succeeded, final step 80", run.stdout, run.stderr)
        w, b = self.values()
        self.assertAlmostEqual(w, 2, delta=0.3)
        self.assertAlmostEqual(b, 1, delta=0.2)

    def test_scripts_whose_model_does_not_fit_the_one_that_is_there_hear_of_it(self):
        self.run_script({"max_steps": 2})
        other = self.write("other.py", SCRIPT.replace('"w": [0.0]', '"w": [0.0, 0.0]').replace("OPTIMIZER", "Sgd(lr=0.1)").replace(
            "ARGUMENTS", f"max_steps=9, batch_size=4, model_dir={self.model_dir!r}").replace("DO", "pass"))  # fmt: skip
        with ScriptCluster(self, other, 2) as cluster:
            self.assertEqual([cluster.wait("worker", n) for n in range(2)], [2, 2], cluster.logs())
            self.assertEqual(cluster.wait("chief"), 2, cluster.logs())
            for n in range(2):
                self.assertRegex(cluster.logs(), r"keelson\.JoinError: .*w.*: expected .*, found .*")

    def test_a_cluster_that_is_run_again_has_nothing_to_do(self):
        """Its scripts say so to the chief, which need not wait whether one wants more."""
        script = self.script({"max_steps": 4})
        said = []  # in each run; the logs go on
        for run in range(2):
            with ScriptCluster(self, script, 2) as cluster:
                codes = [cluster.wait(role, n) for role, n in (("worker", 0), ("worker", 1), ("ps", 0), ("chief", 0))]
                self.assertEqual(codes, [0] * 4, cluster.logs())
            # One script may do all steps before the other one comes, and the other one may come while the chief looks
            # at the job that is done, and join it.
            said.append(cluster.logs().count("the job line is done at step 4: nothing is left to train") - sum(said))
            self.assertIn(said[-1], (run, run + 1), cluster.logs())
            self.assertEqual(cluster.logs().count("nothing was left to train: the job is done since an earlier run"), run)
        self.assertNotIn("no script has come", cluster.logs())

    def test_a_script_serves_the_metrics_of_a_worker(self):
        scrape = (
            "import http.client, os; client = http.client.HTTPConnection('127.0.0.1', int(os.environ['KEELSON_METRICS_PORT'])); "
            "client.request('GET', '/metrics'); page = client.getresponse().read().decode(); client.close(); "
            "print(*[line for line in page.splitlines() if line.startswith(('keelson_worker_steps', 'keelson_worker_dev'))], "
            "sep='\\n')"
        )
        self.environment["KEELSON_METRICS_PORT"] = str(free_ports(1)[0])
        with ScriptCluster(self, self.script({"max_steps": 3}, f"if step.number == 2: {scrape}"), 1) as cluster:
            self.assertEqual([cluster.wait(role) for role in ("worker", "chief")], [0, 0], cluster.logs())
            told = [line for line in cluster.lines() if line.startswith("keelson_")]
        self.assertIn("keelson_worker_steps_total 3", told)
        self.assertRegex(told[0], r'^keelson_worker_device_info\{device="python 3\.\d+\.\d+"\} 1$')

    def test_two_scripts_of_a_cluster_are_one_with_larger_batches(self):
        self.run_script({"batch_size": 8, "max_steps": 10})
        expected = self.values()
        self.model_dir += "-of-two"
        script = self.script({"max_steps": 10, "consistency": "keelson.Sync(2)", "debug": True})
        with ScriptCluster(self, script, 2) as cluster:
            self.assertEqual([cluster.wait("worker", n) for n in range(2)], [0, 0], cluster.logs())
            steps = [line.split() for n in range(2) for line in cluster.lines(n) if not line.startswith("end")]
            self.assertEqual([cluster.wait(role) for role in ("ps", "chief")], [0, 0], cluster.logs())
        self.assertEqual(sorted(int(words[0]) for words in steps), sorted([*range(10)] * 2))
        records = [int(word) for words in steps for word in words[1:]]
        self.assertEqual(sorted(records), sorted([*range(RECORDS)] * 5))
        for found, wanted in zip(self.values(), expected):
            self.assertAlmostEqual(found, wanted, delta=1e-5 * abs(wanted))
        self.assert_nothing_runs()


if __name__ == "__main__":
    unittest.main()
