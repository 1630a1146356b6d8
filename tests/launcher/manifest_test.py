"""What the reader refuses, with which words, and what it takes."""

import os
import unittest

import support
from support import manifest, replica
from tfjob_local.fields import ManifestError
from tfjob_local.manifest import ManifestReader


class ReaderTest(support.TemporaryDirectoryTest):
    def read_job(self, text, overrides=None):
        self.reader = ManifestReader(self.write("job.yaml", text), overrides)
        return self.reader.read()

    def assert_refused(self, text, expected, overrides=None):
        with self.assertRaises(ManifestError) as caught:
            self.read_job(text, overrides)
        message = str(caught.exception)
        self.assertIn(expected, message)
        self.assertTrue(message.startswith(self.path("job.yaml")), message)
        self.assertNotIn("\n", message)


class AdmissionTest(ReaderTest):
    """The operator's webhook, rule by rule."""

    def test_name_is_a_dns_label(self):
        for name in ("Mnist", "1mnist", "my_job", "mnist-", "a" * 64):
            self.assert_refused(
                manifest(replica("Worker"), name=name), f'metadata.name: Invalid value: "{name}": should match:'
            )

    def test_pod_name_fits_into_a_label(self):
        self.assert_refused(
            manifest(replica("Worker", 11), name="a" * 54), f'"{"a" * 54}-worker-10" is longer than 63'
        )

    def test_no_name(self):
        text = "apiVersion: kubeflow.org/v1\nkind: TFJob\nspec: {}\n"
        self.assert_refused(text, "metadata.name: Required value")

    def test_no_replica_specs(self):
        for spec in ("spec: {}", "spec: {tfReplicaSpecs: }", "spec: {tfReplicaSpecs: {}}"):
            text = f"apiVersion: kubeflow.org/v1\nkind: TFJob\nmetadata: {{name: j}}\n{spec}\n"
            self.assert_refused(text, "spec.tfReplicaSpecs: Required value: must be required")

    def test_no_containers(self):
        for entry in ("    Worker:\n", "    Worker: {template: {spec: {containers: []}}}\n"):
            self.assert_refused(
                manifest(entry),
                "spec.tfReplicaSpecs.Worker.template.spec.containers: Required value: must be specified",
            )

    def test_no_image(self):
        text = manifest(replica("Worker")).replace("image: keelson", "image: ''")
        self.assert_refused(text, "containers[0].image: Required value: must be required")

    def test_no_container_named_tensorflow(self):
        text = manifest(replica("Worker")).replace("name: tensorflow", "name: trainer")
        self.assert_refused(text, "Required value: must have at least one container with name tensorflow")

    def test_chief_and_master(self):
        self.assert_refused(
            manifest(replica("Chief"), replica("Master")), "Forbidden: must not have more than 1 Chief or Master role"
        )


