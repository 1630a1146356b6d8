"""Requests of other terminals: the directory of the sockets, the server, the client."""

import os
import socket
import subprocess
import sys
import threading
import unittest
from unittest import mock

import support  # Sets the path that the next imports need.
from tfjob_local import control_client
from tfjob_local.control import ControlDirectory, ControlError, ControlServer, default_path
from tfjob_local.control_client import ControlClientError, ask, find_job, list_jobs


class ControlTest(support.TemporaryDirectoryTest):
    def setUp(self):
        super().setUp()
        self.now = 0.0
        self.directory_path = self.path("keelson")
        self.control = self.enterContext(ControlDirectory(self.directory_path))

    def serve(self, handle, pid=None):
        """A server of this process, under another pid's name where several are needed."""
        with mock.patch("os.getpid", return_value=pid or os.getpid()):
            server = ControlServer(self.control, handle, lambda: self.now)
        self.addCleanup(server.close)
        return server

    def polled(self, *servers):
        """Serves in the background until the test ends."""
        over = threading.Event()

        def loop():
            while not over.is_set():
                for server in servers:
                    server.poll()
                over.wait(0.005)

        thread = threading.Thread(target=loop)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(over.set)

    def connect(self, name=None):
        connection = socket.socket(socket.AF_UNIX)
        self.addCleanup(connection.close)
        connection.settimeout(support.DEADLINE_SECONDS)
        connection.connect(self.control.address(name or f"{os.getpid()}.sock"))
        return connection


def view(job, run_dir, launcher):
    return {"view": {"job": job, "run_dir": run_dir, "launcher": launcher}, "ok": True}


class DirectoryTest(ControlTest):
    def test_is_closed_to_other_users(self):
        self.assertEqual(os.stat(self.directory_path).st_mode & 0o777, 0o700)
        os.chmod(self.directory_path, 0o755)
        ControlDirectory(self.directory_path).close()
        self.assertEqual(os.stat(self.directory_path).st_mode & 0o777, 0o700)

    def test_of_another_owner_is_refused(self):
        with mock.patch("os.getuid", return_value=os.getuid() + 1):
            with self.assertRaisesRegex(ControlError, r"keelson: expected the owner \d+, found \d+"):
                ControlDirectory(self.directory_path)

    def test_that_is_none_is_refused(self):
        path = self.write("file", "")
        with self.assertRaisesRegex(ControlError, "file: expected a directory: Not a directory"):
            ControlDirectory(path)
        with self.assertRaisesRegex(ControlError, "none/keelson: No such file or directory"):
            ControlDirectory(self.path("none", "keelson"))
        os.symlink(self.directory_path, self.path("link"))
        with self.assertRaisesRegex(ControlError, "link: expected a directory"):
            ControlDirectory(self.path("link"))

    def test_default_places(self):
        with mock.patch.dict(os.environ, XDG_RUNTIME_DIR=self.directory):
            self.assertEqual(default_path(), self.directory_path)
            ControlDirectory().close()
        with mock.patch.dict(os.environ):
            os.environ.pop("XDG_RUNTIME_DIR", None)
            self.assertEqual(default_path(), f"/tmp/keelson-{os.getuid()}")

    def test_long_path(self):
        path = self.path(*["x" * 60] * 3)
        os.makedirs(os.path.dirname(path))
        with ControlDirectory(path) as directory:
            server = ControlServer(directory, lambda request: {"ok": True}, lambda: 0.0)
            self.polled(server)
            self.assertEqual(ask(directory, f"{os.getpid()}.sock", {}), {"ok": True})
            server.close()

    def test_sockets_of_killed_launchers_are_removed(self):
        script = (
            "import os, signal, sys; sys.path.insert(0, sys.argv[1])\n"
            "from tfjob_local.control import ControlDirectory, ControlServer\n"
            "server = ControlServer(ControlDirectory(sys.argv[2]), None, None)\n"
            "os.kill(os.getpid(), signal.SIGKILL)"
        )
        deploy = os.path.join(support.REPOSITORY, "deploy")
        subprocess.run([sys.executable, "-c", script, deploy, self.directory_path], check=False, timeout=60)
        self.assertEqual(len(self.control.sockets()), 1)
        self.assertEqual(list_jobs(self.control), [])
        self.assertEqual(self.control.sockets(), [])

    def test_closed_server_leaves_nothing(self):
        self.serve(lambda request: {"ok": True}).close()
        self.assertEqual(os.listdir(self.directory_path), [])


