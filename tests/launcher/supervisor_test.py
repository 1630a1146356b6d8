"""Restarts, success and failure, with shell scripts in place of the programs."""

import os
import unittest

import support
from support import manifest, replica
from tfjob_local.replica import Verdict, describe_exit, judge

# Says when it is ready, and ends well when it is asked to.
WAIT_FOR_TERM = "trap 'exit 0' TERM; echo > \"$OUT/$(basename $0).up\"; while :; do sleep 0.05; done"


class JudgeTest(unittest.TestCase):
    def test_rules(self):
        succeeded, restart, failed = Verdict.SUCCEEDED, Verdict.RESTART, Verdict.FAILED
        cases = {
            "Always": {0: restart, 1: restart, 2: failed, 137: restart},
            "OnFailure": {0: succeeded, 1: restart, 2: failed, 137: restart},
            "Never": {0: succeeded, 1: failed, 2: failed, 137: failed, 138: failed},
            "ExitCode": {
                0: succeeded, 1: failed, 2: failed, 126: failed, 127: failed,
                128: restart, 130: restart, 134: restart, 137: restart, 138: restart, 139: restart, 143: restart,
            },
        }
        for policy, verdicts in cases.items():
            for code, verdict in verdicts.items():
                self.assertEqual(judge(policy, code), verdict, f"{policy}, {code}")

    def test_exit_is_described(self):
        self.assertEqual(describe_exit(2), "exit code 2")
        self.assertEqual(describe_exit(137), "signal SIGKILL (exit code 137)")
        self.assertEqual(describe_exit(138), "exit code 138")
        self.assertEqual(describe_exit(255), "exit code 255")


class RestartTest(support.LauncherTest):
    def fail_once(self, how):
        """A worker whose first attempt ends by `how` and whose second ends with 0."""
        self.set_program("chief", 'while [ ! -e "$OUT/second" ]; do sleep 0.05; done')
        self.set_program(
            "worker",
            f'if mkdir "$OUT/first" 2> /dev/null; then {how}; fi\n'
            'touch "$OUT/second"; echo again',
        )

    def run_with_policy(self, policy, *flags):
        return self.run_job(manifest(replica("Chief"), replica("Worker", policy=policy)), *flags)

    def test_retryable_code_restarts_with_a_log_of_its_own(self):
        self.fail_once("echo once; exit 138")
        code, output = self.run_with_policy("ExitCode")
        self.assertEqual(code, 0, output)
        self.assertIn("worker-0 ended with exit code 138; restart 1 in 0.25 s", output)
        self.assertEqual(self.read("run", "logs", "worker-0.log"), "once\n")
        self.assertEqual(self.read("run", "logs", "worker-0.restart-1.log"), "again\n")
        self.assertRegex(output, r"(?m)^worker-0 +\d+ +0 +1 +\d+\.\d$")

    def test_killed_worker_is_restarted(self):
        self.fail_once("kill -9 $$")
        code, output = self.run_with_policy("ExitCode")
        self.assertEqual(code, 0, output)
        self.assertIn("worker-0 ended with signal SIGKILL (exit code 137); restart 1", output)

    def test_on_failure_restarts(self):
        self.fail_once("exit 1")
        code, output = self.run_with_policy("OnFailure")
        self.assertEqual(code, 0, output)

    def test_always_restarts_after_success_too(self):
        self.fail_once("exit 0")
        code, output = self.run_with_policy("Always")
        self.assertEqual(code, 0, output)
        self.assertIn("worker-0 ended with exit code 0; restart 1", output)

    def test_limit_of_restarts(self):
        self.set_program("chief", WAIT_FOR_TERM)
        self.set_program("worker", "exit 138")
        code, output = self.run_with_policy("ExitCode", "--max_restarts=1")
        self.assertEqual(code, 138, output)
        self.assertIn("failed: worker-0 ended with exit code 138; it was restarted 1 times already", output)

    def test_backoff_limit_counts_the_whole_job(self):
        self.set_program("chief", WAIT_FOR_TERM)
        self.set_program("worker", "exit 138")
        text = manifest(replica("Chief"), replica("Worker", policy="ExitCode"), spec="runPolicy: {backoffLimit: 2}")
        code, output = self.run_job(text)
        self.assertEqual(code, 138, output)
        self.assertIn("the job has reached its backoffLimit of 2 restarts", output)
        self.assertTrue(os.path.exists(self.path("run", "logs", "worker-0.restart-2.log")))
        self.assertFalse(os.path.exists(self.path("run", "logs", "worker-0.restart-3.log")))