class RefusedTest(ReaderTest):
    """What the operator would accept, and never finish."""

    def test_missing_file(self):
        with self.assertRaisesRegex(ManifestError, "missing.yaml: No such file or directory"):
            ManifestReader(self.path("missing.yaml")).read()

    def test_not_utf8(self):
        path = self.path("job.yaml")
        with open(path, "wb") as file:
            file.write(b"name: \xff\xfe\n")
        with self.assertRaisesRegex(ManifestError, "job.yaml: not UTF-8 text|job.yaml.*not YAML"):
            ManifestReader(path).read()

    def test_syntax_error_with_its_line(self):
        self.assert_refused("kind: TFJob\nspec: [1,\nmetadata: }\n", "job.yaml:3:")

    def test_no_tfjob(self):
        self.assert_refused("kind: Pod\n", "expected one document of kind TFJob, found Pod")
        self.assert_refused("", "found an empty file")
        self.assert_refused("- 1\n", "found no mapping")

    def test_two_tfjobs(self):
        one = manifest(replica("Worker"))
        self.assert_refused(f"{one}---\n{one}", "expected one document of kind TFJob, found TFJob, TFJob")

    def test_other_api_version(self):
        text = manifest(replica("Worker")).replace("kubeflow.org/v1", "kubeflow.org/v1alpha1")
        self.assert_refused(text, 'apiVersion: expected kubeflow.org/v1, found "kubeflow.org/v1alpha1"')

    def test_unknown_replica_type(self):
        self.assert_refused(
            manifest(replica("Worker"), replica("Scheduler")),
            "spec.tfReplicaSpecs.Scheduler: unknown replica type, expected one of Chief, Evaluator, Master, PS, Worker",
        )

    def test_types_that_differ_in_case(self):
        self.assert_refused(
            manifest(replica("Worker"), replica("worker")), "spec.tfReplicaSpecs.worker: second entry"
        )

    def test_nothing_that_could_end_the_job(self):
        for replicas in ([replica("Evaluator")], [replica("PS")], [replica("Worker", 0), replica("PS")]):
            self.assert_refused(manifest(*replicas), "no chief and no worker: nothing would end the job")

    def test_more_or_less_than_one_chief(self):
        for count in (0, 2):
            self.assert_refused(
                manifest(replica("Chief", count), replica("Worker")),
                f"spec.tfReplicaSpecs.Chief.replicas: expected 1, found {count}",
            )

    def test_replicas_that_are_no_count(self):
        for value in ("-1", "two", "1.5", "true"):
            self.assert_refused(
                manifest(replica("Worker", value)), "Worker.replicas: expected a whole number >= 0, found"
            )

    def test_unknown_policies(self):
        self.assert_refused(
            manifest(replica("Worker", policy="Sometimes")),
            'Worker.restartPolicy: expected one of Always, OnFailure, Never, ExitCode, found "Sometimes"',
        )
        self.assert_refused(
            manifest(replica("Worker"), spec="runPolicy: {cleanPodPolicy: Some}"),
            'spec.runPolicy.cleanPodPolicy: expected one of All, Running, None, found "Some"',
        )
        self.assert_refused(manifest(replica("Worker"), spec="successPolicy: Chief"), "spec.successPolicy: expected")

    def test_suspended(self):
        self.assert_refused(
            manifest(replica("Worker"), spec="runPolicy: {suspend: true}"),
            "spec.runPolicy.suspend: the job is suspended",
        )

    def test_wrong_kinds_of_value(self):
        self.assert_refused(
            manifest(replica("Worker"), spec="runPolicy: 3"), "spec.runPolicy: expected a mapping, found 3"
        )
        self.assert_refused(
            manifest(replica("Worker", container="args: --x=1")), 'containers[0].args: expected a list, found "--x=1"'
        )
        self.assert_refused(
            manifest(replica("Worker", container="args: [--steps, 5]")),
            "containers[0].args[1]: expected a string, found 5; quote it",
        )
        self.assert_refused(
            manifest(replica("Worker"), spec="enableDynamicWorker: 1"),
            "spec.enableDynamicWorker: expected true or false, found 1",
        )

    def test_environment_variable_without_name(self):
        self.assert_refused(manifest(replica("Worker", container="env: [{value: x}]")), "env[0].name: Required value")

    def test_mount_of_an_unknown_volume(self):
        text = manifest(replica("Worker", container="volumeMounts: [{name: model, mountPath: /model}]"))
        self.assert_refused(text, 'template.spec.volumes: no volume "model" for /model')

    def test_incomplete_volumes_and_mounts(self):
        self.assert_refused(
            manifest(replica("Worker", container="volumeMounts: [{name: model}]")),
            "volumeMounts[0].mountPath: Required",
        )
        for volume, expected in (
            ("{name: m, persistentVolumeClaim: {}}", "volumes[0].persistentVolumeClaim.claimName: Required"),
            ("{name: m, hostPath: {}}", "volumes[0].hostPath.path: Required"),
            ("{emptyDir: {}}", "volumes[0]: expected a name and one kind of volume"),
            ("{name: m, emptyDir: {}, hostPath: {path: /}}", "volumes[0]: expected a name and one kind"),
        ):
            self.assert_refused(manifest(replica("Worker", pod=f"volumes: [{volume}]")), expected)

    def test_override_of_a_missing_type(self):
        self.assert_refused(
            manifest(replica("Worker")), "spec.tfReplicaSpecs.PS: not in the manifest, but 2 replicas", {"PS": 2}
        )