class ServerTest(ControlTest):
    def test_answers(self):
        self.polled(self.serve(lambda request: {"ok": True, "echo": request}))
        name = f"{os.getpid()}.sock"
        self.assertEqual(ask(self.control, name, {"command": "x"}), {"ok": True, "echo": {"command": "x"}})

    def test_large_reply(self):
        self.polled(self.serve(lambda request: {"ok": True, "text": "x" * 3_000_000}))
        self.assertEqual(len(ask(self.control, f"{os.getpid()}.sock", {})["text"]), 3_000_000)

    def test_refusal_is_an_error_of_the_client(self):
        self.polled(self.serve(lambda request: {"ok": False, "error": "no"}))
        with self.assertRaisesRegex(ControlClientError, "^no$"):
            ask(self.control, f"{os.getpid()}.sock", {})

    def test_bad_requests(self):
        self.polled(self.serve(lambda request: {"ok": True}))
        for line, expected in (
            (b"nonsense\n", b"expected a request as one line of JSON"),
            (b"[1]\n", b"expected a request as a JSON object"),
        ):
            connection = self.connect()
            connection.sendall(line)
            self.assertIn(expected, connection.recv(65536))

    def test_a_slow_client_stalls_nobody(self):
        server = self.serve(lambda request: {"ok": True, "text": "x" * 3_000_000})
        silent = self.connect()
        half = self.connect()
        half.sendall(b'{"comm')
        never_reads = self.connect()
        never_reads.sendall(b"{}\n")
        for _ in range(20):
            server.poll()
        self.polled(server)
        self.assertTrue(ask(self.control, f"{os.getpid()}.sock", {})["ok"])
        self.assertIsNotNone(silent)

    def test_a_slow_client_is_dropped(self):
        server = self.serve(lambda request: {"ok": True})
        silent = self.connect()
        server.poll()
        self.now = 11.0
        server.poll()
        self.assertEqual(silent.recv(1), b"")

    def test_a_request_without_end_is_dropped(self):
        server = self.serve(lambda request: {"ok": True})
        endless = self.connect()
        self.polled(server)
        with self.assertRaises((BrokenPipeError, ConnectionResetError)):
            for _ in range(1000):
                endless.sendall(b"x" * 65536)

    def test_no_more_clients_than_it_can_serve(self):
        server = self.serve(lambda request: {"ok": True})
        held = [self.connect() for _ in range(16)]
        server.poll()
        waiting = self.connect()
        waiting.sendall(b"{}\n")
        server.poll()
        for connection in held:
            connection.close()
        self.polled(server)
        self.assertEqual(waiting.recv(100), b'{"ok": true}\n')


class FindTest(ControlTest):
    def test_nothing_runs(self):
        for job, run_dir, expected in (
            ("", "", "^no job is running on this machine for this user$"),
            ("a", "", "^no job a is running on this machine for this user$"),
            ("", "/x", "^no job with the run directory /x is running on this machine for this user$"),
        ):
            with self.assertRaisesRegex(ControlClientError, expected):
                find_job(self.control, job, run_dir)

    def test_the_only_one_needs_no_name(self):
        self.polled(self.serve(lambda request: view("a", "/runs/a", 7)))
        job = find_job(self.control)
        self.assertEqual((job.name, job.socket_name), ("a", f"{os.getpid()}.sock"))
        with self.assertRaisesRegex(
            ControlClientError, r"no job b is running .*; running: a \(launcher 7, --run_dir /runs/a\)"
        ):
            find_job(self.control, "b")

    def test_several(self):
        self.polled(
            self.serve(lambda request: view("a", "/runs/a", 101), 101),
            self.serve(lambda request: view("a", "/runs/a-2", 102), 102),
            self.serve(lambda request: view("b", "/runs/b", 103), 103),
        )
        self.assertEqual(find_job(self.control, "b").run_dir, "/runs/b")
        self.assertEqual(find_job(self.control, run_dir="/runs/../runs/a-2").run_dir, "/runs/a-2")
        self.assertEqual(find_job(self.control, "a", "/runs/a").run_dir, "/runs/a")
        with self.assertRaises(ControlClientError) as caught:
            find_job(self.control, "a")
        self.assertEqual(
            str(caught.exception),
            "several jobs are running, choose one by --job or --run_dir: "
            "a (launcher 101, --run_dir /runs/a); a (launcher 102, --run_dir /runs/a-2)",
        )

    def test_a_launcher_that_does_not_answer_hides_no_other(self):
        self.serve(lambda request: view("stopped", "/runs/s", 101), 101)
        self.polled(self.serve(lambda request: view("b", "/runs/b", 103), 103))
        with mock.patch.object(control_client, "_ANSWER_SECONDS", 0.2):
            self.assertEqual(find_job(self.control).name, "b")
