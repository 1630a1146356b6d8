"""Shared code of the launcher's tests: fake programs, waiting for a condition."""

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import time
from unittest import mock

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LAUNCHER = os.path.join(REPOSITORY, "deploy", "tfjob_local.py")
# The programs, and what the scripts in their place know beside the flags of all.
_OWN_FLAGS = {
    "ps_server": (),
    "worker": ("compute_threads", "device", "precision", "auth_token_file"),
    "chief": ("compute_threads", "device", "precision", "auth_token_file"),
    "evaluator": ("compute_threads", "device", "auth_token_file"),
}
_COMMON_FLAGS = (
    "config", "batch_size", "training_steps", "epochs", "learning_rate", "seed", "model_dir", "data_dir", "metrics_port"
)
# The types of those that are no text.
_TYPES = {
    "batch_size": "INT",
    "training_steps": "INT",
    "epochs": "INT",
    "learning_rate": "FLOAT",
    "seed": "UINT",
    "metrics_port": "INT:INT in [0 - 65535]",
    "compute_threads": "INT",
    "task_index": "INT",
}
PROGRAMS = tuple(_OWN_FLAGS)

sys.path[:0] = [os.path.join(REPOSITORY, "deploy"), os.path.join(REPOSITORY, "tests", "support")]

import stop_signals  # noqa: E402  (needs the path above)
from temporary_directory import DEADLINE_SECONDS, TemporaryDirectoryTest  # noqa: E402
from tfjob_local import command_line  # noqa: E402
from tfjob_text import manifest, replica  # noqa: E402, F401  (for the tests)

stop_signals.restore()


def wait_until(condition, what):
    """Polls `condition` until it is true; fails at the deadline."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {DEADLINE_SECONDS} s: {what}")
        time.sleep(0.01)


def process_exists(pid):
    """False for a zombie, too: it has ended and only was not reaped yet."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rsplit(")", 1)[1].split()[0] not in ("Z", "X")
    except (OSError, IndexError):
        return False


def flag_table(program):
    """What the program answers to --help=json, as far as the tests need it."""
    own = _OWN_FLAGS[program]
    rows = [("option", name, "Options") for name in (*_COMMON_FLAGS, *own)]
    rows += [("option", name, "Cluster (completes or replaces TF_CONFIG)") for name in ("job_name", "task_index", "ps_hosts", "job_token_file")]
    if program == "chief":
        rows.append(("flag", "chief_trains", "Options"))
    if program == "evaluator":
        rows += [("flag", "serve_only", "Options"), ("option", "runs", "Options")]
    flags = [
        {"kind": kind, "name": name, "group": group, "type": _TYPES.get(name, "TEXT") if kind == "option" else ""}
        for kind, name, group in rows
    ]
    return json.dumps({"flags": flags})


def program_script(program, script=""):
    """A shell script in the program's place, which knows its flags."""
    answer = f"echo '{flag_table(program)}'; exit"
    return f'if [ "$1" = --help=json ]; then {answer}; fi\n{script}\n'


class LauncherTest(TemporaryDirectoryTest):
    """Runs the launcher with shell scripts in place of the four programs.

    A script may use $OUT, the test's directory; unless set, a program exits with 0 at once. What other
    terminals ask goes to the launchers of this test alone.
    """

    def setUp(self):
        super().setUp()
        for name in PROGRAMS:
            self.set_program(name, "exit 0")

    def set_program(self, name, script):
        self.write_script(f"bin/{name}", program_script(name, f"OUT='{self.directory}'\n{script}"))

    def start(self, text, *flags, name="job.yaml"):
        manifest_path = self.write(name, text)
        command = [
            LAUNCHER,
            f"--bin_dir={self.path('bin')}",
            f"--run_dir={self.path('run')}",
            manifest_path,
            *flags,
        ]
        launcher = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=self.directory,
            env=self.environment(),
            # A background job of a script is started with SIGINT ignored.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        self.addCleanup(self._end, launcher)
        return launcher

    def environment(self):
        return {**os.environ, "XDG_RUNTIME_DIR": self.directory}

    def ask(self, *arguments):
        """Runs a command that starts nothing, in this process: returns exit code, standard output, standard
        error."""
        output, errors = io.StringIO(), io.StringIO()
        with (
            mock.patch.dict(os.environ, self.environment()),
            contextlib.redirect_stdout(output),
            contextlib.redirect_stderr(errors),
        ):
            try:
                code = command_line.main(arguments)
            except SystemExit as end:
                code = end.code
        return code, output.getvalue(), errors.getvalue()

    def run_job(self, text, *flags):
        """The exit code and the output."""
        launcher = self.start(text, *flags)
        output, _ = launcher.communicate(timeout=DEADLINE_SECONDS)
        return launcher.returncode, output

    def wait_for_file(self, *parts):
        wait_until(lambda: os.path.exists(self.path(*parts)), f"{parts} exists")

    def wait_for_pid(self, *parts):
        """The number in a file that a program writes its pid to, with a line break at its end."""
        self.wait_for_file(*parts)
        wait_until(lambda: self.read(*parts).endswith("\n"), f"{parts} is written")
        return int(self.read(*parts))

    @staticmethod
    def _end(launcher):
        if launcher.poll() is None:
            launcher.kill()
            launcher.wait()
        launcher.stdout.close()
