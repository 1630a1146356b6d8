"""Every manifest against its kind's schema, and the schemas against what they must refuse."""

import copy
import unittest
from typing import Any, Callable, Dict, List, Mapping

from kubernetes_kinds import kinds
from reduce_crds import OUTPUT, SOURCES, reduce_crds
from strict_schema import errors
from support import REPOSITORY, all_documents, documents, manifest_paths, raw_documents

PUBLISHED = REPOSITORY.parent / "shared" / "tfjob"


def violations(content: Mapping[str, Any]) -> List[str]:
    schema = kinds().get((content["apiVersion"], content["kind"]))
    if schema is None:
        return [f"no schema for {content['apiVersion']} {content['kind']}"]
    return errors(schema, content)


class EveryManifestFitsItsSchema(unittest.TestCase):
    """A cluster takes every document as it stands; no field of it is dropped."""

    def test_documents(self) -> None:
        for document in all_documents():
            with self.subTest(document.name):
                self.assertEqual(violations(document.content), [])

    def test_templates_before_their_parameters_are_filled_in(self) -> None:
        templates = [
            d for path in manifest_paths() for d in raw_documents(path) if d.kind == "Template"
        ]
        self.assertTrue(templates)
        for template in templates:
            with self.subTest(template.name):
                self.assertEqual(violations(template.content), [])

    def test_all_kinds_of_manifests_are_there(self) -> None:
        found = {(d.content["apiVersion"], d.kind) for d in all_documents()}
        self.assertEqual(found, set(kinds()) - {("template.openshift.io/v1", "Template")})


class ThePublishedSchemas(unittest.TestCase):
    @unittest.skipUnless((PUBLISHED / next(iter(SOURCES))).exists(), f"no resource definitions in {PUBLISHED}")
    def test_are_those_of_the_resource_definitions(self) -> None:
        self.assertEqual(OUTPUT.read_text(encoding="utf-8"), reduce_crds(PUBLISHED))


