"""What the operator adds to the pods of a PyTorchJob, compared byte for byte and in its order.

For 1.9 with what the real operator made of pytorch_jobs.yaml; for the others with the values of the operator's own
tests and sources of that version (pkg/controller.v1/pytorch).
"""

import json
import os
import unittest

from support import REPOSITORY, ManifestTest
from pytorch_text import pytorch_job, replica

from tfjob_api.naming import cluster_addresses, labels, pod_name, replicas
from tfjob_api.operator_pod import operator_init_containers, operator_variables
from tfjob_api.operator_version import OperatorVersion
from tfjob_api.reader import ReadOptions, read_manifest

_FOLDER = os.path.join(REPOSITORY, "tests", "tfjob_api")
_MASTER_AND_WORKERS = (replica("Master"), replica("Worker", 2))


def variables(manifest, replica_type, index):
    job, version = manifest.job, manifest.version
    values = operator_variables(job, cluster_addresses(job, version=version), version, replica_type, index)
    return [f"{name}={value}" for name, value in values.items()]


class RealOperatorTest(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        path = os.path.join(_FOLDER, "pytorch_jobs_of_operator_1.9.3.json")
        with open(path, encoding="utf-8") as file:
            cls.answer = json.load(file)
        version = OperatorVersion.parse(cls.answer["operator"])
        source = os.path.join(_FOLDER, "pytorch_jobs.yaml")
        cls.manifests = [
            read_manifest([source], ReadOptions(version=version, job_name=name))
            for name in ("mnist-pytorch", "elastic", "nproc")
        ]

    def test_pods_are_those_that_the_operator_made(self):
        seen = {}
        for manifest in self.manifests:
            job, version = manifest.job, manifest.version
            for replica_type, index in replicas(job):
                spec = job.replica_specs[replica_type]
                init = operator_init_containers(job, version, replica_type)
                seen[pod_name(job.name, replica_type, index)] = {
                    "env": variables(manifest, replica_type, index),
                    "initContainers": [self.init_container(each) for each in init],
                    "labels": labels(job, replica_type, index, version),
                    "ports": [[job.kind.port_name, spec.port]],
                    "restartPolicy": spec.restart_policy,
                }
        self.assertEqual(seen, self.answer["pods"])

    def test_services_are_those_that_the_operator_made(self):
        seen = {}
        for manifest in self.manifests:
            job = manifest.job
            for replica_type, index in replicas(job):
                own = labels(job, replica_type, index, manifest.version)
                port = job.replica_specs[replica_type].port
                seen[pod_name(job.name, replica_type, index)] = {
                    "clusterIP": "None",
                    "ports": [[job.kind.port_name, port, port]],
                    "selector": {key: value for key, value in own.items() if not key.endswith("job-role")},
                }
        self.assertEqual(seen, self.answer["services"])

    @staticmethod
    def init_container(container):
        return {
            "command": list(container.command),
            "image": container.image,
            "name": container.name,
            "resources": {"limits": dict(container.limits), "requests": dict(container.requests)},
        }


class VersionsTest(ManifestTest):
    def assert_variables(self, text, version, replica_type, index, expected):
        self.assertEqual(variables(self.read(text, version=version), replica_type, index), expected.split())

    def test_before_1_4_the_master_is_localhost_to_itself(self):
        text = pytorch_job(*_MASTER_AND_WORKERS)
        self.assert_variables(
            text, "1.3", "Master", 0,
            "MASTER_PORT=23456 MASTER_ADDR=localhost WORLD_SIZE=3 RANK=0 PYTHONUNBUFFERED=0",
        )  # fmt: skip
        self.assert_variables(
            text, "1.3", "Worker", 1,
            "MASTER_PORT=23456 MASTER_ADDR=job-master-0 WORLD_SIZE=3 RANK=2 PYTHONUNBUFFERED=0",
        )  # fmt: skip

    def test_1_4_to_1_6(self):
        text = pytorch_job(*_MASTER_AND_WORKERS)
        for version in ("1.4", "1.6"):
            for replica_type, index, rank in (("Master", 0, 0), ("Worker", 0, 1), ("Worker", 1, 2)):
                self.assert_variables(
                    text, version, replica_type, index,
                    f"PYTHONUNBUFFERED=0 MASTER_PORT=23456 MASTER_ADDR=job-master-0 WORLD_SIZE=3 RANK={rank}",
                )  # fmt: skip

    def test_1_7_tells_of_processes_before_the_rank_of_the_node(self):
        self.assert_variables(
            pytorch_job(*_MASTER_AND_WORKERS, spec='nprocPerNode: "2"'), "1.7", "Worker", 0,
            "PYTHONUNBUFFERED=1 MASTER_PORT=23456 PET_MASTER_PORT=23456 MASTER_ADDR=job-master-0 "
            "PET_MASTER_ADDR=job-master-0 WORLD_SIZE=6 RANK=1 PET_NPROC_PER_NODE=2 PET_NODE_RANK=1 PET_NNODES=3",
        )  # fmt: skip

    def test_1_7_without_a_master_does_not_tell_of_processes(self):
        text = pytorch_job(replica("Worker", 2))
        self.assert_variables(text, "1.7", "Worker", 0, "PYTHONUNBUFFERED=1 PET_NNODES=2")
        self.assert_variables(text, "1.8", "Worker", 0, "PYTHONUNBUFFERED=1 PET_NPROC_PER_NODE=auto PET_NNODES=2")

    def test_elastic_policy_of_the_operators_own_test(self):
        """TestElasticGenerate, which is the same from 1.4 to 1.9."""
        policy = """\
elasticPolicy:
  minReplicas: 1
  maxReplicas: 3
  rdzvBackend: c10d
  rdzvPort: 1234
  rdzvHost: localhost
  rdzvId: rdzv-id
  rdzvConf:
    - {key: rdzv-conf-name, value: rdzv-conf-value}
    - {key: rdzv-conf-name-1, value: rdzv-conf-value-1}
  nProcPerNode: 1
  maxRestarts: 3
"""
        elastic = (
            "PET_RDZV_ENDPOINT=localhost:1234 PET_RDZV_BACKEND=c10d PET_NNODES=1:3 PET_MAX_RESTARTS=3 "
            "PET_NPROC_PER_NODE=1 PET_RDZV_ID=rdzv-id "
            "PET_RDZV_CONF=rdzv-conf-name=rdzv-conf-value,rdzv-conf-name-1=rdzv-conf-value-1"
        )
        text = pytorch_job(replica("Worker"), spec=policy)
        for version, unbuffered in (("1.4", 0), ("1.7", 1), ("1.9", 1)):
            self.assert_variables(text, version, "Worker", 0, f"PYTHONUNBUFFERED={unbuffered} {elastic}")

    def test_standalone_is_the_empty_text(self):
        text = pytorch_job(replica("Worker"), spec="elasticPolicy: {standalone: true}")
        self.assertEqual(variables(self.read(text), "Worker", 0)[-2:], ["PET_NNODES=1:1", "PET_STANDALONE="])

    def test_replicas_of_the_elastic_policy_stand_for_each_other(self):
        for policy, expected in (
            ("{}", "2:2"), ("{minReplicas: 1}", "1:1"), ("{maxReplicas: 4}", "4:4"),
            ("{minReplicas: 1, maxReplicas: 4}", "1:4"),
        ):  # fmt: skip
            text = pytorch_job(replica("Worker", 2), spec=f"elasticPolicy: {policy}")
            self.assertIn(f"PET_NNODES={expected}", variables(self.read(text), "Worker", 1))

    def test_a_word_for_processes_counts_as_one(self):
        for word in ("auto", "cpu", "gpu"):
            text = pytorch_job(*_MASTER_AND_WORKERS, spec=f"nprocPerNode: {word}")
            self.assertIn("WORLD_SIZE=3", variables(self.read(text), "Master", 0))

    def test_the_ports_are_those_of_the_containers(self):
        port = "ports: [{name: pytorchjob-port, containerPort: 29500}]"
        text = pytorch_job(replica("Master", container=port), replica("Worker"))
        self.assertIn("MASTER_PORT=29500", variables(self.read(text), "Worker", 0))
        text = pytorch_job(replica("Worker", container=port), spec="elasticPolicy: {}")
        self.assertIn("PET_RDZV_ENDPOINT=job-worker-0:29500", variables(self.read(text), "Worker", 0))

    def test_variables_of_the_manifests_own_give_way(self):
        own = "env: [{name: RANK, value: '7'}, {name: LR, value: '1'}, {name: PET_NNODES, value: '7'}]"
        manifest = self.read(pytorch_job(replica("Master", container=own)))
        self.assertEqual([v.name for v in manifest.job.replica_specs["Master"].container.environment], ["LR"])
        where = "spec.pytorchReplicaSpecs.Master.template.spec.containers"
        expected = [f"{where}: the operator's {n} takes the place of the one in env" for n in ("RANK", "PET_NNODES")]
        self.assertEqual(list(manifest.warnings), expected)


class InitContainerTest(ManifestTest):
    def init(self, text, version, replica_type):
        manifest = self.read(text, version=version)
        return operator_init_containers(manifest.job, manifest.version, replica_type)

    def test_workers_wait_for_the_masters_name(self):
        text = pytorch_job(*_MASTER_AND_WORKERS)
        self.assertEqual(self.init(text, "1.9", "Master"), ())
        self.assertEqual(self.init(text, "1.3", "Worker"), ())
        (init,) = self.init(text, "1.4", "Worker")
        expected = "until nslookup job-master-0; do echo waiting for master; sleep 2; done;"
        self.assertEqual(init.command, ("sh", "-c", expected))

    def test_there_is_none_without_a_master(self):
        self.assertEqual(self.init(pytorch_job(replica("Worker", 2)), "1.9", "Worker"), ())


if __name__ == "__main__":
    unittest.main()
