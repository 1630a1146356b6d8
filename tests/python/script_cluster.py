"""Scripts as the workers of one job, which tests kill and start again, with a chief and a server or as the whole cluster;
also beside C++ workers."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time

from real_job import BINARIES, DEADLINE_SECONDS, free_ports

_PROGRAMS = {"chief": "chief", "ps": "ps_server", "worker": "worker"}


def heed_interrupts():
    """In a process that is starting: a shell has those that it runs in the background ignore SIGINT, and their children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class ScriptCluster:
    """Its processes write to files in the test's directory, one for each role, however often they are started. A with block
    leaves none running."""

    def __init__(
        self, test, script, scripts, chief_flags=(), config="script", data_dir=None, workers=0, servers=True, ranks=None
    ):
        """`script`: its path; it has the test's model_dir. `workers`: C++ ones, numbered behind the scripts, which
        start() starts. `servers`: with a chief and a parameter server. `ranks`: instead of TF_CONFIG the processes are told
        their rank and how many they are in these two variables, and where the first one is, as by torchrun and mpirun."""
        token = test.path_of("token", "0" * 64)
        os.chmod(token, 0o600)
        self._directory = test.directory
        self._environment = {**test.environment, "KEELSON_JOB_TOKEN_FILE": token}
        self._script, self._chief_flags = script, chief_flags
        self._flags = [f"--config={config}", f"--model_dir={test.model_dir}"]
        self._flags += [] if data_dir is None else [f"--data_dir={data_dir}"]
        self._scripts = scripts
        self._ranks = ranks
        addresses = [f"127.0.0.1:{port}" for port in free_ports(2 + scripts + workers)]
        self._addresses = {"chief": addresses[:1], "ps": addresses[1:2]} if servers else {}
        self._addresses["worker"] = addresses[2:]
        self._running = {}

    def __enter__(self):
        for role, addresses in self._addresses.items():
            for index in range(self._scripts if role == "worker" else len(addresses)):
                self.start(role, index)
        return self

    def __exit__(self, *error):
        agents = [self.agent(index) for role, index in self._running if role == "worker"]
        for agent in filter(None, agents):
            with contextlib.suppress(ProcessLookupError):
                os.kill(agent, signal.SIGKILL)
        for process in self._running.values():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGCONT)
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def start(self, role, index=0):
        if role == "worker" and index < self._scripts:
            command = [sys.executable, self._script]
        else:
            command = [os.path.join(BINARIES, _PROGRAMS[role]), *self._flags]
        if role == "chief":
            command += self._chief_flags
        with open(self._path(role, index, "out"), "ab") as out, open(self._path(role, index, "log"), "ab") as log:
            self._running[role, index] = subprocess.Popen(
                command, env={**self._environment, **self._place_of(role, index)}, stdin=subprocess.DEVNULL,
                stdout=out, stderr=log, start_new_session=True, preexec_fn=heed_interrupts,
            )  # fmt: skip

    def _place_of(self, role, index):
        if self._ranks is None:
            return {"TF_CONFIG": json.dumps({"cluster": self._addresses, "task": {"type": role, "index": index}})}
        workers = self._addresses["worker"]
        host, _, port = workers[0].rpartition(":")
        rank, size = self._ranks
        return {rank: str(index), size: str(len(workers)), "MASTER_ADDR": host, "MASTER_PORT": port}

    @contextlib.contextmanager
    def with_environment(self, **more):
        """Of what is started meanwhile."""
        before, self._environment = self._environment, {**self._environment, **more}
        yield
        self._environment = before

    def kill(self, role, index=0):
        """Returns when that was."""
        self._running[role, index].kill()
        moment = time.monotonic()
        self._running[role, index].wait()
        return moment

    def pid(self, role, index=0):
        return self._running[role, index].pid

    def agent(self, index=0):
        """The process of a script's agent; None: it has none."""
        agents = [pid for pid in self._children(index) if _name_of(pid) == "keelson_agent"]
        return agents[0] if agents else None

    def loaders(self, index=0):
        """The processes that a script has forked."""
        return [pid for pid in self._children(index) if _name_of(pid).startswith("python")]

    def exit_code(self, role, index=0):
        """As subprocess has it; None: it runs."""
        return self._running[role, index].poll()

    def wait(self, role, index=0):
        """Its exit code, once it has ended."""
        return self._running[role, index].wait(DEADLINE_SECONDS)

    def lines(self, index=0):
        """What a script has printed, over all its processes."""
        return self._read("worker", index, "out").splitlines()

    def log(self, index=0, role="worker"):
        """Of a script and its agents, or of another role, over all its processes."""
        return self._read(role, index, "log")

    def logs(self):
        """For the text of a failure."""
        return "\n".join(f"{role}-{n}: {self._read(role, n, 'log')[-2000:]}" for role, n in self._running)

    def await_line(self, index, line, start=0):
        """When it was seen, behind the first `start` lines."""
        await_true(lambda: line in self.lines(index)[start:], self.logs)
        return time.monotonic()

    def _children(self, index):
        pid = self.pid("worker", index)
        with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{pid}/children", encoding="utf-8") as file:
            return [int(child) for child in file.read().split()]
        return []

    def _path(self, role, index, kind):
        return os.path.join(self._directory, f"{role}-{index}.{kind}")

    def _read(self, role, index, kind):
        with open(self._path(role, index, kind), encoding="utf-8") as file:
            return file.read()


def await_true(condition, explain=lambda: "", seconds=DEADLINE_SECONDS):
    """Looks often: the moment is a figure of some tests."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"expected it within {seconds} s: {explain()}")
        time.sleep(0.005)


def _name_of(pid):
    with contextlib.suppress(OSError), open(f"/proc/{pid}/comm", encoding="utf-8") as file:
        return file.read().strip()[:15]
    return ""
