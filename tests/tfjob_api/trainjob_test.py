"""TrainJobs as manifests: what they are together with their runtimes, what is refused, what is warned of."""

import os
import unittest

import support
from support import ManifestTest
from tfjob_api.reader import read_manifest
from trainjob_text import documents, runtime, train_job

ERRORS_OF_RUNTIME = "ClusterTrainingRuntime torch: spec"
CONTAINERS = f"{ERRORS_OF_RUNTIME}.template.spec.replicatedJobs[0].template.spec.template.spec.containers"
TORCHRUN = "command: [torchrun, train.py]"
MANIFESTS = os.path.join(support.REPOSITORY, "deploy")


class TrainJobTest(ManifestTest):
    def job(self, train_job_text, **parts):
        return self.read(documents(runtime(**parts), train_job_text)).job

    def node(self, *arguments, **parts):
        return self.job(*arguments, **parts).replica_specs["Node"]


class OverridesTest(TrainJobTest):
    def test_the_runtime_alone(self):
        node = self.node(train_job("{}"), container="args: [a]", policy="numNodes: 3\ntorch: {}")
        self.assertEqual((node.replicas, node.port), (3, 29500))
        self.assertEqual((node.container.image, node.container.args), ("example/torch", ("a",)))

    def test_number_of_nodes(self):
        self.assertEqual(self.node(train_job("numNodes: 2"), policy="numNodes: 3").replicas, 2)
        self.assertEqual(self.node(train_job(None), policy="torch: {}").replicas, 1)
        # Without a policy the Job's own number counts.
        self.assertEqual(self.node(train_job(None), policy="", job="parallelism: 4").replicas, 4)
        self.assertEqual(self.node(train_job(None), policy="torch: {}", job="parallelism: 4").replicas, 1)

    def test_the_command_line_wins(self):
        text = documents(runtime(), train_job())
        manifest = self.read(text, replicas={"Worker": 5, "PS": 0})
        self.assertEqual(manifest.job.replicas("Node"), 5)
        self.assertEqual(manifest.document["spec"]["trainer"]["numNodes"], 5)
        what = "spec.trainer: a TrainJob has no PS, but 2 replicas are asked for"
        self.assert_refused(text, what, replicas={"PS": 2})

    def test_image_command_and_resources(self):
        trainer = "image: own\ncommand: [torchrun]\nargs: [x.py]\nresourcesPerNode: {limits: {cpu: 3}}"
        container = "command: [python]\nargs: [a, b]\nresources: {requests: {cpu: 1}}"
        found = self.node(train_job(trainer), container=container).container
        self.assertEqual((found.image, found.command, found.args), ("own", ("torchrun",), ("x.py",)))
        self.assertEqual((found.requests, found.limits), ({}, {"cpu": "3"}))

    def test_variables_take_the_place_of_those_of_their_name(self):
        trainer = "env: [{name: C, value: '3'}, {name: A, value: '2'}]"
        container = "env: [{name: A, value: '1'}, {name: B, value: '1'}]"
        found = self.node(train_job(trainer), container=container).container.environment
        self.assertEqual([(v.name, v.value) for v in found], [("A", "2"), ("B", "1"), ("C", "3")])

    def test_what_stands_in_the_runtime_alone(self):
        job = self.job(train_job(spec="suspend: true"), pod="terminationGracePeriodSeconds: 7\nrestartPolicy: Never")
        node = job.replica_specs["Node"]
        self.assertEqual((node.grace_seconds, node.restart_policy, job.run_policy.suspend), (7, "Never", True))


class ProcessesTest(TrainJobTest):
    """PET_NPROC_PER_NODE."""

    def processes(self, trainer, policy="torch: {}", container=""):
        return self.job(train_job(trainer), policy=policy, container=container).nproc_per_node

    def test_a_number(self):
        policy = "torch: {numProcPerNode: 4}"
        self.assertEqual(self.processes("{}", policy), "4")
        self.assertEqual(self.processes("numProcPerNode: 2", policy), "2")

    def test_without_gpus_as_many_as_cpus(self):
        self.assertEqual(self.processes(""), "1")
        self.assertEqual(self.processes("", container="resources: {requests: {cpu: 1500m}, limits: {cpu: 4}}"), "2")
        own = "resourcesPerNode: {limits: {cpu: 3}}"
        self.assertEqual(self.processes(own, container="resources: {requests: {cpu: 8}}"), "3")

    def test_with_gpus_it_is_torchruns_matter(self):
        resources = "resourcesPerNode: {limits: {cpu: 3, nvidia.com/gpu: 2}}"
        self.assertEqual(self.processes(resources), "auto")
        self.assertEqual(self.processes(f"numProcPerNode: gpu\n{resources}"), "gpu")
        self.assertEqual(self.processes(f"numProcPerNode: cpu\n{resources}"), "3")

    def test_without_a_trainer_or_a_policy_there_are_no_variables(self):
        self.assertIsNone(self.processes(None))
        self.assertIsNone(self.processes("numNodes: 2", "numNodes: 1"))


