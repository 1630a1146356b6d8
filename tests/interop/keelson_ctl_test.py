"""Asks a chief with keelson_ctl.

Needs the release build's programs, in $KEELSON_BINARY_DIR or build/release/bin.
"""

import json
import os
import socket
import subprocess
import tempfile
import unittest

import programs


def free_address():
    return f"localhost:{programs.free_port()}"


class KeelsonCtlTest(unittest.TestCase):
    def run_tool(self, *arguments, exit_code=0, tf_config=None):
        return programs.run("keelson_ctl", *arguments, exit_code=exit_code, tf_config=tf_config)

    def token_file(self, token):
        with tempfile.NamedTemporaryFile("w", suffix=".token", delete=False) as file:
            file.write(token + "\n")
        self.addCleanup(os.remove, file.name)
        return file.name

    def start_chief(self, *flags):
        """A chief that waits for a server which never comes; its address."""
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        chief, ps, worker = free_address(), free_address(), free_address()
        process = subprocess.Popen(
            [
                os.path.join(programs.BINARIES, "chief"),
                f"--model_dir={directory.name}",
                f"--chief_hosts={chief}",
                f"--ps_hosts={ps}",
                f"--worker_hosts={worker}",
                *flags,
            ],
            stderr=subprocess.DEVNULL,
        )
        self.addCleanup(process.wait, programs.TIMEOUT_SECONDS)
        self.addCleanup(process.kill)
        return chief

    def test_asks_a_chief(self):
        chief = self.start_chief()
        patience = f"--timeout={programs.TIMEOUT_SECONDS}"
        status = self.run_tool(f"--chief={chief}", patience, "status")
        self.assertIn("WAITING_FOR_SERVERS", status)
        cluster = {"chief": [chief], "ps": ["localhost:1"], "worker": ["localhost:2"]}
        tf_config = {"cluster": cluster, "task": {"type": "worker", "index": 0}}
        parsed = json.loads(self.run_tool("status", "--json", tf_config=tf_config))
        self.assertEqual(parsed["phase"], "WAITING_FOR_SERVERS")
        self.assertEqual(self.run_tool(f"--chief_hosts={chief}", "mode"), "async\n")
        error = self.run_tool(f"--chief={chief}", "mode", "ssp:4", exit_code=2)
        self.assertIn("the job does not train", error)
        self.assertEqual(len(error.splitlines()), 1, error)
        error = self.run_tool(f"--chief={chief}", "mode", "sync", exit_code=2)
        self.assertIn("expected a worker that is alive", error)

    def test_without_a_token_only_members_end_the_training(self):
        chief = self.start_chief()
        patience = f"--timeout={programs.TIMEOUT_SECONDS}"
        error = self.run_tool(f"--chief={chief}", patience, "end", exit_code=2)
        self.assertIn("needs --auth_token_file", error)
        self.assertEqual(len(error.splitlines()), 1, error)

    def test_changes_need_the_jobs_token(self):
        token = self.token_file("0123456789abcdef")
        ask = (f"--chief={self.start_chief(f'--auth_token_file={token}')}", f"--timeout={programs.TIMEOUT_SECONDS}")
        wrong = self.token_file("fedcba9876543210")
        self.assertIn("WAITING_FOR_SERVERS", self.run_tool(*ask, "status"))
        for command in (("end", "--reason=good enough"), ("mode", "ssp:4")):
            self.assertIn("the call has none", self.run_tool(*ask, *command, exit_code=2))
            error = self.run_tool(*ask, f"--auth_token_file={wrong}", *command, exit_code=2)
            self.assertIn("not that of the job", error)
            self.assertEqual(len(error.splitlines()), 1, error)
            allowed = self.run_tool(*ask, f"--auth_token_file={token}", *command, exit_code=2)
            self.assertIn("the job does not train", allowed)
        error = self.run_tool(*ask, "--auth_token_file=/nonexistent", "end", exit_code=2)
        self.assertIn("/nonexistent", error)

    def test_a_chief_that_does_not_answer_is_one_clear_line(self):
        with socket.socket() as deaf:
            deaf.bind(("localhost", 0))
            address = f"localhost:{deaf.getsockname()[1]}"
            error = self.run_tool(f"--chief={address}", "--timeout=0.5", "status", exit_code=138)
            self.assertIn(f"no answer from the chief at {address} for ", error)
            self.assertEqual(len(error.splitlines()), 1, error)

    def test_usage_errors_are_one_line(self):
        for arguments in ([], ["look"], ["--timeout=0", "status"], ["mode", "a", "b"]):
            error = self.run_tool(*arguments, exit_code=2)
            self.assertEqual(len(error.splitlines()), 1, error)
            self.assertIn("see --help", error)
        self.assertIn("--chief: expected the chief's host:port", self.run_tool("status", exit_code=2))
        self.assertIn('found "fast"', self.run_tool("--chief=localhost:1", "mode", "fast", exit_code=2))
