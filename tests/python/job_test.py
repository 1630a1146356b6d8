"""join() and what it starts, with programs of the tests' own in place of Keelson's: fake_programs."""

import json
import os
import signal
import struct
import subprocess
import sys
import textwrap
import time
import unittest
from unittest import mock

import support
from fake_job import DEADLINE_SECONDS, FakeJobTest

import keelson
from keelson import safetensors

DIVERGED = "the chief has given up: the training loss is not finite near step 3; advice"
# Adds 1 to each element of w with each step.
SCRIPT = """
import os, sys
sys.path.insert(0, PACKAGES)
import keelson
with keelson.join("line", variables={"w": [1.0, 2.0]}, optimizer=keelson.Sgd(lr=1.0), records=10, batch_size=2,
                  max_steps=5, model_dir=MODEL_DIR) as job:
    for step in job.steps():
        BODY
        step.push({"w": [-1.0, -1.0]}, loss=0.5)
    print(job.values["w"].tolist(), job.global_step)
"""


class JobTest(FakeJobTest):
    def start_script(self, body="pass", **options):
        script = SCRIPT.replace("PACKAGES", repr(support.PACKAGES)).replace("MODEL_DIR", repr(self.model_dir))
        path = os.path.join(self.directory, "train.py")
        with open(path, "w", encoding="utf-8") as file:
            file.write(script.replace("BODY", textwrap.indent(body, " " * 8).strip()))
        return support.Script(path, **options)

    def test_a_job_from_its_beginning_to_its_end(self):
        with self.join() as job:
            self.assertEqual((job.max_steps, job.global_step), (5, 0))
            records, values = [], []
            for step in job.steps():
                self.assertEqual(step.weight, 2)
                records += step.records
                values.append(job.values["w"].tolist())
                self.assertTrue(step.push({"w": [-1.0, -2.0]}, loss=0.25))
            self.assertEqual(records, list(range(10)))
            self.assertEqual(values, [[1.0 + n, 2.0 + 2 * n] for n in range(5)])
            self.assertEqual((job.global_step, job.epoch), (5, 1.0))
        self.assertEqual(job.values["w"].tolist(), [6.0, 12.0])
        self.assertEqual(self.events()["events"][-1], ["leave"])
        self.assertRegex(self.events()["computes"], r"^python 3\.")
        self.assertIn("started chief and ps_server of line; logs in", self.stderr.getvalue())
        self.assertNotIn("stopped", self.log("chief"))
        self.assert_nothing_runs()

    def test_values_are_views_that_nobody_writes_to(self):
        with self.join() as job:
            values = job.values
            with self.assertRaises(TypeError):
                values["w"][0] = 5
            for step in job.steps():
                before = values["w"]
                step.push({"w": [1.0, 0.0]}, loss=0)
                self.assertEqual(before.tolist(), values["w"].tolist())
            self.assertEqual((list(values), len(values)), (["w"], 1))

    def test_the_cluster_knows_itself_by_tf_config(self):
        with self.join() as job:
            list(job.steps())
        self.assertRegex(self.log("chief"), r'started --config=script --model_dir=\S+ 64 {"cluster":')
        for role, text in (
            ("chief", self.log("chief")),
            ("ps", self.log("ps")),
            ("worker", self.events()["environment"]),
        ):
            told = json.loads(text[text.index('{"cluster"') : text.rindex("}") + 1])
            self.assertEqual(told["task"], {"type": role, "index": 0})
            self.assertEqual(sorted(told["cluster"]), ["chief", "ps", "worker"])
            ports = {address.rpartition(":")[2] for (address,) in told["cluster"].values()}
            self.assertEqual(len(ports), 3)

    def test_a_step_without_a_push_is_skipped(self):
        with self.join() as job:
            for step in job.steps():
                if step.number % 2 == 0:
                    step.push({"w": [1.0, 1.0]}, loss=0.5)
        kinds = [event[0] for event in self.events()["events"] if event[0] in ("step", "skip")]
        self.assertEqual(kinds, ["step", "skip", "step", "skip", "step"])

    def test_a_variable_may_have_no_gradient_in_a_step(self):
        with self.join(variables={"w": [1.0, 2.0], "v": [0.0]}) as job:
            for step in job.steps():
                step.push({"w": [1.0, 1.0], "v": [2.0] if step.number % 2 == 0 else None}, loss=0.5)
        self.assertEqual((job.values["w"].tolist(), job.values["v"].tolist()), ([-4.0, -3.0], [-6.0]))

    def test_gradients_are_checked(self):
        with self.join(transfer=keelson.Transfer(reject_non_finite=True)) as job:
            for step in job.steps():
                for gradients, words in (
                    ({}, "gradients: expected one of each variable, found none of ['w']"),
                    ({"w": [1.0, 2.0], "v": 1.0}, "gradients: expected those of ['w'], found also ['v']"),
                    ({"w": [1.0]}, "gradient of w: expected [2], found [1]"),
                    ({"w": "text"}, "gradient of w: expected an array of float32, found str"),
                    ({"w": [1.0, float("nan")]}, "gradient of w: expected finite elements, found one that is not"),
                ):
                    with self.assertRaises(keelson.BadGradient) as raised:
                        step.push(gradients, loss=1)
                    self.assertEqual(str(raised.exception), words)
                step.push({"w": [1.0, 2.0]}, loss=1)
                with self.assertRaisesRegex(RuntimeError, "expected one push, found another one"):
                    step.push({"w": [1.0, 2.0]}, loss=1)
        self.assertEqual(job.values["w"].tolist(), [1.0 - 5, 2.0 - 10])

    def test_leaving_early_stops_the_cluster(self):
        with self.join() as job:
            for step in job.steps():
                step.push({"w": [1.0, 1.0]}, loss=0.5)
                break
        self.assertIn("stopped", self.log("chief"))
        self.assertIn("stopped", self.log("ps"))
        self.assert_nothing_runs()

    def test_training_is_ended(self):
        with self.join() as job:
            for step in job.steps():
                step.push({"w": [1.0, 1.0]}, loss=0.5)
                job.end("good enough")
        self.assertIn(["end", "good enough"], self.events()["events"])
        self.assertLess(job.global_step, 5)

    def test_a_script_logs_values_of_its_own(self):
        with self.join() as job:
            for step in job.steps():
                if step.number == 1:
                    job.log("accuracy of the batch", 0.5)
                    job.log("später", float("nan"), step=0)
                step.push({"w": [-1.0, -2.0]}, loss=0.25)
            for bad in ("", "two\nlines", "x" * 101, "loss", "speed/mine", 7):
                with self.assertRaisesRegex(ValueError, "^name: expected "):
                    job.log(bad, 1.0)
        logged = [event for event in self.events()["events"] if event[0] == "log"]
        self.assertEqual(logged[0], ["log", "accuracy of the batch", 1, 0.5])
        self.assertEqual(logged[1][:3], ["log", "später", 0])

    def test_an_error_of_the_script_comes_through(self):
        with self.assertRaisesRegex(ZeroDivisionError, "mine"):
            with self.join() as job:
                for _ in job.steps():
                    raise ZeroDivisionError("mine")
        self.assertEqual(self.events()["events"][-1], ["leave"])
        self.assert_nothing_runs()

    def test_without_a_model_directory_nothing_is_left(self):
        with self.join(model_dir=None) as job:
            for step in job.steps():
                step.push({"w": [1.0, 1.0]}, loss=0.5)
        self.assertEqual(os.listdir(self.directory), [])

    def test_a_job_that_is_done_has_its_last_values(self):
        path = os.path.join(self.directory, "state.safetensors")
        tensors = {"w": safetensors.Tensor("F32", (2,), memoryview(struct.pack("<2f", 8, 9)))}
        safetensors.write(path, tensors, {"global_step": "5"})
        with mock.patch.dict(os.environ, {"KEELSON_TEST_STATE": path}):
            for plan in ({"is_done": True}, {"ends_at_once": True}):
                with self.join(plan=plan) as job:
                    self.assertEqual([step.number for step in job.steps()], [])
                    self.assertEqual((job.values["w"].tolist(), job.global_step), ([8.0, 9.0], 5))
                self.assertIn("keelson: the job line is done at step 5: nothing is left to train; more epochs or max_", self.stderr.getvalue())
                self.stderr.truncate(0)
            with self.assertRaisesRegex(keelson.JoinError, r"w: expected \[1\], found \[2\]"):
                self.join(variables={"w": [1.0]}, plan={"is_done": True}).__enter__()
        with self.assertRaisesRegex(keelson.JoinError, "which is done, found keelson_ckpt export: no snapshot there"):
            self.join(plan={"is_done": True}).__enter__()

    def test_a_script_without_sight_of_the_model_of_a_job_that_is_done_has_nothing_to_do(self):
        os.environ["TF_CONFIG"] = '{"cluster":{},"task":{"type":"worker","index":0}}'
        for plan, model_dir in (({"is_done": True}, None), ({"ends_at_once": True}, os.path.join(self.directory, "not mounted"))):
            with self.assertRaises(SystemExit) as raised:
                with self.join(plan=plan, model_dir=model_dir):
                    self.fail("expected an end")
            self.assertEqual(raised.exception.code, 0)
            self.assertIn("keelson: the job line is done, and its model not in sight (model_dir): nothing is left to do\n",
                          self.stderr.getvalue())  # fmt: skip
            self.stderr.truncate(0)

    def test_initial_values(self):
        file = os.path.join(self.directory, "given.safetensors")
        tensors = {"w": safetensors.Tensor("F32", (2,), memoryview(bytes(8))),
                   "other": safetensors.Tensor("F32", (), memoryview(bytes(4)))}  # fmt: skip
        safetensors.write(file, tensors)
        for initial in (file, {"w": [0.0, 0.0]}):
            with self.join(variables={"w": [1.0, 2.0], "v": 3.0}, initial=initial) as job:
                self.assertEqual(job.values["w"].tolist(), [0.0, 0.0])
                self.assertEqual(job.values["v"].tolist(), 3.0)
                list(job.steps())
        for initial, words in (
            ({"v": 1.0}, "initial: expected values of w, found those of v"),
            ({"w": [1.0]}, r"initial: w: expected \[2\], found \[1\]"),
            (os.path.join(self.directory, "none.safetensors"), "initial: .*No such file"),
        ):
            with self.assertRaisesRegex(keelson.JoinError, words):
                self.join(initial=initial).__enter__()
        self.assert_nothing_runs()

    def test_a_missing_program_is_named(self):
        os.environ["KEELSON_BINARY_DIR"] = self.directory
        with self.assertRaisesRegex(keelson.JoinError, "^ps_server: expected Keelson's program in .*, found none$"):
            self.join().__enter__()

    def test_a_chief_that_fails_is_named_with_its_reason(self):
        os.environ["CHIEF_FAILS"] = "model.external: expected more"
        self.addCleanup(os.environ.pop, "CHIEF_FAILS")
        job = self.join(plan={"silent": True})
        with self.assertRaisesRegex(keelson.JoinError, r"chief ended with 2: model\.external: expected more$"):
            job.__enter__()
        self.assert_nothing_runs()

    def test_an_agent_that_dies_is_named_with_its_reason(self):
        with self.assertRaisesRegex(keelson.AgentLost, "keelson_agent ended with 138: this agent was told to die$"):
            with self.join(plan={"die_at": 1}) as job:
                for step in job.steps():
                    step.push({"w": [1.0, 1.0]}, loss=0.5)
        self.assert_nothing_runs()

    def test_in_a_cluster_too_an_agent_that_dies_is_named_with_its_reason(self):
        os.environ["TF_CONFIG"] = '{"cluster":{},"task":{"type":"worker","index":3}}'
        with self.assertRaisesRegex(keelson.AgentLost, "keelson_agent ended with 138: this agent was told to die$"):
            with self.join(plan={"die_at": 1}) as job:
                for step in job.steps():
                    step.push({"w": [1.0, 1.0]}, loss=0.5)
        self.assert_nothing_runs()

    def test_in_a_cluster_only_the_agent_is_started(self):
        os.environ["TF_CONFIG"] = '{"cluster":{},"task":{"type":"worker","index":3}}'
        with self.join() as job:
            for step in job.steps():
                step.push({"w": [1.0, 1.0]}, loss=0.5)
        self.assertEqual(self.events()["environment"], os.environ["TF_CONFIG"])
        self.assertNotIn("started chief", self.stderr.getvalue())
        self.assertEqual(os.listdir(os.path.join(self.model_dir, "script")), ["initial.safetensors"])

    def test_a_launcher_of_several_processes_has_one_job(self):
        with mock.patch.dict(os.environ, {"RANK": "1", "WORLD_SIZE": "2"}):
            with self.join() as job:
                list(job.steps())
        self.assertEqual((self.events()["environment"], self.events()["rank"]), (None, "1"))
        self.assertNotIn("started chief", self.stderr.getvalue())

    def test_without_servers_the_scripts_need_a_model_directory(self):
        with mock.patch.dict(os.environ, {"RANK": "1", "WORLD_SIZE": "2"}):
            expected = "^model_dir: expected a directory that all scripts of the job share, "
            with self.assertRaisesRegex(keelson.JoinError, expected):
                self.join(model_dir=None).__enter__()
            with self.assertRaisesRegex(keelson.JoinError, expected):
                self.join(model_dir=None, checkpoint_writer="servers").__enter__()
            with self.join(model_dir=None, checkpoint_writer="chief") as job:
                list(job.steps())
        self.assertEqual(self.events()["flags"].get("checkpoint_writer"), "chief")
        with mock.patch.dict(os.environ, {"RANK": "0", "WORLD_SIZE": "2"}):
            with self.assertRaisesRegex(keelson.JoinError, expected):
                self.join(model_dir=None, checkpoint_writer="chief").__enter__()
        self.assert_nothing_runs()

    def test_who_writes_snapshots_is_for_those_to_say_who_start_the_chief(self):
        with self.assertRaisesRegex(keelson.JoinError, "^checkpoint_writer: expected 'servers' or 'chief', found 'me'$"):
            self.join(checkpoint_writer="me")
        with self.join(checkpoint_writer="chief") as job:
            list(job.steps())
        self.assertIn("--checkpoint_writer=chief", self.log("chief"))
        self.assertNotIn("--checkpoint_writer", self.log("ps"))
        os.environ["TF_CONFIG"] = '{"cluster":{"ps":["a:1"],"worker":["b:1"]},"task":{"type":"worker","index":0}}'
        with self.assertRaisesRegex(keelson.JoinError, "^checkpoint_writer: expected none, as this job's chief is a program"):
            self.join(checkpoint_writer="chief").__enter__()
        self.assert_nothing_runs()

    def test_one_process_of_a_launcher_has_a_job_of_its_own(self):
        with mock.patch.dict(os.environ, {"RANK": "0", "WORLD_SIZE": "1"}):
            with self.join() as job:
                list(job.steps())
        self.assertIsNone(self.events()["rank"], "it would tell programs that they belong to a cluster without servers")
        self.assertIn("started chief", self.stderr.getvalue())

    def test_a_pod_asks_for_metrics_of_its_agent(self):
        asked = {"KEELSON_METRICS_PORT": "9090", "KEELSON_METRICS_ADDRESS": "::1", "KEELSON_METRICS_HOSTS": "a,b"}
        for environment, expected in (
            (asked, ["9090", "::1", "a,b"]),
            ({"KEELSON_METRICS_PORT": "0"}, ["0", None, None]),
            ({**asked, "KEELSON_METRICS_PORT": ""}, [None] * 3),
        ):
            with mock.patch.dict(os.environ, environment):
                with self.join() as job:
                    list(job.steps())
            told = self.events()["flags"]
            self.assertEqual([told.get(f"metrics_{what}") for what in ("port", "address", "hosts")], expected)
            self.assertNotIn("metrics_port", self.log("chief"))
            os.remove(os.path.join(self.model_dir, "over"))

    def test_the_job_needs_a_model_and_a_with_block(self):
        with self.assertRaises(TypeError):
            keelson.join("line", variables={"w": 1.0}, records=1, batch_size=1, epochs=1)
        with keelson.join("line", records=1, batch_size=1, epochs=1) as job:
            with self.assertRaisesRegex(RuntimeError, "expected a job with a model"):
                list(job.steps())

    def test_before_it_has_a_model_a_job_is_as_far_as_its_newest_snapshot(self):
        given = {"records": 25, "batch_size": 2, "epochs": 4, "model_dir": self.model_dir}
        os.makedirs(self.model_dir)
        with keelson.join("line", consistency=keelson.Sync(2), **given) as job:
            self.assertEqual((job.global_step, job.max_steps, job.epoch), (0, 28, 0.0))
            for state, step in (
                ('model_checkpoint_path: "model.ckpt-50"\nall_model_checkpoint_paths: "model.ckpt-7"\n', 50),
                ('model_checkpoint_path: "model.ckpt"\n', 0),
                ("\xff", 0),
            ):
                with open(os.path.join(self.model_dir, "checkpoint"), "w", encoding="latin-1") as file:
                    file.write(state)
                self.assertEqual((job.global_step, job.epoch), (step, step * 4 / 25))

    def test_a_script_that_is_killed_leaves_nothing_behind(self):
        self.plan()
        with self.start_script("print('ready', flush=True); sys.stdin.read()", stdin=subprocess.PIPE) as script:
            self.assertEqual(script.stdout.readline(), "ready\n")
            self.assertEqual(len(self.processes()), 3)
            script.kill()
        self.assert_nothing_runs()
        self.assertEqual(self.events()["events"][-1], ["closed"])

    def test_children_of_a_killed_script_do_not_keep_its_place(self):
        self.plan()
        body = "child = os.fork()\nif child: print('ready', flush=True)\nsys.stdin.read()\nif not child: os._exit(0)"
        with self.start_script(body, stdin=subprocess.PIPE) as script:
            self.assertEqual(script.stdout.readline(), "ready\n")
            script.kill()
            self.assert_nothing_runs()
            self.assertEqual(self.events()["events"][-1], ["closed"])

    def test_sigterm_stops_the_script_at_its_next_wait(self):
        self.plan(silent=True)
        with self.start_script() as script:
            while len(self.processes()) < 3:
                time.sleep(0.02)
            script.send_signal(signal.SIGTERM)
            output, _ = script.communicate(timeout=DEADLINE_SECONDS)
        self.assertEqual((script.returncode, output), (143, ""))
        self.assert_nothing_runs()

    def test_sigterm_stops_a_script_whose_steps_never_wait(self):
        self.plan(steps=10**9)
        with self.start_script("print(step.number, flush=True)") as script:
            self.assertEqual(script.stdout.readline(), "0\n")
            script.send_signal(signal.SIGTERM)
            script.communicate(timeout=DEADLINE_SECONDS)
        self.assertEqual(script.returncode, 143)
        self.assert_nothing_runs()

    def test_a_second_sigterm_ends_the_script_at_once(self):
        self.plan(steps=10**9)
        body = """
import signal, time
print("ready", flush=True)
while signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
    time.sleep(0.01)
print("first", flush=True)
while True:
    time.sleep(0.01)
"""
        with self.start_script(body.strip()) as script:
            self.assertEqual(script.stdout.readline(), "ready\n")
            script.send_signal(signal.SIGTERM)
            self.assertEqual(script.stdout.readline(), "first\n")
            script.send_signal(signal.SIGTERM)
            script.communicate(timeout=DEADLINE_SECONDS)
        self.assertEqual(script.returncode, -signal.SIGTERM)
        self.assert_nothing_runs()

    def test_sigterm_ends_a_forked_child_at_once(self):
        with self.join() as job:
            ready, child_is_ready = os.pipe()
            child = os.fork()
            if child == 0:
                os.write(child_is_ready, b"1")
                signal.pause()
                os._exit(0)
            os.read(ready, 1)  # Python forgets signals that come earlier.
            os.close(ready)
            os.close(child_is_ready)
            os.kill(child, signal.SIGTERM)
            self.assertEqual(os.waitpid(child, 0)[1], signal.SIGTERM)
            list(job.steps())

    def test_sigterm_stops_a_script_that_waits_for_the_end_of_its_job(self):
        self.plan(says_nothing_of_the_end=True)
        with self.start_script() as script:
            events = os.path.join(self.model_dir, "events.json")
            while not os.path.exists(events):
                time.sleep(0.02)
            script.send_signal(signal.SIGTERM)
            script.communicate(timeout=DEADLINE_SECONDS)
        self.assertEqual(script.returncode, 143)
        self.assert_nothing_runs()

    def test_ctrl_c_reaches_the_script_alone(self):
        self.plan(one_at_a_time=True)
        with self.start_script("print('ready', flush=True)\njob.work.take()", start_new_session=True) as script:
            self.assertEqual(script.stdout.readline(), "ready\n")
            os.killpg(script.pid, signal.SIGINT)
            _, errors = script.communicate(timeout=DEADLINE_SECONDS)
        self.assertIn("KeyboardInterrupt", errors)
        self.assert_nothing_runs()
        self.assertIn("stopped", self.log("ps"))

    def test_exit_codes(self):
        for body, plan, code, words in (
            ("pass", {}, 0, ""),
            ("raise ValueError('mine')", {}, 1, "ValueError: mine"),
            ("raise keelson.Transient('restart me')", {}, 138, "keelson.Transient: restart me"),
            ("pass", {"die_at": 1}, 138, "keelson.AgentLost: "),
            ("pass", {"fail_at": 1, "fail_code": 3, "fail_text": "diverged"}, 2, "keelson.AgentLost: diverged"),
            ("pass", {"fail_at": 1, "fail_code": 3, "fail_text": DIVERGED}, 2, f"keelson.Diverged: {DIVERGED[24:-8]}; lower lr, or "),
            ("pass", {"fail_join": True, "fail_code": 9}, 2, "keelson.JoinError: ps-0 is away"),
        ):
            with self.subTest(body=body, plan=plan):
                self.plan(**plan)
                with self.start_script(body) as script:
                    output, errors = script.communicate(timeout=DEADLINE_SECONDS)
                self.assertEqual(script.returncode, code, errors)
                self.assertIn(words, errors)
                if code == 0:
                    self.assertEqual(output, "[6.0, 7.0] 5\n")


if __name__ == "__main__":
    unittest.main()
