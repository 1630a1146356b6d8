#!/usr/bin/python3
"""Runs the manifest of a Kubeflow TFJob, PyTorchJob or TrainJob as processes on this machine; see tfjob_local/__init__.py."""

import sys

from tfjob_local.command_line import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
