"""The roles find each other: host flags name pods that will exist, with the index that is theirs."""

import unittest
from typing import Dict, List

from support import Role, all_roles, documents, expand_hosts, is_collective, job_paths, manifest_paths, roles_of

from tfjob_api.job_kind import JOB_KINDS

PORT = 2222
HOST_FLAGS = {
    "ps_hosts": "ps",
    "chief_hosts": "chief",
    "worker_hosts": "worker",
    "evaluator_hosts": "evaluator",
}


def by_role(path: str) -> Dict[str, Role]:
    return {role.role: role for role in roles_of(path)}


def without_operator() -> List[str]:
    return [path for path in manifest_paths() if path not in job_paths() and roles_of(path)]


class HostFlags(unittest.TestCase):
    def test_name_all_pods_of_the_role_in_order(self) -> None:
        flags = 0
        for role in all_roles():
            for flag, listed in HOST_FLAGS.items():
                value = role.flags().get(flag)
                if value is None:
                    continue
                flags += 1
                with self.subTest(role.name, flag=flag):
                    pods = by_role(role.path)[listed]
                    self.assertEqual(expand_hosts(value), [f"{host}:{PORT}" for host in pods.hosts])
        self.assertGreaterEqual(flags, 3 * 6 + 4)

    def test_expand_hosts_is_as_the_programs_expand_them(self) -> None:
        self.assertEqual(expand_hosts("a-{0..2}.b:1"), ["a-0.b:1", "a-1.b:1", "a-2.b:1"])
        self.assertEqual(expand_hosts("a:1,b-{3..4}:2"), ["a:1", "b-3:2", "b-4:2"])

    def test_without_an_operator_every_role_is_told_whom_it_needs(self) -> None:
        needed = {
            "ps": [],  # Calls nobody; its index is enough.
            "worker": ["chief_hosts", "ps_hosts"],
            "chief": ["chief_hosts", "evaluator_hosts", "ps_hosts"],
            "evaluator": ["chief_hosts"],
        }
        # Trainer's torch policy tells the workers of a collective job.
        paths = [path for path in without_operator() if not is_collective(path)]
        self.assertEqual(len(paths), 3)
        for path in paths:
            for role in roles_of(path):
                with self.subTest(role.name):
                    found = sorted(flag for flag in role.flags() if flag in HOST_FLAGS)
                    self.assertEqual(found, needed[role.role])

    def test_the_operators_dense_cluster_needs_no_flags(self) -> None:
        for path in job_paths():
            for role in roles_of(path):
                if not role.dynamic_workers:
                    with self.subTest(role.name):
                        self.assertEqual([flag for flag in role.flags() if flag in HOST_FLAGS], [])

    def test_dynamic_workers_need_what_the_sparse_cluster_lacks(self) -> None:
        """TF_CONFIG has no addresses for chief and evaluator, its own for a server, those of all servers for
        a worker."""
        roles = by_role("deploy/tfjob/mnist_dynamic.yaml")
        flags = {name: sorted(set(role.flags()) & set(HOST_FLAGS)) for name, role in roles.items()}
        self.assertEqual(flags["chief"], ["chief_hosts", "evaluator_hosts", "ps_hosts"])
        self.assertEqual(flags["evaluator"], ["chief_hosts"])
        # A list beside TF_CONFIG's, with other spellings of the same names, would be refused.
        self.assertEqual(flags["ps"], [])
        self.assertEqual(flags["worker"], [])


class Indexes(unittest.TestCase):
    """Servers and workers learn their index from JOB_COMPLETION_INDEX."""

    def test_of_jobs_come_from_kubernetes(self) -> None:
        for role in all_roles():
            if role.kind in (*JOB_KINDS, "StatefulSet"):
                continue
            with self.subTest(role.name):
                self.assertEqual(role.owner["completionMode"], "Indexed")
                self.assertEqual(role.owner["parallelism"], role.owner["completions"])

    def test_of_stateful_sets_come_from_the_pods_label(self) -> None:
        (role,) = [role for role in all_roles() if role.kind == "StatefulSet"]
        (variable,) = role.container["env"]
        self.assertEqual(variable["name"], "JOB_COMPLETION_INDEX")
        label = variable["valueFrom"]["fieldRef"]["fieldPath"]
        self.assertEqual(label, "metadata.labels['apps.kubernetes.io/pod-index']")


class Names(unittest.TestCase):
    def test_headless_service_governs_the_names_of_its_pods(self) -> None:
        path = "deploy/kubernetes/statefulset.yaml"
        (service,) = [d for d in documents(path) if d.kind == "Service"]
        spec = service.content["spec"]
        self.assertEqual(spec["clusterIP"], "None")
        # The roles wait for each other before any is ready to work.
        self.assertIs(spec["publishNotReadyAddresses"], True)
        for role in roles_of(path):
            with self.subTest(role.name):
                domain = role.owner.get("serviceName") or role.pod["subdomain"]
                self.assertEqual(domain, service.metadata_name)
                labels = role.template["metadata"]["labels"]
                self.assertLessEqual(spec["selector"].items(), labels.items())

    def test_stateful_set_selects_its_own_pods_alone(self) -> None:
        path = "deploy/kubernetes/statefulset.yaml"
        (role,) = [role for role in roles_of(path) if role.kind == "StatefulSet"]
        selector = role.owner["selector"]["matchLabels"].items()
        selected = [r.role for r in roles_of(path) if selector <= r.template["metadata"]["labels"].items()]
        self.assertEqual(selected, ["ps"])

    def test_pods_of_a_runtime_learn_their_train_jobs_name(self) -> None:
        for role in roles_of("deploy/kubernetes/trainer_v2.yaml"):
            with self.subTest(role.name):
                (variable,) = role.container["env"]
                self.assertEqual(variable["name"], "JOB_NAME")
                label = variable["valueFrom"]["fieldRef"]["fieldPath"]
                self.assertEqual(label, "metadata.labels['jobset.sigs.k8s.io/jobset-name']")


