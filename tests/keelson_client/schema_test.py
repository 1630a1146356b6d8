"""The manifests that submit renders fit the resource's schema with no unknown field, and the programs know
its flags."""

import os
import subprocess
import sys
import unittest

from manifest_test import VARIANTS, containers
from support import REPOSITORY

from keelson_client.manifest import find_job, render
from tfjob_api.yaml_text import to_yaml
from tfjob_local.kubelet.program_flags import PROGRAMS, read_flags

# tests/manifests has the schemas; its modules are not for this process, both folders have a `support`.
MANIFESTS = os.path.join(REPOSITORY, "tests", "manifests")
CHECK = """
import sys, yaml
from kubernetes_kinds import kinds
from strict_schema import errors
for document in yaml.safe_load_all(sys.stdin):
    for error in errors(kinds()[document["apiVersion"], document["kind"]], document):
        print(document["kind"], error)
"""
BINARY_DIR = os.environ.get("KEELSON_BINARY_DIR", os.path.join(REPOSITORY, "build", "release", "bin"))


def violations(documents):
    """One line each; None: there is nothing that compares."""
    try:
        done = subprocess.run(
            [sys.executable, "-c", CHECK],
            input=to_yaml(documents),
            cwd=MANIFESTS,
            capture_output=True,
            encoding="utf-8",
            timeout=60,
            check=False,
        )
    except OSError:
        return None
    if "No module named 'jsonschema'" in done.stderr:
        return None
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    return done.stdout.splitlines()


class SchemaTest(unittest.TestCase):
    def check(self, documents):
        found = violations(documents)
        if found is None:
            self.skipTest("python3-jsonschema is not there")
        return found

    def test_every_variant_fits(self):
        documents = [document for variant in VARIANTS.values() for document in render(variant)]
        self.assertEqual(self.check(documents), [])

    def test_a_misspelt_field_would_be_seen(self):
        documents = render(VARIANTS["alone"])
        find_job(documents)["spec"]["runPolicy"]["ttlSeconds"] = 1
        self.assertEqual(len(self.check(documents)), 1)


@unittest.skipUnless(
    all(os.path.exists(os.path.join(BINARY_DIR, program)) for program in PROGRAMS),
    f"the programs are not in {BINARY_DIR}",
)
class FlagsTest(unittest.TestCase):
    def test_every_flag_is_one_of_its_program(self):
        for name, variant in VARIANTS.items():
            for kind, container in containers(render(variant)).items():
                (program,) = container["command"]
                given = {argument[2:].partition("=")[0] for argument in container["args"]}
                with self.subTest(variant=name, replica=kind):
                    self.assertLessEqual(given, set(read_flags(os.path.join(BINARY_DIR, program))))
