"""What commands read of a job's document, as the cluster has it."""

from typing import Any, Mapping

from .job_kind import JOB_KINDS, TF_JOB, JobKind


def kind_of(job: Mapping[str, Any]) -> JobKind:
    return JOB_KINDS.get(str(job.get("kind")), TF_JOB)


def replica_specs(job: Mapping[str, Any]) -> Mapping[str, Any]:
    """By replica type, as it is spelled there; empty: it has none."""
    return (job.get("spec") or {}).get(kind_of(job).specs_field) or {}
