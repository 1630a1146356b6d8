"""Prints the summary when the job is over."""

import os
import re
import shlex
from dataclasses import dataclass
from typing import List, Optional, Sequence

from tfjob_api.text_table import render_table

from .addresses import DASHBOARD_PORT
from .console import BOLD, RED, Console
from .kubelet.kubelet import ReplicaRecord
from .kubelet.local_ports import LOCAL_ADDRESS
from .launcher import Result
from .progress import TrainingFiles, describe_evaluation, describe_metrics, duration
from .run_directory import STATUS_FILE, RunDirectory


@dataclass(eq=False)
class Summary:
    _job_name: str
    _model_dir: str
    _run_dir: RunDirectory
    _files: TrainingFiles
    # The folder of the programs; the evaluator there shows the run once the job has ended.
    _bin_dir: str

    def print(
        self, result: Result, records: Sequence[ReplicaRecord], seconds: float, console: Console
    ) -> None:
        console.line()
        for line in _table(records):
            console.line(line)
        console.line()
        for problem in result.problems:
            console.line(f"problem: {problem}")
        for record in records:
            if record.name == result.failed:
                _print_errors(record, console)
        console.line(console.paint(self._result(result), BOLD if result.succeeded else RED))
        console.line(f"elapsed      {duration(seconds)}")
        metrics = describe_metrics(self._files.last_evaluation())
        if metrics:
            console.line(f"evaluation   {metrics}")
        self._print_paths(result, console)

    def _result(self, result: Result) -> str:
        if result.stopped:
            return f"job {self._job_name} {result.reason}"
        if not result.succeeded:
            return f"job {self._job_name} failed: {result.reason}"
        status = self._files.status(also_old=True)
        parts = [f"job {self._job_name} succeeded"]
        if "step" in status:
            parts.append(f"final step {status['step']}")
        if isinstance(status.get("loss"), (int, float)):
            parts.append(f"loss {status['loss']:.4f}")
        evaluation = describe_evaluation(self._files.last_evaluation())
        return ", ".join(parts + [evaluation] if evaluation else parts)

    def _print_paths(self, result: Result, console: Console) -> None:
        snapshot = latest_snapshot(self._model_dir)
        if snapshot:
            console.line(f"model        {snapshot}")
            if not result.succeeded:
                console.line(f"to continue  --model_dir={self._model_dir}")
        console.line(f"logs         {self._run_dir.log_dir}")
        console.line(f"status       {os.path.join(self._run_dir.path, STATUS_FILE)}")
        if os.path.isdir(self._model_dir):
            console.line(f"dashboard    {shlex.join(self._dashboard_command())}")
            console.line(f"TensorBoard  tensorboard --logdir {self._model_dir}")

    def _dashboard_command(self) -> List[str]:
        program = os.path.join(self._bin_dir, "evaluator")
        run = f"--model_dir={self._model_dir}"
        page = [f"--dashboard_port={DASHBOARD_PORT}", f"--dashboard_address={LOCAL_ADDRESS}"]
        return [program, "--serve_only", run, *page]


def latest_snapshot(model_dir: str) -> Optional[str]:
    """The path prefix that the state file `checkpoint` names; None: there is no snapshot."""
    try:
        with open(os.path.join(model_dir, "checkpoint"), encoding="utf-8") as file:
            match = re.search(r'^model_checkpoint_path:\s*"(.*)"', file.read(), re.MULTILINE)
    except OSError:
        return None
    return os.path.join(model_dir, match.group(1)) if match else None


def last_error_lines(log_path: str, count: int = 5) -> List[str]:
    """The last lines of a log that are errors ("E ..."); without any, its last lines."""
    try:
        with open(log_path, encoding="utf-8", errors="replace") as log:
            lines = [line.rstrip("\n") for line in log if line.strip()]
    except OSError:
        return []
    errors = [line for line in lines if line.startswith("E ")]
    return (errors or lines)[-count:]


def _print_errors(record: ReplicaRecord, console: Console) -> None:
    console.line(f"{record.log_path}:")
    for line in last_error_lines(record.log_path):
        console.line(f"  {line}")


def _table(records: Sequence[ReplicaRecord]) -> List[str]:
    rows = []
    for record in records:
        code = "-" if record.exit_code is None else str(record.exit_code)
        if record.killed:
            code += " (killed)"
        pid = "-" if record.pid is None else str(record.pid)
        log = os.path.basename(record.log_path)
        rows.append((record.name, pid, code, str(record.restarts), f"{record.seconds:.1f}", log))
    return render_table(("replica", "pid", "exit code", "restarts", "seconds", "log"), rows)
