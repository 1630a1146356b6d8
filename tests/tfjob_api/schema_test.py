"""The field names against the resource definition, where the repository lies beside it."""

import os
import unittest

from support import REPOSITORY

import yaml
from tfjob_api import schema

DEFINITION = os.path.join(REPOSITORY, "..", "shared", "tfjob", "tfjob-crd-v1.9.4.yaml")


@unittest.skipUnless(os.path.exists(DEFINITION), f"no {DEFINITION}")
class SchemaTest(unittest.TestCase):
    """Neither a field too few (a needless warning) nor one too many (a silent loss on the cluster)."""

    @classmethod
    def setUpClass(cls):
        with open(DEFINITION, encoding="utf-8") as file:
            definition = yaml.load(file, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        (version,) = definition["spec"]["versions"]
        cls.spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
        cls.replica = cls.spec["tfReplicaSpecs"]["additionalProperties"]["properties"]
        cls.pod = cls.replica["template"]["properties"]["spec"]["properties"]
        cls.container = cls.pod["containers"]["items"]["properties"]

    def assert_fields(self, known, properties):
        self.assertEqual(sorted(known), sorted(properties))

    def test_job(self):
        self.assert_fields(schema.JOB_SPEC, self.spec)
        self.assert_fields(schema.RUN_POLICY, self.spec["runPolicy"]["properties"])
        self.assert_fields(schema.REPLICA_SPEC, self.replica)

    def test_pod(self):
        self.assert_fields(schema.POD_TEMPLATE, self.replica["template"]["properties"])
        self.assert_fields(schema.POD_SPEC, self.pod)

    def test_container(self):
        self.assert_fields(schema.CONTAINER, self.container)
        self.assert_fields(schema.CONTAINER, self.pod["initContainers"]["items"]["properties"])
        for known, name in (
            (schema.ENVIRONMENT_VARIABLE, "env"),
            (schema.ENVIRONMENT_SOURCE, "envFrom"),
            (schema.CONTAINER_PORT, "ports"),
            (schema.VOLUME_MOUNT, "volumeMounts"),
        ):
            self.assert_fields(known, self.container[name]["items"]["properties"])
        self.assert_fields(schema.RESOURCES, self.container["resources"]["properties"])
        variable = self.container["env"]["items"]["properties"]
        self.assert_fields(schema.VALUE_SOURCE, variable["valueFrom"]["properties"])
