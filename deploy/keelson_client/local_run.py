"""Runs a job on this machine: hands its manifest to the launcher, deploy/tfjob_local.py."""

import os
import sys
from typing import Any, Dict, NoReturn, Sequence

from tfjob_api.yaml_text import to_yaml

_LAUNCHER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "tfjob_local.py")


def run_locally(documents: Sequence[Dict[str, Any]], flags: Sequence[str]) -> NoReturn:
    """This process becomes the launcher; the manifest is in a file that has no name."""
    descriptor = os.memfd_create("manifest", 0)
    with os.fdopen(descriptor, "w", encoding="utf-8", closefd=False) as file:
        file.write(to_yaml(documents))
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(sys.executable, [sys.executable, _LAUNCHER, f"/dev/fd/{descriptor}", *flags])
