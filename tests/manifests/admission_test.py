"""Every job passes the operator's own rules (its webhook's), and our reader finds nothing to warn of."""

import unittest
from typing import Mapping

from support import REPOSITORY, documents, is_of_scripts, job_paths, process_template, raw_documents, roles_of

from tfjob_api.model import Manifest
from tfjob_api.reader import ReadOptions, read_manifest

TEMPLATE = "deploy/openshift/template.yaml"


def read(path: str, options: ReadOptions = ReadOptions()) -> Manifest:
    return read_manifest([str(REPOSITORY / path)], options)


class EveryJob(unittest.TestCase):
    def test_is_admitted_without_a_warning(self) -> None:
        self.assertEqual(len(job_paths()), 10)
        for path in job_paths():
            with self.subTest(path):
                self.assertEqual(read(path).warnings, ())

    def test_means_what_the_manifest_says(self) -> None:
        for path in job_paths():
            with self.subTest(path):
                job = read(path).job
                (document,) = [d for d in documents(path) if d.kind == job.kind.name]
                self.assertEqual(job.name, document.metadata_name)
                found = {t.lower(): spec.replicas for t, spec in job.replica_specs.items()}
                self.assertEqual(found, {role.role: role.replicas for role in roles_of(path)})
                self.assertEqual(job.run_policy.clean_pod_policy, "Running")
                self.assertEqual(job.dynamic_workers, path.endswith("mnist_dynamic.yaml"))
                for spec in job.replica_specs.values():
                    self.assertEqual(spec.port, job.kind.port)
                    self.assertIn(job.kind.port_name, [port.name for port in spec.container.ports])
                    self.assertEqual(spec.grace_seconds, 120)

    def test_brings_the_config_along(self) -> None:
        for path in job_paths():
            with self.subTest(path):
                maps = read(path).objects.config_maps
                configs = [m["job.textproto"] for m in maps.values() if "job.textproto" in m]
                self.assertEqual(len(configs), 0 if is_of_scripts(path) else 1)
                self.assertTrue(all(b"model {" in config for config in configs))


class OpenShiftTemplate(unittest.TestCase):
    """Parameters give what they name; our reader and `oc process` agree about it."""

    def process(self, values: Mapping[str, str]) -> Manifest:
        return read(TEMPLATE, ReadOptions(parameters=values))

    def test_reader_and_oc_agree(self) -> None:
        (template,) = raw_documents(TEMPLATE)
        values = {"JOB_NAME": "digits", "WORKERS": "5"}
        (expected,) = [o for o in process_template(template.content, values) if o["kind"] == "TFJob"]
        self.assertEqual(self.process(values).document, expected)

    def test_every_parameter_is_used_and_changes_what_it_names(self) -> None:
        (template,) = raw_documents(TEMPLATE)
        names = [p["name"] for p in template.content["parameters"]]
        plain = process_template(template.content)
        for name in names:
            with self.subTest(name):
                changed = process_template(template.content, {name: "77"})
                self.assertNotEqual(changed, plain)

    def test_job(self) -> None:
        job = self.process(
            {
                "JOB_NAME": "digits",
                "IMAGE_NAME": "registry.example.com/keelson:1",
                "WORKERS": "5",
                "PS": "3",
                "TRAINING_STEPS": "42",
                "WORKER_CPU": "4",
                "WORKER_MEMORY": "3Gi",
                "PS_MEMORY": "9Gi",
            }
        ).job
        self.assertEqual(job.name, "digits")
        self.assertEqual((job.replicas("Worker"), job.replicas("PS")), (5, 3))
        worker = job.replica_specs["Worker"].container
        self.assertEqual(worker.limits, {"cpu": "4", "memory": "3Gi", "ephemeral-storage": "1Gi"})
        self.assertEqual(job.replica_specs["PS"].container.limits["memory"], "9Gi")
        for spec in job.replica_specs.values():
            self.assertIn("--training_steps=42", spec.container.args)
            self.assertEqual(spec.container.image, "registry.example.com/keelson:1")

    def test_objects_are_named_after_the_job_and_labelled(self) -> None:
        (template,) = raw_documents(TEMPLATE)
        for content in process_template(template.content, {"JOB_NAME": "digits"}):
            name = content["metadata"]["name"]
            self.assertRegex(name, "^digits(-config|-model|-chief|-ps|-worker|-evaluator)?$")
            self.assertEqual(content["metadata"]["labels"]["app.kubernetes.io/part-of"], "keelson")
