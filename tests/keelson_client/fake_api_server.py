"""An API server small enough to read: what kubectl needs for TFJobs, pods and what stands beside them.

Objects are kept as they were sent. There is no operator: a test plays it (make_pods, set_condition,
log, end_pod). Errors are Status objects, as those of the real server.
"""

import copy
import http.server
import json
import re
import sys
import threading
import time
import urllib.parse
import uuid

CORE = ("configmaps", "secrets", "serviceaccounts", "services", "pods", "events", "persistentvolumeclaims")
# Resource -> its group and version; of all others v1.
GROUPS = {
    "networkpolicies": "networking.k8s.io/v1",
    "poddisruptionbudgets": "policy/v1",
    "tfjobs": "kubeflow.org/v1",
}
KINDS = {
    "configmaps": "ConfigMap",
    "networkpolicies": "NetworkPolicy",
    "poddisruptionbudgets": "PodDisruptionBudget",
    "secrets": "Secret",
    "serviceaccounts": "ServiceAccount",
    "services": "Service",
    "pods": "Pod",
    "events": "Event",
    "persistentvolumeclaims": "PersistentVolumeClaim",
    "tfjobs": "TFJob",
}
_PATH = re.compile(r"/(?:api/v1|apis/(?:kubeflow\.org|networking\.k8s\.io|policy)/v1)/namespaces/([^/]+)/([^/]+)(?:/([^/]+))?(/log)?")
# A test that waits longer is broken.
_LOG_SECONDS = 30.0


