"""Objects that refer to each other: each name leads to something, in the same file or to a job's pods."""

import re
import unittest
from typing import Any, Iterator, List, Mapping, Set, Tuple

from support import (
    REPOSITORY,
    Document,
    Role,
    all_documents,
    documents,
    flags_of,
    manifest_paths,
    needs_programs,
    roles_of,
)

from tfjob_api.naming import labels
from tfjob_api.reader import read_manifest

DASHBOARD = "deploy/kubernetes/dashboard.yaml"


def referenced(role: Role) -> Iterator[Tuple[str, str, str]]:
    """(kind, name, key) of what the pods need; key "" for the whole object."""
    for volume in role.pod["volumes"]:
        if "configMap" in volume:
            yield "ConfigMap", volume["configMap"]["name"], ""
        elif "secret" in volume:
            yield "Secret", volume["secret"]["secretName"], ""
        elif "emptyDir" not in volume:
            yield "PersistentVolumeClaim", volume["persistentVolumeClaim"]["claimName"], ""
    for container in role.containers():
        for source in container.get("envFrom", ()):
            yield "ConfigMap", source["configMapRef"]["name"], ""


def operator_labels(path: str, replica_type: str) -> Mapping[str, str]:
    """Those that the operator gives the pods of the TFJob in this file."""
    return labels(read_manifest([str(REPOSITORY / path)]).job, replica_type, 0)


class References(unittest.TestCase):
    def test_pods_refer_to_objects_of_the_same_file(self) -> None:
        for path in manifest_paths():
            there = {(d.kind, d.metadata_name) for d in documents(path)}
            for role in roles_of(path):
                for kind, name, _ in referenced(role):
                    with self.subTest(role.name, reference=f"{kind} {name}"):
                        self.assertIn((kind, name), there)

    def test_nothing_is_created_that_nobody_uses(self) -> None:
        for path in manifest_paths():
            used: Set[Tuple[str, str]] = set()
            for role in roles_of(path):
                used |= {(kind, name) for kind, name, _ in referenced(role)}
            for document in documents(path):
                if document.kind in ("ConfigMap", "Secret", "PersistentVolumeClaim"):
                    with self.subTest(document.name):
                        self.assertIn((document.kind, document.metadata_name), used)

    def test_names_are_unique_within_a_file(self) -> None:
        for path in manifest_paths():
            names = [(d.kind, d.metadata_name) for d in documents(path)]
            with self.subTest(path):
                self.assertEqual(len(names), len(set(names)))

    def test_shared_volumes_can_be_shared(self) -> None:
        claims = [d for d in all_documents() if d.kind == "PersistentVolumeClaim"]
        self.assertGreaterEqual(len(claims), 8)
        for claim in claims:
            with self.subTest(claim.name):
                self.assertEqual(claim.content["spec"]["accessModes"], ["ReadWriteMany"])

    def test_secrets_hold_no_real_password(self) -> None:
        secrets = [d for d in all_documents() if d.kind == "Secret"]
        self.assertEqual(len(secrets), 1)
        for secret in secrets:
            self.assertEqual(set(secret.content["stringData"]), {"netrc"})
            words = secret.content["stringData"]["netrc"].split()
            self.assertEqual(words[words.index("password") + 1], "change-me")


class DataFetcher(unittest.TestCase):
    """Jobs that fetch their data: who waits, waits for the last file that is fetched, where it is read."""

    def sources(self) -> List[Document]:
        found = [d for d in all_documents() if d.metadata_name.endswith("-data-source")]
        self.assertEqual(len(found), 3)
        return found

    def test_waiting_ends_with_the_last_file(self) -> None:
        for source in self.sources():
            files = source.content["data"]["FILES"].split()
            self.assertEqual(len(files), 4)
            roles = {role.role: role for role in roles_of(source.path)}
            for name in {"worker", "evaluator"} & roles.keys():
                (wait,) = roles[name].pod["initContainers"]
                (awaited,) = re.findall(r"-e (\S+)", wait["args"][0])
                directory, _, file = awaited.rpartition("/")
                self.assertEqual(file, files[-1])
                self.assertIn(directory, roles[name].paths())

    def test_the_fetcher_uses_the_variables_of_its_config_map(self) -> None:
        for source in self.sources():
            (leader,) = [role for role in roles_of(source.path) if role.role in ("chief", "master")]
            (fetch,) = leader.pod["initContainers"]
            used = set(re.findall(r"\$([A-Z]+)", fetch["args"][0]))
            self.assertEqual(used, set(source.content["data"]))


