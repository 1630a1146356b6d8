"""A small kubelet: pods of one namespace as processes in network and mount namespaces of their own.

It is scheduler and DNS as well: each pod goes to its only node, gets an address on the bridge, and finds the
Services' pods in /etc/hosts. A pod runs Keelson's programs of this machine, whatever its image is called; its
containers run one after another, once (restartPolicy Never), with literal variables.
"""

import base64
import itertools
import os
import shutil
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from api_client import ApiClient, ApiError, Object
from control_plane import NODE_ADDRESS

NODE = "node-1"
_BRIDGE = "pods"
_LOOK_SECONDS = 0.2
_CONTAINER_SCRIPT = str(Path(__file__).with_name("container.sh"))
# The image's own (deploy/docker/Dockerfile).
_IMAGE_DIRECTORY = "/opt/keelson"
_IMAGE_PATH = f"{_IMAGE_DIRECTORY}/bin:/usr/bin"


def run(*argv: str) -> None:
    """RuntimeError with what the program said."""
    result = subprocess.run(argv, capture_output=True, text=True)
    if result.returncode != 0:
        raise RuntimeError(f"{' '.join(argv)}: {result.stderr.strip()}")


def make_bridge() -> None:
    run("ip", "link", "set", "lo", "up")
    run("ip", "link", "add", _BRIDGE, "type", "bridge")
    run("ip", "address", "add", f"{NODE_ADDRESS}/16", "dev", _BRIDGE)
    run("ip", "link", "set", _BRIDGE, "up")


class Volumes:
    """The directories behind a pod's volumes: claims are shared, all others are the pod's."""

    def __init__(self, client: ApiClient, namespace: str, folder: Path):
        self._client = client
        self._path = f"/api/v1/namespaces/{namespace}"
        self._folder = folder

    def prepare(self, pod: Object) -> Dict[str, Path]:
        """By the volumes' names."""
        group = pod["spec"].get("securityContext", {}).get("fsGroup", 0)
        result = {}
        for volume in pod["spec"].get("volumes", ()):
            path = self._of(pod["metadata"]["name"], volume)
            path.mkdir(parents=True, exist_ok=True)
            self._fill(volume, path)
            os.chown(path, 0, group)
            path.chmod(0o2775)
            result[volume["name"]] = path
        return result

    def _of(self, pod: str, volume: Mapping[str, Any]) -> Path:
        if "persistentVolumeClaim" in volume:
            return self._folder / "claims" / volume["persistentVolumeClaim"]["claimName"]
        return self._folder / pod / volume["name"]

    def _fill(self, volume: Mapping[str, Any], path: Path) -> None:
        if "configMap" in volume:
            for key, text in self._data("configmaps", volume["configMap"]["name"]).items():
                (path / key).write_text(text, encoding="utf-8")
        elif "secret" in volume:
            for key, text in self._data("secrets", volume["secret"]["secretName"]).items():
                (path / key).write_bytes(base64.b64decode(text))

    def _data(self, kind: str, name: str) -> Dict[str, str]:
        return dict(self._client.request("GET", f"{self._path}/{kind}/{name}").get("data", {}))


