"""deploy/run_local.sh, in a copy of deploy/ with a ninja that writes shell scripts."""

import os
import re
import shutil

import support
from tfjob_local.flags import run_parser


class RunLocalTest(support.TemporaryDirectoryTest):
    def setUp(self):
        super().setUp()
        shutil.copytree(os.path.join(support.REPOSITORY, "deploy"), self.path("repo", "deploy"))
        self.write("repo/configs/mnist_cnn.textproto", "")
        self.write("elsewhere/data/x", "")
        self.write_script("repo/deploy/install_deps.sh", "exit 0")
        self.write_script(
            "tools/cmake",
            'echo "-- CUDA: nvcc not found, building without --device=cuda"\n'
            "mkdir -p build/release; touch build/release/build.ninja",
        )
        self.write_script("tools/program", support.program_script("worker", 'pwd; for a in "$@"; do echo "$a"; done'))
        self.write_script(
            "tools/ninja",
            'echo "ninja $*"; mkdir -p "$2/bin"\n'
            "for p in ps_server worker chief evaluator; do\n"
            f"  cp '{self.path('tools', 'program')}' \"$2/bin/$p\"\n"
            "done",
        )

    def run_local(self, *flags):
        return self.run_program(
            self.path("repo", "deploy", "run_local.sh"),
            *flags,
            cwd=self.path("elsewhere"),
            env={**os.environ, "PATH": f"{self.path('tools')}:{os.environ['PATH']}"},
        )

    def test_builds_and_runs_the_shipped_manifest(self):
        result = self.run_local()
        self.assertEqual(result.returncode, 0, result.stderr)
        lines = result.stdout.splitlines()
        self.assertEqual(lines[0], "configuring build/release")
        self.assertEqual(lines[1], "CUDA: nvcc not found, building without --device=cuda")
        self.assertIn("job mnist: 1 chief, 2 ps, 2 worker, 1 evaluator; logs in ", result.stdout)
        self.assertIn("job mnist succeeded", result.stdout)
        self.assertEqual(len(os.listdir(self.path("repo", "runs"))), 1)
        self.assertIn("ps_server worker chief evaluator", self.read("repo", "build", "release-build.log"))
        again = self.run_local()
        self.assertNotIn("configuring", again.stdout)
        self.assertEqual(again.returncode, 0)
        self.assertEqual(len(os.listdir(self.path("repo", "runs"))), 2)

    def test_a_file_of_columns_needs_no_configuration(self):
        self.write_script(
            "tools/keelson_data",
            'printf "%s\\n" "$@" > "$(dirname "$0")/../../../arguments"; echo "train { batch_size: 1 }"',
        )
        self.write(
            "tools/ninja",
            self.read("tools", "ninja") + f"cp '{self.path('tools', 'keelson_data')}' \"$2/bin/\"\n",
        )
        self.write("elsewhere/data/visits.csv", "a,b\n1,2\n")
        result = self.run_local("--data", "data/visits.csv", "--label=b", "--separator", ";")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("a wide and deep model of the columns of visits.csv: ", result.stdout)
        asked = self.read("repo", "arguments").splitlines()
        visits = self.path("elsewhere", "data", "visits.csv")
        self.assertEqual(asked, ["inspect", visits, "--label", "b", "--separator", ";"])
        (proposal,) = (name for name in os.listdir(self.path("repo", "runs")) if name.endswith(".textproto"))
        self.assertRegex(proposal, r"^visits-\w{6}\.textproto$")
        self.assertEqual(self.read("repo", "runs", proposal), "train { batch_size: 1 }\n")
        run = next(name for name in os.listdir(self.path("repo", "runs")) if not name.endswith(".textproto"))
        arguments = self.read("repo", "runs", run, "logs", "chief-0.log").splitlines()
        self.assertIn(f"--data_dir={self.path('elsewhere', 'data')}", arguments)
        self.assertTrue(any(argument.startswith("--config=") for argument in arguments))

    def test_a_second_proposal_leaves_the_first_one(self):
        self.write_script("tools/keelson_data", 'echo "train { batch_size: 1 }"')
        self.write(
            "tools/ninja",
            self.read("tools", "ninja") + f"cp '{self.path('tools', 'keelson_data')}' \"$2/bin/\"\n",
        )
        self.write("elsewhere/data/visits.csv", "a,b\n1,2\n")
        for _ in range(2):
            result = self.run_local("--data", "data/visits.csv")
            self.assertEqual(result.returncode, 0, result.stderr)
        proposals = [name for name in os.listdir(self.path("repo", "runs")) if name.endswith(".textproto")]
        self.assertEqual(len(proposals), 2)

    def test_data_beside_what_it_proposes(self):
        self.write("elsewhere/data/visits.csv", "a,b\n1,2\n")
        for flags, message in (
            (("--data=data/visits.csv", "--config=c"), "--data: expected without --config"),
            (("--data=data/visits.csv", "--data_dir=data"), "--data: expected without --data_dir"),
            (("--label=b",), "--label: expected together with --data"),
            (("--separator=;",), "--separator: expected together with --data"),
            (("--data=nowhere.csv",), "--data: expected a file, found none at nowhere.csv"),
        ):
            result = self.run_local(*flags)
            self.assertEqual(result.returncode, 2, flags)
            self.assertIn(message, result.stderr)

    def test_flags_reach_the_programs(self):
        result = self.run_local(
            "--ps",
            "1",
            "--workers=3",
            "--data_dir",
            "data",
            "--model_dir=m",
            "--training_steps",
            "5",
            "--",
            "--seed=1",
        )
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("1 chief, 1 ps, 3 worker, 1 evaluator", result.stdout)
        run = os.listdir(self.path("repo", "runs"))[0]
        directory, *arguments = self.read("repo", "runs", run, "logs", "chief-0.log").splitlines()
        self.assertEqual(directory, self.path("repo"))
        for argument in (
            f"--config={self.path('repo', 'runs', run, 'volumes', 'chief-0', 'config', 'job.textproto')}",
            f"--model_dir={self.path('elsewhere', 'm')}",
            f"--data_dir={self.path('elsewhere', 'data')}",
            "--training_steps=5",
            "--seed=1",
        ):
            self.assertEqual(arguments.count(argument), 1, (argument, arguments))

    def test_the_device_reaches_the_workers(self):
        result = self.run_local("--device", "cpu", "--precision=float32")
        self.assertEqual(result.returncode, 0, result.stderr)
        run = os.listdir(self.path("repo", "runs"))[0]
        self.assertIn(
            "--device=cpu\n--precision=float32\n", self.read("repo", "runs", run, "logs", "worker-0.log")
        )

    def test_the_launchers_flags_are_known(self):
        result = self.run_local("--follow=chief", "--strict_emulation", "--max_restarts", "3", "--dry_run")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("nothing is started", result.stdout)
        script = self.read("repo", "deploy", "run_local.sh")
        known = set(re.findall(r"--\w+(?= \||\))", script))
        flags = {flag for action in run_parser()._actions for flag in action.option_strings if flag[1] == "-"}
        # The launcher's own --help, and what run_local.sh has built.
        self.assertEqual(flags - known, {"--bin_dir"})

    def test_failed_build_shows_its_output(self):
        self.write_script("tools/ninja", "echo 'x.cc:1: error: no'; exit 1")
        result = self.run_local()
        self.assertEqual(result.returncode, 1)
        self.assertIn("x.cc:1: error: no\nrun_local: build failed; this output is also in", result.stderr)
        self.assertNotIn("job mnist", result.stdout)

    def test_bad_flags(self):
        for flags, expected in (
            (["--gpu"], "run_local: unknown flag: --gpu"),
            (["extra"], "run_local: unknown flag: extra"),
            (["--ps"], "run_local: --ps needs a value"),
        ):
            result = self.run_local(*flags)
            self.assertEqual(result.returncode, 2)
            self.assertTrue(result.stderr.startswith(expected), result.stderr)
            self.assertIn("usage: deploy/run_local.sh", result.stderr)
            self.assertEqual(result.stdout, "")

    def test_help(self):
        result = self.run_local("--help")
        self.assertEqual(result.returncode, 0)
        self.assertIn("--training_steps N", result.stdout)
