"""No process outlives the launcher, whatever happens to it."""

import os
import signal
from unittest import mock

import support
from support import manifest, process_exists, replica, wait_until
from tfjob_local.kubelet.keeper_process import send

# The trap is set before the pid is known to the test, and so before any signal.
PROGRAM = (
    'name=$(basename "$0"); trap %s TERM\n'
    'echo $$ > "$OUT/$name.tmp"; mv "$OUT/$name.tmp" "$OUT/$name.pid"\n'
    "while :; do sleep 0.5; done"
)
IGNORE_TERM = PROGRAM % '""'
OBEY_TERM = PROGRAM % "'echo ended > \"$OUT/$name.ended\"; exit 0'"


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return [int(word) for word in file.read().split()]


def command_of(pid):
    with open(f"/proc/{pid}/cmdline", "rb") as file:
        return file.read().decode()


def keeper_of(launcher):
    (keeper,) = [pid for pid in children(launcher.pid) if "keeper_process.py" in command_of(pid)]
    return keeper


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
        """The kernel signals its children; only the keeper knows the stray process."""
        self.write("stray.sh", 'echo $$ > "$1.tmp"; mv "$1.tmp" "$1"; exec sleep 600')
        stray = 'setsid sh "$OUT/stray.sh" "$OUT/stray-$(basename "$0").pid" &'
        launcher = self.start_all(f"{stray}\n{OBEY_TERM}")
        for name in support.PROGRAMS:
            self.pids[f"stray of {name}"] = self.wait_for_pid(f"stray-{name}.pid")
        self.assertTrue(all(process_exists(pid) for pid in self.pids.values()))
        launcher.kill()
        launcher.wait()
        self.assert_all_gone()
        for name in support.PROGRAMS:
            self.assertTrue(os.path.exists(self.path(f"{name}.ended")), name)
        wait_until(lambda: "all have ended" in self.read("run", "logs", "keeper.log"), "the keeper has ended")

    def test_launcher_and_keeper_killed_together_leave_no_child(self):
        """Only the kernel is left to signal them: every role must get its signal."""
        launcher = self.start_all(OBEY_TERM)
        for pid in self.pids.values():
            self.addCleanup(send, pid, signal.SIGKILL)
        self.pids["keeper"] = keeper_of(launcher)
        os.kill(launcher.pid, signal.SIGSTOP)  # It may not put another keeper in the place of this one.
        os.kill(self.pids["keeper"], signal.SIGKILL)
        launcher.kill()
        launcher.wait()
        self.assert_all_gone()
        for name in support.PROGRAMS:
            self.assertTrue(os.path.exists(self.path(f"{name}.ended")), name)

    def test_a_killed_keeper_is_replaced(self):
        launcher = self.start_all(OBEY_TERM)
        keeper = keeper_of(launcher)
        os.kill(keeper, signal.SIGKILL)
        told = f"the keeper (process {keeper}) was killed, another one has taken its place\n"
        self.assertIn(told, iter(launcher.stdout.readline, ""))
        launcher.kill()
        launcher.wait()
        self.assert_all_gone()
        wait_until(lambda: os.path.exists(self.path("run", "logs", "keeper.log")), "the new one has its say")

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
            self.assertIn(f"job job stopped by {signal.Signals(number).name}", output)
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
        code, output = self.run_job(manifest(replica("Chief"), replica("PS"), replica("Worker")))
        self.assertEqual(code, 1, output)
        self.pids = {"child": int(self.read("child"))}
        self.assert_all_gone()

    def test_closed_output_does_not_disturb_the_job(self):
        self.set_program("chief", 'while [ ! -e "$OUT/go" ]; do sleep 0.05; done')
        # With it Python has nothing left to write at its end.
        with mock.patch.dict(os.environ):
            os.environ.pop("PYTHONUNBUFFERED", None)
            launcher = self.start(manifest(replica("Chief"), replica("PS"), replica("Worker")))
        launcher.stdout.close()
        self.write("go", "")
        self.assertEqual(launcher.wait(timeout=support.DEADLINE_SECONDS), 0)

    def test_ignored_interrupt_stays_ignored(self):
        self.set_program("chief", 'echo > "$OUT/up"; while [ ! -e "$OUT/go" ]; do sleep 0.05; done')
        manifest_path = self.write("job.yaml", manifest(replica("Chief"), replica("PS"), replica("Worker")))
        code = os.spawnlp(
            os.P_WAIT, "sh", "sh", "-c",
            f'trap "" INT; "{support.LAUNCHER}" --bin_dir="{self.path("bin")}" '
            f'--run_dir="{self.path("run")}" "{manifest_path}" > "{self.path("output")}" & pid=$!\n'
            f'while [ ! -e "{self.path("up")}" ]; do sleep 0.05; done\n'
            f'kill -INT $pid; touch "{self.path("go")}"; wait $pid',
        )
        self.assertEqual(code, 0, self.read("output"))


