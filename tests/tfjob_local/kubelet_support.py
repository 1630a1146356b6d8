"""Shared code of the kubelet's tests: TFJobs as data, warnings collected."""

import support
from tfjob_api.job_kind import TF_JOB
from tfjob_api.model import Container, EnvironmentVariable, ReplicaSpec, TrainingJob, Volume, VolumeMount


def spec(replica_type, replicas=1, policy="Never", pod=None, kind=TF_JOB, **container):
    """`container`: fields of the kind's container; `pod`: fields of the ReplicaSpec."""
    container.setdefault("image", "keelson")
    container.setdefault("name", kind.container)
    return ReplicaSpec(replica_type, replicas, policy, Container(**container), kind=kind, **(pod or {}))


def job(*specs, name="job", namespace="default", **fields):
    return TrainingJob(name, namespace, {each.type: each for each in specs}, **fields)


def addresses(tfjob):
    """One port for each replica, from 10000 on in steps of 100 by type."""
    return {
        replica_type: [f"127.0.0.1:{10000 + 100 * number + index}" for index in range(each.replicas)]
        for number, (replica_type, each) in enumerate(tfjob.replica_specs.items())
    }


def mounted(kind, source="", path="/mnt", sub_path="", **volume):
    """The pod's and the container's fields of one volume v at `path`."""
    volumes = (Volume("v", kind, source, **volume),)
    return {"pod": {"volumes": volumes}, "mounts": (VolumeMount("v", path, sub_path),)}


def env(**values):
    return tuple(EnvironmentVariable(name, value) for name, value in values.items())


class WarningsTest(support.TemporaryDirectoryTest):
    def setUp(self):
        super().setUp()
        self.warnings = []

    def warn(self, text):
        if text not in self.warnings:
            self.warnings.append(text)
