"""Keelson's programs: where they are, and processes of them that do not outlive this one."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import signal
import subprocess
import tempfile
from typing import IO, Callable, Dict, List, Mapping, Optional, Sequence, Union, cast

from .cluster_environment import CLUSTER_VARIABLES
from .errors import JoinError

_PR_SET_PDEATHSIG = 1
_PACKAGE = os.path.dirname(os.path.abspath(__file__))
_LIBRARIES = os.path.join(_PACKAGE, "lib")  # In a wheel (deploy/make_wheel.py).
_BUILT = os.path.join(os.path.dirname(os.path.dirname(_PACKAGE)), "build", "release", "bin")

# Where a program of a pod tells the kubelet why it ended.
_KUBELETS_FILE = "/dev/termination-log"
_LONGEST_WORDS = 4096
_ERROR = re.compile(r"E \S+Z \S+ (.*)")

_libc = ctypes.CDLL(None)


def find_program(name: str) -> str:
    """Of KEELSON_BINARY_DIR if that is set; otherwise of the package, of the repository's release build, or of the PATH.
    JoinError: there is none."""
    chosen = os.environ.get("KEELSON_BINARY_DIR")
    folders = [chosen] if chosen else [os.path.join(_PACKAGE, "bin"), _BUILT]
    for folder in folders:
        path = os.path.abspath(os.path.join(folder, name))
        if os.access(path, os.X_OK):
            return path
    found = None if chosen else shutil.which(name)
    if found:
        return found
    places = folders if chosen else [*folders, "the PATH"]
    raise JoinError(f"{name}: expected Keelson's program in {' or '.join(places)} (KEELSON_BINARY_DIR), found none")


class Child:
    """A process that gets SIGTERM when the thread ends that started it, however that ends. It is in a session of its own, so
    that Ctrl-C in the terminal reaches the script alone, which ends it in order."""

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        log_path: Optional[str] = None,
        descriptors: Sequence[int] = (),
    ) -> None:
        """One of Keelson's programs. Without a log path it writes to this process's standard error."""
        self.name = os.path.basename(command[0])
        self.log_path = log_path
        # Where it says why it ended, where that is a file of its own.
        self._words: Optional[IO[bytes]] = None
        words_flags: List[str] = []
        if log_path is None and not _has_kubelets_file():
            self._words = cast(IO[bytes], tempfile.TemporaryFile())
            words_flags = [f"--termination_log=/dev/fd/{self._words.fileno()}"]
            descriptors = [*descriptors, self._words.fileno()]
        log: Union[IO[bytes], int] = open(log_path, "wb") if log_path else 2
        try:
            self._process = subprocess.Popen(
                [*command, *words_flags],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment_of(command[0], environment),
                pass_fds=descriptors,
                start_new_session=True,
                preexec_fn=_ends_with(os.getpid()),
            )
        finally:
            if not isinstance(log, int):
                log.close()

    def exit_code(self) -> Optional[int]:
        """128 + n after signal n; None: it runs."""
        code = self._process.poll()
        return code if code is None or code >= 0 else 128 - code

    def wait(self, seconds: float) -> Optional[int]:
        """As exit_code, after so long at the most."""
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            pass
        return self.exit_code()

    def terminate(self) -> None:
        self._send(signal.SIGTERM)

    def kill(self) -> None:
        self._send(signal.SIGKILL)
        self._process.wait()

    def last_words(self) -> str:
        """Its name, its exit code, and what it said last of why."""
        line = last_error(self.log_path) if self.log_path else self._told_words()
        return f"{self.name} ended with {self.exit_code()}{': ' + line if line else ''}"

    def _told_words(self) -> Optional[str]:
        if self._words is not None:
            words = os.pread(self._words.fileno(), _LONGEST_WORDS, 0)
        else:
            try:
                with open(_KUBELETS_FILE, "rb") as file:
                    words = file.read(_LONGEST_WORDS)
            except OSError:
                return None
        return words.decode("utf-8", "replace").strip() or None

    def _send(self, number: signal.Signals) -> None:
        if self._process.poll() is None:
            self._process.send_signal(number)


def _has_kubelets_file() -> bool:
    """One that is this process's alone."""
    return os.path.exists(_KUBELETS_FILE) and os.environ.get("LOCAL_WORLD_SIZE", "1") == "1"


def last_error(log_path: str) -> Optional[str]:
    """The text of the last line that is an error; None: there is none, as where a signal ended the program."""
    try:
        with open(log_path, encoding="utf-8", errors="replace") as file:
            errors = [match.group(1) for match in map(_ERROR.match, file) if match]
    except OSError:
        return None
    return errors[-1] if errors else None


def environment_of(program: str, additions: Mapping[str, str]) -> Dict[str, str]:
    """What a program is started with: this process's environment, but for what would tell it that it belongs to another job
    than `additions` say, and the package's libraries for the package's programs."""
    own = {name: value for name, value in os.environ.items() if name not in CLUSTER_VARIABLES}
    if os.path.dirname(program) == os.path.join(_PACKAGE, "bin") and os.path.isdir(_LIBRARIES):
        own["LD_LIBRARY_PATH"] = ":".join(filter(None, (_LIBRARIES, own.get("LD_LIBRARY_PATH"))))
    return {**own, **additions}


def _ends_with(parent: int) -> Callable[[], None]:
    def prepare() -> None:
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(128 + signal.SIGTERM)  # It ended before the line above.

    return prepare
