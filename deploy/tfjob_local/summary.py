"""What stands on the screen when the job is over."""

import os
import re
from typing import List, Optional, Sequence

from .console import Console
from .progress import TrainingFiles, describe_evaluation
from .replica import Replica
from .supervisor import Outcome


class Summary:
    def __init__(self, job_name: str, model_dir: str, log_dir: str, files: TrainingFiles):
        self._job_name = job_name
        self._model_dir = model_dir
        self._log_dir = log_dir
        self._files = files

    def print(self, outcome: Outcome, replicas: Sequence[Replica], console: Console) -> None:
        console.line()
        for line in _table(replicas):
            console.line(line)
        console.line()
        for problem in outcome.problems:
            console.line(f"problem: {problem}")
        if outcome.failed:
            self._print_failure(outcome.failed, console)
        console.line(self._result(outcome))
        self._print_paths(console)

    def _print_failure(self, replica: Replica, console: Console) -> None:
        console.line(f"{replica.log_path}:")
        for line in replica.last_error_lines():
            console.line(f"  {line}")

    def _result(self, outcome: Outcome) -> str:
        if not outcome.succeeded:
            return f"job {self._job_name} failed: {outcome.reason}"
        status = self._files.status(also_old=True)
        parts = [f"job {self._job_name} succeeded"]
        if "step" in status:
            parts.append(f"final step {status['step']}")
        if isinstance(status.get("loss"), (int, float)):
            parts.append(f"loss {status['loss']:.4f}")
        evaluation = describe_evaluation(self._files.last_evaluation())
        return ", ".join(parts + [evaluation] if evaluation else parts)

    def _print_paths(self, console: Console) -> None:
        snapshot = latest_snapshot(self._model_dir)
        if snapshot:
            console.line(f"model        {snapshot}")
        console.line(f"logs         {self._log_dir}")
        if os.path.isdir(self._model_dir):
            console.line(f"TensorBoard  tensorboard --logdir {self._model_dir}")


def latest_snapshot(model_dir: str) -> Optional[str]:
    """The path prefix that the state file `checkpoint` names; None: there is no snapshot."""
    try:
        with open(os.path.join(model_dir, "checkpoint"), encoding="utf-8") as file:
            match = re.search(r'^model_checkpoint_path:\s*"(.*)"', file.read(), re.MULTILINE)
    except OSError:
        return None
    return os.path.join(model_dir, match.group(1)) if match else None


def _table(replicas: Sequence[Replica]) -> List[str]:
    rows = [["replica", "pid", "exit code", "restarts", "seconds"]]
    for replica in replicas:
        code = "-" if replica.exit_code is None else str(replica.exit_code)
        if replica.killed:
            code += " (killed)"
        pid = "-" if replica.pid is None else str(replica.pid)
        rows.append([replica.name, pid, code, str(replica.restarts), f"{replica.seconds:.1f}"])
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows
    ]
