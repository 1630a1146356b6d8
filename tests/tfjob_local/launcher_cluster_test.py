"""Tests whole jobs of scripted replicas, controlled from a second terminal."""

import json
import os
import re
import signal
import subprocess
import urllib.request

import support
import yaml
from support import manifest, process_exists, replica, wait_until

SERVER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "replica_server.py")


class ClusterTest(support.LauncherTest):
    def job(self, *replicas, spec="", name="job"):
        """replicas: (type, number, restart policy)."""
        container = f"command: [{SERVER}, {self.directory}, --a=1]\nenv: [{{name: GREETING, value: hello}}]"
        entries = [replica(replica_type, n, policy, container) for replica_type, n, policy in replicas]
        return manifest(*entries, spec=spec, name=name)

    def start_job(self, text, *flags):
        return self.start(text, "--image=*=as-is", *flags)

    def up(self, name, but_not=None):
        """Pid and address of a replica that serves, other than process `but_not`."""
        path = f"{name}.up"
        wait_until(
            lambda: os.path.exists(self.path(path)) and self.read(path).split()[0] != str(but_not),
            f"{name} is up",
        )
        pid, address = self.read(path).split()
        return int(pid), address

    def get(self, name, path):
        with urllib.request.urlopen(f"http://{self.up(name)[1]}{path}", timeout=60) as response:
            return response.read().decode()

    def config(self, name):
        return json.loads(self.get(name, "/tfconfig"))

    def asked(self, *arguments):
        """The answer to a command that must succeed."""
        code, output, errors = self.ask(*arguments)
        self.assertEqual((code, errors), (0, ""), output)
        return output

    def status(self):
        return yaml.safe_load(self.asked("status", "-o", "yaml"))["status"]

    def conditions(self):
        return {c["type"]: c["status"] for c in self.status()["conditions"]}

    def ended(self, launcher):
        output, _ = launcher.communicate(timeout=support.DEADLINE_SECONDS)
        return launcher.returncode, output

    def wait_for_end(self, pid):
        wait_until(lambda: not process_exists(pid), f"{pid} has ended")


class EndTest(ClusterTest):
    def test_chief_ends_the_job(self):
        launcher = self.start_job(
            self.job(("Chief", 1, "Never"), ("PS", 1, "Never"), ("Worker", 2, "Never")), "--strict_emulation"
        )
        names = ("chief-0", "ps-0", "worker-0", "worker-1")
        pids = {name: self.up(name)[0] for name in names}
        for name in names:
            self.assertEqual(self.config(name)["task"], {"type": name[:-2], "index": int(name[-1])})
        self.assertEqual(self.config("chief-0")["cluster"], self.config("worker-1")["cluster"])
        self.assertEqual(self.config("ps-0")["cluster"]["worker"][1], self.up("worker-1")[1])
        self.assertEqual(
            (self.get("ps-0", "/env?name=GREETING"), self.get("ps-0", "/args")), ("hello", '["--a=1"]')
        )
        self.get("worker-0", "/exit?code=0")
        self.wait_for_end(pids["worker-0"])
        self.get("chief-0", "/exit?code=0")
        wait_until(lambda: self.conditions().get("Succeeded") == "True", "the job has succeeded")
        # With cleanPodPolicy None running replicas continue.
        self.assertTrue(process_exists(pids["ps-0"]))
        self.get("ps-0", "/exit?code=0")
        self.get("worker-1", "/exit?code=0")
        code, output = self.ended(launcher)
        self.assertEqual(code, 0, output)
        self.assertIn(
            "cleanPodPolicy leaves ps-0, worker-1 running, as on a cluster; Ctrl-C ends them", output
        )

    def test_worker_0_ends_a_job_without_chief(self):
        launcher = self.start_job(
            self.job(("PS", 1, "Never"), ("Worker", 2, "Never"), spec="runPolicy: {cleanPodPolicy: All}"),
            "--strict_emulation",
        )
        others = [self.up(name)[0] for name in ("ps-0", "worker-1")]
        self.get("worker-0", "/exit?code=0")
        code, output = self.ended(launcher)
        self.assertEqual(code, 0, output)
        self.assertFalse([pid for pid in others if process_exists(pid)])

    def test_permanent_code_fails_the_job(self):
        launcher = self.start_job(
            self.job(
                ("Chief", 1, "ExitCode"),
                ("Worker", 1, "ExitCode"),
                spec="runPolicy: {cleanPodPolicy: Running}",
            )
        )
        self.up("chief-0")
        self.get("worker-0", "/exit?code=3")
        code, output = self.ended(launcher)
        self.assertEqual(code, 3, output)
        self.assertRegex(
            self.asked("status", "--run_dir", self.path("run")),
            r"^job job: Failed, 0:\d\d, launcher \d+ has ended\n",
        )
        document = yaml.safe_load(self.read("run", "status.yaml"))
        failed = [c for c in document["status"]["conditions"] if c["type"] == "Failed"]
        self.assertEqual([c["status"] for c in failed], ["True"])

    def test_the_command_stop(self):
        launcher = self.start_job(self.job(("Chief", 1, "Never"), ("Worker", 1, "Never")))
        pids = [self.up(name)[0] for name in ("chief-0", "worker-0")]
        stop = [support.LAUNCHER, "stop"]
        done = subprocess.run(
            stop, env=self.environment(), stdout=subprocess.PIPE, text=True, timeout=60, check=True
        )
        self.assertEqual(done.stdout, "job job is being stopped\n")
        code, output = self.ended(launcher)
        self.assertEqual(code, 143, output)
        self.assertIn("job job stopped by the command stop", output)
        self.assertFalse([pid for pid in pids if process_exists(pid)])


