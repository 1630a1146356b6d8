"""A v1 document becomes a TFJob: defaults, names, overrides, policies, what old operators did not know."""

import os

from support import REPOSITORY, ManifestTest, manifest, replica
from tfjob_api.fields import ManifestError
from tfjob_api.model import RunPolicy
from tfjob_api.reader import ReadOptions, read_documents, read_manifest


class JobTest(ManifestTest):
    def test_shipped_manifest(self):
        read = read_manifest([os.path.join(REPOSITORY, "deploy", "tfjob", "mnist.yaml")])
        self.assertEqual(read.warnings, ())
        counts = {t: spec.replicas for t, spec in read.job.replica_specs.items()}
        self.assertEqual(counts, {"Chief": 1, "PS": 2, "Worker": 2, "Evaluator": 1})
        policies = {t: spec.restart_policy for t, spec in read.job.replica_specs.items()}
        self.assertEqual((policies["Worker"], policies["PS"]), ("ExitCode", "ExitCode"))
        self.assertEqual(policies["Evaluator"], "OnFailure")
        self.assertEqual(read.job.run_policy.clean_pod_policy, "Running")

    def test_defaults(self):
        job = self.read(
            manifest("    Worker: {template: {spec: {containers: [{name: tensorflow, image: i}]}}}\n")
        ).job
        self.assertEqual((job.name, job.namespace), ("job", "default"))
        self.assertEqual(job.run_policy, RunPolicy())
        self.assertEqual((job.success_policy, job.dynamic_workers), ("", False))
        spec = job.replica_specs["Worker"]
        self.assertEqual((spec.replicas, spec.restart_policy, spec.grace_seconds), (1, "Never", 30.0))
        self.assertEqual(spec.port, 2222)

    def test_policies(self):
        text = manifest(
            replica("Worker"),
            spec="successPolicy: AllWorkers\nenableDynamicWorker: true\n"
            "runPolicy: {cleanPodPolicy: All, ttlSecondsAfterFinished: 0, activeDeadlineSeconds: 60, "
            "backoffLimit: 0, suspend: true, managedBy: kubeflow.org/training-operator, "
            "schedulingPolicy: {queue: q}}",
        )
        job = self.read(text).job
        self.assertEqual(job.run_policy, RunPolicy("All", 0, 60, 0, suspend=True))
        self.assertEqual((job.success_policy, job.dynamic_workers), ("AllWorkers", True))

    def test_pod_template(self):
        spec = self.read_spec(
            manifest(
                replica(
                    "Worker",
                    3,
                    "ExitCode",
                    "ports: [{name: tfjob-port, containerPort: 22223}]",
                    "terminationGracePeriodSeconds: 0",
                    "metadata: {labels: {app: x}, annotations: {sidecar.istio.io/inject: 'false'}}",
                )
            )
        )
        self.assertEqual((spec.replicas, spec.restart_policy, spec.grace_seconds), (3, "ExitCode", 0.0))
        self.assertEqual(
            (spec.labels, spec.annotations), ({"app": "x"}, {"sidecar.istio.io/inject": "false"})
        )
        self.assertEqual(spec.port, 22223)

    def test_replicas_in_place_of_the_manifests(self):
        read = self.read(manifest(replica("PS"), replica("Worker")), replicas={"PS": 0})
        self.assertEqual(list(read.job.replica_specs), ["Worker"])
        read = self.read(manifest(replica("PS"), replica("Worker")), replicas={"PS": 3, "Worker": 5})
        self.assertEqual((read.job.replicas("PS"), read.job.replicas("Worker")), (3, 5))
        self.assertEqual(read.document["spec"]["tfReplicaSpecs"]["PS"]["replicas"], 3)

    def test_replicas_of_a_type_that_is_not_there(self):
        text = manifest(replica("Chief"), replica("Evaluator"))
        self.assert_refused(
            text,
            "spec.tfReplicaSpecs.Worker: not in the manifest, but 2 replicas are asked for",
            replicas={"Worker": 2},
        )
        self.assertEqual(self.read(text, replicas={"Worker": 0}).job.replicas("Worker"), 0)

    def test_servers_that_are_added(self):
        worker = replica(
            "Worker",
            4,
            "OnFailure",
            container="args: [--batch_size=8]\nresources: {limits: {nvidia.com/gpu: 1}}",
            pod="initContainers: [{name: i, image: x}]\nvolumes: [{name: v, emptyDir: {}}]",
            template="metadata: {labels: {app: x}}",
        )
        read = self.read(manifest(replica("Chief"), worker), replicas={"PS": 2})
        ps = read.job.replica_specs["PS"]
        self.assertEqual((ps.replicas, ps.restart_policy, ps.init_containers), (2, "OnFailure", ()))
        self.assertEqual((ps.container.args, ps.container.limits), (("--batch_size=8",), {}))
        self.assertEqual([volume.name for volume in ps.volumes], ["v"])
        self.assertEqual((ps.labels, ps.annotations), ({"app": "x"}, {"keelson/template-of": "Worker"}))
        self.assertEqual(read.job.replica_specs["Worker"].container.limits, {"nvidia.com/gpu": "1"})
        self.assertIn(
            "spec.tfReplicaSpecs.PS: not in the manifest; 2 with the template of Worker", read.warnings
        )
        again = read_documents([read.document], "again", ReadOptions())
        self.assertEqual(again.job, read.job)

    def test_servers_with_the_template_of_the_chief(self):
        ps = self.read_spec(manifest(replica("Master")), "PS", replicas={"PS": 1})
        self.assertEqual(ps.annotations, {"keelson/template-of": "Master"})

    def test_servers_for_an_evaluator_alone(self):
        self.assert_refused(
            manifest(replica("Evaluator")),
            "spec.tfReplicaSpecs.PS: expected a Worker or a Chief whose template servers can have",
            replicas={"PS": 1},
        )

    def test_namespace(self):
        text = manifest(replica("Worker")).replace("name: job", "name: job\n  namespace: team-a", 1)
        self.assertEqual(self.read(text).job.namespace, "team-a")


