"""Settings -> the objects that a cluster runs: a ConfigMap, a Secret, ServiceAccounts, a NetworkPolicy, a
PodDisruptionBudget, the job, and a Service for the dashboard."""

import secrets
from typing import Any, Dict, List, Sequence

from tfjob_api.fields import ManifestError
from tfjob_api.job_kind import JOB_KINDS
from tfjob_api.model import API_GROUP, Manifest
from tfjob_api.naming import LABEL_PREFIX
from tfjob_api.reader import ReadOptions, read_documents

from .errors import InputError
from .pod_template import (
    CONFIG_FILE,
    DASHBOARD_PORT,
    DASHBOARD_PORT_NAME,
    METRICS_PORT,
    TOKEN_KEY,
    account_name,
    config_map_name,
    job_secret_name,
    render_template,
)
from .settings import JobSettings, check_settings

MANAGED_BY = {"app.kubernetes.io/managed-by": "keelson"}
MANAGED_BY_SELECTOR = ",".join(f"{key}={value}" for key, value in MANAGED_BY.items())


def dashboard_name(job_name: str) -> str:
    return f"{job_name}-dashboard"


def render(settings: JobSettings) -> List[Dict[str, Any]]:
    """Returns the ConfigMap, the Secret, the ServiceAccounts, the NetworkPolicy, the PodDisruptionBudget, the job
    and the Service; objects that are not wanted are left out. InputError."""
    check_settings(settings)
    documents = [_config_map(settings)] if settings.config else []
    if settings.has_job_token and not settings.job_secret:
        documents.append(_job_secret(settings))
    if not settings.service_account:
        documents += [_service_account(settings, replica_type) for replica_type in _replicas(settings)]
    documents.append(_network_policy(settings))
    if settings.disruption_budget:
        documents.append(_disruption_budget(settings))
    documents.append(_job(settings))
    if settings.dashboard:
        documents.append(_dashboard_service(settings))
    return documents


def check_documents(documents: Sequence[Any], source: str = "submit") -> Manifest:
    """Refuses a job that the operator would refuse, or that could never end. InputError."""
    try:
        return read_documents(documents, source, ReadOptions())
    except ManifestError as error:
        raise InputError(str(error)) from error


def find_job(documents: Sequence[Dict[str, Any]]) -> Dict[str, Any]:
    return next(document for document in documents if document["kind"] in JOB_KINDS)


def _metadata(settings: JobSettings, name: str) -> Dict[str, Any]:
    namespace = {"namespace": settings.namespace} if settings.namespace else {}
    return {"name": name, **namespace, "labels": dict(MANAGED_BY)}


def _config_map(settings: JobSettings) -> Dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": _metadata(settings, config_map_name(settings.name)),
        "data": {CONFIG_FILE: settings.config},
    }


def _job_secret(settings: JobSettings) -> Dict[str, Any]:
    """Another token for each job."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": _metadata(settings, job_secret_name(settings)),
        "stringData": {TOKEN_KEY: secrets.token_hex(32)},
    }


def _service_account(settings: JobSettings, replica_type: str) -> Dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": _metadata(settings, account_name(settings, replica_type)),
        "automountServiceAccountToken": False,
    }


def _job_pods(settings: JobSettings) -> Dict[str, Any]:
    """A selector of the job's pods."""
    return {"matchLabels": {f"{LABEL_PREFIX}job-name": settings.name}}


def _network_policy(settings: JobSettings) -> Dict[str, Any]:
    """The roles are reached by the job's own pods, metrics from the cluster, the page from its namespace."""
    rules = [
        {"from": [{"podSelector": _job_pods(settings)}], "ports": [{"port": settings.kind.port}]},
        {"from": [{"namespaceSelector": {}}], "ports": [{"port": METRICS_PORT}]},
    ]
    if settings.dashboard:
        rules.append({"from": [{"podSelector": {}}], "ports": [{"port": DASHBOARD_PORT}]})
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": _metadata(settings, settings.name),
        "spec": {"podSelector": _job_pods(settings), "policyTypes": ["Ingress"], "ingress": rules},
    }


def _disruption_budget(settings: JobSettings) -> Dict[str, Any]:
    """No pod is evicted whose loss fails the job: with dynamic workers all but those."""
    replicas, selector = _replicas(settings), _job_pods(settings)
    if settings.has_dynamic_workers:
        del replicas["Worker"]
        workers = {"key": f"{LABEL_PREFIX}replica-type", "operator": "NotIn", "values": ["worker"]}
        selector = {**selector, "matchExpressions": [workers]}
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": _metadata(settings, settings.name),
        # A whole number: the cluster cannot ask a TFJob how many pods it has.
        "spec": {"minAvailable": sum(replicas.values()), "selector": selector},
    }


def _dashboard_service(settings: JobSettings) -> Dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _metadata(settings, dashboard_name(settings.name)),
        "spec": {
            "selector": {
                f"{LABEL_PREFIX}job-name": settings.name,
                f"{LABEL_PREFIX}replica-type": "evaluator",
            },
            "ports": [{"name": "http", "port": 80, "targetPort": DASHBOARD_PORT_NAME}],
        },
    }


def _replicas(settings: JobSettings) -> Dict[str, int]:
    """The replica types that the job has, and their numbers."""
    replicas = {
        settings.kind.leader_types[0]: 1 if settings.chief else 0,
        "PS": settings.ps,
        "Worker": settings.workers,
        "Evaluator": 1 if settings.has_evaluator else 0,
    }
    return {replica_type: number for replica_type, number in replicas.items() if number > 0}


def _job(settings: JobSettings) -> Dict[str, Any]:
    spec: Dict[str, Any] = {"runPolicy": _run_policy(settings)}
    if settings.has_dynamic_workers:
        spec["enableDynamicWorker"] = True
    spec[settings.kind.specs_field] = {
        replica_type: _replica_spec(settings, replica_type, number)
        for replica_type, number in _replicas(settings).items()
    }
    return {
        "apiVersion": f"{API_GROUP}/v1",
        "kind": settings.kind.name,
        "metadata": _metadata(settings, settings.name),
        "spec": spec,
    }


def _run_policy(settings: JobSettings) -> Dict[str, Any]:
    limits = {
        "ttlSecondsAfterFinished": settings.ttl_seconds,
        "activeDeadlineSeconds": settings.deadline_seconds,
        "backoffLimit": settings.backoff_limit,
    }
    set_limits = {name: value for name, value in limits.items() if value is not None}
    return {"cleanPodPolicy": settings.clean_pod_policy, **set_limits}


def _replica_spec(settings: JobSettings, replica_type: str, replicas: int) -> Dict[str, Any]:
    default_policy = "OnFailure" if replica_type == "Evaluator" else "ExitCode"
    return {
        "replicas": replicas,
        "restartPolicy": settings.restart_policy or default_policy,
        "template": render_template(settings, replica_type),
    }
