"""runs/JOB-TIME: the logs, the volumes, the model unless it is elsewhere, and the state of the job.

    logs/         one file per replica and attempt
    volumes/      what the manifest mounts
    model/        unless --model_dir says otherwise
    status.yaml   the TFJob with its status, as `kubectl get -o yaml` shows it
    state.json    what the command `status` shows: the replicas' processes, the progress line
    job_token     what the job's processes show one another, for the user alone
    launcher      locked by the launcher that uses the directory, and says which one that is
"""

import contextlib
import fcntl
import json
import os
import secrets
import socket
import time
from dataclasses import dataclass
from typing import Any, Dict, Mapping, Optional

from tfjob_api.status import rfc3339
from tfjob_api.yaml_text import to_yaml

from .own_files import make_directory, open_own, write_new_file

STATUS_FILE = "status.yaml"
STATE_FILE = "state.json"
_LOCK_FILE = "launcher"
_TOKEN_FILE = "job_token"


class RunDirectoryInUse(Exception):
    """Another launcher uses the directory; the text says which one, since when."""


class RunLock:
    """No other launcher uses the directory until this is closed, here and in processes that inherit it."""

    def __init__(self, path: str, job_name: str):
        """RunDirectoryInUse. OSError: the file system has no locks, or a link stands in the file's place."""
        self.descriptor = open_own(os.path.join(path, _LOCK_FILE), os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(self.descriptor, 0)
            holder = f"{os.getpid()} on {socket.gethostname()} (job {job_name}), since {rfc3339(time.time())}"
            os.write(self.descriptor, holder.encode())
        except BlockingIOError:
            # It is empty until the other launcher has written it.
            holder = " ".join(os.read(self.descriptor, 1000).decode(errors="replace").split())
            self.close()
            raise RunDirectoryInUse(f"in use by launcher {holder or '(which one is not known yet)'}") from None
        except OSError:
            self.close()
            raise

    def __enter__(self) -> "RunLock":
        return self

    def __exit__(self, *unused: object) -> None:
        self.close()

    def close(self) -> None:
        os.close(self.descriptor)


@dataclass(frozen=True)
class RunDirectory:
    path: str

    @property
    def log_dir(self) -> str:
        return os.path.join(self.path, "logs")

    @property
    def volumes_dir(self) -> str:
        return os.path.join(self.path, "volumes")

    @property
    def model_dir(self) -> str:
        return os.path.join(self.path, "model")

    @property
    def job_token(self) -> str:
        return os.path.join(self.path, _TOKEN_FILE)

    def make(self) -> None:
        """FileExistsError: it is there already, as another launcher's or for anything else."""
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        os.mkdir(self.path)

    def lock(self, job_name: str) -> RunLock:
        """Makes the directory where it is not there. RunDirectoryInUse, OSError."""
        os.makedirs(self.path, exist_ok=True)
        return RunLock(self.path, job_name)

    def prepare(self) -> Optional[str]:
        """Makes what is in the directory. Logs of an earlier run in it keep their content under another name,
        which is returned."""
        moved = None
        if os.path.islink(self.log_dir) or os.path.isdir(self.log_dir) and os.listdir(self.log_dir):
            moved = _unused_path(f"{self.log_dir}.")
            os.rename(self.log_dir, moved)
        for path in (self.log_dir, self.volumes_dir):
            make_directory(self.path, path)
        with contextlib.suppress(FileNotFoundError):
            os.remove(self.job_token)
        write_new_file(self.path, self.job_token, f"{secrets.token_hex(32)}\n".encode(), 0o600)
        return moved

    def write_state(self, view: Mapping[str, Any]) -> None:
        """Readers find either the old state or the new one."""
        _replace(os.path.join(self.path, STATUS_FILE), to_yaml([view["tfjob"]]))
        _replace(os.path.join(self.path, STATE_FILE), json.dumps(view, indent=1) + "\n")

    def read_state(self) -> Dict[str, Any]:
        """FileNotFoundError: no job has run here. ValueError: damaged, one line."""
        path = os.path.join(self.path, STATE_FILE)
        with open(path, encoding="utf-8") as file:
            try:
                view = json.load(file)
            except ValueError as error:
                raise ValueError(f"{path}: expected the state of a job as JSON: {error}") from error
        if not isinstance(view, dict) or "tfjob" not in view:
            raise ValueError(f"{path}: expected the state of a job, found other JSON")
        return view


def fresh_run_path(runs_dir: str, job_name: str) -> str:
    """runs/JOB-TIME, which does not exist yet; until it is made, others may find the same name."""
    base = os.path.join(runs_dir, f"{job_name}-{time.strftime('%Y%m%d-%H%M%S')}")
    return base if not os.path.lexists(base) else _unused_path(f"{base}-", first=2)


def _unused_path(prefix: str, first: int = 1) -> str:
    number = first
    while os.path.lexists(f"{prefix}{number}"):
        number += 1
    return f"{prefix}{number}"


def _replace(path: str, text: str) -> None:
    temporary = f"{path}.new"
    with open(temporary, "w", encoding="utf-8", opener=open_own) as file:
        file.write(text)
    os.replace(temporary, path)
