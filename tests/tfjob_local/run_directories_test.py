"""Launchers that run at the same time have run directories, and so models, of their own."""

import os
import shutil
import subprocess
import sys

import support
from support import manifest, replica, wait_until

JOB = manifest(replica("Chief"), replica("PS"), replica("Worker"), spec="runPolicy: {cleanPodPolicy: Running}")
# A launcher that finds a name for its run directory at the same moment as two others, and the same one.
LAUNCHER = """if True:
    import os, sys, time
    deploy, directory, *arguments = sys.argv[1:]
    sys.path.insert(0, deploy)
    from tfjob_local import command_line, local_plan
    find_later = local_plan.fresh_run_path

    def find_together(runs_dir, job_name):
        local_plan.fresh_run_path = find_later
        open(os.path.join(directory, f"arrived.{os.getpid()}"), "w").close()
        deadline = time.monotonic() + 60
        while sum(name.startswith("arrived.") for name in os.listdir(directory)) < 3:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        return os.path.join(runs_dir, "job-T")

    local_plan.fresh_run_path = find_together
    sys.exit(command_line.main(arguments))
"""
# Writes where its model is to be.
CHIEF = """for flag in "$@"; do
  case $flag in --model_dir=*) echo $$ >> "${flag#*=}/model" ;; esac
done"""


class ConcurrentTest(support.LauncherTest):
    def test_three_at_once_have_three_models(self):
        shutil.copytree(os.path.join(support.REPOSITORY, "deploy"), self.path("repo", "deploy"))
        self.set_program("chief", CHIEF)
        job = self.write("job.yaml", JOB)
        command = [sys.executable, "-c", LAUNCHER, self.path("repo", "deploy"), self.directory]
        launchers = [
            subprocess.Popen(
                [*command, job, f"--bin_dir={self.path('bin')}"],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                env=self.environment(),
            )
            for _ in range(3)
        ]
        for launcher in launchers:
            self.addCleanup(self._end, launcher)
        outputs = [launcher.communicate(timeout=support.DEADLINE_SECONDS)[0] for launcher in launchers]
        self.assertEqual([launcher.returncode for launcher in launchers], [0, 0, 0], "\n".join(outputs))
        runs = os.listdir(self.path("repo", "runs"))
        self.assertIn("job-T", runs)
        self.assertEqual(len(runs), 3)
        models = {self.read("repo", "runs", run, "model", "model") for run in runs}
        self.assertEqual((len(models), [model.count("\n") for model in models]), (3, [1, 1, 1]))
        for run in runs:
            self.assertTrue(os.path.isfile(self.path("repo", "runs", run, "status.yaml")))
            self.assertEqual(sum(f"/runs/{run}/logs\n" in output for output in outputs), 1, outputs)


class GivenTest(support.LauncherTest):
    def content(self):
        """Without what the launcher is about to rename: it writes its state as the job goes on."""
        names = [name for name in os.listdir(self.path("run")) if not name.endswith(".new")]
        return sorted(names), self.read("run", "launcher")

    def test_one_that_is_in_use_is_refused(self):
        self.set_program("chief", 'touch "$OUT/up"; while [ ! -e "$OUT/done" ]; do sleep 0.05; done')
        launcher = self.start(JOB)
        self.wait_for_file("up")
        before = self.content()
        other = self.write("other.yaml", JOB.replace("name: job", "name: other"))
        flags = (other, f"--bin_dir={self.path('bin')}", f"--run_dir={self.path('run')}")
        code, output, errors = self.ask(*flags)
        self.assertEqual((code, output), (2, ""))
        self.assertRegex(
            errors,
            rf"^tfjob_local: --run_dir {self.path('run')}: in use by launcher {launcher.pid} on \S+ "
            r"\(job job\), since \S+; expected one of its own\n$",
        )
        self.assertEqual(self.content(), before)
        self.assertEqual(self.ask(*flags, "--dry_run")[0], 0)
        self.write("done", "")
        output, _ = launcher.communicate(timeout=support.DEADLINE_SECONDS)
        self.assertEqual(launcher.returncode, 0, output)
        code, output = self.run_job(JOB)
        self.assertEqual(code, 0, output)

    def test_one_of_a_killed_launcher_can_be_used(self):
        self.set_program("chief", '[ -e "$OUT/up" ] || { touch "$OUT/up"; exec sleep 600; }')
        launcher = self.start(JOB)
        self.wait_for_file("up")
        launcher.kill()
        launcher.wait()

        def is_free():
            code, output = self.run_job(JOB)
            self.assertIn(code, (0, 2), output)
            if code:
                self.assertIn(f"in use by launcher {launcher.pid} on ", output)
            return code == 0

        wait_until(is_free, "what the killed launcher had started has ended")
