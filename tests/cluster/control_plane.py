"""etcd, kube-apiserver and the operators, as processes of one network namespace, with keys of their own.

The namespace is the run's own, so every port of its loopback address is free.
"""

import base64
import subprocess
import time
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Sequence

import yaml
from api_client import ApiClient, ApiError, Object

API_PORT = 6443
# The address of the node, on the bridge that leads to its pods.
NODE_ADDRESS = "10.244.0.1"
_ETCD = "http://127.0.0.1:2379"
# Where controller-runtime reads a webhook's certificate: the same folder for all operators.
_CERTIFICATE_FOLDER = "/tmp/k8s-webhook-server/serving-certs"
_NEW_KEY = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes"
_STOP_SECONDS = 10
# How long an operator may take for a step: it starts, it answers, it makes a job's pods.
OPERATOR_SECONDS = 120


class Processes:
    """Programs with a log each, ended by their ids in the reverse order."""

    def __init__(self, log_dir: Path):
        self._log_dir = log_dir
        self._processes: Dict[str, subprocess.Popen] = {}

    def start(self, name: str, argv: Sequence[str], environment: Mapping[str, str]) -> None:
        with open(self.log(name), "wb") as log:
            self._processes[name] = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, env=dict(environment)
            )

    def log(self, name: str) -> Path:
        return self._log_dir / f"{name}.log"

    def check(self) -> None:
        """RuntimeError: one has ended by itself."""
        for name, process in self._processes.items():
            if process.poll() is not None:
                last = self.log(name).read_text(errors="replace").splitlines()[-5:]
                raise RuntimeError("\n".join([f"{name} ended with {process.returncode}:", *last]))

    def stop(self) -> None:
        for process in reversed(list(self._processes.values())):
            process.terminate()
            try:
                process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._processes.clear()


class ControlPlane:
    def __init__(self, folder: Path, programs: Path):
        """`folder`: an empty one for keys, data and logs. `programs`: of run.sh, each in a folder of its name."""
        self._keys = folder / "keys"
        self._data = folder / "etcd"
        self._programs = programs
        (folder / "logs").mkdir()
        self.processes = Processes(folder / "logs")
        self.kubeconfig = folder / "kubeconfig"

    def start(self) -> ApiClient:
        """Returns when the API server answers. TimeoutError, RuntimeError."""
        self._make_keys()
        base = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": str(self._keys.parent)}
        etcd = ["etcd", f"--data-dir={self._data}", f"--listen-client-urls={_ETCD}", f"--advertise-client-urls={_ETCD}"]
        self.processes.start("etcd", [*etcd, "--listen-peer-urls=http://127.0.0.1:2380"], base)
        self.processes.start("kube-apiserver", self._apiserver(), base)
        client = self.client()
        client.wait_until_ready(300)
        self.processes.check()
        self._write_kubeconfig()
        return client

    def client(self) -> ApiClient:
        keys = self._keys
        address = f"https://127.0.0.1:{API_PORT}"
        return ApiClient(address, str(keys / "ca.crt"), str(keys / "admin.crt"), str(keys / "admin.key"))

    def start_operator(self, operator: "Operator", arguments: Sequence[str], client: ApiClient) -> None:
        """In a mount namespace with a certificate folder of its own. TimeoutError, RuntimeError."""
        name = operator.program
        certificate = self._keys / name
        certificate.mkdir()
        Path(_CERTIFICATE_FOLDER).mkdir(parents=True, exist_ok=True)
        script = f'mount --bind "$1" {_CERTIFICATE_FOLDER} && shift && exec "$@"'
        program = str(self._programs / name / name)
        self.processes.start(
            name,
            ["unshare", "--mount", "sh", "-ec", script, "sh", str(certificate), program, *arguments],
            {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "KUBECONFIG": str(self.kubeconfig)},
        )
        wait_for(
            f"{name}: its certificate",
            lambda: operator.mount_certificate(client, certificate),
            self.processes,
            OPERATOR_SECONDS,
        )

    def _apiserver(self) -> List[str]:
        keys = self._keys
        flags = {
            "etcd-servers": _ETCD,
            "bind-address": "127.0.0.1",
            "advertise-address": NODE_ADDRESS,
            "secure-port": API_PORT,
            "tls-cert-file": keys / "server.crt",
            "tls-private-key-file": keys / "server.key",
            "client-ca-file": keys / "ca.crt",
            "authorization-mode": "RBAC",
            "service-cluster-ip-range": "10.96.0.0/16",
            "service-account-issuer": "https://kubernetes.default.svc",
            "service-account-key-file": keys / "accounts.pub",
            "service-account-signing-key-file": keys / "accounts.key",
        }
        program = str(self._programs / "kube-apiserver" / "kube-apiserver")
        return [program, *(f"--{name}={value}" for name, value in flags.items())]

    def _make_keys(self) -> None:
        self._keys.mkdir(mode=0o700)
        self._openssl(f"req -x509 {_NEW_KEY} -days 2 -subj /CN=ca -keyout ca.key -out ca.crt")
        self._sign("server", "/CN=kube-apiserver", "subjectAltName=IP:127.0.0.1,DNS:localhost")
        self._sign("admin", "/O=system:masters/CN=admin", "extendedKeyUsage=clientAuth")
        self._openssl("ecparam -genkey -noout -name prime256v1 -out accounts.key")
        self._openssl("ec -in accounts.key -pubout -out accounts.pub")

    def _sign(self, name: str, subject: str, extension: str) -> None:
        (self._keys / "extension").write_text(extension + "\n")
        self._openssl(f"req {_NEW_KEY} -subj {subject} -keyout {name}.key -out {name}.csr")
        signer = "-CA ca.crt -CAkey ca.key -CAcreateserial"
        self._openssl(f"x509 -req -days 2 -in {name}.csr {signer} -extfile extension -out {name}.crt")

    def _openssl(self, words: str) -> None:
        subprocess.run(["openssl", *words.split()], cwd=self._keys, check=True, capture_output=True)

    def _write_kubeconfig(self) -> None:
        keys = self._keys
        cluster = {"server": f"https://127.0.0.1:{API_PORT}", "certificate-authority": str(keys / "ca.crt")}
        user = {"client-certificate": str(keys / "admin.crt"), "client-key": str(keys / "admin.key")}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "local", "cluster": cluster}],
            "users": [{"name": "admin", "user": user}],
            "contexts": [{"name": "local", "context": {"cluster": "local", "user": "admin"}}],
            "current-context": "local",
        }
        self.kubeconfig.write_text(yaml.safe_dump(config))