class FlagsTest(support.LauncherTest):
    """The launcher's flags reach the processes."""

    def test_all_flags_reach_every_role(self):
        for name in support.PROGRAMS:
            self.set_program(name, 'pwd; for a in "$@"; do echo "$a"; done')
        os.mkdir(self.path("data"))
        self.write("my.textproto", "")
        roles = (replica("Chief"), replica("PS"), replica("Worker"), replica("Evaluator"))
        given = ("--data_dir=data", "--config=my.textproto", "--training_steps=7", "--model_dir=m")
        given += ("--dashboard_port=none",)
        extra = ("--seed=1", "--note=a b")
        code, output = self.run_job(manifest(*roles), "--ps=2", "--workers=0", *given, "--", *extra)
        self.assertEqual(code, 0, output)
        expected = {
            f"--data_dir={self.path('data')}",
            f"--config={self.path('my.textproto')}",
            "--training_steps=7",
            f"--model_dir={self.path('m')}",
            f"--job_token_file={self.path('run', 'job_token')}",
            *extra,
        }
        for name in ("chief-0", "ps-0", "ps-1", "evaluator-0"):
            directory, *arguments = self.read("run", "logs", f"{name}.log").splitlines()
            self.assertEqual(directory, support.REPOSITORY)
            self.assertEqual(set(arguments), expected)
            self.assertEqual(arguments[-2:], list(extra))
        self.assertFalse(os.path.exists(self.path("run", "logs", "worker-0.log")))

    def test_the_device_reaches_the_workers(self):
        for name in ("ps_server", "worker"):
            self.set_program(name, 'echo "$@"')
        text = manifest(replica("PS"), replica("Worker", container="args: [--compute_threads=1]"))
        code, output = self.run_job(text, "--device=cuda:0,1", "--precision", "tf32")
        self.assertEqual(code, 0, output)
        self.assertIn(" --device=cuda:0,1 --precision=tf32", self.read("run", "logs", "worker-0.log"))
        self.assertNotIn("--device", self.read("run", "logs", "ps-0.log"))

    def test_objects_of_the_manifest_reach_the_processes(self):
        """A ConfigMap and a Secret beside the job; an emptyDir that an init container fills."""
        self.set_program("chief", 'cat "${1#--config=}"; echo "$TOKEN"; cat "$SCRATCH/filled"; echo "$POD"')
        pod = (
            "initContainers:\n"
            "- {name: fill, image: busybox, command: [sh, -c, 'echo filled by $NAME > /scratch/filled'],\n"
            "   env: [{name: NAME, value: init}], volumeMounts: [{name: scratch, mountPath: /scratch}]}\n"
            "volumes:\n"
            "- {name: config, configMap: {name: settings}}\n"
            "- {name: scratch, emptyDir: {}}"
        )
        container = (
            "command: [chief]\n"
            "args: [--config=/etc/job/job.textproto]\n"
            "env:\n"
            "- {name: TOKEN, valueFrom: {secretKeyRef: {name: keys, key: token}}}\n"
            "- {name: SCRATCH, value: /scratch}\n"
            "- {name: POD, valueFrom: {fieldRef: {fieldPath: metadata.name}}}\n"
            "volumeMounts: [{name: config, mountPath: /etc/job}, {name: scratch, mountPath: /scratch}]"
        )
        objects = (
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n"
            "data: {job.textproto: 'seed: 1\n\n'}\n---\n"
            "apiVersion: v1\nkind: Secret\nmetadata: {name: keys}\nstringData: {token: open}\n---\n"
        )
        job = manifest(replica("Chief", container=container, pod=pod), replica("PS"), replica("Worker"))
        code, output = self.run_job(objects + job, "--run_commands")
        self.assertEqual(code, 0, output)
        self.assertEqual(
            self.read("run", "logs", "chief-0.log").split("\n"),
            ["seed: 1", "open", "filled by init", "job-chief-0", ""],
        )