class GeneratedNameTest(ManifestTest):
    TEXT = manifest(replica("Worker")).replace("name: job", "generateName: job-", 1)

    def test_suffix(self):
        read = self.read(self.TEXT)
        self.assertRegex(read.job.name, r"^job-[a-z0-9]{5}$")
        self.assertEqual(read.document["metadata"], {"generateName": "job-", "name": read.job.name})

    def test_two_jobs_have_two_names(self):
        self.assertNotEqual(self.read(self.TEXT).job.name, self.read(self.TEXT).job.name)

    def test_name_wins(self):
        text = manifest(replica("Worker")).replace("name: job", "generateName: other-\n  name: job", 1)
        self.assertEqual(self.read(text).job.name, "job")

    def test_neither(self):
        for metadata in ("metadata: {}", "metadata:", ""):
            text = f"apiVersion: kubeflow.org/v1\nkind: TFJob\n{metadata}\nspec: {{}}\n"
            self.assert_refused(text, "metadata.name: Required value: name or generateName is required")


class DocumentTest(ManifestTest):
    """Manifest.document is the job as a cluster would store it."""

    def test_status_is_not_taken_over(self):
        document = self.read(manifest(replica("Worker")) + "status: {conditions: []}\n").document
        self.assertEqual(list(document), ["apiVersion", "kind", "metadata", "spec"])

    def test_defaults_are_not_filled_in(self):
        document = self.read(manifest(replica("Worker"))).document
        self.assertNotIn("runPolicy", document["spec"])

    def test_reads_as_the_same_job(self):
        text = manifest(
            replica("master", container="env: [{name: A, value: b}]"),
            replica("ps", 2),
            spec="cleanPodPolicy: All",
        )
        read = self.read(text)
        again = read_documents([read.document], "again", ReadOptions())
        self.assertEqual((again.job, again.document), (read.job, read.document))

    def test_the_callers_documents_are_left_alone(self):
        text = manifest(replica("ps"), replica("Worker"), spec="cleanPodPolicy: All")
        given = dict(self.read(text).document)
        before = repr(given)
        read_documents([given], "memory", ReadOptions(replicas={"PS": 4}))
        self.assertEqual(repr(given), before)

    def test_errors_name_the_source(self):
        with self.assertRaises(ManifestError) as caught:
            read_documents([{"kind": "Pod"}], "generated manifest")
        self.assert_error(caught.exception, "generated manifest: expected a TFJob, a PyTorchJob or a TrainJob, found Pod")