class RuntimeTest(TrainJobTest):
    WHERE = "spec.runtimeRef"

    def test_it_is_not_there(self):
        what = "expected the ClusterTrainingRuntime torch in this file or in another one of the command, found"
        self.assert_refused(train_job(), f"{self.WHERE}.name: {what} none")
        text = documents(train_job(), runtime(name="other"), runtime(kind="TrainingRuntime"))
        found = "ClusterTrainingRuntime other, TrainingRuntime torch in the namespace default"
        self.assert_refused(text, f"{self.WHERE}.name: {what} {found}")

    def test_in_another_file(self):
        self.write("runtime.yaml", runtime(container="command: 1"))
        job = self.write("job.yaml", train_job())
        with self.assertRaises(support.ManifestError) as caught:
            read_manifest([job, self.path("runtime.yaml")])
        where = f"{self.path('runtime.yaml')}: {CONTAINERS}[0].command"
        self.assert_error(caught.exception, f"{where}: expected a list, found 1")

    def test_one_of_the_namespace(self):
        own = train_job().replace("name: torch", "name: torch\n    kind: TrainingRuntime")
        self.assertEqual(self.read(documents(own, runtime(kind="TrainingRuntime"))).job.replicas("Node"), 2)
        text = documents(own.replace("name: job", "name: job\n  namespace: a"), runtime(kind="TrainingRuntime"))
        what = "expected the TrainingRuntime torch in the namespace a in this file or in another one of the command, found "
        self.assert_refused(text, f"{self.WHERE}.name: {what}TrainingRuntime torch in the namespace default")

    def test_the_others_are_ignored(self):
        text = documents(train_job(f"{TORCHRUN}"), runtime(), runtime(name="other"))
        self.assert_warnings(text, "ignored locally: ClusterTrainingRuntime other")

    def test_other_references(self):
        for line, expected in (
            ("kind: Runtime", '.kind: expected one of ClusterTrainingRuntime, TrainingRuntime, found "Runtime"'),
            ("apiGroup: a", '.apiGroup: expected one of trainer.kubeflow.org, found "a"'),
        ):
            text = train_job().replace("name: torch", f"name: torch\n    {line}")
            self.assert_refused(documents(text, runtime()), self.WHERE + expected)
        self.assert_refused(train_job(runtime_name='""'), f"{self.WHERE}.name: Required value")

    def test_of_another_version(self):
        text = documents(runtime().replace("v1alpha1", "v2"), train_job())
        what = 'apiVersion: expected trainer.kubeflow.org/v1alpha1, found "trainer.kubeflow.org/v2"'
        self.assert_refused(text, f"ClusterTrainingRuntime torch: {what}")

    def test_other_policies(self):
        what = "expected a policy of torch, or none, which are what the launcher knows"
        for policy in ("mpi", "jax"):
            text = documents(runtime(policy=f"{policy}: {{}}"), train_job())
            self.assert_refused(text, f"{ERRORS_OF_RUNTIME}.mlPolicy.{policy}: {what}")
        text = documents(runtime(policy="torch: {numProcPerNode: many}"), train_job())
        where = f"{ERRORS_OF_RUNTIME}.mlPolicy.torch.numProcPerNode"
        self.assert_refused(text, f'{where}: expected auto, cpu, gpu or a number of processes, found "many"')

    def test_its_container(self):
        other = runtime().replace("- name: node\n                      image", "- name: torch\n                      image")
        self.assert_refused(documents(other, train_job()), f"{CONTAINERS}: expected a container node, found torch")
        text = documents(runtime().replace("image: example/torch\n", "args: []\n"), train_job())
        self.assert_refused(text, f"{CONTAINERS}[0].image: Required value")
        self.assertEqual(self.read(text.replace("numNodes: 2", "image: own")).job.replica_specs["Node"].container.image, "own")

    def test_servers_beside_the_nodes(self):
        path = os.path.join(MANIFESTS, "kubernetes", "trainer_v2.yaml")
        with self.assertRaises(support.ManifestError) as caught:
            read_manifest([path])
        self.assertIn("expected one job, node, as", str(caught.exception))


