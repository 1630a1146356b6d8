"""Runs kubectl, the only access to the cluster, and classifies its errors."""

import json
import os
import re
import selectors
import subprocess
import tempfile
from typing import Any, Dict, List, Optional, Protocol, Sequence

from tfjob_api.job_kind import JOB_KINDS, TF_JOB, JobKind
from tfjob_api.model import API_GROUP

from .errors import ClusterError, ErrorKind

# A request that the server does not answer within this time has failed.
_REQUEST_TIMEOUT = "--request-timeout=30s"
_STOP_SECONDS = 5.0

_NO_SUCH_KIND = "|".join(
    rf"no matches for kind \"{kind}\"|doesn't have a resource type \"{kind.plural}\"" for kind in JOB_KINDS.values()
)
# The first pattern that matches kubectl's output decides.
_KINDS = (
    (_NO_SUCH_KIND, ErrorKind.NO_OPERATOR),
    (r"admission webhook", ErrorKind.INVALID),
    (r"\(Forbidden\)|is forbidden:", ErrorKind.FORBIDDEN),
    (r"\(Unauthorized\)|must be logged in|provide credentials", ErrorKind.UNAUTHORIZED),
    (r"\(NotFound\)", ErrorKind.NOT_FOUND),
    (r"\(AlreadyExists\)", ErrorKind.EXISTS),
    (r"\(Invalid\)|error validating|strict decoding", ErrorKind.INVALID),
    (
        r"was refused|unable to connect|no such host|i/o timeout|timed out|timeout exceeded"
        r"|no configuration has been provided|connection reset|unexpected EOF|\(ServiceUnavailable\)",
        ErrorKind.NO_SERVER,
    ),
)
# Lines that kubectl's library logs before the error ("E1122 07:45:41.873275 ...").
_LOG_LINE = re.compile(r"[EWIF]\d{4} \d\d:\d\d:\d\d")


def resource_of(kind: JobKind) -> str:
    """As kubectl names the jobs of a kind: "tfjobs.kubeflow.org"."""
    return f"{kind.plural}.{API_GROUP}"


class LineStream(Protocol):
    """The output of a running command."""

    def read(self, timeout: float) -> Optional[List[str]]:
        """Returns the lines received, without their ends; [] after `timeout` seconds; None: the command has
        ended."""

    def close(self) -> Optional[ClusterError]:
        """Ends the command if it still runs. Returns the error with which it ended by itself, if any; also
        when called again."""


class Kubectl(Protocol):
    """The client's access to a cluster. Implemented by KubectlProgram, and by fakes in the tests."""

    def run(self, arguments: Sequence[str], namespace: str = "", input_text: str = "") -> str:
        """Its output. ClusterError."""

    def stream(self, arguments: Sequence[str], namespace: str = "") -> LineStream:
        """Its output while it runs."""


def read_json(
    kubectl: Kubectl, arguments: Sequence[str], namespace: str = "", input_text: str = ""
) -> Dict[str, Any]:
    """The object, or list of objects, that `kubectl ARGUMENTS -o json` prints."""
    return _parse(arguments[0], kubectl.run([*arguments, "-o", "json"], namespace, input_text))


def _parse(verb: str, text: str) -> Dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise ClusterError(ErrorKind.OTHER, f"kubectl {verb}: not JSON: {error}") from error
    if not isinstance(value, dict):
        raise ClusterError(ErrorKind.OTHER, f"kubectl {verb}: expected an object, found {text[:80]!r}")
    return value


def find_json(kubectl: Kubectl, kind: str, name: str, namespace: str = "") -> Optional[Dict[str, Any]]:
    """None: there is no such object."""
    try:
        return read_json(kubectl, ["get", kind, name], namespace)
    except ClusterError as error:
        if error.kind is ErrorKind.NOT_FOUND:
            return None
        raise


