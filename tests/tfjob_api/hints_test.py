"""Documents of another form, with lost indentation, or not rendered: the error says what they mean."""

from support import ManifestError, ManifestTest, manifest, replica

SPECS = "spec.tfReplicaSpecs"
NONE = f"{SPECS}: Required value: must be required"
HEAD = "apiVersion: kubeflow.org/v1\nkind: TFJob\nmetadata: {name: j}\n"
KUSTOMIZE = "; $(...) is a variable of kustomize: render the file first, as with kubectl kustomize DIR"
LIST = (
    "; found spec.replicaSpecs, the list of v1alpha1: it becomes the mapping spec.tfReplicaSpecs with the keys "
    "Chief (was MASTER), Worker and PS"
)


class HintsTest(ManifestTest):
    def test_replica_specs_under_another_name(self):
        for spec, hint in (
            ("{tfReplicaSpec: {Worker: {}}}", "; found spec.tfReplicaSpec, which is called tfReplicaSpecs"),
            ("{replicaSpecs: {Worker: {}}}", "; found spec.replicaSpecs, which is called tfReplicaSpecs"),
            ("{TFReplicaSpecs: {Worker: {}}}", "; found spec.TFReplicaSpecs, which is called tfReplicaSpecs"),
            ("{replicaSpecs: [{tfReplicaType: MASTER}]}", LIST),
            ("{runPolicy: {}}", ""),
        ):
            for version in ("v1", "v1alpha2"):
                text = HEAD.replace("/v1", f"/{version}") + f"spec: {spec}\n"
                expected = NONE if version == "v1" else f"{SPECS}: TFJobSpec is not valid"
                self.assert_refused(text, expected + hint)

    def test_replica_specs_that_lost_their_indentation(self):
        for text, hint in (
            ("spec:\ntfReplicaSpecs: {Worker: {}}\n", "; found tfReplicaSpecs beside spec: indent it"),
            (
                "spec:\n  tfReplicaSpecs:\n  PS: {}\n",
                f"; found PS directly under spec: indent it below {SPECS}",
            ),
            (
                "spec:\n  tfReplicaSpecs:\nworker: {}\n",
                f"; found worker directly under the document: indent it below {SPECS}",
            ),
        ):
            self.assert_refused(HEAD + text, NONE + hint)

    def test_fields_of_a_replica_that_lost_their_indentation(self):
        self.assert_refused(
            HEAD + "spec:\n  tfReplicaSpecs:\n    replicas: 1\n    template: {}\n",
            f"{SPECS}.replicas: unknown replica type, expected one of Chief, Evaluator, Master, PS, Worker; it "
            "belongs to a replica type: indent it",
        )

    def test_containers_that_lost_their_indentation(self):
        container = "[{name: tensorflow, image: x}]"
        path = f"{SPECS}[Worker].template.spec.containers: Required value: must be specified"
        for worker, hint in (
            (
                f"{{template: {{spec: , containers: {container}}}}}",
                "; found containers directly under template: indent it below template.spec",
            ),
            (
                f"{{template: , containers: {container}}}",
                "; found containers directly under the replica type: indent it below template.spec",
            ),
            (
                f"{{template: , spec: {{containers: {container}}}}}",
                "; found spec beside template: indent it",
            ),
            ("{template: {spec: {}}}", ""),
        ):
            text = f"{HEAD}spec: {{tfReplicaSpecs: {{Worker: {worker}}}}}\n"
            self.assert_refused(text, path + hint)

    def test_name_that_lost_its_indentation(self):
        text = manifest(replica("Worker")).replace("  name: job", "name: job", 1)
        self.assert_refused(
            text,
            "metadata.name: Required value: name or generateName is required; found name beside metadata: "
            "indent it",
        )

    def test_variables_that_nobody_filled_in(self):
        worker = manifest(replica("Worker"))
        for text, where, hint in (
            (worker.replace("name: job", "name: $(jobName)", 1), "metadata.name", KUSTOMIZE),
            (
                worker.replace("replicas: 1", "replicas: $(workers)"),
                f"{SPECS}.Worker.replicas",
                KUSTOMIZE,
            ),
            (
                worker.replace("name: job", "name: ${JOB}", 1),
                "metadata.name",
                "; ${...} is a variable: fill it in first, as with envsubst",
            ),
        ):
            with self.assertRaises(ManifestError) as caught:
                self.read(text)
            error = str(caught.exception)
            self.assertTrue(error.startswith(f"{self.job_path}: {where}: "), error)
            self.assertTrue(error.endswith(hint), error)
