"""Finds this machine's GPUs, by the numbers that CUDA_VISIBLE_DEVICES takes."""

import os
import re
import subprocess
from typing import Tuple

_QUERY_SECONDS = 30.0


def parse_gpus(text: str) -> Tuple[str, ...]:
    """"0,2", "none". ValueError: neither."""
    if text == "none":
        return ()
    gpus = tuple(text.split(","))
    if not all(re.fullmatch(r"\d+|(GPU|MIG)-[-0-9a-fA-F/]+", gpu) for gpu in gpus):
        raise ValueError(f'expected GPUs such as 0,1 or none, found "{text}"')
    if len(set(gpus)) < len(gpus):
        raise ValueError(f'expected each GPU once, found "{text}"')
    return gpus


def detect_gpus() -> Tuple[str, ...]:
    """Returns the GPUs in the launcher's own CUDA_VISIBLE_DEVICES, or all that the driver lists."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        gpus = tuple(part.strip() for part in visible.split(",") if part.strip())
        return () if gpus[:1] == ("-1",) else gpus
    return _from_driver() or _from_devices()


def _from_driver() -> Tuple[str, ...]:
    try:
        listing = subprocess.run(
            ["nvidia-smi", "-L"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_QUERY_SECONDS,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return ()
    return tuple(re.findall(r"^GPU (\d+):", listing.stdout, re.MULTILINE))


def _from_devices(directory: str = "/dev") -> Tuple[str, ...]:
    try:
        names = os.listdir(directory)
    except OSError:
        return ()
    numbers = sorted(int(name[6:]) for name in names if re.fullmatch(r"nvidia\d+", name))
    return tuple(str(number) for number in numbers)
