"""Tests refusals before anything reaches the cluster, which name the flag."""

import os
import tempfile
import unittest

from support import settings

from keelson_client import options
from keelson_client.errors import InputError
from keelson_client.settings import MAX_CONFIG_BYTES, Mount, Resources, Toleration, check_settings
from tfjob_api.job_kind import PYTORCH_JOB


class SettingsTest(unittest.TestCase):
    def refuse(self, text, **changes):
        with self.assertRaises(InputError) as caught:
            check_settings(settings(**changes))
        self.assertIn(text, str(caught.exception))
        self.assertNotIn("\n", str(caught.exception))

    def test_whole_job_is_accepted(self):
        check_settings(settings())
        check_settings(settings(dynamic_workers=True, dashboard=True, gpus=8))

    def test_chief_alone_is_accepted(self):
        alone = settings(ps=0, workers=0)
        check_settings(alone)
        self.assertFalse(alone.has_evaluator)

    def test_evaluator_comes_with_the_claim(self):
        self.assertTrue(settings().has_evaluator)
        self.assertFalse(settings(model_claim=None).has_evaluator)
        self.assertFalse(settings(evaluator=False).has_evaluator)

    def test_replicas(self):
        check_settings(settings(ps=0))
        self.refuse("--workers: expected at least 1 beside 2 parameter servers, found 0", workers=0)
        self.refuse("--gpus: expected a whole number >= 0, found -1", gpus=-1)
        self.refuse("nothing would run", ps=0, workers=0, chief=False)
        self.refuse("--gpus: of each worker", ps=0, workers=0, gpus=1)

    def test_who_trains(self):
        beside_servers, collective = settings(), settings(ps=0)
        self.assertEqual([beside_servers.trains(t) for t in ("Chief", "Worker", "PS")], [False, True, False])
        self.assertEqual([collective.trains(t) for t in ("Chief", "Worker", "Evaluator")], [True, True, False])
        self.assertTrue(collective.has_evaluator)
        # The chief alone is no cluster, and computes as it did.
        self.assertFalse(settings(ps=0, workers=0).trains("Chief"))

    def test_a_pytorch_job(self):
        job = settings(kind=PYTORCH_JOB, ps=0)
        check_settings(job)
        self.assertFalse(job.has_evaluator)
        self.assertFalse(job.has_dynamic_workers)
        self.assertTrue(job.has_job_token)
        self.assertEqual([job.trains(t) for t in ("Master", "Worker")], [True, True])
        check_settings(settings(kind=PYTORCH_JOB, ps=0, workers=0))
        self.assertTrue(settings(kind=PYTORCH_JOB, ps=0, workers=0).trains("Master"))
        self.refuse("--ps: a PyTorchJob has no parameter servers: expected 0, found 2", kind=PYTORCH_JOB, ps=2)
        self.refuse("--evaluator: a PyTorchJob has none", kind=PYTORCH_JOB, ps=0, evaluator=True)
        self.refuse("--dashboard: the evaluator serves it", kind=PYTORCH_JOB, ps=0, dashboard=True)

    def test_evaluator(self):
        self.refuse("--evaluator: it reads snapshots", evaluator=True, model_claim=None)
        self.refuse("--evaluator: without workers", evaluator=True, ps=0, workers=0)
        self.refuse("--dashboard: the evaluator serves it", dashboard=True, evaluator=False)

    def test_dynamic_workers(self):
        self.refuse("--dynamic_workers: worker 0 cannot lead", dynamic_workers=True, chief=False)
        self.refuse("--dynamic_workers: expected parameter", dynamic_workers=True, ps=0, workers=0)

    def test_config_too_large(self):
        check_settings(settings(config="x" * MAX_CONFIG_BYTES))
        self.refuse(f"found {MAX_CONFIG_BYTES + 1}", config="x" * (MAX_CONFIG_BYTES + 1))

    def test_quantities(self):
        for good in ("500m", "2", "1.5", "4Gi", "1G"):
            check_settings(settings(resources={"ps": Resources(good, good)}))
        self.refuse(
            '--ps_cpu: expected a quantity such as 2, 500m or 1Gi, found "two"',
            resources={"ps": Resources("two")},
        )
        self.refuse("--worker_memory: expected a quantity", resources={"worker": Resources("", "4 GB")})
        self.refuse('--ps_cpu: expected a quantity >= 0, found "-1"', resources={"ps": Resources("-1", "")})
        self.refuse(
            'resources: expected one of chief, ps, worker, evaluator, found "x"', resources={"x": Resources()}
        )

    def test_variables(self):
        self.refuse('--env: expected the name of a variable, found "1A"', environment={"1A": ""})
        self.refuse("--env: TF_CONFIG is the operator's", environment={"TF_CONFIG": "{}"})

    def test_names_of_objects(self):
        self.refuse(
            '--pvc: expected the name of an object in the cluster, found "My_Claim"',
            model_claim=Mount("My_Claim", "/m"),
        )
        self.refuse('service account or pull secret, found "a/b"', service_account="a/b")

    def test_paths(self):
        self.refuse(
            '--pvc: expected an absolute path in the pod, found "model"', model_claim=Mount("c", "model")
        )
        self.refuse('--pvc: expected an absolute path in the pod, found "/"', model_claim=Mount("c", "/"))
        self.refuse(
            "--data_pvc: /model overlaps /model, the place of --pvc models", data_claim=Mount("d", "/model/")
        )
        self.refuse("--data_pvc: /model/data overlaps /model", data_claim=Mount("d", "/model/data"))
        self.refuse(
            "--secret: /etc overlaps /etc/keelson, the place of the config", secrets=(Mount("s", "/etc"),)
        )
        check_settings(settings(data_claim=Mount("d", "/models")))

    def test_place_of_the_model(self):
        for subdirectory, expected in (
            ("", "/m/mnist"), (".", "/m"), ("a/b.c", "/m/a/b.c"), (".a", "/m/.a"), ("a/.", "/m/a"),
        ):
            changes = settings(model_claim=Mount("c", "/m/"), model_subdirectory=subdirectory)
            check_settings(changes)
            self.assertEqual(changes.model_dir, expected)
        self.assertEqual(settings(model_claim=None).model_dir, "/model")
        for subdirectory in ("..", "a/..", "../a", "/a", "a//b", "a/", "a b", "..a", "a\n"):
            self.refuse(
                "--model_subdir: expected a path of letters, digits, '-', '_' and '.' within the claim, or "
                '".", found',
                model_subdirectory=subdirectory,
            )
        self.refuse(
            "--model_subdir: it is a directory of a claim", model_claim=None, model_subdirectory="a"
        )

    def test_policies(self):
        self.refuse(
            '--restart_policy: expected one of Always, OnFailure, Never, ExitCode, found "x"',
            restart_policy="x",
        )
        self.refuse('--clean_pod_policy: expected one of All, Running, None, found "x"', clean_pod_policy="x")