class Dashboard(unittest.TestCase):
    def only(self, kind: str) -> Document:
        (document,) = [d for d in documents(DASHBOARD) if d.kind == kind]
        return document

    def test_service_selects_the_evaluator_of_the_mnist_job_alone(self) -> None:
        selector = self.only("Service").content["spec"]["selector"].items()
        selected = [
            replica_type
            for replica_type in ("Chief", "PS", "Worker", "Evaluator")
            if selector <= operator_labels("deploy/tfjob/mnist.yaml", replica_type).items()
        ]
        self.assertEqual(selected, ["Evaluator"])
        other = operator_labels("deploy/tfjob/mnist_gpu.yaml", "Evaluator")
        self.assertFalse(selector <= other.items())

    def test_service_leads_to_the_port_of_the_page(self) -> None:
        (port,) = self.only("Service").content["spec"]["ports"]
        (evaluator,) = [r for r in roles_of("deploy/tfjob/mnist.yaml") if r.role == "evaluator"]
        names = [p["name"] for p in evaluator.container["ports"]]
        self.assertIn(port["targetPort"], names)

    def test_ingress_leads_to_the_service(self) -> None:
        service = self.only("Service")
        (rule,) = self.only("Ingress").content["spec"]["rules"]
        (path,) = rule["http"]["paths"]
        backend: Mapping[str, Any] = path["backend"]["service"]
        self.assertEqual(backend["name"], service.metadata_name)
        ports = [port["name"] for port in service.content["spec"]["ports"]]
        self.assertIn(backend["port"]["name"], ports)


class RunDashboard(unittest.TestCase):
    """run_dashboard.yaml: an evaluator that only serves, beside any job."""

    PATH = "deploy/kubernetes/run_dashboard.yaml"

    def setUp(self) -> None:
        (deployment,) = [d for d in documents(self.PATH) if d.kind == "Deployment"]
        self.spec = deployment.content["spec"]
        self.pod = self.spec["template"]["spec"]
        (self.container,) = self.pod["containers"]
        (self.service,) = [d for d in documents(self.PATH) if d.kind == "Service"]
        (self.evaluator,) = [r for r in roles_of("deploy/tfjob/mnist.yaml") if r.role == "evaluator"]

    def test_serves_the_runs_that_are_mounted(self) -> None:
        self.assertEqual(self.container["command"], ["evaluator"])
        flags = self.container["args"]
        self.assertEqual(flags[:2], ["--serve_only", "--runs=/runs"])
        mounted = {mount["name"]: mount for mount in self.container["volumeMounts"]}
        self.assertEqual(set(mounted), {volume["name"] for volume in self.pod["volumes"]})
        for name, mount in mounted.items():
            self.assertEqual(mount, {"name": name, "mountPath": f"/runs/{name}", "readOnly": True})

    def test_shows_what_the_mnist_job_made(self) -> None:
        claims = [volume["persistentVolumeClaim"]["claimName"] for volume in self.pod["volumes"]]
        there = {(d.kind, d.metadata_name) for d in documents("deploy/tfjob/mnist.yaml")}
        for claim in claims:
            self.assertIn(("PersistentVolumeClaim", claim), there)

    def test_is_as_the_evaluator_is(self) -> None:
        for name in ("image", "imagePullPolicy", "securityContext"):
            self.assertEqual(self.container[name], self.evaluator.container[name], name)
        self.assertEqual(self.pod["securityContext"], self.evaluator.pod["securityContext"])

    def test_ports_are_those_of_the_flags(self) -> None:
        ports = {port["name"]: port["containerPort"] for port in self.container["ports"]}
        for name in ("dashboard", "metrics"):
            self.assertIn(f"--{name}_port={ports[name]}", self.container["args"])
        annotations = self.spec["template"]["metadata"]["annotations"]
        self.assertEqual(annotations["prometheus.io/port"], str(ports["metrics"]))
        self.assertIn(self.container["readinessProbe"]["httpGet"]["port"], ports)
        (port,) = self.service.content["spec"]["ports"]
        self.assertEqual(port["targetPort"], "dashboard")

    def test_selects_its_own_pod_alone(self) -> None:
        labels = self.spec["template"]["metadata"]["labels"]
        selector = self.spec["selector"]["matchLabels"]
        self.assertEqual(selector, labels)
        self.assertEqual(self.service.content["spec"]["selector"], labels)
        for path in manifest_paths():
            for role in roles_of(path):
                self.assertFalse(selector.items() <= role.template["metadata"]["labels"].items(), role.name)

    @needs_programs
    def test_flags_are_the_evaluators(self) -> None:
        names = {flag.removeprefix("--").partition("=")[0] for flag in self.container["args"]}
        self.assertLessEqual(names, set(flags_of("evaluator")))