class DeletedPodTest(ClusterTest):
    """The strict operator's answer to the drain of a worker's node."""

    def begin(self, version, dynamic):
        spec = f"enableDynamicWorker: {str(dynamic).lower()}\nrunPolicy: {{cleanPodPolicy: Running}}"
        job = self.job(("PS", 1, "ExitCode"), ("Worker", 2, "ExitCode"), spec=spec)
        launcher = self.start_job(job, "--strict_emulation", f"--operator_version={version}")
        self.up("worker-0")
        old_pid, _ = self.up("worker-1")
        self.asked("delete", "worker-1")
        return launcher, old_pid

    def test_fails_the_job_since_1_7(self):
        launcher, _ = self.begin("1.9.4", dynamic=False)
        code, output = self.ended(launcher)
        self.assertEqual(code, 1, output)
        self.assertIn("TFJob default/job has failed because 1 Worker replica(s) failed.", output)

    def test_is_replaced_where_workers_are_dynamic_and_before_1_7(self):
        for version, dynamic in (("1.9.4", True), ("1.6", False)):
            launcher, old_pid = self.begin(version, dynamic)
            self.up("worker-1", but_not=old_pid)
            self.assertNotIn("Failed", self.conditions(), version)
            self.asked("stop")
            self.ended(launcher)
            for name in ("worker-0", "worker-1"):
                os.remove(self.path(f"{name}.up"))