class OptionsTest(unittest.TestCase):
    def refuse(self, text, call, *arguments):
        with self.assertRaises(InputError) as caught:
            call(*arguments)
        self.assertEqual(str(caught.exception), text)

    def test_mount(self):
        self.assertEqual(options.parse_mount("--pvc", "c", "/model"), Mount("c", "/model"))
        self.assertEqual(options.parse_mount("--pvc", "c:/x", "/model"), Mount("c", "/x"))
        self.assertEqual(options.parse_mount("--secret", "s", "/secrets/{name}"), Mount("s", "/secrets/s"))
        for text in ("", ":/x", "c:"):
            self.refuse(
                f'--pvc: expected NAME or NAME:/path, found "{text}"',
                options.parse_mount,
                "--pvc",
                text,
                "/m",
            )

    def test_pairs(self):
        self.assertEqual(
            options.parse_pairs("--env", ["A=1", "B=x=y", "C="]), {"A": "1", "B": "x=y", "C": ""}
        )
        self.refuse('--env: expected KEY=VALUE, found "A"', options.parse_pairs, "--env", ["A"])
        self.refuse('--env: expected KEY=VALUE, found "=1"', options.parse_pairs, "--env", ["=1"])
        self.refuse("--env: A is given twice", options.parse_pairs, "--env", ["A=1", "A=2"])

    def test_toleration(self):
        parse = options.parse_toleration
        self.assertEqual(parse("-", "gpu"), Toleration("gpu"))
        self.assertEqual(parse("-", "gpu=yes:NoSchedule"), Toleration("gpu", "yes", "NoSchedule"))
        self.assertEqual(parse("-", "a.b/c:NoExecute"), Toleration("a.b/c", "", "NoExecute"))
        for text in ("=x", "gpu:Sometimes"):
            expected = (
                "--toleration: expected KEY[=VALUE][:EFFECT], effects NoSchedule, PreferNoSchedule, "
                f'NoExecute; found "{text}"'
            )
            self.refuse(expected, parse, "--toleration", text)

    def test_replica(self):
        self.assertEqual(options.parse_replica("worker", 1), ("worker", 1))
        self.assertEqual(options.parse_replica("PS-2", 0), ("ps", 2))
        self.refuse(
            'expected chief, master, ps, worker or evaluator, found "w"', options.parse_replica, "w", 0
        )

    def test_resources(self):
        parse = options.parse_resources
        self.assertEqual(parse({"cpu": 2, "memory": "4Gi", "gpu": "1"}), ("2", "4Gi", 1))
        self.assertEqual(parse({"nvidia.com/gpu": 2}), ("", "", 2))
        self.refuse("resources_per_worker: expected cpu, memory or gpu, found disk", parse, {"disk": 1})
        self.refuse("resources_per_worker: gpu: expected a whole number, found 'x'", parse, {"gpu": "x"})

    def test_config(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "c")
            self.refuse(f"--config: {path}: No such file or directory", options.read_config, path)
            for data, text in (
                (b"\xff", "expected UTF-8 text, found other bytes"),
                (b" \n", "expected a TrainConfig as a text proto, found an empty file"),
            ):
                with open(path, "wb") as file:
                    file.write(data)
                self.refuse(f"--config: {path}: {text}", options.read_config, path)
