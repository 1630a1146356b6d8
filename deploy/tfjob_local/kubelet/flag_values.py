"""Values that classic trainers gave their flags -> values that Keelson's programs take."""

import math
import os
import re
from dataclasses import dataclass
from typing import Callable, Dict, Optional

_DEVICE = re.compile(r"(?:/device:|/)?(cpu|gpu)(?::(\d+))?")
_OWN_DEVICE = re.compile(r"cpu|auto|cuda(?::\d+(?:,\d+)*)?")
_PRECISIONS = {
    "float32": "float32",
    "fp32": "float32",
    "tf32": "tf32",
    "bfloat16": "bfloat16",
    "bf16": "bfloat16",
    "mixed_bfloat16": "bfloat16",
}
# Endings of a configuration as a text proto.
_CONFIG_ENDINGS = (".textproto", ".txtpb", ".textpb", ".pbtxt", ".prototxt")
_MUST_BE_POSITIVE = frozenset({"batch_size", "training_steps", "epochs", "learning_rate", "compute_threads"})
_CHOICES = re.compile(r"TEXT:\{(.*)\}")


@dataclass(frozen=True)
class Surroundings:
    """The facts about machine and job by which values are judged."""

    has_gpus: Callable[[], bool]
    # Whether a directory without IDX files may have some before the replicas start, or others that the
    # job's configuration reads.
    may_get_data: Callable[[str], bool]


def translate_value(name: str, text: str, flag_type: str, surroundings: Surroundings) -> str:
    """The value of Keelson's flag `name`, which is of the type that its program names ("INT"). ValueError:
    nothing there means the same; one line, what was expected and found."""
    if name == "device":
        return _device(text, surroundings)
    if name == "precision":
        return _choose(_PRECISIONS, text, "float32, tf32 or bfloat16")
    if name == "config":
        if not text.endswith(_CONFIG_ENDINGS):
            raise _unexpected("a TrainConfig as a text proto (.textproto, .pbtxt)", text)
        return text
    if name == "data_dir":
        return _data_dir(text, surroundings)
    choices = _CHOICES.fullmatch(flag_type)
    if choices:
        return _choose({choice: choice for choice in choices[1].split(",")}, text, choices[1])
    if flag_type.startswith(("INT", "UINT")):
        return _whole_number(name, text, flag_type)
    return _number(name, text) if flag_type == "FLOAT" else text


def _device(text: str, surroundings: Surroundings) -> str:
    match = _DEVICE.fullmatch(text.lower())
    if match is None:
        if not _OWN_DEVICE.fullmatch(text):
            raise _unexpected("cpu, gpu, cuda, cuda:N or auto", text)
        return text
    kind, number = match.groups()
    if kind == "cpu":
        return "cpu"
    if not surroundings.has_gpus():
        raise _unexpected("cpu, as this machine has no GPU", text)
    return "cuda" if number is None else f"cuda:{number}"


def _choose(meanings: Dict[str, str], text: str, expected: str) -> str:
    if text.lower() not in meanings:
        raise _unexpected(expected, text)
    return meanings[text.lower()]


def _data_dir(text: str, surroundings: Surroundings) -> str:
    path = text[len("file://") :] if text.startswith("file://") else text
    if "://" in path:
        raise _unexpected("a directory of this machine", text)
    if not has_idx_files(path) and not surroundings.may_get_data(path):
        raise _unexpected("a directory with IDX files (*-images-idx3-ubyte)", text)
    return path


def has_idx_files(directory: str) -> bool:
    try:
        return any("-images-idx3-ubyte" in name for name in os.listdir(directory))
    except OSError:
        return False


def _whole_number(name: str, text: str, flag_type: str) -> str:
    least = 1 if name in _MUST_BE_POSITIVE or "POSITIVE" in flag_type else None
    if least is None and flag_type.startswith("UINT"):
        least = 0
    # "1e4" and "100.0" are whole numbers to Python's float; larger ones than 2^53 lose digits there.
    number = int(text) if re.fullmatch(r"[-+]?\d{1,18}", text) else _whole(_finite(text))
    if number is None or least is not None and number < least:
        raise _unexpected("a whole number" if least is None else f"a whole number >= {least}", text)
    return str(number)


def _number(name: str, text: str) -> str:
    number = _finite(text)
    positive = name in _MUST_BE_POSITIVE
    if math.isnan(number) or positive and number <= 0:
        raise _unexpected("a number > 0" if positive else "a number", text)
    return text


def _finite(text: str) -> float:
    """NaN where the text is no finite number."""
    try:
        number = float(text) if re.fullmatch(r"[-+.\deE]+", text) else math.nan
    except ValueError:
        return math.nan
    return number if math.isfinite(number) else math.nan


def _whole(number: float) -> Optional[int]:
    return int(number) if abs(number) < 2**53 and number == int(number) else None


def _unexpected(expected: str, found: str) -> ValueError:
    return ValueError(f'expected {expected}, found "{found}"')
