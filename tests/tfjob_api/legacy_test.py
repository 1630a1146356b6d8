"""Older API versions and shapes: brought to v1 with a note, or refused with what to write instead."""

from support import ManifestTest, manifest, replica
from tfjob_api.operator_version import NEWEST, OperatorVersion

READ_AS_V1 = "apiVersion: kubeflow.org/{0} is read as kubeflow.org/v1; clusters of today refuse it"
POLICIES = "cleanPodPolicy: All\nttlSecondsAfterFinished: 60\nactiveDeadlineSeconds: 70\nbackoffLimit: 3"
DEADLINE = "spec.runPolicy.activeDeadlineSeconds: the operator notices the deadline only when a pod changes"


class ApiVersionTest(ManifestTest):
    def test_older_versions_are_read_as_v1(self):
        for version in ("v1alpha2", "v1beta1", "v1beta2"):
            text = manifest(replica("Worker"), api_version=version)
            self.assert_warnings(text, READ_AS_V1.format(version))
            read = self.read(text)
            self.assertEqual(read.version, OperatorVersion.for_api_version(version))
            self.assertEqual(read.document["apiVersion"], "kubeflow.org/v1")

    def test_todays_version(self):
        self.assertEqual(str(self.read(manifest(replica("Worker"))).version), NEWEST)

    def test_the_version_that_is_asked_for_wins(self):
        text = manifest(replica("Worker"), replica("PS"), api_version="v1beta2")
        self.assertEqual(str(self.read(text, version="1.9.4").version), "1.9.4")
        # In that version the default is None.
        self.assertIn("None (the default) leaves a PS", self.read(text, version="1.9.4").warnings[-1])

    def test_what_the_operator_of_then_did_not_know_is_dropped(self):
        text = manifest(replica("Worker"), spec="runPolicy: {suspend: true}", api_version="v1beta2")
        self.assert_warnings(
            text,
            READ_AS_V1.format("v1beta2"),
            "spec.runPolicy.suspend: dropped, operator 0.5.3 does not know it",
        )
        self.assertFalse(self.read(text).job.run_policy.suspend)

    def test_clean_pod_policy_was_running(self):
        """v1 warns of the default None here, see LintTest."""
        self.assert_warnings(
            manifest(replica("Worker"), replica("PS"), api_version="v1beta2"), READ_AS_V1.format("v1beta2")
        )

    def test_first_versions(self):
        text = (
            "apiVersion: {0}\nkind: {1}\nmetadata: {{name: j}}\n"
            "spec: {{replicaSpecs: [{{tfReplicaType: MASTER, replicas: 1}}]}}\n"
        )
        for version, kind in (
            ("kubeflow.org/v1alpha1", "TFJob"),
            ("tensorflow.org/v1alpha1", "TfJob"),
            ("kubeflow.caicloud.io/v1alpha1", "TFJob"),
        ):
            self.assert_refused(
                text.format(version, kind),
                f"apiVersion: {version} is not read; write the job for kubeflow.org/v1: the list "
                "replicaSpecs becomes the mapping spec.tfReplicaSpecs with the keys Chief (was MASTER), "
                "Worker and PS",
            )

    def test_unknown_versions(self):
        known = "kubeflow.org/v1, kubeflow.org/v1alpha2, kubeflow.org/v1beta1, kubeflow.org/v1beta2"
        for version in ("kubeflow.org/v2", "v1", "example.org/v1"):
            self.assert_refused(
                f"apiVersion: {version}\nkind: TFJob\n",
                f'apiVersion: expected one of {known}, found "{version}"',
            )
        self.assert_refused("kind: TFJob\n", "apiVersion: Required value")


class PoliciesUnderSpecTest(ManifestTest):
    """cleanPodPolicy and its like directly under spec, where v1 had them first."""

    def policies(self, text, **options):
        policy = self.read(text, **options).job.run_policy
        return (
            policy.clean_pod_policy,
            policy.ttl_seconds_after_finished,
            policy.active_deadline_seconds,
            policy.backoff_limit,
        )

    def test_their_place_in_older_versions(self):
        text = manifest(replica("Worker"), spec=POLICIES, api_version="v1beta1")
        self.assertEqual(self.policies(text), ("All", 60, 70, 3))
        self.assert_warnings(text, READ_AS_V1.format("v1beta1"))

    def test_their_place_for_an_operator_of_then(self):
        text = manifest(replica("Worker"), spec=POLICIES)
        self.assertEqual(self.policies(text, version="1.1"), ("All", 60, 70, 3))
        self.assert_warnings(text, version="1.1")

    def test_honoured_with_a_loud_warning(self):
        text = manifest(replica("Worker"), spec=POLICIES)
        self.assertEqual(self.policies(text), ("All", 60, 70, 3))
        names = ("cleanPodPolicy", "ttlSecondsAfterFinished", "activeDeadlineSeconds", "backoffLimit")
        self.assert_warnings(
            text,
            *(
                f"spec.{name}: taken as spec.runPolicy.{name}; IN THIS PLACE AN OPERATOR OF TODAY DROPS IT"
                for name in names
            ),
            DEADLINE,
        )

    def test_dropped_as_the_operator_does(self):
        text = manifest(replica("Worker"), spec="cleanPodPolicy: All")
        self.assertEqual(self.policies(text, honour_misplaced_policies=False), (None, None, None, None))
        self.assert_warnings(
            text,
            "spec.cleanPodPolicy: dropped, as the operator does; its place is spec.runPolicy.cleanPodPolicy",
            honour_misplaced_policies=False,
        )

    def test_run_policy_wins(self):
        text = manifest(replica("Worker"), spec="cleanPodPolicy: All\nrunPolicy: {cleanPodPolicy: Running}")
        self.assertEqual(self.policies(text)[0], "Running")
        self.assert_warnings(text, "spec.cleanPodPolicy: ignored, spec.runPolicy.cleanPodPolicy counts")

    def test_document_has_them_moved(self):
        document = self.read(manifest(replica("Worker"), spec="cleanPodPolicy: All")).document
        self.assertEqual(document["spec"]["runPolicy"], {"cleanPodPolicy": "All"})
        self.assertNotIn("cleanPodPolicy", document["spec"])

    def test_wrong_values_are_found_in_their_new_place(self):
        self.assert_refused(
            manifest(replica("Worker"), spec="cleanPodPolicy: Some"),
            'spec.runPolicy.cleanPodPolicy: expected one of All, Running, None, found "Some"',
        )


class ReplicaTypeTest(ManifestTest):
    def test_any_case(self):
        types = ("ps", "WORKER", "chief", "evaluatoR")
        read = self.read(manifest(*(replica(replica_type) for replica_type in types)))
        self.assertEqual(list(read.job.replica_specs), ["PS", "Worker", "Chief", "Evaluator"])
        self.assertEqual(
            list(read.document["spec"]["tfReplicaSpecs"]), ["PS", "Worker", "Chief", "Evaluator"]
        )

    def test_master_stays_master(self):
        job = self.read(manifest(replica("master"), replica("Worker"))).job
        self.assertEqual((list(job.replica_specs), job.chief_type()), (["Master", "Worker"], "Master"))

    def test_types_that_differ_in_case(self):
        self.assert_refused(
            manifest(replica("Worker"), replica("worker")),
            "spec.tfReplicaSpecs.worker: second entry for the replica type Worker, the operator would lose "
            "one of them",
        )

    def test_fields_in_another_case(self):
        self.assert_warnings(
            manifest(replica("Worker"), spec="runpolicy: {cleanPodPolicy: All}"),
            "spec.runpolicy: unknown field, the API server drops it (it knows runPolicy)",
        )