class RestartTest(ClusterTest):
    """One job, whose replicas end one after another, each in its own way."""

    def setUp(self):
        super().setUp()
        self.launcher = self.start_job(self.job(("Chief", 1, "ExitCode"), ("Worker", 4, "ExitCode")))
        self.up("chief-0")
        self.first = {f"worker-{i}": self.up(f"worker-{i}") for i in range(4)}

    def assert_restarted(self, name):
        """At the same address; returns the new pid."""
        old_pid, old_address = self.first[name]
        pid, address = self.up(name, but_not=old_pid)
        self.assertEqual(address, old_address)
        self.assertFalse(process_exists(old_pid))
        return pid

    def test_every_end_restarts_at_the_same_address(self):
        self.get("worker-0", "/exit?code=138")
        self.assertEqual(self.asked("kill", "worker-1"), "worker-1 killed\n")
        self.assertEqual(self.asked("delete", "worker-2"), "worker-2 is being deleted, as by the drain of its node\n")
        self.get("worker-3", "/exit?signal=9")
        pids = {name: self.assert_restarted(name) for name in self.first}
        wait_until(lambda: self.conditions() == {"Created": "True", "Running": "True"}, "it is running again")
        table = self.asked("status")
        self.assertRegex(table, r"^job job: R\w+, 0:\d\d, launcher \d+\n")
        for name, code in (("worker-0", 138), ("worker-1", 137), ("worker-2", 143), ("worker-3", 137)):
            log = re.escape(self.path("run", "logs", f"{name}.restart-1.log"))
            self.assertRegex(table, rf"(?m)^{name} +Running +{pids[name]} +1 +{code} +0:\d\d +{log}$")
        self.assertRegex(table, r"(?m)^Created +True +TFJobCreated +\S+ +TFJob job is created\.$")
        for command in ("kill", "delete"):
            code, _, errors = self.ask(command, "worker-4")
            self.assertEqual(code, 1)
            self.assertEqual(
                errors,
                'tfjob_local: no replica "worker-4"; expected one of chief-0, worker-0, worker-1, worker-2, '
                "worker-3\n",
            )
        self.asked("stop")
        _, output = self.ended(self.launcher)
        self.assertIn("TFJobRestarting: ", output)
        for index, code in ((0, 138), (1, 137), (3, 137)):
            self.assertIn(f"default.job-worker-{index} exited with code {code}\n", output)
        self.assertRegex(
            self.asked("status", "--run_dir", self.path("run")),
            r"^job job: Stopped, 0:\d\d, launcher \d+ has ended\n",
        )


class ScaleTest(ClusterTest):
    def test_up_and_down(self):
        launcher = self.start_job(self.job(("Chief", 1, "Never"), ("PS", 1, "Never"), ("Worker", 1, "Never")))
        before = self.config("worker-0")["cluster"]
        self.assertEqual(self.asked("scale", "worker=3"), "job job scaled: worker 3\n")
        after = self.config("worker-2")["cluster"]
        self.assertEqual((after["chief"], after["ps"]), (before["chief"], before["ps"]))
        self.assertEqual(after["worker"][:1], before["worker"])
        self.assertEqual(after["worker"][1:], [self.up("worker-1")[1], self.up("worker-2")[1]])
        # A running replica keeps the TF_CONFIG of its start.
        self.assertEqual(self.config("worker-0")["cluster"], before)
        pid, _ = self.up("worker-1")
        self.asked("scale", "worker=1")
        self.wait_for_end(pid)
        document = yaml.safe_load(self.asked("status", "-o", "yaml"))
        self.assertEqual(document["spec"]["tfReplicaSpecs"]["Worker"]["replicas"], 1)
        # The same replica is at the same address again.
        self.asked("scale", "worker=2")
        self.up("worker-1", but_not=pid)
        self.assertEqual(self.config("worker-1")["cluster"]["worker"], after["worker"][:2])
        for arguments, expected in (
            (["evaluator=2"], 'no replica type "evaluator"; expected one of chief, ps, worker'),
            (["worker=3", "chief=2"], "Chief: expected 1 replica, found 2"),
        ):
            code, _, errors = self.ask("scale", *arguments)
            self.assertEqual((code, errors), (1, f"tfjob_local: {expected}\n"))
        self.asked("stop")
        self.ended(launcher)


