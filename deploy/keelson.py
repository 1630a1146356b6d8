#!/usr/bin/python3
"""Submits, watches, scales and deletes training jobs on a cluster with the training operator.

As a command: keelson.py --help. As a module, with deploy/ in sys.path:

    import keelson
    client = keelson.TrainingClient()
    client.create_job(name="mnist", base_image="keelson:1", num_ps_replicas=2, num_workers=4)
    client.wait_for_job_conditions("mnist")
    print(client.get_job_logs("mnist"))
"""

import sys

from keelson_client.commands import main
from keelson_client.errors import ClusterError, ErrorKind, InputError, JobFailedError
from keelson_client.manifest import render
from keelson_client.settings import JobSettings, Mount, Resources, Toleration
from keelson_client.training_client import TrainingClient
from tfjob_api.conditions import JobCondition
from tfjob_api.yaml_text import to_yaml

__all__ = [
    "ClusterError",
    "ErrorKind",
    "InputError",
    "JobCondition",
    "JobFailedError",
    "JobSettings",
    "Mount",
    "Resources",
    "Toleration",
    "TrainingClient",
    "main",
    "render",
    "to_yaml",
]

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
