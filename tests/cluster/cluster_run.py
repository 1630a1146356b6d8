"""Asks a real API server and real operators about the manifests; tests/cluster/run.sh starts it."""

import argparse
import re
import signal
import sys
import time
from pathlib import Path
from typing import Any, Dict, List, Mapping

import jobs
from api_client import ApiClient, ApiError
from control_plane import OPERATOR_SECONDS, ControlPlane, Operator, wait_for
from kubelet import NODE, Kubelet, make_bridge
from operator_view import Answer, compare, launchers_answer, operators_answer
from tfjob_api.job_kind import JOB_KINDS

_WEBHOOK_WORDS = re.compile(r'admission webhook "[^"]*" denied the request: (.*)', re.DOTALL)
TRAINED = "deploy/tfjob/mnist.yaml"


class ClusterRun:
    def __init__(self, options: argparse.Namespace):
        self._options = options
        self._begun = time.monotonic()
        self._folder: Path = options.folder
        self._plane = ControlPlane(self._folder, options.programs)
        self._failures: List[str] = []
        self._applied = 0
        self._compared = 0
        self._client: ApiClient

    def run(self) -> int:
        """The exit code."""
        try:
            self._start()
            self._apply_and_compare()
            self._refuse()
            if self._options.training:
                self._train()
            for name, operator in OTHERS.items():
                if getattr(self._options, name):
                    self._apply_others(name, operator)
            figures = f"{self._applied} objects applied, {self._compared} values compared"
            self._say(f"{figures}, {len(self._failures)} failures")
            if self._options.keep:
                self._wait_for_interrupt()
        except (ApiError, OSError, RuntimeError, KeyError) as error:
            self._fail(f"{type(error).__name__}: {error}")
        except KeyboardInterrupt:
            self._fail("interrupted")
        finally:
            self._plane.processes.stop()
        return 1 if self._failures else 0

    def _say(self, text: str) -> None:
        print(f"[{time.monotonic() - self._begun:6.1f} s] {text}", flush=True)

    def _fail(self, text: str) -> None:
        self._failures.append(text)
        self._say(f"FAILED {text}")

    def _start(self) -> None:
        make_bridge()
        self._client = self._plane.start()
        self._say("the API server is ready")
        self._client.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}})
        manifests = self._options.training_operator / "manifests" / "base"
        name = "training-operator"
        operator = Operator(name, name, "training-operator-webhook-cert", "kubeflow", 9443)
        operator.install(
            self._client,
            [manifests / "crds" / f"kubeflow.org_{kind.plural}.yaml" for kind in JOB_KINDS.values()],
            manifests / "webhook" / "manifests.yaml",
            "validator.training-operator.kubeflow.org",
            [kind.plural for kind in JOB_KINDS.values()],
        )
        flags = [f"--enable-scheme={kind.name.lower()}" for kind in JOB_KINDS.values()]
        flags += ["--webhook-server-port=9443", "--metrics-bind-address=0"]
        flags.append("--health-probe-bind-address=127.0.0.1:8081")
        self._make_namespace("default")
        self._start_operator(operator, flags, jobs.load(jobs.ODD).documents[0])
        self._say(f"the training operator {jobs.OPERATOR} is ready")

    def _start_operator(self, operator: Operator, arguments: List[str], probe: Mapping[str, Any]) -> None:
        self._plane.start_operator(operator, arguments, self._client)
        wait_for(
            f"{operator.program}: its webhook",
            lambda: operator.answers(self._client, probe),
            self._plane.processes,
            OPERATOR_SECONDS,
        )

    def _make_namespace(self, name: str) -> None:
        """With its service account, which a controller makes elsewhere."""
        if name != "default":
            self._client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
        self._client.create(account, name)

    def _create(self, value: Mapping[str, Any], path: str, namespace: str) -> None:
        try:
            self._client.create(value, namespace)
            self._applied += 1
        except ApiError as error:
            self._fail(f"{path}: {value['kind']} {value['metadata']['name']}: {error}")

    def _apply_and_compare(self) -> None:
        for source in jobs.sources():
            self._make_namespace(source.namespace)
            left = {value["kind"] for value in source.documents if not self._client.knows(value)}
            applied = [value for value in source.documents if value["kind"] not in left]
            for value in applied:
                self._create(value, source.path, source.namespace)
            unknown = f", left out: {', '.join(sorted(left))}" if left else ""
            self._say(f"{source.path}: {len(applied)} objects{unknown}")
            answers = {job["metadata"]["name"]: self._compare(source, job) for job in source.jobs}
            if answers and self._options.golden:
                jobs.write_golden(source.golden, answers)

    def _compare(self, source: jobs.Source, job: Mapping[str, Any]) -> Answer:
        name = job["metadata"]["name"]
        expected = launchers_answer(jobs.read_job(job, source.path))
        pods = self._objects_of(source.namespace, "pods", name, len(expected["pods"]))
        services = self._objects_of(source.namespace, "services", name, len(expected["services"]))
        found = operators_answer(pods, services)
        compared, differences = compare(found, expected)
        self._compared += compared
        self._say(f"  {job['kind']} {name}: {len(pods)} pods, {compared} values, {len(differences)} differences")
        for difference in differences:
            self._fail(f"{source.path}: {job['kind']} {name}: {difference}")
        return found

    def _objects_of(self, namespace: str, kind: str, job: str, count: int) -> List[Dict[str, Any]]:
        path = f"/api/v1/namespaces/{namespace}/{kind}?labelSelector=training.kubeflow.org/job-name={job}"
        try:
            wait_for("", lambda: len(self._client.list(path)) >= count, self._plane.processes, OPERATOR_SECONDS)
        except TimeoutError:
            pass  # The comparison says what is missing.
        return self._client.list(path)

    def _refuse(self) -> None:
        source = jobs.load(jobs.REFUSED)
        self._make_namespace(source.namespace)
        answers = {}
        for job in source.jobs:
            name, own = job["metadata"]["name"], jobs.one_order(jobs.refusal(job, source.path))
            try:
                self._client.create(job)
                answers[name] = ""
            except ApiError as error:
                found = _WEBHOOK_WORDS.fullmatch(str(error))
                answers[name] = jobs.one_order(found.group(1) if found else str(error))
            self._compared += 1
            if own != answers[name]:
                self._fail(f"{source.path}: {name}: the launcher says: {own}; the webhook: {answers[name]}")
        self._say(f"{source.path}: {len(answers)} jobs refused")
        if self._options.golden:
            jobs.write_golden(source.golden, answers)

    def _train(self) -> None:
        """The pods of TRAINED as processes, to the job's end."""
        source = jobs.load(TRAINED)
        (job,) = source.jobs
        name, namespace = job["metadata"]["name"], source.namespace
        kubelet = Kubelet(self._plane.client(), namespace, self._folder / "kubelet", self._options.keelson)
        kubelet.start()
        path = f"/apis/kubeflow.org/v1/namespaces/{namespace}/tfjobs/{name}"
        began = time.monotonic()

        def ended() -> bool:
            if kubelet.failure:
                raise RuntimeError(kubelet.failure)
            return bool({"Succeeded", "Failed"} & self._conditions(path).keys())

        try:
            wait_for(f"TFJob {name}", ended, self._plane.processes, self._options.training_seconds)
            conditions = self._conditions(path)
        except TimeoutError as error:
            conditions = {"": str(error)}
        finally:
            kubelet.stop()
        last = kubelet.log(f"{name}-chief-0").splitlines()[-3:]
        done = kubelet.claim(f"{name}-model") / "DONE"
        if "Succeeded" not in conditions or not done.exists():
            self._fail("\n  ".join([f"{TRAINED}: {conditions}; the chief's last lines:", *last]))
        seconds = time.monotonic() - began
        self._say(f"{TRAINED}: {', '.join(conditions)} after {seconds:.0f} s; {last[-1] if last else 'no log'}")

    def _conditions(self, path: str) -> Dict[str, str]:
        """Those that hold: type -> message."""
        conditions = self._client.request("GET", path).get("status", {}).get("conditions") or []
        return {entry["type"]: entry["message"] for entry in conditions if entry["status"] == "True"}

    def _apply_others(self, name: str, operator: "OtherOperator") -> None:
        module: Path = getattr(self._options, name)
        operator.install_from(self._client, module)
        config = self._folder / f"{name}.yaml"
        config.write_text(operator.config)
        documents = [(source, value) for source in jobs.sources() for value in source.documents]
        chosen = [(source, value) for source, value in documents if value["kind"] in operator.kinds]
        self._start_operator(operator, [f"--config={config}"], chosen[0][1])
        for source, value in chosen:
            self._create(value, source.path, source.namespace)
            self._say(f"{name}: {source.path}: {value['kind']} {value['metadata']['name']}")

    def _wait_for_interrupt(self) -> None:
        self._say(f"kept: nsenter --all --target PID kubectl --kubeconfig={self._plane.kubeconfig} get pods -A")
        self._say("Ctrl-C ends the cluster")
        try:
            signal.pause()
        except KeyboardInterrupt:
            pass