class ModelShell(unittest.TestCase):
    def test_looks_at_what_the_mnist_job_made(self) -> None:
        (shell,) = documents("deploy/kubernetes/model_shell.yaml")
        there = {(d.kind, d.metadata_name) for d in documents("deploy/tfjob/mnist.yaml")}
        chief = next(r for r in roles_of("deploy/tfjob/mnist.yaml") if r.role == "chief")
        pod = shell.content["spec"]
        self.assertEqual(pod["volumes"], chief.pod["volumes"])
        claim = pod["volumes"][1]["persistentVolumeClaim"]["claimName"]
        self.assertIn(("PersistentVolumeClaim", claim), there)
        (container,) = pod["containers"]
        self.assertEqual(container["volumeMounts"], chief.container["volumeMounts"])
        self.assertEqual(container["securityContext"], chief.container["securityContext"])
        self.assertEqual(pod["securityContext"], chief.pod["securityContext"])
        self.assertEqual(container["image"], chief.container["image"])


class PodMonitor(unittest.TestCase):
    def test_selects_the_pod_of_run_dashboard_too(self) -> None:
        (monitor,) = [d for d in all_documents() if d.kind == "PodMonitor"]
        (deployment,) = [d for d in all_documents() if d.kind == "Deployment"]
        template = deployment.content["spec"]["template"]
        selector = monitor.content["spec"]["selector"]["matchLabels"]
        self.assertLessEqual(selector.items(), template["metadata"]["labels"].items())
        (endpoint,) = monitor.content["spec"]["podMetricsEndpoints"]
        (container,) = template["spec"]["containers"]
        self.assertIn(endpoint["port"], [port["name"] for port in container["ports"]])

    def test_selects_every_pod_and_scrapes_its_metrics_port(self) -> None:
        (monitor,) = [d for d in all_documents() if d.kind == "PodMonitor"]
        spec = monitor.content["spec"]
        selector = spec["selector"]["matchLabels"].items()
        (endpoint,) = spec["podMetricsEndpoints"]
        for path in manifest_paths():
            for role in roles_of(path):
                with self.subTest(role.name):
                    self.assertLessEqual(selector, role.template["metadata"]["labels"].items())
                    names = [port["name"] for port in role.container["ports"]]
                    # A pod without that port, as a script's, is not scraped.
                    self.assertEqual(endpoint["port"] in names, role.metrics_port is not None)
