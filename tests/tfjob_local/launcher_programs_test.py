"""Restarts, success and failure, with shell scripts in place of the programs."""

import os
import unittest
from unittest import mock

import support
from support import manifest, replica

# Says when it is ready, and ends well when it is asked to.
WAIT_FOR_TERM = "trap 'exit 0' TERM; echo > \"$OUT/$(basename $0).up\"; sleep 600 & wait"
UNTIL_DONE = 'while [ ! -e "$OUT/done" ]; do sleep 0.05; done'


class RestartTest(support.LauncherTest):
    def fail_once(self, program, how):
        """The first attempt ends by `how`, a later one with 0."""
        self.set_program(
            program,
            f'if mkdir "$OUT/{program}.first" 2> /dev/null; then {how}; fi\n'
            f'touch "$OUT/{program}.second"; echo again',
        )

    def run_with_policy(self, policy, *flags):
        return self.run_job(manifest(replica("Chief"), replica("PS"), replica("Worker", policy=policy)), *flags)

    def test_every_policy_restarts_in_its_own_way(self):
        self.fail_once("worker", "echo once; exit 138")
        self.fail_once("ps_server", "exit 1")
        self.fail_once("evaluator", "exit 0")
        seconds = " && ".join(f'[ -e "$OUT/{name}.second" ]' for name in ("worker", "ps_server", "evaluator"))
        self.set_program("chief", f"until {seconds}; do sleep 0.05; done")
        code, output = self.run_job(
            manifest(
                replica("Chief"),
                replica("Worker", policy="ExitCode"),
                replica("PS", policy="OnFailure"),
                replica("Evaluator", policy="Always"),
            )
        )
        self.assertEqual(code, 0, output)
        # ExitCode: a new pod, with a log of its own.
        self.assertIn("ExitedWithCode Pod: default.job-worker-0 exited with code 138", output)
        self.assertIn("worker-0: new pod, back-off 0.25 s", output)
        self.assertIn("TFJobRestarting: job job is restarting because Worker replica(s) failed.", output)
        self.assertEqual(self.read("run", "logs", "worker-0.log"), "once\n")
        self.assertEqual(self.read("run", "logs", "worker-0.restart-1.log"), "again\n")
        self.assertRegex(output, r"(?m)^worker-0 +\d+ +0 +1 +\d+\.\d +worker-0\.restart-1\.log$")
        # OnFailure: in its pod; the operator sees nothing of it.
        self.assertIn("ps-0 ended with exit code 1, back-off 0.25 s", output)
        self.assertNotIn("because PS replica(s) failed", output)
        self.assertRegex(output, r"(?m)^ps-0 +\d+ +0 +1 +\d+\.\d +ps-0\.restart-1\.log$")
        # Always: after success too.
        self.assertIn("evaluator-0 ended with exit code 0, back-off 0.25 s", output)

    def test_limit_of_restarts(self):
        self.set_program("chief", WAIT_FOR_TERM)
        self.set_program("worker", "exit 138")
        code, output = self.run_with_policy("ExitCode", "--max_restarts=1")
        self.assertEqual(code, 138, output)
        self.assertIn(
            "job job failed: worker-0 ended with exit code 138: TFJob default/job has failed", output
        )
        self.assertIn("worker-0 failed again after 1 restart(s)", output)

    def test_backoff_limit_counts_the_whole_job(self):
        self.set_program("chief", WAIT_FOR_TERM)
        self.set_program("worker", "exit 138")
        text = manifest(
            replica("Chief"),
            replica("PS"),
            replica("Worker", policy="ExitCode"),
            spec="runPolicy: {backoffLimit: 2}",
        )
        code, output = self.run_job(text)
        self.assertEqual(code, 138, output)
        self.assertIn("Job job has failed because it has reached the specified backoff limit", output)
        self.assertTrue(os.path.exists(self.path("run", "logs", "worker-0.restart-2.log")))
        self.assertFalse(os.path.exists(self.path("run", "logs", "worker-0.restart-3.log")))