class OtherOperator(Operator):
    """JobSet's or Trainer's: its manifests are accepted, and nothing is compared."""

    def __init__(self, kinds: List[str], layout: Mapping[str, Any], config: str, *arguments: Any):
        super().__init__(*arguments)
        self.kinds = kinds
        self.config = config
        self._layout = layout

    def install_from(self, client: ApiClient, module: Path) -> None:
        """`module`: the folder of the operator's module."""
        layout = self._layout
        kinds = sorted((module / layout["kinds"]).glob("*_*.yaml"))
        self.install(client, kinds, module / layout["webhooks"], layout["prefix"], layout["resources"])


OTHERS: Dict[str, OtherOperator] = {
    "jobset": OtherOperator(
        ["JobSet"],
        {
            "kinds": "config/components/crd/bases",
            "webhooks": "config/components/webhook/manifests.yaml",
            "prefix": "jobset-",
            "resources": ["jobsets"],
        },
        "apiVersion: config.jobset.x-k8s.io/v1alpha1\nkind: Configuration\nwebhook: {port: 9444}\n"
        "metrics: {bindAddress: ':8444'}\nhealth: {healthProbeBindAddress: ':8082'}\n"
        "leaderElection: {leaderElect: false}\ninternalCertManagement: {enable: true}\n",
        "jobset-controller",
        "jobset-webhook-service",
        "jobset-webhook-server-cert",
        "jobset-system",
        9444,
    ),
    "trainer": OtherOperator(
        ["ClusterTrainingRuntime", "TrainJob"],
        {
            "kinds": "manifests/base/crds",
            "webhooks": "manifests/base/webhook/manifests.yaml",
            "prefix": "validator.trainer.kubeflow.org",
            "resources": ["clustertrainingruntimes", "trainingruntimes", "trainjobs"],
        },
        "apiVersion: config.trainer.kubeflow.org/v1alpha1\nkind: Configuration\nwebhook: {port: 9445, host: ''}\n"
        "metrics: {bindAddress: ':8445'}\nhealth: {healthProbeBindAddress: ':8083'}\n"
        "leaderElection: {leaderElect: false}\ncertManagement: {enable: true, "
        "webhookServiceName: kubeflow-trainer-controller-manager, webhookSecretName: kubeflow-trainer-webhook-cert}\n",
        "trainer-controller",
        "kubeflow-trainer-controller-manager",
        "kubeflow-trainer-webhook-cert",
        "kubeflow-system",
        9445,
    ),
}


def parse_options(arguments: List[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True, help="an empty one for keys, data and logs")
    parser.add_argument("--programs", type=Path, required=True, help="of run.sh, each in a folder of its name")
    parser.add_argument("--keelson", type=Path, required=True, help="Keelson's programs")
    parser.add_argument("--training-operator", type=Path, required=True, help="the folder of its module")
    parser.add_argument("--jobset", type=Path, help="likewise; without it JobSet is left out")
    parser.add_argument("--trainer", type=Path, help="likewise")
    parser.add_argument("--training-seconds", type=float, default=3600)
    parser.add_argument("--no-training", dest="training", action="store_false")
    parser.add_argument("--golden", action="store_true")
    parser.add_argument("--keep", action="store_true")
    return parser.parse_args(arguments)


def main() -> int:
    # It is the first process of its namespace, to which signals without a handler do nothing.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    return ClusterRun(parse_options(sys.argv[1:])).run()


if __name__ == "__main__":
    sys.exit(main())