class Collective(unittest.TestCase):
    """Jobs without servers."""

    def test_every_replica_that_trains_is_a_worker_but_a_tfjobs_chief(self) -> None:
        found = {
            path: {role.role: (role.program, role.replicas) for role in roles_of(path)}
            for path in manifest_paths()
            if roles_of(path) and is_collective(path)
        }
        self.assertEqual(
            found,
            {
                "deploy/tfjob/mnist_collective.yaml": {
                    "chief": ("chief", 1), "worker": ("worker", 2), "evaluator": ("evaluator", 1),
                },
                "deploy/pytorchjob/mnist.yaml": {"master": ("worker", 1), "worker": ("worker", 2)},
                # Scripts, whose agents do it.
                "deploy/pytorchjob/pytorch_mnist.yaml": {"master": ("", 1), "worker": ("", 2)},
                "deploy/trainer/collective.yaml": {"worker": ("worker", 1)},
            },
        )  # fmt: skip

    def test_all_that_train_have_the_same_resources(self) -> None:
        for path in ("tfjob/mnist_collective.yaml", "pytorchjob/mnist.yaml", "pytorchjob/pytorch_mnist.yaml"):
            path = f"deploy/{path}"
            training = [role.container["resources"] for role in roles_of(path) if role.role != "evaluator"]
            self.assertEqual(training[0], training[1], path)

    def test_trainers_torch_policy_lets_the_first_pod_listen_on_the_port_that_is_open(self) -> None:
        path = "deploy/trainer/collective.yaml"
        (runtime,) = [d for d in documents(path) if d.kind == "ClusterTrainingRuntime"]
        self.assertEqual(runtime.content["spec"]["mlPolicy"]["torch"], {"numProcPerNode": 1})
        (role,) = roles_of(path)
        self.assertEqual(role.container["ports"][0], {"name": "peers", "containerPort": 29500})
        # The operator refuses variables that it sets itself.
        self.assertEqual([v["name"] for v in role.container["env"]], ["JOB_NAME"])


class Ends(unittest.TestCase):
    """The chief ends last and decides; what is left over is removed."""

    def test_of_job_sets(self) -> None:
        specs = []
        for path in ("deploy/kubernetes/jobset.yaml", "deploy/kubernetes/trainer_v2.yaml"):
            for document in documents(path):
                if document.kind == "JobSet":
                    specs.append(document.content["spec"])
                elif document.kind == "ClusterTrainingRuntime":
                    specs.append(document.content["spec"]["template"]["spec"])
        self.assertEqual(len(specs), 2)
        for spec in specs:
            self.assertEqual(spec["successPolicy"], {"operator": "All", "targetReplicatedJobs": ["chief"]})
            self.assertIn("chief", [job["name"] for job in spec["replicatedJobs"]])

    def test_of_jobs_of_the_training_operator(self) -> None:
        for path in job_paths():
            (job,) = [d for d in documents(path) if d.kind in JOB_KINDS]
            with self.subTest(job.name):
                policy = job.content["spec"]["runPolicy"]
                self.assertEqual(policy["cleanPodPolicy"], "Running")
                self.assertGreaterEqual(policy["ttlSecondsAfterFinished"], 3600)


class TrainerRuntime(unittest.TestCase):
    """The rules of Trainer's own webhook and of what a TrainJob can change."""

    PATHS = ("deploy/kubernetes/trainer_v2.yaml", "deploy/trainer/collective.yaml")

    def test_trainers_job(self) -> None:
        for path in self.PATHS:
            with self.subTest(path):
                self.check_runtime(path)

    def check_runtime(self, path: str) -> None:
        (runtime,) = [d for d in documents(path) if d.kind == "ClusterTrainingRuntime"]
        jobs = runtime.content["spec"]["template"]["spec"]["replicatedJobs"]
        step = "trainer.kubeflow.org/trainjob-ancestor-step"
        trainers = [j for j in jobs if j["template"].get("metadata", {}).get("labels", {}).get(step)]
        (trainer,) = trainers
        self.assertEqual(trainer["template"]["metadata"]["labels"][step], "trainer")
        self.assertEqual(trainer["replicas"], 1)
        # A TrainJob's image, command, args and env go to every container of this name.
        named = [j["name"] for j in jobs for c in containers(j) if c["name"] == "node"]
        self.assertEqual(named, [trainer["name"]])
        (container,) = containers(trainer)
        self.assertEqual(container["command"], ["worker"])

    def test_train_job_refers_to_the_runtime_and_changes_the_number_of_workers_only(self) -> None:
        for path in self.PATHS:
            found = {d.kind: d for d in documents(path)}
            spec = found["TrainJob"].content["spec"]
            self.assertEqual(spec["runtimeRef"]["name"], found["ClusterTrainingRuntime"].metadata_name)
            self.assertEqual(sorted(spec["trainer"]), ["numNodes", "resourcesPerNode"])


def containers(replicated_job: dict) -> list:
    return replicated_job["template"]["spec"]["template"]["spec"]["containers"]