class PodProcesses:
    """One pod: a process that holds its network namespace, and one container after another in it."""

    def __init__(self, pod: Object, address: str, folder: Path, mounts: Sequence[Tuple[str, str, str]]):
        self.pod = pod
        self.name = str(pod["metadata"]["name"])
        self.address = address
        # (container, exit code) of those that have ended.
        self.ended: List[Tuple[str, int]] = []
        self._folder = folder
        self._mounts = mounts
        self._volumes: Dict[str, Path] = {}
        spec = pod["spec"]
        self._waiting: Iterator[Object] = itertools.chain(spec.get("initContainers", ()), spec["containers"])
        self._current: Optional[Tuple[str, subprocess.Popen]] = None
        self._holder: Optional[subprocess.Popen] = None
        self._kill_at: Optional[float] = None

    @property
    def phase(self) -> str:
        if self._current is not None:
            return "Running" if self._current[0] == self.pod["spec"]["containers"][0]["name"] else "Pending"
        return "Succeeded" if self.ended[-1][1] == 0 else "Failed"

    def start(self, volumes: Dict[str, Path], number: int) -> None:
        self._volumes = volumes
        self._holder = subprocess.Popen(["unshare", "--net", "sleep", "infinity"])
        holder, inside = str(self._holder.pid), ("nsenter", f"--net=/proc/{self._holder.pid}/ns/net", "ip")
        link, peer = f"pod{number}", f"peer{number}"
        while os.readlink(f"/proc/{holder}/ns/net") == os.readlink("/proc/self/ns/net"):
            time.sleep(0.01)
        run("ip", "link", "add", link, "type", "veth", "peer", "name", peer)
        run("ip", "link", "set", peer, "netns", holder)
        run("ip", "link", "set", link, "master", _BRIDGE, "up")
        run(*inside, "link", "set", "lo", "up")
        run(*inside, "address", "add", f"{self.address}/16", "dev", peer)
        run(*inside, "link", "set", peer, "up")
        self._start_next()

    def step(self) -> bool:
        """True: something has changed."""
        if self._current is None:
            return False
        name, process = self._current
        code = process.poll()
        if code is None:
            if self._kill_at is not None and time.monotonic() > self._kill_at:
                process.kill()
            return False
        self.ended.append((name, code if code >= 0 else 128 - code))
        self._current = None
        if code == 0 and self._kill_at is None:
            self._start_next()
        return True

    def terminate(self, grace_seconds: float) -> None:
        """SIGTERM; SIGKILL after the grace period."""
        if self._current is not None and self._kill_at is None:
            self._kill_at = time.monotonic() + grace_seconds
            self._current[1].send_signal(signal.SIGTERM)

    def close(self) -> None:
        """Ends what is left."""
        for process in (self._current[1] if self._current else None, self._holder):
            if process is not None:
                process.kill()
                process.wait()

    def _start_next(self) -> None:
        container = next(self._waiting, None)
        if container is None or self._holder is None:
            return
        name = str(container["name"])
        root = self._folder / f"root-{name}"
        root.mkdir(parents=True)
        mounts = self._folder / f"mounts-{name}"
        mounts.write_text("".join("\t".join(line) + "\n" for line in [*self._mounts, *self._own_mounts(container)]))
        context = {**self.pod["spec"].get("securityContext", {}), **container.get("securityContext", {})}
        user = f"{context.get('runAsUser', 0)}:{context.get('runAsGroup', 0)}"
        words = [*container.get("command", ()), *container.get("args", ())]
        environment = {"PATH": _IMAGE_PATH, "HOME": "/", "HOSTNAME": self.name}
        environment.update({entry["name"]: entry.get("value", "") for entry in container.get("env", ())})
        namespaces = ["/usr/bin/nsenter", f"--net=/proc/{self._holder.pid}/ns/net", "/usr/bin/unshare", "--mount"]
        directory = container.get("workingDir", _IMAGE_DIRECTORY)
        argv = [*namespaces, _CONTAINER_SCRIPT, str(root), str(mounts), user, directory, *words]
        with open(self._folder / f"{name}.log", "wb") as log:
            process = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, env=environment
            )
        self._current = (name, process)

    def _own_mounts(self, container: Mapping[str, Any]) -> Iterator[Tuple[str, str, str]]:
        for mount in container.get("volumeMounts", ()):
            source = self._volumes[mount["name"]] / mount.get("subPath", "")
            yield str(source), mount["mountPath"], "ro" if mount.get("readOnly") else "rw"