class TheSchemasRefuse(unittest.TestCase):
    """A validator that accepts everything would prove nothing: one mistake each, in a good manifest."""

    def refuse(self, path: str, kind: str, spoil: Callable[[Dict[str, Any]], None]) -> List[str]:
        (document,) = [d for d in documents(path) if d.kind == kind][:1]
        content = copy.deepcopy(dict(document.content))
        self.assertEqual(violations(content), [])
        spoil(content)
        found = violations(content)
        self.assertEqual(len(found), 1, found)
        return found

    def refuse_tfjob(self, spoil: Callable[[Dict[str, Any]], None]) -> List[str]:
        return self.refuse("deploy/tfjob/mnist.yaml", "TFJob", spoil)

    def test_unknown_field_of_the_spec(self) -> None:
        def spoil(job: Dict[str, Any]) -> None:
            job["spec"]["cleanPodPolicy"] = "Running"

        (found,) = self.refuse_tfjob(spoil)
        self.assertIn("'cleanPodPolicy' was unexpected", found)
        self.assertTrue(found.startswith("spec: "), found)

    def test_unknown_field_deep_in_a_pod(self) -> None:
        def spoil(job: Dict[str, Any]) -> None:
            pod = job["spec"]["tfReplicaSpecs"]["Worker"]["template"]["spec"]
            pod["containers"][0]["volumeMounts"][0]["path"] = "/x"

        (found,) = self.refuse_tfjob(spoil)
        path = "spec.tfReplicaSpecs.Worker.template.spec.containers[0].volumeMounts[0]: "
        self.assertTrue(found.startswith(path), found)

    def test_wrong_type(self) -> None:
        def spoil(job: Dict[str, Any]) -> None:
            job["spec"]["tfReplicaSpecs"]["PS"]["replicas"] = "2"

        self.assertEqual(
            self.refuse_tfjob(spoil),
            ["spec.tfReplicaSpecs.PS.replicas: '2' is not of type 'integer'"],
        )

    def test_unquoted_annotation(self) -> None:
        def spoil(job: Dict[str, Any]) -> None:
            metadata = job["spec"]["tfReplicaSpecs"]["PS"]["template"]["metadata"]
            metadata["annotations"]["sidecar.istio.io/inject"] = False

        (found,) = self.refuse_tfjob(spoil)
        self.assertIn("False is not of type 'string'", found)

    def test_number_in_the_args(self) -> None:
        def spoil(job: Dict[str, Any]) -> None:
            job["spec"]["tfReplicaSpecs"]["PS"]["template"]["spec"]["containers"][0]["args"].append(5)

        (found,) = self.refuse_tfjob(spoil)
        self.assertIn("5 is not of type 'string'", found)

    def test_missing_required_field(self) -> None:
        def spoil(job: Dict[str, Any]) -> None:
            del job["spec"]["tfReplicaSpecs"]

        self.assertEqual(
            self.refuse_tfjob(spoil), ["spec: 'tfReplicaSpecs' is a required property"]
        )

    def test_missing_container_name(self) -> None:
        def spoil(job: Dict[str, Any]) -> None:
            del job["spec"]["tfReplicaSpecs"]["PS"]["template"]["spec"]["containers"][0]["name"]

        (found,) = self.refuse_tfjob(spoil)
        self.assertIn("'name' is a required property", found)

    def test_pods_of_other_kinds_are_as_strict(self) -> None:
        def job(content: Dict[str, Any]) -> None:
            content["spec"]["template"]["spec"]["restartpolicy"] = "Never"

        def jobset(content: Dict[str, Any]) -> None:
            job(content["spec"]["replicatedJobs"][0]["template"])

        def runtime(content: Dict[str, Any]) -> None:
            jobset(content["spec"]["template"])

        self.refuse("deploy/kubernetes/statefulset.yaml", "Job", job)
        self.refuse("deploy/kubernetes/statefulset.yaml", "StatefulSet", job)
        self.refuse("deploy/kubernetes/run_dashboard.yaml", "Deployment", job)
        self.refuse("deploy/kubernetes/jobset.yaml", "JobSet", jobset)
        self.refuse("deploy/kubernetes/trainer_v2.yaml", "ClusterTrainingRuntime", runtime)

    def test_rule_for_disrupted_pods_without_status(self) -> None:
        def job(content: Dict[str, Any]) -> None:
            (rule,) = [r for r in content["spec"]["podFailurePolicy"]["rules"] if "onPodConditions" in r]
            del rule["onPodConditions"][0]["status"]

        def jobset(content: Dict[str, Any]) -> None:
            job(content["spec"]["replicatedJobs"][0]["template"])

        def runtime(content: Dict[str, Any]) -> None:
            jobset(content["spec"]["template"])

        for path, kind, spoil in (
            ("statefulset", "Job", job),
            ("jobset", "JobSet", jobset),
            ("trainer_v2", "ClusterTrainingRuntime", runtime),
        ):
            (found,) = self.refuse(f"deploy/kubernetes/{path}.yaml", kind, spoil)
            self.assertIn("onPodConditions[0]: 'status' is a required property", found)

    def test_other_kinds_refuse_what_they_do_not_know(self) -> None:
        def spoil(content: Dict[str, Any]) -> None:
            content["spec"]["colour"] = "blue"

        for path, kind in (
            ("deploy/tfjob/mnist.yaml", "PersistentVolumeClaim"),
            ("deploy/tfjob/mnist.yaml", "NetworkPolicy"),
            ("deploy/kubernetes/statefulset.yaml", "Service"),
            ("deploy/kubernetes/dashboard.yaml", "Ingress"),
            ("deploy/kubernetes/pod_monitor.yaml", "PodMonitor"),
            ("deploy/kubernetes/trainer_v2.yaml", "TrainJob"),
        ):
            with self.subTest(kind):
                self.refuse(path, kind, spoil)

    def test_misspelt_token_of_an_account(self) -> None:
        def spoil(content: Dict[str, Any]) -> None:
            content["automountServiceAccountTokens"] = False

        self.refuse("deploy/tfjob/mnist.yaml", "ServiceAccount", spoil)

    def test_kind_without_a_schema(self) -> None:
        self.assertEqual(
            violations({"apiVersion": "apps/v1", "kind": "DaemonSet"}),
            ["no schema for apps/v1 DaemonSet"],
        )