def find_objects(kubectl: Kubectl, references: Sequence[str], namespace: str = "") -> List[Dict[str, Any]]:
    """Those of "KIND/NAME" that there are; one call for all."""
    text = kubectl.run(["get", *references, "--ignore-not-found", "-o", "json"], namespace)
    if not text.strip():
        return []
    value = _parse("get", text)
    return list(value["items"]) if value.get("kind") == "List" else [value]


class KubectlProgram:
    """The program, as it is found in PATH or at the given place."""

    def __init__(self, program: str = "kubectl", context: str = "", kubeconfig: str = ""):
        self._program = program
        self._flags = [f"--context={context}"] if context else []
        if kubeconfig:
            self._flags.append(f"--kubeconfig={kubeconfig}")

    def run(self, arguments: Sequence[str], namespace: str = "", input_text: str = "") -> str:
        command = [*self._command(namespace), _REQUEST_TIMEOUT, *arguments]
        try:
            done = subprocess.run(
                command,
                input=input_text,
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                check=False,
            )
        except OSError as error:
            raise self._not_started(error) from error
        if done.returncode != 0:
            raise kubectl_error(done.stderr, done.returncode)
        return done.stdout

    def stream(self, arguments: Sequence[str], namespace: str = "") -> "ProcessStream":
        try:
            return ProcessStream([*self._command(namespace), *arguments])
        except OSError as error:
            raise self._not_started(error) from error

    def _command(self, namespace: str) -> List[str]:
        return [self._program, *self._flags, *([f"--namespace={namespace}"] if namespace else [])]

    def _not_started(self, error: OSError) -> ClusterError:
        text = f'kubectl: cannot run "{self._program}": {error.strerror}; install it or give --kubectl PATH'
        return ClusterError(ErrorKind.NO_KUBECTL, text)


class ProcessStream:
    """A process and the lines it writes."""

    def __init__(self, command: Sequence[str]):
        self._errors = tempfile.TemporaryFile()
        try:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self._errors
            )
        except OSError:
            self._errors.close()
            raise
        assert self._process.stdout is not None
        self._output = self._process.stdout
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._output, selectors.EVENT_READ)
        self._rest = b""
        self._ended = False
        self._result: Optional[ClusterError] = None

    def read(self, timeout: float) -> Optional[List[str]]:
        if self._ended:
            return None
        if not self._selector.select(timeout):
            return []
        data = os.read(self._output.fileno(), 65536)
        if not data:
            self._ended = True
            return [self._rest.decode("utf-8", "replace")] if self._rest else None
        *lines, self._rest = (self._rest + data).split(b"\n")
        return [line.decode("utf-8", "replace") for line in lines]

    def close(self) -> Optional[ClusterError]:
        if self._output.closed:
            return self._result
        stopped = not self._ended
        if stopped:
            self._process.terminate()
        try:
            code = self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait()
        self._selector.close()
        self._output.close()
        self._errors.seek(0)
        written = self._errors.read().decode("utf-8", "replace")
        self._errors.close()
        if not stopped and code != 0:
            self._result = kubectl_error(written, code)
        return self._result


def kubectl_error(written: str, exit_code: int) -> ClusterError:
    """Converts kubectl's stderr to an error of one line with its kind."""
    kind = next((k for pattern, k in _KINDS if re.search(pattern, written, re.I)), ErrorKind.OTHER)
    if kind is ErrorKind.NO_OPERATOR:
        asked = next((job for job in JOB_KINDS.values() if job.name in written or job.plural in written), TF_JOB)
        text = (
            f"the {asked} operator is not installed: the cluster does not know {resource_of(asked)}; "
            "docs/operations.md says how to install it, or how to do without"
        )
        return ClusterError(kind, text, exit_code)
    line = _message(written) or f"exit code {exit_code}"
    return ClusterError(kind, f"kubectl: {line}", exit_code)


def _message(written: str) -> str:
    """Joins the lines, without those that the library logged."""
    lines = [line.strip() for line in written.splitlines()]
    own = [line for line in lines if line and not _LOG_LINE.match(line)]
    return " ".join(own or [line for line in lines if line][-1:])