class InitContainerTest(support.LauncherTest):
    def test_the_end_of_a_failing_log_is_shown(self):
        mark = self.path("again")
        script = f"echo no such host; [ -e {mark} ] || {{ touch {mark}; exit 3; }}"
        pod = f"initContainers: [{{name: fetch, image: i, command: [sh, -c, '{script}']}}]"
        text = manifest(replica("Chief", policy="OnFailure", pod=pod), replica("PS"), replica("Worker"))
        code, output = self.run_job(text, "--run_commands")
        self.assertEqual(code, 0, output)
        self.assertIn(
            "chief-0: init container fetch ended with exit code 3, back-off 0.25 s\n"
            "chief-0 init fetch | no such host\n",
            output,
        )
        # Output of the second attempt is not shown as an error.
        self.assertEqual(output.count("| no such host"), 1)

    def test_commands_and_paths_that_nobody_permitted(self):
        mark, host = self.path("mark"), self.path("host")
        pod = (
            f"initContainers: [{{name: fetch, image: i, command: [touch, {mark}]}}]\n"
            f"volumes: [{{name: h, hostPath: {{path: {host}}}}}]"
        )
        text = manifest(replica("Chief", pod=pod), replica("PS"), replica("Worker"))
        for flags, used in (((), False), (("--run_commands",), True)):
            code, output = self.run_job(text, *flags)
            self.assertEqual(code, 0, output)
            line = (
                "warning: left out without --run_commands: init container fetch (Chief); "
                f"hostPath {host} (Chief: a directory of the run in its place)\n"
            )
            self.assertEqual(output.count(line), 0 if used else 1)
            self.assertEqual((os.path.exists(mark), os.path.exists(host)), (used, used))
        self.assertTrue(os.path.isdir(self.path("run", "volumes", "hostPath", *host.split("/"))))


class FailureTest(support.LauncherTest):
    def test_permanent_failure_ends_the_job_and_shows_the_errors(self):
        self.set_program("chief", WAIT_FOR_TERM)
        self.set_program("ps_server", WAIT_FOR_TERM)
        self.set_program(
            "worker",
            "echo 'I 1 starting'; echo 'E 2 config: bad value'; echo trailing\n"
            'while [ ! -e "$OUT/chief.up" ]; do sleep 0.05; done; exit 2',
        )
        text = manifest(replica("Chief"), replica("PS"), replica("Worker", policy="OnFailure"))
        code, output = self.run_job(text)
        self.assertEqual(code, 2, output)
        self.assertIn("ending chief-0, ps-0", output)
        self.assertIn("worker-0 | E 2 config: bad value\n", output)
        self.assertIn(f"{self.path('run', 'logs', 'worker-0.log')}:\n  E 2 config: bad value\n", output)
        self.assertNotIn("trailing", output)
        self.assertIn("job job failed: worker-0 ended with exit code 2: ", output)
        self.assertRegex(output, r"(?m)^chief-0 +\d+ +0 +0 ")

    def test_without_errors_the_last_lines_are_shown(self):
        self.set_program("chief", "for i in 1 2 3 4 5 6 7; do echo line $i; done; exit 3")
        code, output = self.run_job(manifest(replica("Chief"), replica("PS"), replica("Worker")))
        self.assertEqual(code, 3, output)
        self.assertIn("  line 3\n  line 4\n  line 5\n  line 6\n  line 7\n", output)
        self.assertNotIn("line 2", output)

    def test_failed_evaluator_fails_the_job(self):
        self.set_program("chief", WAIT_FOR_TERM)
        self.set_program("evaluator", "exit 1")
        code, output = self.run_job(manifest(replica("Chief"), replica("PS"), replica("Worker"), replica("Evaluator")))
        self.assertEqual(code, 1, output)

    def test_deadline(self):
        self.set_program("chief", WAIT_FOR_TERM)
        policy = "runPolicy: {activeDeadlineSeconds: 0}"
        text = manifest(replica("Chief"), replica("PS"), replica("Worker"), spec=policy)
        code, output = self.run_job(text)
        self.assertEqual(code, 1, output)
        self.assertIn(
            "job job failed: Job job has failed because it was active longer than specified deadline", output
        )

    def test_program_that_cannot_be_started(self):
        self.set_program("chief", WAIT_FOR_TERM)
        os.chmod(self.write("bin/worker", "#!/nonexistent/interpreter\n"), 0o755)
        code, output = self.run_job(manifest(replica("Chief"), replica("PS"), replica("Worker")))
        self.assertEqual(code, 127, output)
        self.assertIn("bin/worker", output)

    def test_replica_that_ignores_sigterm_is_killed_after_its_grace_period(self):
        self.set_program("worker", 'trap "" TERM; touch "$OUT/ready"; sleep 600')
        self.set_program("chief", 'while [ ! -e "$OUT/ready" ]; do sleep 0.05; done; exit 1')
        text = manifest(replica("Chief"), replica("PS"), replica("Worker", pod="terminationGracePeriodSeconds: 0"))
        code, output = self.run_job(text)
        self.assertEqual(code, 1, output)
        self.assertRegex(output, r"(?m)^worker-0 +\d+ +137 \(killed\) ")


