"""The run directory, the GPUs of the machine, and what is shown while the job runs."""

import io
import os
import re
import socket
import unittest
from types import SimpleNamespace
from unittest import mock

import support
import yaml
from tfjob_local import gpus
from tfjob_local.console import Console
from tfjob_local.job_view import Journal
from tfjob_local.live_output import LiveOutput
from tfjob_local.pods import Phase, Pod
from tfjob_local.run_directory import RunDirectory, RunDirectoryInUse, fresh_run_path
from tfjob_local.status_view import render, replica_state


class RunDirectoryTest(support.TemporaryDirectoryTest):
    def test_a_name_that_is_not_taken(self):
        with mock.patch("time.strftime", return_value="T"):
            first = fresh_run_path(self.directory, "j")
            os.mkdir(first)
            second = fresh_run_path(self.directory, "j")
            os.mkdir(second)
            third = fresh_run_path(self.directory, "j")
        self.assertEqual([first, second, third], [self.path(name) for name in ("j-T", "j-T-2", "j-T-3")])

    def test_earlier_logs_are_moved(self):
        run_dir = RunDirectory(self.path("r"))
        self.assertIsNone(run_dir.prepare())
        self.assertIsNone(run_dir.prepare())
        for number in (1, 2):
            self.write("r/logs/chief-0.log", str(number))
            self.assertEqual(run_dir.prepare(), self.path("r", f"logs.{number}"))
            self.assertEqual(self.read("r", f"logs.{number}", "chief-0.log"), str(number))
        self.assertEqual(os.listdir(run_dir.log_dir), [])

    def test_each_run_has_a_token_that_only_the_user_reads(self):
        run_dir = RunDirectory(self.path("r"))
        tokens = []
        for _ in range(2):
            run_dir.prepare()
            self.assertEqual(os.stat(run_dir.job_token).st_mode & 0o777, 0o600)
            tokens.append(self.read("r", "job_token"))
        self.assertRegex(tokens[0], "^[0-9a-f]{64}\n$")
        self.assertNotEqual(tokens[0], tokens[1])
        # A link that an earlier process left is replaced, not followed.
        os.remove(run_dir.job_token)
        os.symlink(self.path("elsewhere"), run_dir.job_token)
        run_dir.prepare()
        self.assertFalse(os.path.exists(self.path("elsewhere")))

    def test_a_new_one_is_made_once(self):
        run_dir = RunDirectory(self.path("runs", "j-T"))
        run_dir.make()
        with self.assertRaises(FileExistsError):
            run_dir.make()
        os.symlink("/no/such", self.path("runs", "j-U"))
        with mock.patch("time.strftime", return_value="U"):
            self.assertEqual(fresh_run_path(self.path("runs"), "j"), self.path("runs", "j-U-2"))

    def test_one_launcher_at_a_time(self):
        run_dir = RunDirectory(self.path("r"))
        with run_dir.lock("a-longer-name"):
            pass
        with run_dir.lock("first"):
            with self.assertRaises(RunDirectoryInUse) as caught:
                run_dir.lock("second")
        self.assertRegex(
            str(caught.exception),
            rf"^in use by launcher {os.getpid()} on {re.escape(socket.gethostname())} \(job first\), "
            r"since \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$",
        )
        for content, shown in ((b"", "(which one is not known yet)"), (b" 7\non \xff\n", "7 on \ufffd")):
            with run_dir.lock("first") as lock:
                os.ftruncate(lock.descriptor, 0)
                os.pwrite(lock.descriptor, content, 0)
                with self.assertRaisesRegex(RunDirectoryInUse, f"^in use by launcher {re.escape(shown)}$"):
                    run_dir.lock("second")
        run_dir.lock("third").close()
        self.assertIn("(job third)", self.read("r", "launcher"))

    def test_the_lock_is_no_link(self):
        os.symlink(self.write("precious", "content"), self.path("launcher"))
        with self.assertRaises(OSError):
            RunDirectory(self.directory).lock("j")
        self.assertEqual(self.read("precious"), "content")

    def test_links_are_not_followed(self):
        run_dir = RunDirectory(self.path("r"))
        os.makedirs(self.path("elsewhere"))
        os.makedirs(run_dir.path)
        os.symlink(self.path("elsewhere"), run_dir.log_dir)
        self.assertEqual(run_dir.prepare(), self.path("r", "logs.1"))
        self.assertFalse(os.path.islink(run_dir.log_dir))
        os.symlink(self.path("elsewhere", "x"), self.path("r", "status.yaml.new"))
        with self.assertRaises(OSError):
            run_dir.write_state({"tfjob": {}})
        os.rmdir(run_dir.volumes_dir)
        os.symlink(self.path("elsewhere"), run_dir.volumes_dir)
        with self.assertRaises(OSError) as caught:
            run_dir.prepare()
        self.assertEqual(caught.exception.filename, run_dir.volumes_dir)
        self.assertEqual(os.listdir(self.path("elsewhere")), [])

    def test_state_that_was_written_is_read(self):
        run_dir = RunDirectory(self.directory)
        with self.assertRaises(FileNotFoundError):
            run_dir.read_state()
        view = {"job": "j", "tfjob": {"kind": "TFJob", "spec": {"a": "é"}}}
        run_dir.write_state(view)
        self.assertEqual(run_dir.read_state(), view)
        self.assertEqual(yaml.safe_load(self.read("status.yaml")), view["tfjob"])
        self.assertEqual(sorted(os.listdir(self.directory)), ["state.json", "status.yaml"])


