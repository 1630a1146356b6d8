"""Tests the summary when the job is over."""

import support
from support import manifest, replica
from tfjob_local.summary import last_error_lines, latest_snapshot


class SnapshotTest(support.TemporaryDirectoryTest):
    def test_newest_of_the_state_file(self):
        self.assertIsNone(latest_snapshot(self.directory))
        self.write(
            "checkpoint",
            'all_model_checkpoint_paths: "model.ckpt-5"\nmodel_checkpoint_path: "model.ckpt-10"\n',
        )
        self.assertEqual(latest_snapshot(self.directory), self.path("model.ckpt-10"))


class ErrorLinesTest(support.TemporaryDirectoryTest):
    def test_errors_or_else_the_last_lines(self):
        self.assertEqual(last_error_lines(self.path("none")), [])
        path = self.write("log", "I a\nE b\n\nI c\nE d\n")
        self.assertEqual(last_error_lines(path), ["E b", "E d"])
        self.assertEqual(last_error_lines(path, 1), ["E d"])
        path = self.write("log", "".join(f"line {i}\n" for i in range(9)))
        self.assertEqual(last_error_lines(path, 2), ["line 7", "line 8"])


class SummaryTest(support.LauncherTest):
    def test_end_of_a_job(self):
        model = self.path("run", "model")
        self.set_program(
            "chief",
            f"cd '{model}'; mkdir eval\n"
            "echo 'model_checkpoint_path: \"model.ckpt-40\"' > checkpoint\n"
            'echo \'{"step":40,"wall_time":1.5,"auc":0.75,"loss":0.2,"accuracy":0.975,"pr":null,"snapshot":"1a"}\' > eval/metrics.jsonl\n'
            'echo \'{"phase":"DONE","step":40,"max_steps":40,"loss":0.12345}\' > status.tmp\n'
            "mv status.tmp status.json",
        )
        code, output = self.run_job(manifest(replica("Chief"), replica("PS", 2), replica("Worker")))
        self.assertEqual(code, 0, output)
        lines = output.splitlines()
        self.assertIn(f"job job: 1 chief, 2 ps, 1 worker; logs in {self.path('run', 'logs')}", lines)
        self.assertRegex(output, r"(?m)^replica +pid +exit code +restarts +seconds +log$")
        for name in ("ps-0", "ps-1", "chief-0", "worker-0"):
            self.assertRegex(output, rf"(?m)^{name} +\d+ +0 +0 +\d+\.\d +{name}\.log$")
        self.assertIn("job job succeeded, final step 40, loss 0.1235, eval accuracy 0.975 (step 40)", lines)
        self.assertIn("evaluation   loss 0.2, accuracy 0.975, auc 0.75", lines)
        self.assertIn(f"model        {model}/model.ckpt-40", lines)
        self.assertIn(f"logs         {self.path('run', 'logs')}", lines)
        self.assertIn(f"status       {self.path('run', 'status.yaml')}", lines)
        self.assertRegex(output, r"(?m)^elapsed      0:\d\d$")
        page = f"{self.path('bin', 'evaluator')} --serve_only --model_dir={model} --dashboard_port=6006"
        self.assertIn(f"dashboard    {page} --dashboard_address=127.0.0.1", lines)
        self.assertIn(f"TensorBoard  tensorboard --logdir {model}", lines)

    def test_progress_without_a_terminal(self):
        model = self.path("run", "model")
        self.set_program(
            "chief",
            f'cd \'{model}\'; echo \'{{"phase":"TRAINING","step":3,"max_steps":9}}\' > s; mv s status.json\n'
            'while [ ! -e "$OUT/go" ]; do sleep 0.05; done',
        )
        launcher = self.start(manifest(replica("Chief"), replica("PS"), replica("Worker")))
        for line in launcher.stdout:
            if line == "step 3/9\n":
                break
        else:
            self.fail("no progress line")
        self.write("go", "")
        launcher.communicate(timeout=support.DEADLINE_SECONDS)
        self.assertEqual(launcher.returncode, 0)
