"""Converts users' texts to values of settings. InputError says what was expected and what was found."""

import re
from typing import Any, Dict, Mapping, Sequence, Tuple

from tfjob_api.naming import TYPE_PATTERN

from .errors import InputError
from .settings import Mount, Toleration

_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def parse_mount(flag: str, text: str, default_path: str) -> Mount:
    """ "CLAIM" or "CLAIM:/path"; "{name}" in the default is the claim's."""
    name, colon, path = text.partition(":")
    if not name or (colon and not path):
        raise InputError(f'{flag}: expected NAME or NAME:/path, found "{text}"')
    return Mount(name, path or default_path.format(name=name))


def parse_pairs(flag: str, texts: Sequence[str]) -> Dict[str, str]:
    """ "KEY=VALUE", each key once."""
    pairs: Dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not key or not equals:
            raise InputError(f'{flag}: expected KEY=VALUE, found "{text}"')
        if key in pairs:
            raise InputError(f"{flag}: {key} is given twice")
        pairs[key] = value
    return pairs


def parse_toleration(flag: str, text: str) -> Toleration:
    """ "KEY", "KEY=VALUE", either with ":EFFECT", as taints are written."""
    taint, _, effect = text.partition(":")
    key, _, value = taint.partition("=")
    if not key or (effect and effect not in _EFFECTS):
        raise InputError(
            f'{flag}: expected KEY[=VALUE][:EFFECT], effects {", ".join(_EFFECTS)}; found "{text}"'
        )
    return Toleration(key, value, effect)


def parse_resources(resources: Mapping[str, Any]) -> Tuple[str, str, int]:
    """The training SDK's resources_per_worker -> cpu, memory, GPUs."""
    unknown = [key for key in resources if key not in ("cpu", "memory", "gpu", "nvidia.com/gpu")]
    if unknown:
        raise InputError(f"resources_per_worker: expected cpu, memory or gpu, found {', '.join(unknown)}")
    gpus = resources.get("gpu", resources.get("nvidia.com/gpu", 0))
    if not str(gpus).isdecimal():
        raise InputError(f"resources_per_worker: gpu: expected a whole number, found {gpus!r}")
    return str(resources.get("cpu", "")), str(resources.get("memory", "")), int(gpus)


def parse_replica(role: str, index: int) -> Tuple[str, int]:
    """ "worker", 1 or "worker-1"; the type in lower case as the pods' labels have it."""
    match = re.fullmatch(rf"({TYPE_PATTERN})(?:-(\d+))?", role.lower())
    if not match:
        raise InputError(f'expected chief, master, ps, worker or evaluator, found "{role}"')
    return match.group(1), int(match.group(2)) if match.group(2) else index


def read_config(path: str) -> str:
    """The text of a TrainConfig."""
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except OSError as error:
        raise InputError(f"--config: {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"--config: {path}: expected UTF-8 text, found other bytes") from error
    if not text.strip():
        raise InputError(f"--config: {path}: expected a TrainConfig as a text proto, found an empty file")
    return text