class FakeView:
    def __init__(self):
        self.step = 0

    def news(self):
        return self.step // 2

    def build(self, running=True):
        return {"tfjob": {"step": self.step}, "running": running}


class JournalTest(support.TemporaryDirectoryTest):
    def setUp(self):
        super().setUp()
        self.view = FakeView()
        self.warnings = []
        self.run_dir = RunDirectory(self.path("r"))
        self.journal = Journal(self.view, self.run_dir, self.warnings.append)

    def test_only_news_are_written(self):
        self.run_dir.prepare()
        written = []
        for self.view.step in range(4):
            self.journal.update()
            written.append(self.run_dir.read_state()["tfjob"]["step"])
        self.assertEqual(written, [0, 0, 2, 2])
        self.journal.close()
        self.assertEqual(self.run_dir.read_state(), {"tfjob": {"step": 3}, "running": False})

    def test_a_directory_that_cannot_be_written_is_said_once(self):
        for self.view.step in range(4):
            self.journal.update()
        self.journal.close()
        self.assertEqual(self.warnings, [f"{self.path('r', 'status.yaml.new')}: No such file or directory"])


class StatusViewTest(unittest.TestCase):
    def test_states_of_replicas(self):
        def pod(phase, deleting=False):
            return Pod("j-ps-0", "PS", 0, 1, phase, deleting=deleting)

        for expected, given in (
            ("Gone", None),
            ("Init", pod(Phase.PENDING)),
            ("Running", pod(Phase.RUNNING)),
            ("Terminating", pod(Phase.RUNNING, deleting=True)),
            ("Succeeded", pod(Phase.SUCCEEDED, deleting=True)),
            ("Failed", pod(Phase.FAILED)),
        ):
            self.assertEqual(replica_state(given), expected)

    def test_json(self):
        self.assertEqual(render({"tfjob": {"kind": "TFJob"}}, "json"), '{\n  "kind": "TFJob"\n}\n')


