"""A pod's paths and ports, also where the pod is a process: deploy/tfjob_local.py has those of this machine in their place."""

from __future__ import annotations

import json
import os
from typing import Dict, List, Optional, Tuple, Union

_LOCAL_ADDRESS = "127.0.0.1"


def local_path(path: Union[str, os.PathLike[str]]) -> str:
    """A path below the mountPath of a pod's volume, where the volume is here; any other as it is, and so is what this has
    returned. join(), Evaluator, load_state_dict() and save() take the pod's paths themselves, and so do keelson.torch's
    datasets."""
    text = os.fspath(path)
    mounts: Dict[str, str] = json.loads(os.environ.get("KEELSON_MOUNTS") or "{}")
    if any(_is_below(directory, text) for directory in mounts.values()):
        return text
    # Mounts may be nested.
    for mount, directory in sorted(mounts.items(), key=lambda pair: -len(pair[0])):
        if _is_below(mount, text):
            return directory + text[len(mount) :]
    return text


def _is_below(directory: str, path: str) -> bool:
    return path == directory or path.startswith(f"{directory}/")


def page_of(port: Optional[int], in_cluster: bool) -> Tuple[Optional[int], Optional[str]]:
    """The port of a page that a script wants at `port`, None: no page; and its address, None: all of this host's."""
    chosen = os.environ.get("KEELSON_PAGE_PORT")
    if port is None or not chosen:
        return port, None if in_cluster else _LOCAL_ADDRESS
    return None if chosen == "none" else int(chosen), _LOCAL_ADDRESS


def metrics_flags() -> List[str]:
    """By which the program that a script starts serves its metrics, where the pod's environment asks for them."""
    if not os.environ.get("KEELSON_METRICS_PORT"):
        return []
    given = {what: os.environ.get(f"KEELSON_METRICS_{what.upper()}") for what in ("port", "address", "hosts")}
    return [f"--metrics_{what}={value}" for what, value in given.items() if value]
