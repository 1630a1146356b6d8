"""Selects the job among the documents; refuses clearly if there is none, or one of an unknown kind."""

from typing import Any, List, Sequence, Tuple

from .documents import Document
from .fields import ManifestError
from .job_kind import MANIFEST_KINDS, any_kind

# The operator's first versions spelled it TfJob; legacy.py refuses those with a hint.
_KIND_NAMES = (*MANIFEST_KINDS, "TfJob")
_OTHER_FRAMEWORKS = ("JAXJob", "MPIJob", "MXJob", "PaddleJob", "XGBoostJob")
_EXPECTED = any_kind("a ")
# What a TrainJob takes its pods from.
RUNTIME_KINDS = ("ClusterTrainingRuntime", "TrainingRuntime")
_KUBERNETES_ONLY = ("Job", "JobSet", "StatefulSet")


def select_job(documents: Sequence[Document], source: str, job_name: str) -> Tuple[Document, List[Document]]:
    """The job and what stands beside it; the other jobs are left out. ManifestError.

    `source`: what an error names where there is no document at all. `job_name`: which one; "" where there
    is one alone.
    """
    jobs = [document for document in documents if document.kind in _KIND_NAMES]
    if not jobs:
        raise _no_job(documents, source)
    chosen = [job for job in jobs if not job_name or job.name == job_name]
    if not chosen:
        raise ManifestError(f'{jobs[0].source}: expected {_EXPECTED} named "{job_name}", found {_names(jobs)}')
    if len(chosen) > 1:
        hint = "" if len({job.name for job in chosen}) < len(chosen) else "; choose one with --job NAME"
        raise ManifestError(f"{chosen[0].source}: expected one job, found {_names(chosen)}{hint}")
    return chosen[0], [document for document in documents if document.kind not in _KIND_NAMES]


def _names(jobs: Sequence[Document]) -> str:
    return ", ".join(job.name or "one without a name" for job in jobs)


def _no_job(documents: Sequence[Document], source: str) -> ManifestError:
    if not documents:
        return ManifestError(f"{source}: expected {_EXPECTED}, found no document")
    for document in documents:
        hint = _hint(document)
        if hint:
            return ManifestError(f"{document.source}: expected {_EXPECTED}, found {document}: {hint}")
    found = ", ".join(str(document) for document in documents)
    return ManifestError(f"{documents[0].source}: expected {_EXPECTED}, found {found}")


def _hint(document: Document) -> str:
    if document.kind in _OTHER_FRAMEWORKS:
        return "a job of another framework"
    if document.kind in _KUBERNETES_ONLY:
        return "it runs on Kubernetes alone; write the job as a TFJob"
    if document.kind in RUNTIME_KINDS:
        return "it runs nothing by itself; add a TrainJob whose spec.runtimeRef names it"
    if document.kind == "Experiment":
        return _experiment_hint(document)
    return ""


def _experiment_hint(document: Document) -> str:
    """Katib's Experiment has a TFJob within, with references to be filled in."""
    parameters: Any = document.value
    for key in ("spec", "trialTemplate", "trialParameters"):
        parameters = parameters.get(key) if isinstance(parameters, dict) else None
    names = [
        f"${{trialParameters.{entry['name']}}}"
        for entry in (parameters if isinstance(parameters, list) else [])
        if isinstance(entry, dict) and isinstance(entry.get("name"), str)
    ]
    values = f" and values for {', '.join(names)}" if names else ""
    return f"to run one trial, put its spec.trialTemplate.trialSpec into a file, with a metadata.name{values}"
