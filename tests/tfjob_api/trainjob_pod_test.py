"""What a TrainJob's pods are told and called.

The variables are those of pkg/runtime/framework/plugins/torch/torch.go of kubeflow/trainer, the names those of JobSet.
"""

import unittest

from support import ManifestTest
from tfjob_api.naming import annotations, cluster_addresses, is_leader, labels, pod_name, replica_names
from tfjob_api.operator_pod import operator_init_containers, operator_init_variables, operator_variables
from trainjob_text import documents, runtime, train_job

TORCH = {
    "PET_NNODES": "2",
    "PET_NPROC_PER_NODE": "4",
    "PET_NODE_RANK": "1",
    "PET_MASTER_ADDR": "job-node-0-0.job",
    "PET_MASTER_PORT": "29500",
    "JOB_COMPLETION_INDEX": "1",
}


class PodTest(ManifestTest):
    def variables(self, train_job_text, **parts):
        manifest = self.read(documents(runtime(**parts), train_job_text))
        addresses = cluster_addresses(manifest.job)
        self.assertEqual(operator_init_containers(manifest.job, manifest.version, "Node"), ())
        return operator_variables(manifest.job, addresses, manifest.version, "Node", 1)

    def test_torch(self):
        found = self.variables(train_job("numNodes: 2\nnumProcPerNode: 4"))
        self.assertEqual(list(found.items()), list(TORCH.items()))

    def test_a_port_of_the_container_is_not_the_rendezvous(self):
        found = self.variables(train_job("numNodes: 2\nnumProcPerNode: 4"), container="ports: [{containerPort: 1}]")
        self.assertEqual(found, TORCH)

    def test_without_the_torch_policy(self):
        self.assertEqual(self.variables(train_job(), policy="numNodes: 1"), {"JOB_COMPLETION_INDEX": "1"})
        self.assertEqual(self.variables(train_job(None)), {"JOB_COMPLETION_INDEX": "1"})

    def test_an_index_of_the_manifests_own_stays(self):
        own = "env: [{name: JOB_COMPLETION_INDEX, value: '7'}]"
        self.assertEqual(self.variables(train_job(), policy="numNodes: 1", container=own), {})

    def test_an_init_container(self):
        init = "initContainers: [{name: a, image: b, env: [{name: X, value: x}]}]"
        manifest = self.read(documents(runtime(pod=init), train_job()))
        (container,) = manifest.job.replica_specs["Node"].init_containers
        self.assertEqual(operator_init_variables(manifest.job, container, 1), {"JOB_COMPLETION_INDEX": "1"})

    def test_names(self):
        job = self.read(documents(runtime(), train_job())).job
        self.assertEqual(replica_names(job), ["node-0", "node-1"])
        self.assertEqual(pod_name("job", "Node", 1), "job-node-0-1")
        self.assertEqual(cluster_addresses(job)["Node"], ["job-node-0-0.job:29500", "job-node-0-1.job:29500"])
        self.assertEqual([is_leader(job, "Node", index) for index in (0, 1)], [True, False])

    def test_labels(self):
        job = self.read(documents(runtime(), train_job())).job
        index = {"batch.kubernetes.io/job-completion-index": "1"}
        self.assertEqual(annotations(job, 1), index)
        self.assertEqual(
            labels(job, "Node", 1),
            {
                "jobset.sigs.k8s.io/jobset-name": "job",
                "jobset.sigs.k8s.io/replicatedjob-name": "node",
                "jobset.sigs.k8s.io/job-index": "0",
                "batch.kubernetes.io/job-name": "job-node-0",
                "job-name": "job-node-0",
                **index,
            },
        )


if __name__ == "__main__":
    unittest.main()
