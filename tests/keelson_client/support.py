"""Shared code of the client's tests: a cluster in memory behind the kubectl interface, a clock, settings."""

import copy
import json
import os
import sys

import yaml

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DEPLOY = os.path.join(REPOSITORY, "deploy")
PROGRAM = os.path.join(DEPLOY, "keelson.py")

sys.path[:0] = [DEPLOY, os.path.join(REPOSITORY, "tests", "support")]

import stop_signals  # noqa: E402
from keelson_client.errors import ClusterError, ErrorKind  # noqa: E402
from keelson_client.settings import JobSettings, Mount  # noqa: E402
from temporary_directory import TemporaryDirectoryTest  # noqa: E402, F401  (for the tests)

stop_signals.restore()

CONFIG = 'model {\n  name: "m"\n}\n'


def settings(**changes):
    """A whole job: chief, 2 ps, 3 workers, evaluator."""
    values = {
        "name": "mnist",
        "image": "keelson:1",
        "ps": 2,
        "workers": 3,
        "config": CONFIG,
        "model_claim": Mount("models", "/model"),
    }
    return JobSettings(**{**values, **changes})


def pod(kind="chief", index=0, phase="Running", labels=None, **status):
    """As the operator of 1.4 and later makes it, for the job "mnist"."""
    state = {"Running": {"running": {}}, "Pending": {"waiting": {}}}.get(phase, {})
    container = {"name": "tensorflow", "restartCount": 0, "state": state}
    prefix = "training.kubeflow.org/"
    own = {
        f"{prefix}job-name": "mnist",
        f"{prefix}replica-type": kind,
        f"{prefix}replica-index": str(index),
    }
    if kind in ("chief", "master"):
        own[f"{prefix}job-role"] = "master"
    return {
        "kind": "Pod",
        "metadata": {
            "name": f"mnist-{kind}-{index}",
            "uid": f"{kind}-{index}",
            "labels": own if labels is None else labels,
        },
        "spec": {"nodeName": "node-1"},
        "status": {"phase": phase, "containerStatuses": [container], **status},
    }


def ended_pod(kind="chief", index=0, exit_code=0, message=""):
    ended = {"terminated": {"exitCode": exit_code, "message": message}}
    containers = [{"name": "tensorflow", "restartCount": 0, "state": ended}]
    phase = "Failed" if exit_code else "Succeeded"
    return pod(kind, index, phase, containerStatuses=containers)


def condition(kind, status="True", message=""):
    return {"type": kind, "status": status, "reason": f"TFJob{kind}", "message": message or kind.lower()}


def tfjob(*kinds, name="mnist", replicas=None):
    """A TFJob of the cluster with the conditions of these types, all true."""
    counts = replicas or {"Chief": 1, "PS": 2, "Worker": 3}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "TFJob",
        "metadata": {"name": name, "namespace": "default", "uid": "u1"},
        "spec": {"tfReplicaSpecs": {kind: {"replicas": number} for kind, number in counts.items()}},
        "status": {"conditions": [condition(kind) for kind in kinds]},
    }


class FakeClock:
    """Time passes only by sleeping; `at` has what happens then."""

    def __init__(self):
        self.now = 0.0
        self._events = []

    def __call__(self):
        return self.now

    def at(self, time, action):
        self._events.append((time, action))

    def sleep(self, seconds):
        self.advance_to(self.now + seconds)

    def advance_to(self, time):
        self.now = time
        due = [event for event in self._events if event[0] <= time]
        self._events = [event for event in self._events if event[0] > time]
        for _, action in due:
            action()


class FakeStream:
    """A log's lines in pieces: a list of lines, or the seconds for which nothing comes."""

    def __init__(self, clock, pieces, error=None):
        self._clock = clock
        self._pieces = list(pieces)
        self._error = error
        self.closed = False

    def read(self, timeout):
        if not self._pieces:
            return None
        piece = self._pieces[0]
        if isinstance(piece, list):
            self._pieces.pop(0)
            return piece
        waited = min(timeout, piece)
        self._clock.sleep(waited)
        self._pieces[0] = piece - waited
        if self._pieces[0] <= 0:
            self._pieces.pop(0)
        return []

    def close(self):
        self.closed = True
        return None if self._pieces else self._error


