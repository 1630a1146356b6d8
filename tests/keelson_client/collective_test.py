"""Jobs without servers: TFJobs with --ps 0, and PyTorchJobs, from submit to delete."""

import unittest

import yaml
from commands_test import CommandTest
from support import ended_pod, pod

from keelson_client.manifest import find_job


class SubmitTest(CommandTest):
    SUBMIT = ("submit", "--name", "mnist", "--image", "keelson:1", "--workers", "3", "--pvc", "models")

    def job(self, *flags):
        out = self.check([*self.SUBMIT, *flags, "--dry_run"], 0, err="")[1]
        documents = list(yaml.safe_load_all(out))
        return find_job(documents), documents

    @staticmethod
    def containers(specs):
        return {kind: spec["template"]["spec"]["containers"][0] for kind, spec in specs.items()}

    def test_a_tfjob_without_servers(self):
        job, _ = self.job("--ps", "0", "--gpus", "1")
        specs = job["spec"]["tfReplicaSpecs"]
        self.assertEqual({k: s["replicas"] for k, s in specs.items()}, {"Chief": 1, "Worker": 3, "Evaluator": 1})
        self.assertNotIn("enableDynamicWorker", job["spec"])
        containers = self.containers(specs)
        self.assertEqual([c["command"] for c in containers.values()], [["chief"], ["worker"], ["evaluator"]])
        # The chief trains as the workers do, and all of them write their parts of a snapshot.
        self.assertEqual(containers["Chief"]["resources"], containers["Worker"]["resources"])
        for kind in ("Chief", "Worker"):
            self.assertIn("--device=cuda:0", containers[kind]["args"])
            (model,) = [m for m in containers[kind]["volumeMounts"] if m["name"] == "model"]
            self.assertNotIn("readOnly", model)

    def test_a_pytorch_job(self):
        job, documents = self.job("--kind", "pytorch", "--training_steps", "7")
        self.assertEqual(job["kind"], "PyTorchJob")
        specs = job["spec"]["pytorchReplicaSpecs"]
        self.assertEqual({kind: spec["replicas"] for kind, spec in specs.items()}, {"Master": 1, "Worker": 3})
        for container in self.containers(specs).values():
            self.assertEqual((container["name"], container["command"]), ("pytorch", ["worker"]))
            self.assertEqual(container["ports"][0], {"name": "pytorchjob-port", "containerPort": 23456})
            self.assertIn("--training_steps=7", container["args"])
        (policy,) = [d for d in documents if d["kind"] == "NetworkPolicy"]
        self.assertEqual(policy["spec"]["ingress"][0]["ports"], [{"port": 23456}])
        accounts = [d["metadata"]["name"] for d in documents if d["kind"] == "ServiceAccount"]
        self.assertEqual(accounts, ["mnist-master", "mnist-worker"])

    def test_without_a_claim_the_leader_writes_the_snapshots(self):
        for flags, leader in ((("--ps", "0"), "Chief"), (("--kind", "pytorch"), "Master")):
            out = self.check([*self.SUBMIT[:-2], *flags, "--dry_run"], 0)[1]
            specs = find_job(list(yaml.safe_load_all(out)))["spec"]
            replicas = specs.get("tfReplicaSpecs") or specs["pytorchReplicaSpecs"]
            writers = [k for k, c in self.containers(replicas).items() if "--checkpoint_writer=chief" in c["args"]]
            self.assertEqual(writers, [leader])


class PytorchCommandsTest(CommandTest):
    def setUp(self):
        super().setUp()
        submit = ("submit", "--kind=pytorch", "--name", "mnist", "--image", "keelson:1", "--workers", "2", "--pvc", "m")
        err = self.check([*submit, "--no_follow"], 0)[2]
        self.assertIn("keelson: job mnist created: master 1, worker 2\n", err)
        self.kubectl.calls.clear()

    def test_the_commands_ask_for_that_kind(self):
        self.kubectl.put(pod("master"))
        out = self.check(["list", "--kind", "pytorch"], 0)[1]
        self.assertIn("master 1, worker 2", out)
        self.check(["status", "--kind", "pytorch", "mnist"], 0)
        self.check(["scale", "--kind", "pytorch", "--name", "mnist", "--workers", "5"], 0)
        job = self.kubectl.objects["pytorchjob", "mnist"]
        self.assertEqual(job["spec"]["pytorchReplicaSpecs"]["Worker"]["replicas"], 5)
        self.check(["delete", "--kind", "pytorch", "mnist"], 0)
        self.assertNotIn(("pytorchjob", "mnist"), self.kubectl.objects)
        asked = {call[1] for _, call in self.kubectl.calls if call[0] in ("get", "delete") and "jobs" in call[1]}
        self.assertEqual(asked, {"pytorchjobs.kubeflow.org"})

    def test_hints_name_the_kind(self):
        err = self.check(["submit", "--kind=pytorch", "--name", "mnist", "--image", "i", "--no_follow"], 2)[2]
        self.assertIn("job mnist exists already; give another --name, or delete it: keelson.py delete --kind pytorch mnist", err)

    def test_a_job_of_another_kind_keeps_what_is_beside_it(self):
        before = {key: dict(value) for key, value in self.kubectl.objects.items()}
        err = self.check(["submit", "--name", "mnist", "--image", "keelson:1", "--no_follow"], 2)[2]
        self.assertIn("exists already, and belongs to the PyTorchJob mnist; give another --name", err)
        self.assertEqual(self.kubectl.objects.keys(), before.keys())

    def test_another_kind_has_no_such_job(self):
        self.check(["list"], 0, "no TFJobs\n")
        self.check(["delete", "--kind", "pytorch", "mnist"], 0)
        self.check(["list", "--kind", "pytorch"], 0, "no PyTorchJobs\n")

    def test_the_log_is_that_of_the_containers_of_that_kind(self):
        ended = ended_pod("master", message="done")
        ended["status"]["containerStatuses"][0]["name"] = "pytorch"
        self.kubectl.put(ended)
        self.assertIn("exit", self.check(["status", "--kind", "pytorch", "mnist"], 0)[1].lower())
        self.kubectl.streams.append(_EmptyStream())
        self.check(["logs", "--kind", "pytorch", "--name", "mnist", "chief"], 0)
        self.assertEqual(self.kubectl.calls[-1][1][:3], ["logs", "mnist-master-0", "--container=pytorch"])


class _EmptyStream:
    def read(self, timeout):
        return None

    def close(self):
        return None


if __name__ == "__main__":
    unittest.main()
