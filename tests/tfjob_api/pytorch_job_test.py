"""PyTorchJobs as manifests: defaults, what is refused, what is warned of."""

import unittest

from support import ManifestTest
from pytorch_text import pytorch_job, replica

SPECS = "spec.pytorchReplicaSpecs"
TRAINING = "command: [python, train.py]"
TORCHRUN = "command: [torchrun, train.py]"
STUCK = (
    "spec.nprocPerNode: 2: WORLD_SIZE is 6, RANK counts pods, 0 to 2, and is not multiplied: the command of {} is not "
    "torchrun, so that its processes wait for ranks that never come; start it with torchrun, or leave nprocPerNode out"
)


class DefaultsTest(ManifestTest):
    def test_defaults(self):
        job = self.read(pytorch_job(replica("Master"), replica("Worker", None))).job
        self.assertEqual(job.kind.name, "PyTorchJob")
        for spec in job.replica_specs.values():
            self.assertEqual((spec.replicas, spec.restart_policy, spec.port), (1, "OnFailure", 23456))
        for version in ("1.4", "1.9"):
            manifest = self.read(pytorch_job(replica("Master")), version=version)
            self.assertEqual(manifest.job.kind.default_clean_pod_policy(manifest.version), "None")

    def test_types_get_their_spelling_before_there_was_a_webhook(self):
        text = pytorch_job(replica("master"), replica("WORKER"))
        self.assertEqual(list(self.read(text, version="1.7").job.replica_specs), ["Master", "Worker"])

    def test_both_kinds_in_one_file(self):
        tf = "apiVersion: kubeflow.org/v1\nkind: TFJob\nmetadata: {name: tf}\nspec: {tfReplicaSpecs: {Worker: {template: "
        tf += "{spec: {containers: [{name: tensorflow, image: i}]}}}}}\n"
        text = f"{tf}---\n{pytorch_job(replica('Master'))}"
        self.assertEqual(self.read(text, job_name="tf").job.kind.name, "TFJob")
        self.assertEqual(self.read(text, job_name="job").job.kind.name, "PyTorchJob")
        self.assert_refused(text, "expected one job, found tf, job; choose one with --job NAME")

    def test_a_list_of_jobs(self):
        text = pytorch_job(replica("Master")).replace("\n", "\n    ").rstrip()
        job = self.read(f"kind: PyTorchJobList\nitems:\n  - {text}\n").job
        self.assertEqual(job.name, "job")


class RefusedTest(ManifestTest):
    """By the webhook, with its words; before it, by the controller."""

    def test_replica_types(self):
        text = pytorch_job(replica("master"))
        what = 'Unsupported value: "master": supported values: "Master", "Worker"'
        self.assert_refused(text, f"{SPECS}[master]: {what}")
        text = pytorch_job(replica("Master"), replica("PS"))
        self.assert_refused(text, f"{SPECS}.PS: unknown replica type, expected one of Master, Worker", version="1.7")

    def test_replicas(self):
        self.assert_refused(pytorch_job(replica("Master", 2)), f"{SPECS}[Master].replicas: Forbidden: must be 1")
        # No default is in its place yet.
        self.assert_refused(pytorch_job(replica("Master", None)), f"{SPECS}[Master].replicas: Forbidden: must be 1")
        self.assertEqual(self.read(pytorch_job(replica("Master", None)), version="1.7").job.replicas("Master"), 1)
        what = "PyTorchJobSpec is not valid: There must be only 1 master replica"
        self.assert_refused(pytorch_job(replica("Master", 2)), f"{SPECS}[Master].replicas: {what}", version="1.7")
        text = pytorch_job(replica("Master"), replica("Worker", 0))
        self.assert_refused(text, f"{SPECS}[Worker].replicas: Forbidden: must be at least 1")

    def test_containers(self):
        text = pytorch_job(replica("Master")).replace("name: pytorch", "name: tensorflow")
        path = f"{SPECS}[Master].template.spec.containers"
        self.assert_refused(text, f"{path}: Required value: must have at least one container with name pytorch")
        text = pytorch_job(replica("Master")).replace("image: ", "imagePullPolicy: ")
        self.assert_refused(text, f"{path}[0].image: Required value: must be required")
        text = pytorch_job(replica("Master")).replace("pytorchReplicaSpecs", "tfReplicaSpecs")
        hint = "; found spec.tfReplicaSpecs, which is called pytorchReplicaSpecs"
        self.assert_refused(text, f"{SPECS}: Required value: must be required{hint}")

    def test_elastic_policy(self):
        text = pytorch_job(replica("Master"), spec="elasticPolicy: {minReplicas: 1}")
        self.assert_refused(text, f"{SPECS}[Worker]: Required value: must be configured if elastic policy is used")
        both = 'nprocPerNode: "2"\nelasticPolicy: {nProcPerNode: 2}'
        where = "spec.elasticPolicy.nProcPerNode"
        text = pytorch_job(replica("Worker"), spec=both)
        self.assert_refused(text, f"{where}: Forbidden: must not be used with spec.nprocPerNode")
        what = ".spec.elasticPolicy.nProcPerNode is deprecated, use .spec.nprocPerNode instead"
        self.assert_refused(text, f"{where}: {what}", version="1.7")

    def test_values_of_the_elastic_policy(self):
        where = "spec.elasticPolicy"
        for policy, expected in (
            ("{minReplicas: 3, maxReplicas: 2}", "minReplicas: expected at most maxReplicas, 2, found 3"),
            ("{rdzvBackend: static}", 'rdzvBackend: expected one of c10d, etcd, etcd-v2, found "static"'),
            ("{rdzvConf: []}", "rdzvConf: expected entries with key and value, found an empty list, on which the operator "
             "panics"),
        ):  # fmt: skip
            text = pytorch_job(replica("Worker"), spec=f"elasticPolicy: {policy}")
            self.assert_refused(text, f"{where}.{expected}")

    def test_processes(self):
        for value, expected in (
            ("2", "expected a string, found 2; quote it"),
            ('"0"', 'expected auto, cpu, gpu or a number of processes, as a string, found "0"'),
        ):
            text = pytorch_job(replica("Master"), spec=f"nprocPerNode: {value}")
            self.assert_refused(text, f"spec.nprocPerNode: {expected}")

    def test_older_api_versions(self):
        text = pytorch_job(replica("Master")).replace("kubeflow.org/v1", "kubeflow.org/v1beta2")
        self.assert_refused(text, 'apiVersion: expected kubeflow.org/v1, found "kubeflow.org/v1beta2"')