class FakeKubectl:
    """Objects by kind and name. `errors` has ClusterErrors for "VERB KIND", `streams` what logs answers."""

    def __init__(self):
        self.objects = {}
        self.calls = []
        self.errors = {}
        self.streams = []
        self.logs = {}

    def put(self, value, kind=None):
        kind = kind or value["kind"].lower()
        self.objects[kind, value["metadata"]["name"]] = value
        return value

    def run(self, arguments, namespace="", input_text=""):
        self.calls.append((namespace, list(arguments)))
        verb = arguments[0]
        if verb == "create":
            return self._create(input_text)
        if verb == "logs":
            self._raise("logs", "pod")
            return self.logs.get(arguments[1], "")
        if "/" in arguments[1]:
            return self._run_for_each(verb, arguments)
        if "," in arguments[1]:
            return self._list_all(arguments)
        kinds = {"tfjobs.kubeflow.org": "tfjob", "pytorchjobs.kubeflow.org": "pytorchjob", "pods": "pod"}
        kind = kinds.get(arguments[1], arguments[1])
        self._raise(verb, kind)
        name = arguments[2] if len(arguments) > 2 and not arguments[2].startswith("-") else ""
        if not name:
            return self._list(kind, arguments)
        if (kind, name) not in self.objects:
            if "--ignore-not-found" in arguments:
                return ""
            raise ClusterError(ErrorKind.NOT_FOUND, f"kubectl: {kind} {name} not found")
        return self._answer(verb, kind, name, arguments)

    def _run_for_each(self, verb, arguments):
        """KIND/NAME, any number of them."""
        references = [tuple(a.split("/")) for a in arguments[1:] if "/" in a and not a.startswith("-")]
        for kind, _ in references:
            self._raise(verb, kind)
        found = [self._answer(verb, *r, arguments) for r in references if r in self.objects]
        if len(found) < len(references) and "--ignore-not-found" not in arguments:
            raise ClusterError(ErrorKind.NOT_FOUND, "kubectl: not found")
        return f'{{"kind": "List", "items": [{",".join(found)}]}}' if found else ""

    def stream(self, arguments, namespace=""):
        self.calls.append((namespace, list(arguments)))
        return self.streams.pop(0)

    def verbs(self):
        return [" ".join(arguments[:3]) for _, arguments in self.calls]

    def _raise(self, verb, kind):
        error = self.errors.get(f"{verb} {kind}")
        if error:
            raise error

    def _create(self, text):
        for value in yaml.safe_load_all(text):
            self._raise("create", value["kind"].lower())
            value["metadata"]["uid"] = f"uid-{value['metadata']['name']}"
            self.put(value)
        return json.dumps(value)

    def _list(self, kind, arguments):
        wanted = {}
        if "--selector" in arguments:
            selector = arguments[list(arguments).index("--selector") + 1]
            wanted = dict(part.split("=") for part in selector.split(","))
        items = [
            value
            for (other, _), value in sorted(self.objects.items())
            if other == kind
            and all(value["metadata"].get("labels", {}).get(k) == v for k, v in wanted.items())
        ]
        return json.dumps({"items": items})

    def _list_all(self, arguments):
        """KIND,KIND with their plurals' names."""
        items = []
        for plural in arguments[1].split(","):
            kind = "networkpolicy" if plural == "networkpolicies" else plural.removesuffix("s")
            self._raise("get", kind)
            items += json.loads(self._list(kind, arguments))["items"]
        return json.dumps({"items": items})

    def _answer(self, verb, kind, name, arguments):
        if verb == "delete":
            del self.objects[kind, name]
            return ""
        value = self.objects[kind, name]
        if verb == "patch":
            patch = next(a for a in arguments if a.startswith("--patch="))
            _merge(value, json.loads(patch.partition("=")[2]))
        return json.dumps(value)


def _merge(target, patch):
    for key, value in patch.items():
        if isinstance(value, dict) and isinstance(target.get(key), dict):
            _merge(target[key], value)
        else:
            target[key] = copy.deepcopy(value)
