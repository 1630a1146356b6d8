"""Models on disk: snapshots, which the program keelson_ckpt reads and writes, and what a script proposed beside them.

Modules that take long to import are imported where they are needed, for `import keelson` has this one.
"""

from __future__ import annotations

import os
from typing import IO, Any, Dict, Mapping, NamedTuple, Optional, Union

from . import safetensors
from .arrays import floats_of
from .errors import Error
from .pod_paths import local_path

# In a model directory: what is of scripts.
SCRIPT_DIR = "script"
# There, as the chief keeps it: what variables started from, and what is part of the model and never changes.
_PROPOSED = "initial.safetensors"
# Of its metadata, as JSON: the names of the latter, and other names of tensors.
_CONSTANTS, _ALIASES = "constants", "aliases"
# Of the columns of a table, behind its name.
_KEYS, _VALUES = "/keys", "/values"


class TableContent(NamedTuple):
    """All rows of an embedding table."""

    keys: safetensors.Tensor  # int64 [rows], the ids
    values: safetensors.Tensor  # float32 [rows, dim]


class Kept(NamedTuple):
    """What of a model is in no snapshot."""

    constants: Dict[str, safetensors.Tensor]
    aliases: Dict[str, str]


class State(Dict[str, safetensors.Tensor]):
    """The tensors of a model by their names, the step of its snapshot, and its tables by their names."""

    step: int = 0
    tables: Mapping[str, TableContent] = {}


def load_state_dict(directory: Union[str, os.PathLike[str]], step: Union[int, str, None] = None) -> State:
    """Of a model directory's newest snapshot, that of a step, or "best": the one that an evaluation with keep_best has kept,
    else of those that are there the one with the least evaluated loss, else, with a warning, the newest; or of a snapshot. keelson.torch.tensors makes tensors of it; State["name"].elements() is an array of floats. Error: there
    is none, or it is damaged."""
    import tempfile

    directory = local_path(directory)
    source = directory
    if step == "best":
        source = _best(directory)
    elif step is not None:
        source = os.path.join(directory, f"model.ckpt-{step}")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "state.safetensors")
        _run_ckpt("export", source, path)
        exported = safetensors.read(path)
    state = State(exported.tensors)
    state.tables = _take_tables(state)
    state.step = int(exported.metadata.get("global_step", 0))
    if os.path.isdir(directory):
        kept = read_kept(directory)
        if kept is not None:
            state.update(kept.constants)
            state.update((alias, state[name]) for alias, name in kept.aliases.items() if name in state)
    return state


def _best(directory: str) -> str:
    """Error: keep_best has kept more than one, as a configuration may want them."""
    folder = os.path.join(directory, "export", "best")
    steps = sorted(int(name) for name in os.listdir(folder) if name.isdigit()) if os.path.isdir(folder) else []
    if len(steps) > 1:
        found = f"those of the steps {', '.join(map(str, steps))}: load {folder}/STEP"
        raise Error(f"{folder}: expected one snapshot, as of an evaluation with keep_best, found {found}")
    if steps:
        return os.path.join(folder, str(steps[0]))
    losses = _evaluated_losses(directory)
    if losses:
        return os.path.join(directory, f"model.ckpt-{min(losses, key=lambda step: losses[step])}")
    import warnings

    warnings.warn(f"{directory}: no snapshot that is there was evaluated: the newest one is loaded", stacklevel=3)
    return directory


def _evaluated_losses(directory: str) -> Dict[int, float]:
    """By step, of the snapshots that are there."""
    import json
    import math

    losses: Dict[int, float] = {}
    path = os.path.join(directory, "eval", "metrics.jsonl")
    if not os.path.exists(path):
        return losses
    with open(path, encoding="utf-8") as file:
        for line in file:
            try:
                record = json.loads(line)
                step, loss = int(record["step"]), float(record["loss"])
            except (ValueError, TypeError, KeyError):
                continue  # It is being written, or its loss is not finite.
            if math.isfinite(loss) and os.path.exists(os.path.join(directory, f"model.ckpt-{step}.index")):
                losses[step] = loss
    return losses


def save(directory: Union[str, os.PathLike[str]], arrays: Mapping[str, Any], step: int = 0) -> None:
    """Makes a snapshot of these arrays in a model directory, with which a job may begin. Error."""
    import tempfile

    tensors = {}
    for name, value in arrays.items():
        floats = floats_of(value)
        tensors[name] = safetensors.Tensor("F32", floats.shape, floats.data)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "state.safetensors")
        safetensors.write(path, tensors)
        _run_ckpt("import", path, local_path(directory), f"--step={step}")


def has_snapshot(model_dir: str) -> bool:
    return os.path.exists(os.path.join(model_dir, "checkpoint"))


def newest_step(model_dir: str) -> int:
    """Of a model directory's newest snapshot; 0: there is none that can be read."""
    try:
        with open(os.path.join(model_dir, "checkpoint"), encoding="utf-8", errors="replace") as file:
            first = file.readline()
    except OSError:
        return 0
    step = first.rstrip('" \n').rpartition("-")[2]
    return int(step) if first.startswith("model_checkpoint_path:") and step.isdigit() else 0


def write_proposed(file: IO[bytes], variables: Mapping[str, safetensors.Tensor], kept: Kept) -> None:
    """What a script gives the chief, which keeps it. OSError."""
    import json

    metadata = {_CONSTANTS: json.dumps(list(kept.constants)), _ALIASES: json.dumps(kept.aliases)}
    safetensors.write_to(file, {**variables, **kept.constants}, metadata)


def read_kept(model_dir: str) -> Optional[Kept]:
    """ValueError: the file is damaged. OSError."""
    import json

    path = os.path.join(model_dir, SCRIPT_DIR, _PROPOSED)
    if not os.path.exists(path):
        return None
    tensors, metadata = safetensors.read(path)
    constants = json.loads(metadata.get(_CONSTANTS, "[]"))
    return Kept({name: tensors[name] for name in constants}, json.loads(metadata.get(_ALIASES, "{}")))


def _take_tables(tensors: Dict[str, safetensors.Tensor]) -> Dict[str, TableContent]:
    """Those whose columns are among the tensors, where they then are no more."""
    names = [name[: -len(_KEYS)] for name, tensor in tensors.items() if name.endswith(_KEYS) and tensor.dtype == "I64"]
    return {name: TableContent(tensors.pop(name + _KEYS), tensors.pop(name + _VALUES)) for name in names}


def _run_ckpt(*arguments: str) -> None:
    import subprocess
    import tempfile

    from .programs import environment_of, find_program, last_error

    with tempfile.NamedTemporaryFile() as log:
        program = find_program("keelson_ckpt")
        environment = environment_of(program, {})
        code = subprocess.call(
            [program, *arguments], stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment
        )
        if code != 0:
            raise Error(f"keelson_ckpt {arguments[0]}: {last_error(log.name) or f'ended with {code}'}")
