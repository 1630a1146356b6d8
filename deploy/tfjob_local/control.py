"""The launcher's end of its control socket: requests from other terminals, as JSON lines.

A request is one line, {"command": "scale", ...}; the reply is one line, {"ok": true, ...} or {"ok":
false, "error": "..."}. Sockets lie in a directory of the user, one per launcher, named by its pid.
Nothing here waits: data that a slow client has not sent or taken is handled by the next call. """

import json
import os
import socket
import stat
from typing import Any, Callable, Dict, List, Optional

_SUFFIX = ".sock"
_MAX_CLIENTS = 16
_MAX_REQUEST_BYTES = 64 * 1024
# A client that has not sent its request, or taken its reply, is then dropped.
_CLIENT_SECONDS = 10.0

Reply = Dict[str, Any]


class ControlError(Exception):
    """The directory of the sockets cannot be used; the text is one line."""


def default_path() -> str:
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    return os.path.join(runtime, "keelson") if runtime else f"/tmp/keelson-{os.getuid()}"


class ControlDirectory:
    """$XDG_RUNTIME_DIR/keelson, or /tmp/keelson-UID: of this user, closed to all others."""

    def __init__(self, path: Optional[str] = None):
        self.path = path or default_path()
        try:
            os.mkdir(self.path, 0o700)
        except FileExistsError:
            pass
        except OSError as error:
            raise ControlError(f"{self.path}: {error.strerror}") from error
        try:
            self._descriptor = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError as error:
            raise ControlError(f"{self.path}: expected a directory: {error.strerror}") from error
        status = os.fstat(self._descriptor)
        if status.st_uid != os.getuid():
            self.close()
            raise ControlError(f"{self.path}: expected the owner {os.getuid()}, found {status.st_uid}")
        if stat.S_IMODE(status.st_mode) & 0o077:
            os.fchmod(self._descriptor, 0o700)

    def __enter__(self) -> "ControlDirectory":
        return self

    def __exit__(self, *unused: object) -> None:
        self.close()

    def close(self) -> None:
        os.close(self._descriptor)

    def sockets(self) -> List[str]:
        return sorted(name for name in os.listdir(self._descriptor) if name.endswith(_SUFFIX))

    def address(self, name: str) -> str:
        """The address is short, whatever the directory's name: the kernel accepts 107 bytes."""
        return f"/proc/self/fd/{self._descriptor}/{name}"

    def remove(self, name: str) -> None:
        try:
            os.unlink(name, dir_fd=self._descriptor)
        except FileNotFoundError:
            pass

    def remove_dead(self) -> None:
        """The sockets that launchers left behind when they were killed."""
        for name in self.sockets():
            if not self._answers(name):
                self.remove(name)

    def _answers(self, name: str) -> bool:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            probe.setblocking(False)
            try:
                probe.connect(self.address(name))
            except (ConnectionRefusedError, FileNotFoundError):
                return False
            except OSError:
                return True  # Busy: somebody listens.
        return True


class ControlServer:
    """Answers with what `handle` returns for a request."""

    def __init__(
        self,
        directory: ControlDirectory,
        handle: Callable[[Dict[str, Any]], Reply],
        clock: Callable[[], float],
    ):
        self._directory = directory
        self._handle = handle
        self._clock = clock
        self._clients: List["_Client"] = []
        self._name = f"{os.getpid()}{_SUFFIX}"
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.setblocking(False)
        directory.remove_dead()
        # It answers as soon as it has its final name, since others remove sockets that do not.
        unfinished = f"{os.getpid()}.new"
        directory.remove(unfinished)
        self._listener.bind(directory.address(unfinished))
        self._listener.listen(_MAX_CLIENTS)
        os.rename(directory.address(unfinished), directory.address(self._name))

    def close(self) -> None:
        self._directory.remove(self._name)
        for client in self._clients:
            client.close()
        self._clients.clear()
        self._listener.close()

    def poll(self) -> None:
        """Serves all requests that can be served without waiting."""
        self._accept()
        for client in self._clients:
            request = client.receive()
            if request is not None:
                client.reply(self._answer(request))
            client.send()
        self._clients = [client for client in self._clients if not client.over(self._clock())]

    def _accept(self) -> None:
        while len(self._clients) < _MAX_CLIENTS:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._clients.append(_Client(connection, self._clock() + _CLIENT_SECONDS))

    def _answer(self, line: bytes) -> Reply:
        try:
            request = json.loads(line)
        except ValueError as error:
            return {"ok": False, "error": f"expected a request as one line of JSON: {error}"}
        if not isinstance(request, dict):
            return {"ok": False, "error": "expected a request as a JSON object"}
        return self._handle(request)


class _Client:
    """One connection: one request, one reply."""

    def __init__(self, connection: socket.socket, deadline: float):
        connection.setblocking(False)
        self._connection = connection
        self._deadline = deadline
        self._received = b""
        self._unsent: Optional[bytes] = None
        self._closed = False

    def receive(self) -> Optional[bytes]:
        """The request, once it is complete."""
        if self._unsent is not None or self._closed:
            return None
        try:
            data = self._connection.recv(_MAX_REQUEST_BYTES)
        except BlockingIOError:
            return None
        except OSError:
            data = b""
        self._received += data
        line, found, _ = self._received.partition(b"\n")
        if found:
            return line
        if not data or len(self._received) > _MAX_REQUEST_BYTES:
            self.close()
        return None

    def reply(self, reply: Reply) -> None:
        self._unsent = json.dumps(reply).encode() + b"\n"

    def send(self) -> None:
        if self._unsent is None or self._closed:
            return
        try:
            sent = self._connection.send(self._unsent)
        except BlockingIOError:
            return
        except OSError:
            self.close()
            return
        self._unsent = self._unsent[sent:]
        if not self._unsent:
            self.close()

    def over(self, now: float) -> bool:
        if now > self._deadline:
            self.close()
        return self._closed

    def close(self) -> None:
        self._closed = True
        self._connection.close()