class SuccessTest(support.LauncherTest):
    def test_chief_decides_and_the_others_end_by_themselves(self):
        for name in ("ps_server", "worker", "evaluator"):
            self.set_program(name, UNTIL_DONE)
        self.set_program("chief", 'touch "$OUT/done"')
        text = manifest(replica("Chief"), replica("PS"), replica("Worker", 2), replica("Evaluator"))
        code, output = self.run_job(text)
        self.assertEqual(code, 0, output)
        self.assertIn("job job succeeded", output)
        self.assertNotIn("problem", output)
        self.assertNotIn("ending", output)

    def test_all_workers(self):
        self.set_program(
            "worker",
            'case "$TF_CONFIG" in *\'"index":1\'*)\n'
            'while [ ! -e "$OUT/zero" ]; do sleep 0.05; done; exit 3;; esac\n'
            'touch "$OUT/zero"',
        )
        code, output = self.run_job(manifest(replica("PS"), replica("Worker", 2), spec="successPolicy: AllWorkers"))
        self.assertEqual(code, 3, output)
        self.assertIn("failed: worker-1 ended with exit code 3", output)

    def test_logs_of_an_earlier_run_are_kept(self):
        self.set_program("chief", "echo first")
        self.run_job(manifest(replica("Chief")))
        self.set_program("chief", "echo second")
        code, output = self.run_job(manifest(replica("Chief")))
        self.assertEqual(code, 0, output)
        self.assertIn(f"the logs of the earlier run are in {self.path('run', 'logs.1')} now", output)
        self.assertEqual(self.read("run", "logs.1", "chief-0.log"), "first\n")
        self.assertEqual(self.read("run", "logs", "chief-0.log"), "second\n")

    def test_without_a_place_for_its_socket(self):
        with mock.patch.object(self, "environment", return_value={**os.environ, "XDG_RUNTIME_DIR": "/none"}):
            code, output = self.run_job(manifest(replica("Chief")))
        self.assertEqual(code, 0, output)
        self.assertIn("warning: no commands from other terminals: /none/keelson: No such file or", output)

    def test_followed_logs_are_shown(self):
        self.set_program("chief", "echo from the chief; echo 'W odd'")
        self.set_program("worker", "echo from worker; echo 'E bad'")
        text = manifest(replica("Chief"), replica("PS"), replica("Worker", 2))
        _, output = self.run_job(text, "--follow=chief,worker-1")
        self.assertIn("chief-0  | from the chief\n", output)
        self.assertIn("worker-1 | from worker\n", output)
        self.assertIn("worker-0 | E bad\n", output)
        self.assertNotIn("worker-0 | from worker\n", output)
