"""The progress line, from what the job writes about itself.

MODEL_DIR/status.json is the chief's, MODEL_DIR/eval/metrics.jsonl the evaluator's.
"""

import json
import os
from typing import Any, Callable, Dict, Optional, Tuple

from .console import Console

_REDRAW_SECONDS = 0.5
_PLAIN_LINE_SECONDS = 2.0
# Without news a plain line is repeated this often: the job is alive.
_REPEAT_SECONDS = 30.0


class TrainingFiles:
    """Reads what the job writes about itself; any file, and any field, may be missing."""

    def __init__(self, model_dir: str):
        self._status_path = os.path.join(model_dir, "status.json")
        self._metrics_path = os.path.join(model_dir, "eval", "metrics.jsonl")
        self._old_status = _identity(self._status_path)
        self._metrics_offset = 0
        self._last_evaluation: Dict[str, Any] = {}

    def status(self, also_old: bool = False) -> Dict[str, Any]:
        """The chief's newest status; that of an earlier run only when asked for."""
        if not also_old and _identity(self._status_path) == self._old_status:
            return {}
        try:
            with open(self._status_path, encoding="utf-8") as file:
                status = json.load(file)
        except (OSError, ValueError):
            return {}
        return status if isinstance(status, dict) else {}

    def last_evaluation(self) -> Dict[str, Any]:
        """The newest complete line of the metrics."""
        try:
            with open(self._metrics_path, "rb") as file:
                file.seek(self._metrics_offset)
                text = file.read()
        except OSError:
            return self._last_evaluation
        complete = text[: text.rfind(b"\n") + 1]
        self._metrics_offset += len(complete)
        for line in reversed(complete.splitlines()):
            try:
                evaluation = json.loads(line)
            except ValueError:
                continue
            if isinstance(evaluation, dict):
                self._last_evaluation = evaluation
                break
        return self._last_evaluation


class Progress:
    """Shows the line; on a terminal twice a second in place, elsewhere every 2 s when it changed."""

    def __init__(self, files: TrainingFiles, console: Console, clock: Callable[[], float]):
        self._files = files
        self._console = console
        self._clock = clock
        self._interval = _REDRAW_SECONDS if console.is_terminal else _PLAIN_LINE_SECONDS
        self._shown_at = float("-inf")
        self._shown = ""
        self._instead = ""

    def text(self) -> str:
        return render(self._files.status(), self._files.last_evaluation())

    def update(self, instead: str = "") -> None:
        """`instead`: what is to be said in place of the job's own files; shown as soon as it changes."""
        now = self._clock()
        if instead == self._instead and now - self._shown_at < self._interval:
            return
        self._instead = instead
        text = instead or self.text()
        quiet = not self._console.is_terminal and text == self._shown
        if quiet and now - self._shown_at < _REPEAT_SECONDS:
            return
        self._shown_at, self._shown = now, text
        self._console.status(text)


def render(status: Dict[str, Any], evaluation: Dict[str, Any]) -> str:
    """"step 1200/5000  loss 0.0431  12.3k examples/s  eval accuracy 0.981 (step 1000)  ETA 0:32"."""
    phase = str(status.get("phase") or "")
    if not status:
        return "waiting for the chief"
    if phase.startswith("WAITING"):
        return f"waiting for {_missing(status)}"
    parts = []
    if phase not in ("", "TRAINING"):
        parts.append(phase.lower().replace("_", " "))
    parts.append(_steps(status))
    loss = _number(status, "loss")
    if loss is not None:
        parts.append(f"loss {loss:.4f}" if abs(loss) < 1e6 else f"loss {loss:.3g}")
    if status.get("diverging") is True:
        parts.append("DIVERGING")
    rate = _number(status, "examples_per_second")
    if rate is not None:
        parts.append(f"{short_number(rate)} examples/s")
    parts.append(describe_evaluation(evaluation))
    eta = _number(status, "eta_seconds")
    if eta is not None and phase in ("", "TRAINING"):
        parts.append(f"ETA {duration(eta)}")
    return "  ".join(part for part in parts if part)


def describe_evaluation(evaluation: Dict[str, Any]) -> str:
    """"eval accuracy 0.981 (step 1000)"; the loss where there is no accuracy; "" for nothing."""
    for name in ("accuracy", "loss"):
        value = _number(evaluation, name)
        if value is not None:
            step = _number(evaluation, "step")
            return f"eval {name} {value:.4g}" + (f" (step {step:.0f})" if step is not None else "")
    return ""


def describe_metrics(evaluation: Dict[str, Any]) -> str:
    """"loss 0.3178, accuracy 0.8512, auc 0.91": all metrics of an evaluation, the loss first; "" for nothing."""
    others = {"step", "wall_time", "examples", "seconds"}
    names = sorted(set(evaluation) - others, key=lambda name: (not name.startswith("loss"), name))
    values = [(name, _number(evaluation, name)) for name in names]
    return ", ".join(f"{name} {value:.4g}" for name, value in values if value is not None)


def short_number(value: float) -> str:
    """12345 -> "12.3k"."""
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= limit:
            return f"{value / limit:.1f}{unit}"
    return f"{value:.0f}"


def duration(seconds: float) -> str:
    """32 -> "0:32", 3700 -> "1:01:40"."""
    minutes, rest = divmod(int(max(0.0, seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _steps(status: Dict[str, Any]) -> str:
    step, max_steps = _number(status, "step"), _number(status, "max_steps")
    if step is None:
        return ""
    return f"step {step:.0f}" + (f"/{max_steps:.0f}" if max_steps else "")


def _missing(status: Dict[str, Any]) -> str:
    what = status.get("waiting_for") or status.get("error") or "the servers"
    return ", ".join(str(item) for item in what) if isinstance(what, list) else str(what)


def _number(values: Dict[str, Any], name: str) -> Optional[float]:
    value = values.get(name)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value:
        return None
    return None if value in (float("inf"), float("-inf")) else float(value)


def _identity(path: str) -> Optional[Tuple[int, int, int]]:
    try:
        stat = os.stat(path)
    except OSError:
        return None
    return stat.st_ino, stat.st_mtime_ns, stat.st_size