class FailureTest(support.LauncherTest):
    def test_permanent_failure_ends_the_job_and_shows_the_errors(self):
        self.set_program("chief", WAIT_FOR_TERM)
        self.set_program("ps_server", WAIT_FOR_TERM)
        self.set_program(
            "worker",
            "echo 'I 1 starting'; echo 'E 2 config: bad value'; echo trailing\n"
            'while [ ! -e "$OUT/chief.up" ]; do sleep 0.05; done; exit 2',
        )
        text = manifest(replica("Chief"), replica("PS"), replica("Worker", policy="ExitCode"))
        code, output = self.run_job(text)
        self.assertEqual(code, 2, output)
        self.assertIn("ending ps-0, chief-0", output)
        self.assertIn(f"{self.path('run', 'logs', 'worker-0.log')}:\n  E 2 config: bad value\n", output)
        self.assertNotIn("trailing", output)
        self.assertIn("job job failed: worker-0 ended with exit code 2", output)
        self.assertRegex(output, r"(?m)^chief-0 +\d+ +0 +0 ")

    def test_without_errors_the_last_lines_are_shown(self):
        self.set_program("chief", "for i in 1 2 3 4 5 6 7; do echo line $i; done; exit 3")
        code, output = self.run_job(manifest(replica("Chief"), replica("Worker")))
        self.assertEqual(code, 3, output)
        self.assertIn("  line 3\n  line 4\n  line 5\n  line 6\n  line 7\n", output)
        self.assertNotIn("line 2", output)

    def test_failed_evaluator_fails_the_job(self):
        self.set_program("chief", WAIT_FOR_TERM)
        self.set_program("evaluator", "exit 1")
        code, output = self.run_job(manifest(replica("Chief"), replica("Worker"), replica("Evaluator")))
        self.assertEqual(code, 1, output)

    def test_killed_with_policy_never(self):
        self.set_program("chief", WAIT_FOR_TERM)
        self.set_program("worker", "kill -9 $$")
        code, output = self.run_job(manifest(replica("Chief"), replica("Worker")))
        self.assertEqual(code, 137, output)

    def test_deadline(self):
        self.set_program("chief", WAIT_FOR_TERM)
        text = manifest(replica("Chief"), replica("Worker"), spec="runPolicy: {activeDeadlineSeconds: 0}")
        code, output = self.run_job(text)
        self.assertEqual(code, 1, output)
        self.assertIn("job job failed: the job was active longer than activeDeadlineSeconds", output)

    def test_program_that_cannot_be_run(self):
        self.set_program("chief", WAIT_FOR_TERM)
        path = self.write("bin/worker", "#!/nonexistent/interpreter\n")
        os.chmod(path, 0o755)
        code, output = self.run_job(manifest(replica("Chief"), replica("Worker")))
        self.assertEqual(code, 2, output)
        self.assertIn("bin/worker: No such file or directory", output)

    def test_replica_that_ignores_sigterm_is_killed_after_its_grace_period(self):
        self.set_program("worker", 'trap "" TERM; touch "$OUT/ready"; while :; do sleep 0.05; done')
        self.set_program("chief", 'while [ ! -e "$OUT/ready" ]; do sleep 0.05; done; exit 1')
        text = manifest(replica("Chief"), replica("Worker", pod="terminationGracePeriodSeconds: 0"))
        code, output = self.run_job(text)
        self.assertEqual(code, 1, output)
        self.assertRegex(output, r"(?m)^worker-0 +\d+ +137 \(killed\) ")


class SuccessTest(support.LauncherTest):
    def test_chief_decides_and_the_others_end_by_themselves(self):
        for name in ("ps_server", "worker", "evaluator"):
            self.set_program(name, 'while [ ! -e "$OUT/done" ]; do sleep 0.05; done')
        self.set_program("chief", 'touch "$OUT/done"')
        text = manifest(replica("Chief"), replica("PS"), replica("Worker", 2), replica("Evaluator"))
        code, output = self.run_job(text)
        self.assertEqual(code, 0, output)
        self.assertIn("job job succeeded", output)
        self.assertNotIn("problem", output)
        self.assertNotIn("ending", output)

    def test_without_chief_worker_0_decides(self):
        self.set_program("ps_server", 'while [ ! -e "$OUT/done" ]; do sleep 0.05; done')
        text = manifest(replica("Worker"), replica("PS"))
        self.set_program("worker", 'touch "$OUT/done"')
        code, output = self.run_job(text)
        self.assertEqual(code, 0, output)

    def test_all_workers(self):
        self.set_program(
            "worker",
            'case "$TF_CONFIG" in *\'"index":1\'*) while [ ! -e "$OUT/zero" ]; do sleep 0.05; done; exit 3;; esac\n'
            'touch "$OUT/zero"',
        )
        code, output = self.run_job(manifest(replica("Worker", 2), spec="successPolicy: AllWorkers"))
        self.assertEqual(code, 3, output)
        self.assertIn("failed: worker-1 ended with exit code 3", output)


if __name__ == "__main__":
    unittest.main()
