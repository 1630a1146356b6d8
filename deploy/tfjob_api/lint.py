"""Warns of jobs that the operator accepts, and that do not do what their authors expect."""

import os
from typing import List

from .job_kind import PYTORCH_JOB, TF_JOB
from .model import PROGRAMS, ContainerPort, ReplicaSpec, TrainingJob
from .operator_version import OperatorVersion
from .pytorch_lint import pytorch_warnings


def job_warnings(job: TrainingJob, version: OperatorVersion) -> List[str]:
    """One line each, with the field's path."""
    warnings = _policy_warnings(job, version)
    for spec in job.replica_specs.values():
        where = f"{job.kind.specs_path}.{spec.type}"
        if spec.restart_policy == "Always":
            warnings.append(
                f"{where}.restartPolicy: Always restarts after exit code 0 too: this {spec.type} never ends"
            )
        if version.services_have_all_ports or job.kind != TF_JOB:
            warnings.extend(_port_warnings(spec, f"{where}.template.spec.containers"))
    if job.replicas("Evaluator") > 1 and version.evaluator_in_cluster and not _is_keelsons(job):
        warnings.append(
            f"{job.kind.specs_path}.Evaluator.replicas: TensorFlow refuses a TF_CONFIG with more than one evaluator; "
            "Keelson's programs take it"
        )
    if job.kind == PYTORCH_JOB:
        warnings.extend(pytorch_warnings(job, version))
    return warnings


def _is_keelsons(job: TrainingJob) -> bool:
    """Whether every replica runs a program of Keelson's."""
    commands = [spec.container.command[:1] for spec in job.replica_specs.values()]
    return all(command and os.path.basename(command[0]) in PROGRAMS for command in commands)


def _policy_warnings(job: TrainingJob, version: OperatorVersion) -> List[str]:
    warnings = []
    policy = job.run_policy
    clean_pod_policy = policy.clean_pod_policy or job.kind.default_clean_pod_policy(version)
    if job.replicas("PS") and clean_pod_policy == "None":
        unset = "" if policy.clean_pod_policy else " (the default)"
        warnings.append(
            f"spec.runPolicy.cleanPodPolicy: None{unset} leaves a PS that does not end by itself running "
            "after the job; Running is usual"
        )
    exit_code_types = [s.type for s in job.replica_specs.values() if s.restart_policy == "ExitCode"]
    if policy.backoff_limit and exit_code_types:
        warnings.append(
            "spec.runPolicy.backoffLimit: the operator does not count the restarts of "
            f"{', '.join(exit_code_types)} (restartPolicy ExitCode)"
        )
    if policy.active_deadline_seconds is not None and version.forgets_the_deadline:
        warnings.append(
            "spec.runPolicy.activeDeadlineSeconds: the operator notices the deadline only when a pod changes"
        )
    if job.success_policy and job.chief_type():
        warnings.append(f"spec.successPolicy: no effect, the {job.chief_type()} decides")
    return warnings


def _port_warnings(spec: ReplicaSpec, where: str) -> List[str]:
    """The replica's Service gets all ports of the container, and the operator's own."""
    own_name = spec.kind.port_name
    ports = list(spec.container.ports)
    if all(port.name != own_name for port in ports):
        ports.append(ContainerPort(spec.kind.port, own_name))
    problem = ""
    if len(ports) > 1 and any(not port.name for port in ports):
        problem = f"a port without a name beside {own_name}"
    elif len({port.port for port in ports}) < len(ports):
        problem = f"one port under two names, {own_name} among them or added by the operator"
    if not problem:
        return []
    return [f"{where}: ports: {problem}: the cluster refuses the replica's Service"]