class Kubelet:
    """Runs the pods of a namespace, in a thread of its own, from start() to stop()."""

    def __init__(self, client: ApiClient, namespace: str, folder: Path, programs: Path):
        """`client`: nobody else uses it. `programs`: Keelson's. `folder`: for volumes and logs, not there yet."""
        self._client = client
        self._path = f"/api/v1/namespaces/{namespace}"
        self._namespace = namespace
        self._folder = folder
        self._pods: Dict[str, PodProcesses] = {}
        self._numbers = itertools.count(2)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._volumes = Volumes(client, namespace, folder / "volumes")
        folder.mkdir()
        # They may be links to elsewhere, which a pod's root does not have.
        shutil.copytree(programs, folder / "bin")
        self._hosts = folder / "hosts"
        self._hosts.write_text("")
        # Why the thread has ended before stop(); empty: it has not.
        self.failure = ""

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()
        for pod in self._pods.values():
            pod.close()

    def log(self, pod: str) -> str:
        return "".join(path.read_text(errors="replace") for path in sorted((self._folder / pod).glob("*.log")))

    def claim(self, name: str) -> Path:
        return self._folder / "volumes" / "claims" / name

    def _run(self) -> None:
        try:
            while not self._stopping.wait(_LOOK_SECONDS):
                self._look()
        except (ApiError, OSError, RuntimeError, KeyError) as error:
            self.failure = f"kubelet: {type(error).__name__}: {error}"

    def _look(self) -> None:
        there = {pod["metadata"]["uid"]: pod for pod in self._client.list(f"{self._path}/pods")}
        for uid, pod in there.items():
            running = self._pods.get(uid)
            if running is None and "deletionTimestamp" not in pod["metadata"]:
                self._admit(uid, pod)
            elif "deletionTimestamp" in pod["metadata"]:
                self._delete(uid, pod)
        for running in self._pods.values():
            if running.step():
                self._report(running)
        self._write_hosts(list(there.values()))

    def _admit(self, uid: str, pod: Object) -> None:
        name = pod["metadata"]["name"]
        target = {"apiVersion": "v1", "kind": "Node", "name": NODE}
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
        self._client.request("POST", f"{self._path}/pods/{name}/binding", binding)
        number = next(self._numbers)
        folder = self._folder / name
        shutil.rmtree(folder, ignore_errors=True)  # That of a pod of the same name before it.
        mounts = [(str(self._folder / "bin"), f"{_IMAGE_DIRECTORY}/bin", "ro"), (str(self._hosts), "/etc/hosts", "ro")]
        running = PodProcesses(pod, f"10.244.{number // 250}.{number % 250 + 1}", folder, mounts)
        self._pods[uid] = running
        running.start(self._volumes.prepare(pod), number)
        self._report(running)

    def _delete(self, uid: str, pod: Object) -> None:
        running = self._pods.get(uid)
        name = pod["metadata"]["name"]
        if running is not None and running.phase in ("Running", "Pending"):
            running.terminate(pod["metadata"].get("deletionGracePeriodSeconds", 30))
            return
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0}
        self._client.request("DELETE", f"{self._path}/pods/{name}", options)

    def _report(self, pod: PodProcesses) -> None:
        codes = dict(pod.ended)
        phase = pod.phase
        statuses = [_container_status(container, codes, phase) for container in pod.pod["spec"]["containers"]]
        ready = "True" if phase == "Running" else "False"
        status = {
            "phase": phase,
            "hostIP": NODE_ADDRESS,
            "podIP": pod.address,
            "podIPs": [{"ip": pod.address}],
            "conditions": [{"type": "Ready", "status": ready}],
            "containerStatuses": statuses,
        }
        try:
            self._client.patch(f"{self._path}/pods/{pod.name}/status", {"status": status})
        except ApiError as error:
            if error.code != 404:  # It was deleted meanwhile.
                raise

    def _write_hosts(self, pods: Sequence[Object]) -> None:
        """Each Service by the names that a cluster's DNS gives it, for the pods that run."""
        lines = ["127.0.0.1 localhost"]
        running = {pod.name: pod.address for pod in self._pods.values() if pod.phase == "Running"}
        for service in self._client.list(f"{self._path}/services"):
            name, selector = service["metadata"]["name"], service["spec"].get("selector", {})
            names = f"{name} {name}.{self._namespace} {name}.{self._namespace}.svc"
            for pod in pods:
                if pod["metadata"]["name"] in running and selector.items() <= pod["metadata"].get("labels", {}).items():
                    lines.append(f"{running[pod['metadata']['name']]} {names}")
        text = "\n".join(lines) + "\n"
        if text != self._hosts.read_text():
            self._hosts.write_text(text)  # In place: the pods have this file mounted.


def _container_status(container: Mapping[str, Any], codes: Mapping[str, int], phase: str) -> Object:
    name = container["name"]
    if name in codes:
        state: Object = {"terminated": {"exitCode": codes[name], "reason": "Error" if codes[name] else "Completed"}}
    else:
        state = {"running": {}} if phase == "Running" else {"waiting": {"reason": "PodInitializing"}}
    running = "running" in state
    return {
        "name": name,
        "image": container["image"],
        "imageID": "",
        "ready": running,
        "started": running,
        "restartCount": 0,
        "state": state,
    }