class AcceptedTest(ReaderTest):
    def test_shipped_manifest(self):
        path = os.path.join(support.REPOSITORY, "deploy", "tfjob", "mnist.yaml")
        reader = ManifestReader(path)
        job = reader.read()
        self.assertEqual(reader.warnings, [])
        counts = {t: spec.replicas for t, spec in job.replica_specs.items()}
        self.assertEqual(counts, {"Chief": 1, "PS": 2, "Worker": 2, "Evaluator": 1})
        self.assertEqual(job.clean_pod_policy, "Running")
        policies = {t: spec.restart_policy for t, spec in job.replica_specs.items()}
        self.assertEqual(policies["Worker"], "ExitCode")
        self.assertEqual(policies["PS"], "ExitCode")
        self.assertEqual(policies["Evaluator"], "OnFailure")

    def test_defaults(self):
        spec = self.read_job(
            manifest("    Worker: {template: {spec: {containers: [{name: tensorflow, image: i}]}}}\n")
        ).replica_specs["Worker"]
        self.assertEqual((spec.replicas, spec.restart_policy, spec.grace_seconds), (1, "Never", 30.0))

    def test_types_in_any_case(self):
        job = self.read_job(manifest(replica("ps"), replica("WORKER"), replica("chief")))
        self.assertEqual(list(job.replica_specs), ["PS", "Worker", "Chief"])

    def test_overrides(self):
        job = self.read_job(manifest(replica("PS"), replica("Worker")), {"PS": 3, "Worker": 5})
        self.assertEqual((job.replicas("PS"), job.replicas("Worker")), (3, 5))

    def test_generated_name(self):
        text = manifest(replica("Worker")).replace("name: job", "generateName: job-", 1)
        self.assertRegex(self.read_job(text).name, r"^job-[a-z0-9]{5}$")

    def test_json(self):
        job = self.read_job(
            '{"apiVersion":"kubeflow.org/v1","kind":"TFJob","metadata":{"name":"j"},"spec":{"tfReplicaSpecs":'
            '{"Worker":{"template":{"spec":{"containers":[{"name":"tensorflow","image":"i"}]}}}}}}'
        )
        self.assertEqual(job.total_replicas(), 1)

    def assert_warned(self, text, expected):
        self.read_job(text)
        self.assertTrue(any(expected in w for w in self.reader.warnings), self.reader.warnings)

    def test_warnings(self):
        self.assert_warned(
            manifest(replica("Worker"), spec="cleanPodPolicy: All"), "spec.cleanPodPolicy: unknown field"
        )
        text = manifest(replica("Worker", pod="restartPolicy: OnFailure")).replace("      restartPolicy: Never\n", "")
        self.assert_warned(text, "template.spec.restartPolicy is overwritten by the operator; the policy is Never")
        self.assert_warned(manifest(replica("Worker"), replica("PS")), "cleanPodPolicy is None")
        self.assert_warned(
            manifest(replica("Worker", container="env: [{name: TF_CONFIG, value: x}]")),
            "the operator overrides TF_CONFIG",
        )
        self.assert_warned(
            manifest(replica("Worker", pod="initContainers: [{name: a, image: b}]")),
            "ignored locally: spec.tfReplicaSpecs.Worker.template.spec.initContainers",
        )
        self.assert_warned(manifest(replica("Worker")) + "---\nkind: Secret\n", "ignored locally: Secret")


class NothingStartedTest(support.LauncherTest):
    def assert_nothing_started(self, expected, text, *flags):
        code, output = self.run_job(text, *flags)
        self.assertEqual(code, 2, output)
        self.assertIn(expected, output)
        self.assertEqual(len(output.splitlines()), 1, output)
        self.assertFalse(os.path.exists(self.path("run")))

    def test_bad_manifest(self):
        self.assert_nothing_started("no chief and no worker", manifest(replica("Evaluator")))

    def test_missing_program(self):
        os.remove(self.path("bin", "evaluator"))
        self.assert_nothing_started(
            "bin/evaluator: no such program; deploy/run_local.sh builds it",
            manifest(replica("Worker"), replica("Evaluator")),
        )

    def test_missing_data_directory(self):
        self.assert_nothing_started(
            "--data_dir nowhere: no such directory", manifest(replica("Worker")), "--data_dir=nowhere"
        )

    def test_missing_config(self):
        self.assert_nothing_started("--config nothing: no such file", manifest(replica("Worker")), "--config=nothing")

    def test_bad_flags(self):
        for flag in ("--workers=two", "--workers=-1", "--unknown", "--training_steps="):
            code, output = self.run_job(manifest(replica("Worker")), flag)
            self.assertEqual(code, 2, output)
            self.assertIn("usage: tfjob_local.py", output)


if __name__ == "__main__":
    unittest.main()