class ValueTest(ManifestTest):
    """Values of the wrong kind: field, expected, found."""

    def refuse_spec(self, spec, expected):
        self.assert_refused(manifest(replica("Worker"), spec=spec), expected)

    def test_replicas(self):
        for value, found in (
            ("-1", "-1"),
            ("two", '"two"'),
            ("1.5", "1.5"),
            ("true", "true"),
            ("[1]", "a list"),
        ):
            self.assert_refused(
                manifest(replica("Worker", value)),
                f"spec.tfReplicaSpecs.Worker.replicas: expected a whole number >= 0, found {found}",
            )

    def test_policies(self):
        self.assert_refused(
            manifest(replica("Worker", policy="Sometimes")),
            "spec.tfReplicaSpecs.Worker.restartPolicy: expected one of Always, OnFailure, Never, ExitCode, "
            'found "Sometimes"',
        )
        self.refuse_spec(
            "runPolicy: {cleanPodPolicy: Some}",
            'spec.runPolicy.cleanPodPolicy: expected one of All, Running, None, found "Some"',
        )
        self.refuse_spec(
            "successPolicy: Chief", 'spec.successPolicy: expected one of "", AllWorkers, found "Chief"'
        )

    def test_kinds_of_value(self):
        self.refuse_spec("runPolicy: 3", "spec.runPolicy: expected a mapping, found 3")
        self.refuse_spec("runPolicy: {suspend: 1}", "spec.runPolicy.suspend: expected true or false, found 1")
        self.refuse_spec(
            "runPolicy: {backoffLimit: many}",
            'spec.runPolicy.backoffLimit: expected a whole number >= 0, found "many"',
        )
        self.refuse_spec(
            "enableDynamicWorker: 1", "spec.enableDynamicWorker: expected true or false, found 1"
        )
        self.assert_refused(
            "apiVersion: kubeflow.org/v1\nkind: TFJob\nmetadata: [1]\nspec: {}\n",
            "metadata: expected a mapping, found a list",
        )
        self.assert_refused(
            "apiVersion: kubeflow.org/v1\nkind: TFJob\nmetadata: {name: 5}\nspec: {}\n",
            "metadata.name: expected a string, found 5; quote it",
        )
        for template in ("labels", "annotations"):
            self.assert_refused(
                manifest(replica("Worker", template=f"metadata: {{{template}: {{x: false}}}}")),
                f"spec.tfReplicaSpecs.Worker.template.metadata.{template}.x: expected a string, found false; "
                "quote it",
            )

    def test_long_values_are_shortened(self):
        self.refuse_spec(
            f"successPolicy: {'x' * 100}",
            f'spec.successPolicy: expected one of "", AllWorkers, found "{"x" * 55}..."',
        )

    def test_errors_stay_on_one_line(self):
        self.refuse_spec(
            'successPolicy: "a\\nb"', 'spec.successPolicy: expected one of "", AllWorkers, found "a\\nb"'
        )


class OlderOperatorTest(ManifestTest):
    """Fields that an operator does not know yet are dropped by its API server."""

    def test_suspend(self):
        text = manifest(replica("Worker"), spec="runPolicy: {suspend: true}")
        self.assertTrue(self.read(text, version="1.7").job.run_policy.suspend)
        self.assertFalse(self.read(text, version="1.6").job.run_policy.suspend)
        self.assert_warnings(
            text, "spec.runPolicy.suspend: dropped, operator 1.6.0 does not know it", version="1.6"
        )

    def test_dynamic_workers(self):
        text = manifest(replica("Worker"), spec="enableDynamicWorker: true")
        self.assertFalse(self.read(text, version="1.0").job.dynamic_workers)
        self.assert_warnings(
            text, "spec.enableDynamicWorker: dropped, operator 1.0.0 does not know it", version="1.0"
        )


class TfConfigTest(ManifestTest):
    """A TF_CONFIG of the manifest's own."""

    CONTAINER = "env: [{name: A, value: a}, {name: TF_CONFIG, value: '{}'}]"

    def names(self, text, **options):
        return [variable.name for variable in self.read_spec(text, **options).container.environment]

    def test_the_operators_takes_its_place(self):
        text = manifest(replica("Worker", 2, container=self.CONTAINER))
        self.assertEqual(self.names(text), ["A"])
        self.assert_warnings(
            text,
            "spec.tfReplicaSpecs.Worker.template.spec.containers: the operator's TF_CONFIG takes the place "
            "of the one in env",
        )

    def test_it_stays_where_the_operator_sets_none(self):
        text = manifest(replica("Worker", 1, container=self.CONTAINER))
        self.assertEqual(self.names(text), ["A", "TF_CONFIG"])
        self.assert_warnings(text)
        self.assertEqual(self.names(text, version="1.0"), ["A"])