class FakeApiServer:
    """Listens on a free port of 127.0.0.1 until close()."""

    def __init__(self):
        # (resource, namespace, name) -> object.
        self.objects = {}
        # "METHOD resource" of every request for objects, in order.
        self.requests = []
        self.has_operator = True
        # "POST tfjobs" -> (code, reason, message): how such a request is answered.
        self.refusals = {}
        # Emulates the operator: called with each new TFJob.
        self.on_job = None
        self._logs = {}
        self._changed = threading.Condition()
        server = self

        class Handler(_Handler):
            fake = server

        self._http = _Server(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()

    @property
    def address(self):
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def close(self):
        with self._changed:
            for log in self._logs.values():
                log["ended"] = True
            self._changed.notify_all()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    # Actions of the operator and the nodes.

    def make_pods(self, job_name, labels="new", namespace="default"):
        """One running pod for every replica, with the labels of one generation of the operator."""
        job = self.objects["tfjobs", namespace, job_name]
        for kind, spec in job["spec"]["tfReplicaSpecs"].items():
            for index in range(spec.get("replicas", 1)):
                self.make_pod(job_name, kind.lower(), index, labels, namespace)

    def make_pod(self, job_name, kind, index, labels="new", namespace="default", phase="Running"):
        name = f"{job_name}-{kind}-{index}"
        status = {"phase": phase}
        if phase == "Running":
            status["containerStatuses"] = [
                {"name": "tensorflow", "restartCount": 0, "state": {"running": {}}}
            ]
        pod = {
            "metadata": {"name": name, "labels": pod_labels(job_name, kind, index, labels)},
            "spec": {"nodeName": "node-1", "containers": [{"name": "tensorflow"}]},
            "status": status,
        }
        with self._changed:
            self._logs[name] = {"lines": [], "ended": False}
            return self.put("pods", pod, namespace)

    def log(self, pod_name, *lines):
        with self._changed:
            for text in lines:
                log = self._logs[pod_name]["lines"]
                stamp = f"2026-11-22T08:00:{len(log) % 60:02}.{len(log):09}Z"
                log.append((stamp, text))
            self._changed.notify_all()

    def end_pod(self, pod_name, exit_code=0, message="", namespace="default"):
        with self._changed:
            pod = self.objects["pods", namespace, pod_name]
            pod["status"]["phase"] = "Failed" if exit_code else "Succeeded"
            ended = {"terminated": {"exitCode": exit_code, "message": message}}
            pod["status"]["containerStatuses"] = [{"name": "tensorflow", "restartCount": 0, "state": ended}]
            self._logs[pod_name]["ended"] = True
            self._changed.notify_all()

    def cut_logs(self, pod_name):
        """Ends the streams of a pod's log, as a lost connection does; new ones can be opened."""
        with self._changed:
            old = self._logs[pod_name]
            self._logs[pod_name] = {"lines": list(old["lines"]), "ended": False}
            old["ended"] = True
            self._changed.notify_all()

    def delete_pod(self, pod_name, namespace="default"):
        with self._changed:
            self._logs[pod_name]["ended"] = True
            del self.objects["pods", namespace, pod_name]
            self._changed.notify_all()

    def set_condition(self, job_name, kind, message="", status="True", namespace="default"):
        with self._changed:
            conditions = self.objects["tfjobs", namespace, job_name].setdefault("status", {})
            conditions.setdefault("conditions", []).append(
                {
                    "type": kind,
                    "status": status,
                    "reason": f"TFJob{kind}",
                    "message": message or f"TFJob {job_name} is {kind}.",
                    "lastUpdateTime": "2026-11-22T08:00:00Z",
                    "lastTransitionTime": "2026-11-22T08:00:00Z",
                }
            )

    def add_event(self, involved, reason, message, kind="Warning"):
        self.put(
            "events",
            {
                "metadata": {"name": f"{involved}.{uuid.uuid4().hex[:8]}"},
                "involvedObject": {"name": involved},
                "type": kind,
                "reason": reason,
                "message": message,
                "lastTimestamp": "2026-11-22T08:00:00Z",
            },
        )

    def put(self, resource, value, namespace="default"):
        value = copy.deepcopy(value)
        value.setdefault("apiVersion", GROUPS.get(resource, "v1"))
        value.setdefault("kind", KINDS[resource])
        metadata = value["metadata"]
        metadata["namespace"] = namespace
        metadata.setdefault("uid", uuid.uuid4().hex)
        metadata.setdefault("creationTimestamp", "2026-11-22T08:00:00Z")
        self.objects[resource, namespace, metadata["name"]] = value
        return value

    def wait_for_request(self, request, times=1):
        """Until it was made so often; the test fails when it never is."""
        deadline = time.monotonic() + _LOG_SECONDS
        with self._changed:
            while self.requests.count(request) < times:
                if not self._changed.wait(max(0.0, deadline - time.monotonic())):
                    raise AssertionError(f"not requested {times} times: {request}; only {self.requests}")

    def note_request(self, request):
        with self._changed:
            self.requests.append(request)
            self._changed.notify_all()

    # The objects that are deleted with a job.

    def delete(self, resource, namespace, name):
        gone = self.objects.pop((resource, namespace, name))
        uid = gone["metadata"]["uid"]
        for key, value in list(self.objects.items()):
            owners = value["metadata"].get("ownerReferences", [])
            if any(owner["uid"] == uid for owner in owners):
                del self.objects[key]
        if resource == "tfjobs":
            for key, value in list(self.objects.items()):
                if key[0] == "pods" and key[2].startswith(f"{name}-"):
                    self.delete_pod(key[2], namespace)
        return gone

    def follow_log(self, log, position):
        """The lines from `position` on, once there are some; None: there will be no more."""
        deadline = time.monotonic() + _LOG_SECONDS
        with self._changed:
            while len(log["lines"]) <= position:
                if log["ended"] or not self._changed.wait(max(0.0, deadline - time.monotonic())):
                    return None
            return log["lines"][position:]

    def open_log(self, pod_name):
        """From here on the reader sees what becomes of this log, as "OPEN pod" says among the requests."""
        with self._changed:
            self.requests.append(f"OPEN {pod_name}")
            self._changed.notify_all()
            return self._logs[pod_name]


def pod_labels(job_name, kind, index, generation):
    leads = kind in ("chief", "master")
    if generation == "new":
        labels = {
            "training.kubeflow.org/operator-name": "tfjob-controller",
            "training.kubeflow.org/job-name": job_name,
            "training.kubeflow.org/replica-type": kind,
            "training.kubeflow.org/replica-index": str(index),
        }
        return {**labels, "training.kubeflow.org/job-role": "master"} if leads else labels
    if generation == "1.3":
        labels = {
            "group-name": "kubeflow.org",
            "job-name": job_name,
            "replica-type": kind,
            "replica-index": str(index),
        }
        return {**labels, "job-role": "master"} if leads else labels
    assert generation == "v1beta2", generation
    return {
        "group-name": "kubeflow.org",
        "tf-job-name": job_name,
        "tf-replica-type": kind,
        "tf-replica-index": str(index),
    }


class _Server(http.server.ThreadingHTTPServer):
    def handle_error(self, request, client_address):
        # A reader that was ended in the middle of a log is none.
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    fake: FakeApiServer

    def log_message(self, *arguments):
        pass

    def do_GET(self):
        self._dispatch("GET")

    def do_POST(self):
        self._dispatch("POST")

    def do_PATCH(self):
        self._dispatch("PATCH")

    def do_DELETE(self):
        self._dispatch("DELETE")

    def _dispatch(self, method):
        length = int(self.headers.get("Content-Length") or 0)
        text = self.rfile.read(length)
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        match = _PATH.fullmatch(url.path)
        if match is None:
            self._discover(url.path)
            return
        namespace, resource, name, log = match.groups()
        self.fake.note_request(f"{method} {resource}{'/log' if log else ''}")
        refusal = self.fake.refusals.get(f"{method} {resource}{'/log' if log else ''}")
        if refusal:
            self._status(*refusal)
        elif resource not in KINDS or (resource == "tfjobs" and not self.fake.has_operator):
            self._status(404, "NotFound", "the server could not find the requested resource")
        elif method == "POST":
            self._create(namespace, resource, json.loads(text))
        elif name is None:
            self._list(namespace, resource, query)
        elif (resource, namespace, name) not in self.fake.objects:
            group = ".kubeflow.org" if resource == "tfjobs" else ""
            self._status(404, "NotFound", f'{resource}{group} "{name}" not found')
        elif log:
            self._send_log(name, query)
        elif method == "PATCH":
            self._patch(namespace, resource, name, json.loads(text))
        elif method == "DELETE":
            self._send(200, self.fake.delete(resource, namespace, name))
        else:
            self._send(200, self.fake.objects[resource, namespace, name])

    def _discover(self, path):
        known = {GROUPS[r]: r for r in GROUPS if r != "tfjobs" or self.fake.has_operator}
        if path == "/version":
            self._send(200, {"major": "1", "minor": "30", "gitVersion": "v1.30.0"})
        elif path == "/api":
            self._send(200, {"kind": "APIVersions", "versions": ["v1"]})
        elif path == "/apis":
            groups = [_group(group_version) for group_version in known]
            self._send(200, {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
        elif path == "/api/v1":
            self._send_resources("v1", CORE)
        elif path.removeprefix("/apis/") in known:
            group_version = path.removeprefix("/apis/")
            self._send_resources(group_version, [known[group_version]])
        elif path == "/openapi/v3":
            self._send(200, {"paths": {}})
        elif path == "/openapi/v2":
            # An empty Document in the wire format that kubectl asks for: nothing to validate against.
            content_type = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
            self._send_bytes(200, b"", content_type)
        else:
            self._status(404, "NotFound", "the server could not find the requested resource")

    def _send_resources(self, group_version, names):
        verbs = ["create", "delete", "get", "list", "patch", "update", "watch"]
        resources = [
            {"name": name, "singularName": "", "namespaced": True, "kind": KINDS[name], "verbs": verbs}
            for name in names
        ]
        self._send(
            200,
            {
                "kind": "APIResourceList",
                "apiVersion": "v1",
                "groupVersion": group_version,
                "resources": resources,
            },
        )

    def _create(self, namespace, resource, value):
        name = value["metadata"]["name"]
        if (resource, namespace, name) in self.fake.objects:
            self._status(409, "AlreadyExists", f'{resource} "{name}" already exists')
            return
        created = self.fake.put(resource, value, namespace)
        self._send(201, created)
        if resource == "tfjobs" and self.fake.on_job:
            self.fake.on_job(created)

    def _list(self, namespace, resource, query):
        wanted = dict(part.split("=", 1) for part in query.get("labelSelector", "").split(",") if part)
        items = [
            value
            for key, value in sorted(self.fake.objects.items())
            if key[:2] == (resource, namespace)
            and all(value["metadata"].get("labels", {}).get(k) == v for k, v in wanted.items())
        ]
        group = GROUPS.get(resource, "v1")
        self._send(
            200, {"kind": f"{KINDS[resource]}List", "apiVersion": group, "metadata": {}, "items": items}
        )

    def _patch(self, namespace, resource, name, patch):
        if self.headers["Content-Type"] != "application/merge-patch+json":
            self._status(415, "UnsupportedMediaType", f"no {self.headers['Content-Type']}")
            return
        value = self.fake.objects[resource, namespace, name]
        merge(value, patch)
        self._send(200, value)

    def _send_log(self, name, query):
        position = 0
        log = self.fake.open_log(name)
        since = query.get("sinceTime", "")
        stamps = query.get("timestamps") == "true"
        tail = int(query.get("tailLines", 0))
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        if query.get("follow") != "true":
            lines = log["lines"][-tail:] if "tailLines" in query else log["lines"]
            self._send_lines(lines, since, stamps)
        while query.get("follow") == "true":
            lines = self.fake.follow_log(log, position)
            if lines is None:
                break
            position += len(lines)
            self._send_lines(lines, since, stamps)
        self.wfile.write(b"0\r\n\r\n")

    def _send_lines(self, lines, since, stamps):
        # The real server knows whole seconds only.
        chosen = [(stamp, text) for stamp, text in lines if not since or stamp[:19] >= since[:19]]
        data = "".join(f"{stamp} {text}\n" if stamps else f"{text}\n" for stamp, text in chosen).encode()
        if data:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
            self.wfile.flush()

    def _status(self, code, reason, message):
        self._send(
            code,
            {
                "kind": "Status",
                "apiVersion": "v1",
                "status": "Failure",
                "code": code,
                "reason": reason,
                "message": message,
            },
        )

    def _send(self, code, value):
        self._send_bytes(code, json.dumps(value).encode(), "application/json")

    def _send_bytes(self, code, data, content_type):
        self.send_response(code)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def _group(group_version):
    name, _, version = group_version.partition("/")
    versions = [{"groupVersion": group_version, "version": version}]
    return {"name": name, "versions": versions, "preferredVersion": versions[0]}


def merge(target, patch):
    """RFC 7386."""
    for key, value in patch.items():
        if value is None:
            target.pop(key, None)
        elif isinstance(value, dict) and isinstance(target.get(key), dict):
            merge(target[key], value)
        else:
            target[key] = copy.deepcopy(value)