class SuspendTest(ClusterTest):
    def test_suspend_and_resume(self):
        launcher = self.start_job(self.job(("Chief", 1, "Never"), ("Worker", 1, "Never")))
        first, _ = self.up("worker-0")
        self.assertEqual(self.asked("suspend"), "job job suspended\n")
        self.wait_for_end(first)
        wait_until(lambda: self.conditions().get("Suspended") == "True", "the job is suspended")
        document = yaml.safe_load(self.asked("status", "-o", "yaml"))
        self.assertIs(document["spec"]["runPolicy"]["suspend"], True)
        self.assertEqual(self.ask("suspend")[2], "tfjob_local: job job is suspended already\n")
        self.assertEqual(self.asked("resume"), "job job resumed\n")
        self.up("worker-0", but_not=first)
        wait_until(lambda: self.conditions().get("Suspended") == "False", "the job is resumed")
        self.assertEqual(self.ask("resume")[2], "tfjob_local: job job is not suspended\n")
        self.asked("stop")
        _, output = self.ended(launcher)
        self.assertIn("TFJobSuspended: TFJob job is suspended.\n", output)
        self.assertIn(f"suspended; goes on after: {support.LAUNCHER} resume --job job\n", output)
        self.assertIn("TFJobResumed: TFJob job is resumed.\n", output)

    def test_a_job_that_is_suspended_from_the_start(self):
        launcher = self.start_job(
            self.job(("Chief", 1, "Never"), ("Worker", 1, "Never"), spec="runPolicy: {suspend: true}")
        )
        wait_until(lambda: self.ask("status")[0] == 0, "the launcher answers")
        wait_until(lambda: self.conditions().get("Suspended") == "True", "the job is suspended")
        self.assertEqual(os.listdir(self.path("run", "logs")), [])
        self.asked("resume")
        self.up("worker-0")
        self.get("chief-0", "/exit?code=0")
        self.get("worker-0", "/exit?code=0")
        code, output = self.ended(launcher)
        self.assertEqual(code, 0, output)


class SeveralJobsTest(ClusterTest):
    def test_commands_need_a_choice(self):
        self.set_program("chief", 'while [ ! -e "$OUT/done" ]; do sleep 0.05; done')
        launchers = []
        for name in ("one", "two"):
            text = manifest(replica("Chief"), name=name)
            launchers.append(self.start(text, f"--run_dir={self.path(name)}", name=f"{name}.yaml"))
        for name in ("one", "two"):
            wait_until(lambda name=name: self.ask("status", "--job", name)[0] == 0, f"{name} answers")
        code, _, errors = self.ask("status")
        self.assertEqual(code, 1)
        self.assertRegex(
            errors,
            "^tfjob_local: several jobs are running, choose one by --job or --run_dir: "
            rf"(one|two) \(launcher \d+, --run_dir {self.path('(one|two)')}\); (one|two) .*\n$",
        )
        self.assertIn("job two: ", self.asked("status", "--run_dir", self.path("two")))
        self.assertEqual(self.asked("stop", "--job", "one"), "job one is being stopped\n")
        self.assertEqual(launchers[0].wait(timeout=support.DEADLINE_SECONDS), 143)
        self.assertIn("job two: ", self.asked("status"))
        self.write("done", "")
        self.assertEqual(launchers[1].wait(timeout=support.DEADLINE_SECONDS), 0)
        code, _, errors = self.ask("status")
        self.assertEqual(
            (code, errors), (1, "tfjob_local: no job is running on this machine for this user\n")
        )

    def test_a_killed_launcher_leaves_its_last_state(self):
        launcher = self.start_job(self.job(("Chief", 1, "Never"), ("Worker", 1, "Never")))
        pids = [self.up(name)[0] for name in ("chief-0", "worker-0")]
        wait_until(lambda: self.conditions().get("Running") == "True", "the job is running")
        launcher.send_signal(signal.SIGKILL)
        launcher.wait()
        for pid in pids:
            self.wait_for_end(pid)
        self.assertEqual(self.ask("status")[0], 1)
        self.assertRegex(
            self.asked("status", "--run_dir", self.path("run")),
            r"^job job: Running, .*, launcher \d+ ended early; ",
        )


class AddressTest(ClusterTest):
    def test_loopback_aliases_keep_the_manifests_port(self):
        launcher = self.start_job(
            self.job(("Chief", 1, "Never"), ("Worker", 2, "Never")), "--loopback_aliases"
        )
        addresses = [self.up(name)[1] for name in ("chief-0", "worker-0", "worker-1")]
        self.assertEqual(len(set(addresses)), 3)
        for address in addresses:
            self.assertRegex(address, r"^127\.\d+\.\d+\.\d+:2222$")
        self.asked("stop")
        self.ended(launcher)

    def test_a_single_replica_has_no_tf_config(self):
        launcher = self.start_job(self.job(("Worker", 1, "Never")))
        self.assertEqual(self.get("alone-0", "/tfconfig"), "")
        self.get("alone-0", "/exit?code=0")
        self.assertEqual(self.ended(launcher)[0], 0)