class WarningsTest(ManifestTest):
    def test_nothing_to_say(self):
        self.assert_warnings(pytorch_job(replica("Master", container=TRAINING), replica("Worker", container=TRAINING)))
        self.assert_warnings(pytorch_job(replica("Worker", 2, TORCHRUN), spec="elasticPolicy: {maxReplicas: 2}"))

    def test_rank_is_not_multiplied(self):
        nproc = 'nprocPerNode: "2"'
        text = pytorch_job(replica("Master", container=TRAINING), replica("Worker", 2, TRAINING), spec=nproc)
        self.assert_warnings(text, STUCK.format("Master, Worker"))
        for command in (TORCHRUN, "command: [python, -m, torch.distributed.run, a.py]", "command: [accelerate, launch, a.py]",
                        'command: [sh, -c, "cd /app && exec torchrun a.py"]'):  # fmt: skip
            text = pytorch_job(replica("Master", container=command), replica("Worker", 2, TRAINING), spec=nproc)
            self.assert_warnings(text, STUCK.format("Worker"))
        # An image's own command may be torchrun.
        self.assert_warnings(pytorch_job(replica("Master"), replica("Worker", 2), spec=nproc))

    def test_the_empty_standalone(self):
        text = pytorch_job(replica("Worker", container=TORCHRUN), spec="elasticPolicy: {standalone: true}")
        self.assert_warnings(
            text,
            "spec.elasticPolicy.standalone: the operator sets PET_STANDALONE to the empty text, and torchrun, which reads a "
            'number there, ends with ValueError: int(""); leave it out and write torchrun --standalone',
        )

    def test_workers_beside_the_range(self):
        text = pytorch_job(replica("Worker", 1, TORCHRUN), spec="elasticPolicy: {minReplicas: 2, maxReplicas: 3}")
        where = "spec.elasticPolicy: expected Worker.replicas from 2 to 3"
        self.assert_warnings(text, f"{where}, found 1: torchrun waits for more pods")
        text = text.replace("replicas: 1", "replicas: 5")
        self.assert_warnings(text, f"{where}, found 5: torchrun leaves 2 out, which wait")

    def test_a_rendezvous_without_torchrun(self):
        text = pytorch_job(replica("Worker", container=TRAINING), spec="elasticPolicy: {maxReplicas: 1}")
        what = "its variables are torchrun's, and the command of Worker is not torchrun: it has neither RANK nor MASTER_ADDR"
        self.assert_warnings(text, f"spec.elasticPolicy: {what}")

    def test_a_master_beside_an_elastic_policy(self):
        text = pytorch_job(
            replica("Master", container=TORCHRUN),
            replica("Worker", container=TORCHRUN),
            spec="elasticPolicy: {maxReplicas: 2, minReplicas: 1}",
        )
        self.assert_warnings(
            text,
            "spec.elasticPolicy: there is a Master beside the workers: the rendezvous is at worker 0 all the same, PET_NNODES "
            "counts the Master's torchrun, too, and its success alone is the job's",
        )

    def test_nobody_leads(self):
        self.assert_warnings(
            pytorch_job(replica("Worker", 2)),
            f"{SPECS}: no Master and no elasticPolicy: the operator sets neither MASTER_ADDR nor RANK, and the workers do not "
            "find one another",
        )

    def test_what_the_operator_says_and_drops(self):
        text = pytorch_job(replica("Worker", container=TORCHRUN), spec="elasticPolicy: {nProcPerNode: 2, metrics: [{}]}")
        self.assert_warnings(
            text,
            "spec.elasticPolicy.metrics: on a cluster a HorizontalPodAutoscaler changes the number of workers; ignored "
            "locally",
            "spec.elasticPolicy.nProcPerNode: spec.elasticPolicy.nProcPerNode is deprecated, use spec.nprocPerNode instead",
        )
        text = pytorch_job(replica("Master"), replica("Worker"), spec='elasticPolicy: {}\nnprocPerNode: "2"')
        manifest = self.read(text, version="1.3")
        self.assertEqual((manifest.job.elastic_policy, manifest.job.nproc_per_node), (None, None))
        self.assertEqual(
            [w for w in manifest.warnings if "dropped" in w],
            [
                "spec.elasticPolicy: dropped, operator 1.3.0 does not know it",
                "spec.nprocPerNode: dropped, operator 1.3.0 does not know it",
            ],
        )

    def test_unknown_fields(self):
        text = pytorch_job(replica("Master"), spec="successPolicy: AllWorkers")
        self.assert_warnings(text, "spec.successPolicy: unknown field, the API server drops it")


if __name__ == "__main__":
    unittest.main()
