"""TrainJobs in the launcher: what is planned for them, and whole jobs with shell scripts in the worker's place."""

import json
import os
import re
import signal
import unittest

import support
import yaml
from support import wait_until
from tfjob_local.kubelet.program_flags import PROGRAMS
from trainjob_text import documents, runtime, train_job

MANIFEST = os.path.join(support.REPOSITORY, "deploy", "trainer", "collective.yaml")
BINARY_DIR = os.environ.get("KEELSON_BINARY_DIR", os.path.join(support.REPOSITORY, "build", "release", "bin"))
# What Trainer, the Job and the container runtime set for the second of three nodes.
VARIABLES = """\
HOSTNAME=job-node-0-1
JOB_COMPLETION_INDEX=1
PET_MASTER_ADDR=127.a.b.1
PET_MASTER_PORT=29500
PET_NNODES=3
PET_NODE_RANK=1
PET_NPROC_PER_NODE=1
""".splitlines()
NEVER = "restartPolicy: Never"


def job(trainer="numNodes: 2", spec="", **parts):
    return documents(runtime(**parts), train_job(trainer, spec))


class DryRunTest(support.LauncherTest):
    def dry_run(self, *arguments):
        """Replica name -> its section; warnings; the line about the job."""
        command = [f"--bin_dir={self.path('bin')}", f"--run_dir={self.path('run')}", "--dry_run", *arguments]
        code, output, errors = self.ask(*command)
        self.assertEqual((code, errors), (0, ""))
        head, *texts = output.split("\n\n")
        sections = {re.split("  ", text, maxsplit=1)[0]: text for text in texts if text.strip()}
        return sections, re.findall(r"^warning: (.*)$", head, re.MULTILINE), head.splitlines()[-1]

    def plan(self, text, *flags):
        return self.dry_run(self.write("job.yaml", text), *flags)

    def refused(self, text, *flags):
        code, output, errors = self.ask(self.write("job.yaml", text), f"--bin_dir={self.path('bin')}", *flags)
        self.assertEqual((code, output), (2, ""))
        return errors

    @staticmethod
    def values(section, what):
        return re.findall(rf"^  {what} +(.*)$", section, re.MULTILINE)

    def test_the_environment_leads_to_the_first_nodes_own_host(self):
        script = self.write("train.py", "")
        sections, _, _ = self.plan(job(f"numNodes: 3\ncommand: [python3, {script}]"), "--run_commands")
        own = r"PYTHONPATH|KEELSON_|PATH=|OMP_"
        seen = [v for v in self.values(sections["node-1"], "env") if not re.match(own, v)]
        # Another program of this machine may have the port.
        port = seen[3].partition("=")[2]
        expected = [line.replace("29500", port) for line in VARIABLES]
        self.assertEqual([re.sub(r"127\.\d+\.\d+\.", "127.a.b.", v) for v in seen], expected)
        self.assertEqual(self.values(sections["node-1"], "argument"), [script])

    def test_the_manifest_of_the_repository(self):
        sections, warnings, head = self.dry_run(MANIFEST)
        self.assertEqual(warnings, [])
        self.assertEqual(list(sections), ["node-0", "node-1", "node-2"])
        model = self.path("run", "model")
        self.assertEqual(head, f"job mnist: 3 node; as Trainer v2 with JobSet; model in {model}; nothing is started")
        for section in sections.values():
            self.assertEqual(self.values(section, "program"), [self.path("bin", "worker")])
            self.assertIn(f"--model_dir={model}", self.values(section, "argument"))

    def test_several_files(self):
        other = self.write("runtime.yaml", runtime())
        sections, _, _ = self.dry_run(self.write("job.yaml", train_job()), other)
        self.assertEqual(list(sections), ["node-0", "node-1"])

    def test_number_of_nodes(self):
        sections, _, _ = self.plan(job(), "--workers=4")
        self.assertEqual(len(sections), 4)
        self.assertIn("PET_NNODES=4", self.values(sections["node-3"], "env"))

    def test_all_train_and_share_the_cores(self):
        sections, _, _ = self.plan(job(), "--device=cpu")
        threads = max(1, len(os.sched_getaffinity(0)) // 2)
        for section in sections.values():
            self.assertIn(f"--compute_threads={threads}", self.values(section, "argument"))
            self.assertIn("--device=cpu", self.values(section, "argument"))

    def test_names_in_arguments_lead_to_the_nodes(self):
        words = ("--a=job-node-0-0.job:7", "job-node-0-1.job", "job-node-0-{0..1}.job.default.svc:29500",
                 "job-node-0-0.other", "job-node-0-1")  # fmt: skip
        sections, _, _ = self.plan(job(f"command: [sh]\nargs: {list(words)}\nnumNodes: 2"), "--image=*=as-is")
        found = [re.sub(r"127\.\d+\.\d+\.", "H", word) for word in self.values(sections["node-0"], "argument")]
        port = re.search(r"H1:(\d+),", found[2]).group(1)
        self.assertEqual(found, ["--a=H1:7", "H2", f"H1:{port},H2:{port}", "job-node-0-0.other", "job-node-0-1"])
        error = self.refused(job("command: [sh]\nargs: [job-node-0-5.job]"), "--image=*=as-is", "--dry_run")
        what = 'no replica "node-5", the job has node-0'
        self.assertEqual(error, f"tfjob_local: Node: args: job-node-0-5.job: {what}\n")

    def test_what_the_pod_knows_of_itself(self):
        fields = ("metadata.name", "metadata.labels['jobset.sigs.k8s.io/jobset-name']",
                  "metadata.annotations['batch.kubernetes.io/job-completion-index']")  # fmt: skip
        env = "\n".join(
            f"  - {{name: F{i}, valueFrom: {{fieldRef: {{fieldPath: \"{field}\"}}}}}}" for i, field in enumerate(fields)
        )
        sections, _, _ = self.plan(job(f"command: [sh]\nnumNodes: 2\nenv:\n{env}"), "--image=*=as-is")
        found = [v for v in self.values(sections["node-1"], "env") if re.match(r"F\d=", v)]
        self.assertEqual(found, ["F0=job-node-0-1", "F1=job", "F2=1"])

    def test_a_script_that_is_not_here_is_keelsons_worker(self):
        sections, warnings, _ = self.plan(job("command: [torchrun, /opt/train.py]\nargs: [--lr, '0.1']"))
        self.assertIn("--learning_rate=0.1", self.values(sections["node-0"], "argument"))
        self.assertEqual(warnings, ["Node: worker runs in place of the command torchrun /opt/train.py"])

    def test_flags_for_the_training_operator(self):
        for flag, value in (("--operator_version", "=1.9"), ("--strict_emulation", "")):
            error = self.refused(job(), flag + value)
            expected = "expected a job of the training operator, found the TrainJob job"
            self.assertEqual(error, f"tfjob_local: {flag}: {expected}\n")

    def test_servers_cannot_be_added(self):
        error = self.refused(job(), "--ps=2")
        what = "spec.trainer: a TrainJob has no PS, but 2 replicas are asked for"
        self.assertEqual(error, f"tfjob_local: {self.path('job.yaml')}: {what}\n")

    def test_without_its_runtime(self):
        error = self.refused(train_job())
        what = "expected the ClusterTrainingRuntime torch in this file or in another one of the command, found none"
        self.assertEqual(error, f"tfjob_local: {self.path('job.yaml')}: spec.runtimeRef.name: {what}\n")


class RunTest(support.LauncherTest):
    WAIT = 'echo $$ > "$OUT/pid-$PET_NODE_RANK.tmp"; mv "$OUT/pid-$PET_NODE_RANK.tmp" "$OUT/pid-$PET_NODE_RANK"; exec sleep 600'

    def conditions(self):
        status = yaml.safe_load(self.read("run", "status.yaml"))["status"]
        return {c["type"]: (c["status"], c["reason"]) for c in status["conditions"]}

    def test_every_node_has_to_succeed(self):
        self.set_program(
            "worker",
            'echo "$PET_NODE_RANK of $PET_NNODES" >> "$OUT/started"\n'
            'while ! grep -q "1 of" "$OUT/started"; do sleep 0.01; done',
        )
        code, output = self.run_job(job())
        self.assertEqual(code, 0, output)
        self.assertEqual(sorted(self.read("started").splitlines()), ["0 of 2", "1 of 2"])
        self.assertIn("AllJobsCompleted: jobset completed successfully", output)
        self.assertEqual(self.conditions(), {"Complete": ("True", "AllJobsCompleted")})

    def test_a_failed_pod_is_replaced(self):
        self.set_program("worker", 'if [ $PET_NODE_RANK = 1 ] && mkdir "$OUT/first" 2> /dev/null; then exit 5; fi')
        code, output = self.run_job(job(pod=NEVER))
        self.assertEqual(code, 0, output)
        self.assertIn("ExitedWithCode Pod: default.job-node-0-1 exited with code 5", output)
        self.assertIn("node-1: new pod, back-off 0.25 s", output)
        self.assertRegex(output, r"(?m)^node-1 +\d+ +0 +1 +\d+\.\d +node-1\.restart-1\.log$")

    def test_the_limit_of_the_job(self):
        self.set_program("worker", '[ $PET_NODE_RANK = 1 ] && exit 5; exec sleep 600')
        code, output = self.run_job(job(pod=NEVER, job="backoffLimit: 0"))
        self.assertEqual(code, 5, output)
        message = "jobset failed due to one or more job failures (first failed job: job-node-0)"
        self.assertIn(f"FailedJobs: {message}", output)
        self.assertIn(f"job job failed: node-1 ended with exit code 5: {message}", output)
        self.assertIn("ending node-0", output)
        self.assertEqual(self.conditions(), {"Failed": ("True", "FailedJobs")})

    def test_the_job_set_starts_anew(self):
        self.set_program(
            "worker",
            'mkdir "$OUT/first-$PET_NODE_RANK" 2> /dev/null || exit 0\n'
            '[ $PET_NODE_RANK = 1 ] && exit 5; exec sleep 600',
        )
        code, output = self.run_job(job(pod=NEVER, job="backoffLimit: 0", job_set="failurePolicy: {maxRestarts: 1}"))
        self.assertEqual(code, 0, output)
        self.assertIn("RestartJobSetFailurePolicyAction applying RestartJobSet failure policy action", output)

    def test_in_place(self):
        self.set_program("worker", 'mkdir "$OUT/first-$PET_NODE_RANK" 2> /dev/null && exit 5; exit 0')
        code, output = self.run_job(job())
        self.assertEqual(code, 0, output)
        self.assertIn("node-1 ended with exit code 5, back-off 0.25 s", output)

    def test_ctrl_c(self):
        self.set_program("worker", self.WAIT)
        launcher = self.start(job())
        pids = [self.wait_for_pid(f"pid-{rank}") for rank in (0, 1)]
        launcher.send_signal(signal.SIGINT)
        output, _ = launcher.communicate(timeout=support.DEADLINE_SECONDS)
        self.assertEqual(launcher.returncode, 128 + signal.SIGINT, output)
        self.assertFalse([pid for pid in pids if support.process_exists(pid)])
        self.assertEqual(self.conditions(), {"Running": ("False", "TrainJobStopped")})
        code, output, _ = self.ask("status", "--run_dir", self.path("run"))
        self.assertEqual(code, 0)
        self.assertRegex(output, r"^job job: Stopped, 0:\d\d, launcher \d+ has ended\n")

    def test_from_a_second_terminal(self):
        self.set_program("worker", self.WAIT)
        launcher = self.start(job(pod=NEVER))
        first = self.wait_for_pid("pid-1")
        code, output, _ = self.ask("status", "-o", "json")
        status = json.loads(output)
        self.assertEqual((code, status["kind"], status["spec"]["trainer"]["numNodes"]), (0, "TrainJob", 2))
        self.assertEqual(status["status"]["jobsStatus"][0]["name"], "node")
        code, _, errors = self.ask("scale", "node=3")
        what = "Node: the number of a TrainJob's nodes is fixed once it is there"
        self.assertEqual((code, errors), (1, f"tfjob_local: {what}\n"))
        self.assertEqual(self.ask("kill", "node-1")[:2], (0, "node-1 killed\n"))
        wait_until(lambda: self.wait_for_pid("pid-1") != first, "node-1 is replaced")
        self.assertEqual(self.ask("suspend")[0], 0)
        wait_until(lambda: self.conditions().get("Suspended") == ("True", "Suspended"), "it is suspended")
        self.assertTrue(yaml.safe_load(self.read("run", "status.yaml"))["spec"]["suspend"])
        self.set_program("worker", "exit 0")
        self.assertEqual(self.ask("resume")[0], 0)
        output, _ = launcher.communicate(timeout=support.DEADLINE_SECONDS)
        self.assertEqual(launcher.returncode, 0, output)
        self.assertEqual(self.conditions()["Suspended"], ("False", "Resumed"))

    def test_a_script_of_this_machine(self):
        script = self.write("app/train.py", "import os; print('rank', os.environ['PET_NODE_RANK'], 'in', os.getcwd())")
        container = "command: [python2.99, train.py]"
        text = job(container, container="workingDir: " + os.path.dirname(script))
        code, output = self.run_job(text, "--run_commands", "--follow=all")
        self.assertEqual(code, 0, output)
        self.assertIn(f"rank 0 in {self.path('app')}", output)


@unittest.skipUnless(
    all(os.access(os.path.join(BINARY_DIR, name), os.X_OK) for name in PROGRAMS), f"no programs in {BINARY_DIR}"
)
class ProgramsTest(support.LauncherTest):
    """The repository's manifest as it is, with Keelson's programs."""

    def test_three_nodes_train(self):
        with open(MANIFEST, encoding="utf-8") as file:
            text = file.read()
        code, output = self.run_job(text, f"--bin_dir={BINARY_DIR}", "--training_steps=5", "--dashboard_port=none")
        self.assertEqual(code, 0, output)
        self.assertNotIn("warning", output)
        self.assertIn("job mnist succeeded, final step 5", output)
        self.assertEqual(len(re.findall(r"(?m)^node-\d +\d+ +0 +0 ", output)), 3)


if __name__ == "__main__":
    unittest.main()
