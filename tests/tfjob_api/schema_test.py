"""The field names against the resource definition that the operator publishes."""

import os
import sys
import unittest

from support import REPOSITORY

from tfjob_api import schema

# Behind this folder's own modules, of which some have the same names.
sys.path.append(os.path.join(REPOSITORY, "tests", "manifests"))
from published_schemas import part, published_schemas  # noqa: E402  (needs the path above)


class SchemaTest(unittest.TestCase):
    """Neither a field too few (a needless warning) nor one too many (a silent loss on the cluster)."""

    @classmethod
    def setUpClass(cls):
        cls.job = published_schemas()["kubeflow.org/v1", "TFJob"]["properties"]
        cls.spec = cls.job["spec"]["properties"]
        cls.replica = part(cls.job["spec"], "tfReplicaSpecs", "*")["properties"]
        cls.pod = cls.replica["template"]["properties"]["spec"]["properties"]
        cls.container = cls.pod["containers"]["items"]["properties"]

    def assert_fields(self, known, properties):
        self.assertEqual(sorted(known), sorted(properties))

    def test_job(self):
        # The published one is without the status, which is the operator's.
        self.assert_fields(schema.JOB, [*self.job, "status"])
        self.assert_fields(schema.JOB_SPEC["TFJob"], self.spec)
        self.assert_fields(schema.RUN_POLICY, self.spec["runPolicy"]["properties"])
        self.assert_fields(schema.REPLICA_SPEC, self.replica)

    def test_pytorch_job(self):
        job = published_schemas()["kubeflow.org/v1", "PyTorchJob"]["properties"]
        spec = job["spec"]["properties"]
        self.assert_fields(schema.JOB, [*job, "status"])
        self.assert_fields(schema.JOB_SPEC["PyTorchJob"], spec)
        self.assert_fields(schema.RUN_POLICY, spec["runPolicy"]["properties"])
        policy = spec["elasticPolicy"]["properties"]
        self.assert_fields(schema.ELASTIC_POLICY, policy)
        self.assert_fields(schema.RDZV_CONF, policy["rdzvConf"]["items"]["properties"])
        replica = part(job["spec"], "pytorchReplicaSpecs", "*")
        self.assertEqual(replica, part(published_schemas()["kubeflow.org/v1", "TFJob"], "spec", "tfReplicaSpecs", "*"))

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