class Operator:
    """One operator: its kinds, its webhooks, its process."""

    def __init__(self, program: str, service: str, secret: str, namespace: str, port: int):
        self.program = program
        self.namespace = namespace
        self.port = port
        self._service = service
        self._secret = secret

    def install(
        self, client: ApiClient, kinds: Sequence[Path], webhooks: Path, prefix: str, names: Sequence[str]
    ) -> None:
        """The definitions in `kinds`, and those webhooks of the file whose rules name one of `names`.

        Its Service leads to this machine, where the operator's process listens. `prefix` + the name in the
        file, or the text alone where it has a dot, is what the operator looks its configuration up by.
        """
        client.create(_named("v1", "Namespace", self.namespace))
        for path in kinds:
            for value in _documents(path):
                client.create(value)
        client.create({**_named("v1", "Secret", self._secret), "type": "Opaque"}, self.namespace)
        service = {"type": "ExternalName", "externalName": "localhost"}
        client.create({**_named("v1", "Service", self._service), "spec": service}, self.namespace)
        for value in _documents(webhooks):
            value["metadata"]["name"] = prefix if "." in prefix else prefix + value["metadata"]["name"]
            value["webhooks"] = [hook for hook in value["webhooks"] if _concerns(hook, names)]
            for hook in value["webhooks"]:
                hook["clientConfig"]["service"].update(
                    name=self._service, namespace=self.namespace, port=self.port
                )
            client.create(value)

    def mount_certificate(self, client: ApiClient, folder: Path) -> bool:
        """Puts the Secret's files into the folder, as a kubelet does; False: the operator has not made them."""
        secret = client.request("GET", f"/api/v1/namespaces/{self.namespace}/secrets/{self._secret}")
        data = secret.get("data") or {}
        # The operator waits for the certificate alone: it comes last.
        for name in sorted(data, key=lambda name: name == "tls.crt"):
            (folder / name).write_bytes(base64.b64decode(data[name]))
        return "tls.crt" in data

    def answers(self, client: ApiClient, probe: Mapping[str, Any]) -> bool:
        """Whether its kinds and its webhook are there, by `probe`, an object that is not kept."""
        try:
            client.create(probe, "default", dry_run=True)
        except ApiError as error:
            return error.code != 404 and "failed calling webhook" not in str(error)
        return True


def wait_for(what: str, condition: Callable[[], bool], processes: Processes, seconds: float) -> None:
    """TimeoutError; RuntimeError where a process has ended."""
    end = time.monotonic() + seconds
    while not condition():
        processes.check()
        if time.monotonic() > end:
            raise TimeoutError(f"{what}: not after {seconds:g} s")
        time.sleep(0.2)


def _concerns(hook: Mapping[str, Any], names: Sequence[str]) -> bool:
    return any(name in rule["resources"] for rule in hook["rules"] for name in names)


def _named(api_version: str, kind: str, name: str) -> Object:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}}


def _documents(path: Path) -> List[Object]:
    return [value for value in yaml.safe_load_all(path.read_text(encoding="utf-8")) if value]
