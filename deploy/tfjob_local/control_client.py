"""The client of the control socket: finds the running job, sends a request, prints the answer."""

import json
import os
import socket
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Optional

from .control import ControlDirectory
from .run_directory import RunDirectory

# A launcher answers within one of its ticks; one that is stopped (Ctrl-Z) never does.
_ANSWER_SECONDS = 10.0


class ControlClientError(Exception):
    """There is no such job, or it refuses; the text is what the user reads."""


@dataclass(frozen=True)
class RunningJob:
    socket_name: str
    view: Mapping[str, Any]

    @property
    def name(self) -> str:
        return str(self.view["job"])

    @property
    def run_dir(self) -> str:
        return str(self.view["run_dir"])

    def __str__(self) -> str:
        return f"{self.name} (launcher {self.view['launcher']}, --run_dir {self.run_dir})"


def find_job(directory: ControlDirectory, job_name: str = "", run_dir: str = "") -> RunningJob:
    """The only running job, or the one of that name or directory."""
    running = list_jobs(directory)
    wanted = [job for job in running if _matches(job, job_name, run_dir)]
    if len(wanted) == 1:
        return wanted[0]
    if wanted:
        raise ControlClientError(
            "several jobs are running, choose one by --job or --run_dir: " + "; ".join(map(str, wanted))
        )
    chosen = f" {job_name}" if job_name else f" with the run directory {run_dir}" if run_dir else ""
    others = "; running: " + "; ".join(map(str, running)) if running else ""
    raise ControlClientError(f"no job{chosen} is running on this machine for this user{others}")


def list_jobs(directory: ControlDirectory) -> List[RunningJob]:
    directory.remove_dead()
    jobs = []
    for name in directory.sockets():
        try:
            reply = ask(directory, name, {"command": "status"})
        except OSError:
            continue  # It has just ended, or is stopped.
        jobs.append(RunningJob(name, reply["view"]))
    return jobs


def ask(directory: ControlDirectory, socket_name: str, request: Mapping[str, Any]) -> Dict[str, Any]:
    """OSError: the launcher does not answer. ControlClientError: it refuses."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(_ANSWER_SECONDS)
        connection.connect(directory.address(socket_name))
        connection.sendall(json.dumps(request).encode() + b"\n")
        received = bytearray()
        while not received.endswith(b"\n"):
            data = connection.recv(65536)
            if not data:
                raise ConnectionResetError("the launcher ended before it answered")
            received += data
    reply = json.loads(received)
    if not reply.get("ok"):
        raise ControlClientError(str(reply.get("error")))
    return reply


def finished_view(run_dir: str) -> Optional[Mapping[str, Any]]:
    """The last state that the launcher of that directory wrote; None: there is none. ValueError: damaged."""
    try:
        return RunDirectory(os.path.abspath(run_dir)).read_state()
    except FileNotFoundError:
        return None


def _matches(job: RunningJob, job_name: str, run_dir: str) -> bool:
    if job_name and job.name != job_name:
        return False
    return not run_dir or os.path.realpath(run_dir) == os.path.realpath(job.run_dir)
