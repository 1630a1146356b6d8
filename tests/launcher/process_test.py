"""No process outlives the launcher, whatever happens to it."""

import os
import signal
import unittest

import support
from support import manifest, process_exists, replica, wait_until

# The trap is set before the pid is known to the test, and so before any signal.
PROGRAM = (
    'name=$(basename "$0"); trap %s TERM\n'
    'echo $$ > "$OUT/$name.tmp"; mv "$OUT/$name.tmp" "$OUT/$name.pid"\n'
    "while :; do sleep 0.05; done"
)
IGNORE_TERM = PROGRAM % '""'
OBEY_TERM = PROGRAM % "'echo ended > \"$OUT/$name.ended\"; exit 0'"


class ProcessTest(support.LauncherTest):
    def start_all(self, program):
        for name in support.PROGRAMS:
            self.set_program(name, program)
        roles = (replica("Chief"), replica("PS"), replica("Worker"), replica("Evaluator"))
        launcher = self.start(manifest(*roles))
        self.pids = {name: self.wait_for_pid(f"{name}.pid") for name in support.PROGRAMS}
        return launcher

    def assert_all_gone(self):
        for name, pid in self.pids.items():
            wait_until(lambda pid=pid: not process_exists(pid), f"{name} ({pid}) has ended")

    def test_killed_launcher_leaves_no_orphans(self):
        launcher = self.start_all(IGNORE_TERM)
        self.assertTrue(all(process_exists(pid) for pid in self.pids.values()))
        launcher.kill()
        launcher.wait()
        self.assert_all_gone()

    def test_stop_signals_end_all_in_good_order(self):
        for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)):
            for name in support.PROGRAMS:
                for suffix in ("pid", "ended"):
                    if os.path.exists(self.path(f"{name}.{suffix}")):
                        os.remove(self.path(f"{name}.{suffix}"))
            launcher = self.start_all(OBEY_TERM)
            launcher.send_signal(number)
            output, _ = launcher.communicate(timeout=support.DEADLINE_SECONDS)
            self.assertEqual(launcher.returncode, code, output)
            self.assertIn(f"job job failed: stopped by {signal.Signals(number).name}", output)
            self.assert_all_gone()
            for name in support.PROGRAMS:
                self.assertTrue(os.path.exists(self.path(f"{name}.ended")), name)

    def test_second_interrupt_kills_at_once(self):
        launcher = self.start_all(IGNORE_TERM)
        launcher.send_signal(signal.SIGINT)
        for line in launcher.stdout:
            if line.startswith("ending "):
                break
        launcher.send_signal(signal.SIGINT)
        output, _ = launcher.communicate(timeout=support.DEADLINE_SECONDS)
        self.assertEqual(launcher.returncode, 130, output)
        self.assertRegex(output, r"(?m)^worker-0 +\d+ +137 \(killed\) ")
        self.assert_all_gone()

    def test_descendants_of_a_replica_end_with_it(self):
        fork = (
            '(trap "" TERM; sh -c \'echo $PPID > "$0"\' "$OUT/x"; mv "$OUT/x" "$OUT/child"; '
            "while :; do sleep 0.05; done) &\nwhile [ ! -e \"$OUT/child\" ]; do sleep 0.05; done; exit 1"
        )
        self.set_program("chief", fork)
        code, output = self.run_job(manifest(replica("Chief"), replica("Worker")))
        self.assertEqual(code, 1, output)
        self.pids = {"child": int(self.read("child"))}
        self.assert_all_gone()

    def test_closed_output_does_not_disturb_the_job(self):
        self.set_program("chief", 'while [ ! -e "$OUT/go" ]; do sleep 0.05; done')
        launcher = self.start(manifest(replica("Chief"), replica("Worker")))
        launcher.stdout.close()
        self.write("go", "")
        self.assertEqual(launcher.wait(timeout=support.DEADLINE_SECONDS), 0)

    def test_ignored_interrupt_stays_ignored(self):
        self.set_program("chief", 'echo > "$OUT/up"; while [ ! -e "$OUT/go" ]; do sleep 0.05; done')
        manifest_path = self.write("job.yaml", manifest(replica("Chief"), replica("Worker")))
        code = os.spawnlp(
            os.P_WAIT, "sh", "sh", "-c",
            f'trap "" INT; "{support.LAUNCHER}" --bin_dir="{self.path("bin")}" --run_dir="{self.path("run")}" '
            f'"{manifest_path}" > "{self.path("output")}" & pid=$!\n'
            f'while [ ! -e "{self.path("up")}" ]; do sleep 0.05; done\n'
            f'kill -INT $pid; touch "{self.path("go")}"; wait $pid',
        )
        self.assertEqual(code, 0, self.read("output"))


if __name__ == "__main__":
    unittest.main()