class RefusedTest(TrainJobTest):
    def refused(self, text, expected, **parts):
        self.assert_refused(documents(runtime(**parts), text), expected)

    def test_name_and_version(self):
        what = "a letter, then lower case letters, digits and '-', at most 63 characters"
        self.refused(train_job(name="Job"), f'metadata.name: expected {what}, found "Job"')
        text = train_job().replace("v1alpha1", "v1")
        self.refused(text, 'apiVersion: expected trainer.kubeflow.org/v1alpha1, found "trainer.kubeflow.org/v1"')
        self.refused(train_job().replace("name: job", "a: b"), "metadata.name: Required value: name or generateName is required")
        text = train_job().replace("name: job", "name: job\n  namespace: A")
        self.refused(text, "metadata.namespace: expected lower case letters, digits and '-', at most 63, found \"A\"")
        name = "a" * 49
        host = f'the host of a pod is called "{name}-node-0-1": must be no more than 57 characters, found 58'
        self.refused(train_job(name=name), f"metadata.name: {host}")
        self.assertEqual(self.job(train_job(name="a" * 48)).name, "a" * 48)

    def test_what_the_launcher_does_not_do(self):
        for spec, expected in (
            ("initializer: {dataset: {storageUri: s3://x}}", "initializer: expected it to be left out, found a mapping: the "
             "launcher runs a TrainJob's nodes alone"),
            ("podTemplateOverrides: [{targetJobs: [{name: node}]}]", "podTemplateOverrides: expected it to be left out, found "
             "a list: write it into the runtime, which is a copy of your own here"),
            ("runtimePatches: [{}]", "runtimePatches: expected it to be left out, found a list: write it into the runtime, "
             "which is a copy of your own here"),
            ("managedBy: kueue.x-k8s.io/multikueue", "managedBy: expected trainer.kubeflow.org/trainjob-controller, whose "
             'part the launcher plays, found "kueue.x-k8s.io/multikueue"'),
            ("suspend: 1", "suspend: expected true or false, found 1"),
        ):  # fmt: skip
            self.refused(train_job(spec=spec), f"spec.{expected}")

    def test_the_trainer(self):
        for trainer, expected in (
            ("numNodes: 0", "numNodes: expected at least 1, found 0"),
            ("numProcPerNode: two", 'numProcPerNode: expected auto, cpu, gpu or a number of processes, found "two"'),
            ("image: 1", "image: expected a string, found 1; quote it"),
            ("command: torchrun", 'command: expected a list, found "torchrun"'),
            ("args: [1]", "args[0]: expected a string, found 1; quote it"),
            ("env: [{name: 1x}]", "env[0].name: expected letters, digits, '_', '-' and '.', no digit at the start, found "
             '"1x"'),
            ("resourcesPerNode: {limits: {cpu: many}}", 'resourcesPerNode.limits.cpu: expected a quantity such as 2, 500m or '
             '1Gi, found "many"'),
            ("env: [{name: PET_NNODES, value: '2'}]", "env: expected none of the torch policy's own, PET_NNODES, "
             "PET_NPROC_PER_NODE, PET_NODE_RANK, PET_MASTER_ADDR, PET_MASTER_PORT, found PET_NNODES"),
        ):  # fmt: skip
            self.refused(train_job(trainer), f"spec.trainer.{expected}")
        what = "ClusterTrainingRuntime torch: spec.mlPolicy.numNodes: expected at least 1, found 0"
        self.refused(train_job(None), what, policy="numNodes: 0")


class WarningsTest(TrainJobTest):
    def warned(self, text, *expected, **parts):
        self.assert_warnings(documents(runtime(**parts), text), *expected)

    def test_nothing_to_say(self):
        for command in (TORCHRUN, "command: [worker]", "command: [python3, /opt/keelson/examples/mnist.py]", "args: [a.py]"):
            self.warned(train_job(f"numNodes: 2\n{command}"))
        self.warned(train_job("command: [python, a.py]"), policy="numNodes: 1")
        self.assertEqual(read_manifest([os.path.join(MANIFESTS, "trainer", "collective.yaml")]).warnings, ())

    def test_a_command_that_is_not_torchrun(self):
        self.warned(
            train_job("command: [python, a.py]"),
            "spec.trainer.command: the torch policy's variables are torchrun's, and the command is not torchrun: it has "
            "neither RANK nor MASTER_ADDR",
        )

    def test_nobody_finds_the_first_node(self):
        where = f"{ERRORS_OF_RUNTIME}.template.spec.network"
        self.warned(
            train_job(TORCHRUN),
            f"{where}.enableDNSHostnames: false: nobody finds PET_MASTER_ADDR",
            f"{where}.subdomain: nodes: PET_MASTER_ADDR ends in .job all the same, and nobody finds it",
            job_set="network: {enableDNSHostnames: false, subdomain: nodes}",
        )
        self.warned(
            train_job(None),
            "spec.trainer: not there: Trainer sets none of the torch policy's variables, write trainer: {}",
        )

    def test_what_has_no_effect(self):
        policy = "torch: {elasticPolicy: {minNodes: 1, maxNodes: 2}}"
        text = documents(runtime(policy=policy), train_job(TORCHRUN))
        text = text.replace("  mlPolicy", "  podGroupPolicy: {volcano: {}}\n  mlPolicy")
        self.assert_warnings(
            text,
            f"{ERRORS_OF_RUNTIME}.podGroupPolicy: no pod waits for a place here, ignored locally",
            f"{ERRORS_OF_RUNTIME}.mlPolicy.torch.elasticPolicy: no effect, Trainer has no elastic jobs yet: the number of "
            "nodes stays",
        )

    def test_variables_of_the_runtime_that_the_policy_sets(self):
        self.warned(
            train_job(TORCHRUN),
            f"{CONTAINERS}: the operator's PET_NNODES takes the place of the one in env",
            container="env: [{name: PET_NNODES, value: '9'}]",
        )

    def test_unknown_fields(self):
        self.warned(
            train_job(f"{TORCHRUN}\nreplicas: 2", spec="trainers: {}"),
            "spec.trainers: unknown field, the API server drops it",
            "spec.trainer.replicas: unknown field, the API server drops it",
        )


if __name__ == "__main__":
    unittest.main()
