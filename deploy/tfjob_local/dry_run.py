"""Prints a replica for --dry_run."""

from typing import List

from tfjob_api.model import TrainingJob

from .kubelet.plan import PodPlan, ProcessPlan


def describe_plan(replica_name: str, plan: PodPlan) -> List[str]:
    lines = [f"{replica_name}  (restartPolicy {plan.restart_policy}, grace period {plan.grace_seconds:g} s)"]
    if plan.waits_for:
        lines.append(_line("waits for", plan.waits_for))
    for process in plan.init:
        lines += _section(f"init {process.container}", _process(process))
    lines += _process(plan.main)
    for path, local in plan.mounts.items():
        lines.append(_line("mount", f"{path} -> {local}"))
    return [*lines, ""]


def describe_job(job: TrainingJob, model_dir: str, controller: str) -> str:
    """`controller`: "operator 1.9.4"."""
    counts = ", ".join(f"{spec.replicas} {t.lower()}" for t, spec in job.replica_specs.items())
    return f"job {job.name}: {counts}; as {controller}; model in {model_dir}; nothing is started"


def _process(process: ProcessPlan) -> List[str]:
    program, *arguments = process.argv
    lines = [_line("program", program)]
    lines += [_line("argument", argument) for argument in arguments]
    lines.append(_line("directory", process.working_dir))
    lines += [_line("env", f"{name}={value}") for name, value in sorted(process.environment.items())]
    return lines


def _section(title: str, lines: List[str]) -> List[str]:
    return [f"  {title}", *(f"  {line}" for line in lines)]


def _line(what: str, value: str) -> str:
    return f"  {what.ljust(9)}  {value}"
