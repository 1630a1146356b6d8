"""A chief and a parameter server on this machine, for a script that no cluster has started."""

from __future__ import annotations

import contextlib
import json
import os
import random
import secrets
import socket
import time
from typing import Callable, Dict, Iterator, List, Sequence

from .errors import lost
from .programs import Child, find_program

_HOST = "127.0.0.1"
# Below the range that the kernel gives to outgoing connections.
_PORTS = range(15000, 32768)
# How long they may take to end: a snapshot, and then some.
_LEAVE_SECONDS = 100
_SLICE_SECONDS = 0.1


class LocalCluster:
    """Runs from start() to its end. Its processes get SIGTERM when the script ends without one: they write a snapshot."""

    def __init__(self, model_dir: str, log_dir: str, flags: Sequence[str], chief_flags: Sequence[str]) -> None:
        """`flags`: what chief and server are told of the configuration; `chief_flags`: what the chief alone is told."""
        self._model_dir = model_dir
        self._flags = {"ps": flags, "chief": [*flags, *chief_flags]}
        self.log_dir = log_dir
        self._children: List[Child] = []
        self._reservations = contextlib.ExitStack()
        self._addresses: Dict[str, List[str]] = {}
        # Of this process alone: another script in the same directory is refused later.
        self._token_path = os.path.join(log_dir, f"job_token-{os.getpid()}")

    def start(self) -> None:
        """JoinError: a program is missing."""
        commands = {"ps": find_program("ps_server"), "chief": find_program("chief")}
        ports = _free_ports(self._reservations)
        self._write_token()
        self._addresses = {role: [f"{_HOST}:{next(ports)}"] for role in ("chief", "ps", "worker")}
        for role, program in commands.items():
            command = [program, *self._flags[role], f"--model_dir={self._model_dir}"]
            self._children.append(Child(command, self.environment(role), self.log_path(role)))

    def environment(self, role: str) -> Dict[str, str]:
        """By which a program knows its place, and that nobody else gets into the job."""
        tf_config = {"cluster": self._addresses, "task": {"type": role, "index": 0}}
        return {
            "TF_CONFIG": json.dumps(tf_config, separators=(",", ":")),
            "KEELSON_JOB_TOKEN_FILE": self._token_path,
        }

    def log_path(self, role: str) -> str:
        return os.path.join(self.log_dir, f"{role}.log")

    def check(self) -> None:
        """AgentLost: one of them has ended otherwise than with the job."""
        for child in self._children:
            code = child.exit_code()
            if code:
                raise lost(child.last_words(), code)

    def finish(self, on_slice: Callable[[], None]) -> None:
        """Waits until the job, whose steps are done, has ended. AgentLost: one of them failed. `on_slice` is called
        meanwhile, and may raise."""
        try:
            while any(child.exit_code() is None for child in self._children):
                on_slice()
                self.check()
                time.sleep(_SLICE_SECONDS)
            self.check()
        except BaseException:
            self.stop()
            raise
        self._release()

    def stop(self) -> None:
        """Ends them before the job has ended, with a snapshot; a second Ctrl-C without."""
        try:
            for child in self._children:
                child.terminate()
            deadline = time.monotonic() + _LEAVE_SECONDS
            while any(child.exit_code() is None for child in self._children) and time.monotonic() < deadline:
                time.sleep(_SLICE_SECONDS)
        finally:
            for child in self._children:
                child.kill()
            self._release()

    def _release(self) -> None:
        self._reservations.close()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._token_path)

    def _write_token(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._token_path)
        descriptor = os.open(self._token_path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(secrets.token_hex(32))


def _free_ports(reservations: contextlib.ExitStack) -> Iterator[int]:
    """Ports that nobody listens on, and that no other script or launcher takes as long as the reservations are open."""
    for port in random.sample(_PORTS, len(_PORTS)):
        with contextlib.suppress(OSError):
            mark = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            reservations.enter_context(mark)
            mark.bind(f"\0keelson-port-{port}")
            with socket.socket() as probe:
                probe.bind((_HOST, port))
            yield port
    raise OSError("no free port")