class GpusTest(support.TemporaryDirectoryTest):
    def detect(self, listing=None, visible=None, devices=()):
        """`listing`: what nvidia-smi prints; None: there is none."""
        for name in devices:
            self.write(f"dev/{name}", "")
        os.makedirs(self.path("tools"), exist_ok=True)
        if listing is not None:
            self.write_script("tools/nvidia-smi", f"cat << 'END'\n{listing}\nEND")
        environment = {"PATH": f"{self.path('tools')}:/usr/bin:/bin"}
        if visible is not None:
            environment["CUDA_VISIBLE_DEVICES"] = visible
        from_devices = gpus._from_devices
        with mock.patch.dict(os.environ, environment, clear=True), mock.patch.object(
            gpus, "_from_devices", lambda: from_devices(self.path("dev"))
        ):
            return gpus.detect_gpus()

    def test_driver(self):
        listing = (
            "GPU 0: H100 (UUID: GPU-1)\n  MIG 1g.10gb Device 0: (UUID: MIG-2)\nGPU 1: H100 (UUID: GPU-3)"
        )
        self.assertEqual(self.detect(listing), ("0", "1"))

    def test_devices_without_the_drivers_tool(self):
        self.assertEqual(self.detect(devices=("nvidia10", "nvidia2", "nvidiactl", "nvidia-uvm")), ("2", "10"))

    def test_none(self):
        self.assertEqual(self.detect(), ())
        self.assertEqual(self.detect("No devices were found"), ())

    def test_the_users_own_choice(self):
        for visible, expected in (("2, 3", ("2", "3")), ("", ()), ("-1", ()), ("GPU-ab", ("GPU-ab",))):
            self.assertEqual(self.detect("GPU 0: x", visible), expected)

    def test_flag(self):
        self.assertEqual(gpus.parse_gpus("none"), ())
        self.assertEqual(gpus.parse_gpus("1,GPU-0a-1"), ("1", "GPU-0a-1"))


class LiveOutputTest(unittest.TestCase):
    def setUp(self):
        self.out = io.StringIO()
        self.conditions = []
        self.instead = ""
        self.said = []
        self.output = LiveOutput(
            Console(self.out),
            SimpleNamespace(show_new=lambda: None, show_rest=lambda: None),
            SimpleNamespace(update=lambda: self.said.append("pages")),
            SimpleNamespace(update=self.said.append),
            lambda: {"conditions": self.conditions},
            lambda: self.instead,
        )

    def shown(self):
        text = self.out.getvalue()
        self.out.truncate(0)
        self.out.seek(0)
        return text

    def condition(self, name, status="True", message="m"):
        return {"type": name, "status": status, "reason": f"TFJob{name}", "message": message}

    def test_first_pods_are_no_news(self):
        self.output.event("SuccessfulCreatePod Created pod: j-worker-0")
        self.assertEqual(self.shown(), "")
        self.output.update()
        self.output.event("SuccessfulCreatePod Created pod: j-worker-0")
        self.output.event("ExitedWithCode Pod: default.j-worker-0 exited with code 137")
        self.assertEqual(
            self.shown(),
            "SuccessfulCreatePod Created pod: j-worker-0\n"
            "ExitedWithCode Pod: default.j-worker-0 exited with code 137\n",
        )

    def test_conditions_are_shown_when_they_change(self):
        self.conditions = [self.condition("Created"), self.condition("Running")]
        self.output.update()
        self.output.update()
        self.assertEqual(self.shown(), "TFJobCreated: m\nTFJobRunning: m\n")
        self.conditions = [
            self.condition("Created"),
            self.condition("Running", "False"),
            self.condition("Failed"),
        ]
        self.output.update()
        self.assertEqual(self.shown(), "TFJobFailed: m\n")

    def test_the_end_of_a_suspension_is_shown(self):
        self.conditions = [self.condition("Suspended", "False")]
        self.output.update()
        self.assertEqual(self.shown(), "TFJobSuspended: m\n")

    def test_what_an_event_told_is_not_repeated(self):
        for _ in range(2):
            self.output.event("TFJobRestarting m")
            self.conditions = [self.condition("Restarting")]
            self.output.update()
            self.assertEqual(self.shown(), "TFJobRestarting: m\n")

    def test_what_is_said_in_place_of_the_progress(self):
        self.output.update()
        self.instead = "suspended"
        self.output.update()
        self.assertEqual(self.said, ["pages", "", "pages", "suspended"])

    def test_the_end(self):
        pods = [Pod("j-ps-0", "PS", 0, 1), Pod("j-ps-1", "PS", 1, 2, deleting=True)]
        self.output.finished(pods, strict=True)
        self.output.finished(pods, strict=False)
        self.output.finished(pods[1:], strict=True)
        self.output.stopping([])
        self.output.ending([])
        self.output.stopping(pods)
        self.output.ending(pods)
        self.assertEqual(
            self.shown(),
            "cleanPodPolicy leaves ps-0 running, as on a cluster; Ctrl-C ends them\n"
            "ending ps-0, ps-1; a second time kills at once\n"
            "ending ps-0, ps-1\n",
        )
