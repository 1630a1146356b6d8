"""Tests when the addresses of the evaluators' pages are reported."""

import http.server
import os
import re
import socket
import threading
import unittest

import support
from support import manifest, replica
from tfjob_local.dashboard_links import DashboardLinks, page_answers

# An evaluator that serves its page, and nothing else, until there is a file "done".
EVALUATOR = """#!/usr/bin/python3
import http.server, os, sys, threading, time
if sys.argv[1] == "--help=json":
    sys.exit(print('TABLE'))
port = next(int(a.split("=")[1]) for a in sys.argv if a.startswith("--dashboard_port="))
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'{"runs": []}')
server = http.server.HTTPServer(("127.0.0.1", port), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
while not os.path.exists("DONE"):
    time.sleep(0.01)
"""


class DashboardLinksTest(unittest.TestCase):
    def setUp(self):
        self.now = 0.0
        self.ports = {"evaluator-0": 7000}
        self.running = []
        self.answering = set()
        self.asked = []
        self.told = []
        self.links = DashboardLinks(
            self.ports, lambda: self.running, self.told.append, lambda: self.now, self.answers
        )

    def answers(self, port):
        self.asked.append(port)
        return port in self.answering

    def update(self, seconds=0.5):
        self.links.update()
        self.now += seconds

    def test_told_once_when_it_answers(self):
        self.update()
        self.assertEqual(self.asked, [])  # Nobody who could answer.
        self.running = ["chief-0", "evaluator-0"]
        self.update()
        self.assertEqual((self.asked, self.told), ([7000], []))
        self.answering = {7000}
        for _ in range(3):
            self.update()
        self.assertEqual(self.told, ["dashboard: http://127.0.0.1:7000/"])
        self.assertEqual(self.asked, [7000, 7000])

    def test_asked_twice_a_second(self):
        self.running = ["evaluator-0"]
        for _ in range(8):
            self.update(seconds=0.25)
        self.assertEqual(len(self.asked), 4)

    def test_several_are_told_apart(self):
        self.ports["evaluator-1"] = 7001
        self.running, self.answering = ["evaluator-0", "evaluator-1"], {7001}
        self.update()
        self.assertEqual(self.told, ["dashboard: http://127.0.0.1:7001/ (evaluator-1)"])
        self.answering = {7000, 7001}
        self.update()
        self.assertEqual(self.told[1:], ["dashboard: http://127.0.0.1:7000/ (evaluator-0)"])

    def test_urls_are_of_those_that_run(self):
        self.running, self.answering = ["chief-0", "evaluator-0"], {7000}
        self.assertEqual(self.links.urls(), [])
        self.update()
        self.assertEqual(self.links.urls(), ["http://127.0.0.1:7000/"])
        self.running = ["chief-0"]
        self.assertEqual(self.links.urls(), [])


class PageAnswersTest(unittest.TestCase):
    def serve(self, status, body):
        """The port of a server that answers everything so."""

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(status)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *unused):
                pass

        server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        self.addCleanup(server.server_close)
        self.addCleanup(thread.join)
        self.addCleanup(server.shutdown)
        return server.server_port

    def test_only_a_dashboard_does(self):
        for status, body, expected in (
            (200, b'{"runs": []}', True),
            (200, b"[]", False),
            (200, b"<html>", False),
            (200, b"\xff", False),
            (503, b'{"runs": []}', False),
        ):
            self.assertIs(page_answers(self.serve(status, body)), expected, (status, body))

    def test_nobody_answers(self):
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            port = listener.getsockname()[1]
            self.assertFalse(page_answers(port))
            listener.listen()  # Accepts, and says nothing.
            self.assertFalse(page_answers(port))


class LauncherPagesTest(support.LauncherTest):
    def setUp(self):
        super().setUp()
        done, table = self.path("done"), support.flag_table("evaluator")
        os.chmod(self.write("bin/evaluator", EVALUATOR.replace("DONE", done).replace("TABLE", table)), 0o755)
        self.set_program("chief", 'while [ ! -e "$OUT/done" ]; do sleep 0.05; done')

    def links(self, launcher, count):
        """Returns the ports that are reported, and that `status` shows; then the job may end."""
        ports = {}
        for line in launcher.stdout:
            found = re.fullmatch(r"dashboard: http://127\.0\.0\.1:(\d+)/(?: \((.*)\))?\n", line)
            if found:
                ports[found.group(2) or "evaluator-0"] = int(found.group(1))
            if len(ports) == count:
                break
        status = self.ask("status")[1]
        for port in ports.values():
            self.assertIn(f"\ndashboard http://127.0.0.1:{port}/\n", status)
        self.write("done", "")
        output, _ = launcher.communicate(timeout=support.DEADLINE_SECONDS)
        self.assertEqual(launcher.returncode, 0, output)
        self.assertNotIn("dashboard: ", output)
        return ports

    def test_the_page_is_told_of_when_it_answers(self):
        text = manifest(replica("Chief"), replica("PS"), replica("Worker"), replica("Evaluator"))
        (port,) = self.links(self.start(text, "--dashboard_port=0"), 1).values()
        self.assertNotIn(port, (0, 6006))

    def test_of_several_evaluators(self):
        text = manifest(replica("Chief"), replica("PS"), replica("Worker"), replica("Evaluator", 2))
        ports = self.links(self.start(text), 2)
        self.assertEqual(set(ports), {"evaluator-0", "evaluator-1"})
        self.assertEqual(len(set(ports.values())), 2)
        self.assertGreaterEqual(min(ports.values()), 6006)

    def test_none(self):
        path = self.write("job.yaml", manifest(replica("Chief"), replica("PS"), replica("Evaluator")))
        flags = (f"--bin_dir={self.path('bin')}", "--dry_run", "--dashboard_port=none")
        self.assertNotIn("dashboard", self.ask(path, *flags)[1])
        self.assertIn("--dashboard_port=", self.ask(path, *flags[:2])[1])

    def test_nobody_to_serve_it(self):
        path = self.write("job.yaml", manifest(replica("Chief"), replica("PS"), replica("Worker")))
        _, output, _ = self.ask(path, f"--bin_dir={self.path('bin')}", "--dry_run", "--dashboard_port=7000")
        warning = "warning: --dashboard_port: no evaluator of Keelson's is there to serve the dashboard\n"
        self.assertIn(warning, output)
