"""The pod of each role.

The manifests below deploy/ have it too, with comments that say why: tools/render_manifests puts it there.
"""

import re
from typing import Any, Dict, List, Sequence

from tfjob_api.job_kind import TF_JOB

from .errors import InputError
from .settings import CONFIG_DIR, JOB_TOKEN_DIR, MODEL_DIR, TOKEN_DIR, JobSettings, Resources

CONFIG_FILE = "job.textproto"
METRICS_PORT = 9090
DASHBOARD_PORT = 6006
DASHBOARD_PORT_NAME = "dashboard"
TOKEN_KEY = "token"

_RESOURCES = {
    "chief": Resources("250m", "512Mi"),
    "ps": Resources("250m", "512Mi"),
    "worker": Resources("1", "1Gi"),
    "evaluator": Resources("500m", "1Gi"),
}
# Logs, which the node keeps to some tens of MB; nothing else of the root file system can be written.
_STORAGE_REQUEST, _STORAGE_LIMIT = "64Mi", "1Gi"
# With it worker 0 writes histograms of its gradients into the model directory.
_HISTOGRAMS = re.compile(r"^[^#\n]*\bhistogram_steps\s*:\s*[1-9]", re.MULTILINE)
# Longer than a snapshot takes.
_GRACE_SECONDS = 120
# The image's user; the group makes volumes writable for it.
_USER = 65532


def config_map_name(job_name: str) -> str:
    return f"{job_name}-config"


def account_name(settings: JobSettings, replica_type: str) -> str:
    """The ServiceAccount of a role."""
    return settings.service_account or f"{settings.name}-{replica_type.lower()}"


def render_template(settings: JobSettings, replica_type: str) -> Dict[str, Any]:
    """`replica_type` is "PS" and so on."""
    return {
        "metadata": {
            "labels": {"app.kubernetes.io/name": "keelson"},
            "annotations": {
                "sidecar.istio.io/inject": "false",
                "prometheus.io/scrape": "true",
                "prometheus.io/port": str(METRICS_PORT),
            },
        },
        "spec": _pod_spec(settings, replica_type),
    }


def _pod_spec(settings: JobSettings, replica_type: str) -> Dict[str, Any]:
    pod: Dict[str, Any] = {
        "terminationGracePeriodSeconds": _GRACE_SECONDS,
        "serviceAccountName": account_name(settings, replica_type),
        # No role asks the API server for anything.
        "automountServiceAccountToken": False,
    }
    if settings.image_pull_secrets:
        pod["imagePullSecrets"] = [{"name": name} for name in settings.image_pull_secrets]
    if settings.node_selector:
        pod["nodeSelector"] = dict(settings.node_selector)
    tolerations = _tolerations(settings, replica_type)
    if tolerations:
        pod["tolerations"] = tolerations
    pod["securityContext"] = {
        "runAsNonRoot": True,
        "runAsUser": _USER,
        "runAsGroup": _USER,
        "fsGroup": _USER,
        "fsGroupChangePolicy": "OnRootMismatch",
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    pod["containers"] = [_container(settings, replica_type)]
    pod["volumes"] = _volumes(settings, replica_type)
    return pod


def _tolerations(settings: JobSettings, replica_type: str) -> List[Dict[str, Any]]:
    result: List[Dict[str, Any]] = []
    if settings.trains(replica_type) and settings.gpus:
        result.append({"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"})
    for toleration in settings.tolerations:
        entry = {"key": toleration.key, "operator": "Equal" if toleration.value else "Exists"}
        if toleration.value:
            entry["value"] = toleration.value
        if toleration.effect:
            entry["effect"] = toleration.effect
        result.append(entry)
    return result


def _container(settings: JobSettings, replica_type: str) -> Dict[str, Any]:
    ports = [
        {"name": settings.kind.port_name, "containerPort": settings.kind.port},
        {"name": "metrics", "containerPort": METRICS_PORT},
    ]
    if settings.dashboard and replica_type == "Evaluator":
        ports.append({"name": DASHBOARD_PORT_NAME, "containerPort": DASHBOARD_PORT})
    container: Dict[str, Any] = {
        "name": settings.kind.container,
        "image": settings.image,
        "imagePullPolicy": "IfNotPresent",
        "command": [settings.kind.programs[replica_type]],
        "args": _arguments(settings, replica_type),
        "ports": ports,
    }
    if settings.environment:
        container["env"] = [{"name": n, "value": v} for n, v in settings.environment.items()]
    container["resources"] = _resources(settings, replica_type)
    container["securityContext"] = {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    container["volumeMounts"] = _mounts(settings, replica_type)
    return container


def _arguments(settings: JobSettings, replica_type: str) -> List[str]:
    leads = _leads(settings, replica_type)
    result = []
    if settings.config:
        result.append(f"--config={CONFIG_DIR}/{CONFIG_FILE}")
    result.append(f"--model_dir={settings.model_dir}")
    if settings.data_claim:
        result.append(f"--data_dir={settings.data_claim.path}")
    if settings.training_steps is not None:
        result.append(f"--training_steps={settings.training_steps}")
    if settings.model_claim is None and (settings.ps or settings.is_collective) and leads:
        result.append("--checkpoint_writer=chief")
    if settings.has_dynamic_workers:
        result += _dynamic_hosts(settings, replica_type)
    if settings.trains(replica_type) and settings.gpus:
        devices = ",".join(str(i) for i in range(settings.gpus))
        # The device is not "auto": a worker without its GPUs must fail instead of slowing the others down.
        result.append(f"--device=cuda:{devices}")
    if settings.dashboard and replica_type == "Evaluator":
        result.append(f"--dashboard_port={DASHBOARD_PORT}")
    if settings.has_job_token:
        result.append(f"--job_token_file={JOB_TOKEN_DIR}/{TOKEN_KEY}")
    if _asks_for_token(settings, replica_type):
        result.append(f"--auth_token_file={TOKEN_DIR}/{TOKEN_KEY}")
    result.append(f"--metrics_port={METRICS_PORT}")
    _refuse_repetition(result, settings.arguments)
    return result + list(settings.arguments)


def _refuse_repetition(own: Sequence[str], given: Sequence[str]) -> None:
    """The programs take no flag twice."""
    values = dict(argument.partition("=")[::2] for argument in own)
    for argument in given:
        name = argument.partition("=")[0]
        if name in values:
            raise InputError(f"{argument} after --: submit gives {name}={values[name]} itself, by its own flags")


def _leads(settings: JobSettings, replica_type: str) -> bool:
    return replica_type == settings.leader_type


def _asks_for_token(settings: JobSettings, replica_type: str) -> bool:
    """Whether the role accepts changes of the job: the leader, and the dashboard, which forwards them."""
    serves = settings.dashboard and replica_type == "Evaluator"
    return bool(settings.auth_secret) and (serves or _leads(settings, replica_type))


def _dynamic_hosts(settings: JobSettings, replica_type: str) -> List[str]:
    """Adds the hosts that a dynamic job's TF_CONFIG lacks: the chief's and the evaluator's has none."""
    name = settings.name
    chief = f"--chief_hosts={name}-chief-0:{TF_JOB.port}"
    if replica_type == "Evaluator":
        return [chief]
    if replica_type != "Chief":
        return []
    servers = f"--ps_hosts={name}-ps-{{0..{settings.ps - 1}}}:{TF_JOB.port}"
    evaluator = f"--evaluator_hosts={name}-evaluator-0:{TF_JOB.port}"
    return [servers, chief, evaluator] if settings.has_evaluator else [servers, chief]


def _resources(settings: JobSettings, replica_type: str) -> Dict[str, Any]:
    # A leader that trains needs what workers need.
    role = "worker" if settings.trains(replica_type) else replica_type.lower()
    given, default = settings.resources.get(role, Resources()), _RESOURCES[role]
    cpu, memory = given.cpu or default.cpu, given.memory or default.memory
    requests: Dict[str, Any] = {"cpu": cpu, "memory": memory}
    limits: Dict[str, Any] = {"memory": memory}
    if settings.trains(replica_type) and settings.gpus:
        limits["nvidia.com/gpu"] = settings.gpus
    elif settings.trains(replica_type):
        # The limit is also the number of compute threads.
        limits = {"cpu": cpu, **limits}
    if settings.model_claim or not _leads(settings, replica_type):
        # Without a claim the leader's snapshots are in the pod's own storage, of a size that nobody knows here.
        requests["ephemeral-storage"] = _STORAGE_REQUEST
        limits["ephemeral-storage"] = _STORAGE_LIMIT
    return {"requests": requests, "limits": limits}


def _writes_model(settings: JobSettings, replica_type: str) -> bool:
    """Whoever has variables, and the leader, write snapshots and the evaluator its results; other workers look whether
    the job is done."""
    leads = _leads(settings, replica_type) or settings.is_collective
    return replica_type != "Worker" or leads or _HISTOGRAMS.search(settings.config) is not None


def _mounts(settings: JobSettings, replica_type: str) -> List[Dict[str, Any]]:
    model_path = settings.model_claim.path if settings.model_claim else MODEL_DIR
    result: List[Dict[str, Any]] = []
    if settings.config:
        result.append({"name": "config", "mountPath": CONFIG_DIR, "readOnly": True})
    model = {"name": "model", "mountPath": model_path}
    result.append(model if _writes_model(settings, replica_type) else {**model, "readOnly": True})
    if settings.data_claim:
        result.append({"name": "data", "mountPath": settings.data_claim.path, "readOnly": True})
    for i, secret in enumerate(settings.secrets):
        result.append({"name": f"secret-{i}", "mountPath": secret.path, "readOnly": True})
    if settings.has_job_token:
        result.append({"name": "job-token", "mountPath": JOB_TOKEN_DIR, "readOnly": True})
    if _asks_for_token(settings, replica_type):
        result.append({"name": "token", "mountPath": TOKEN_DIR, "readOnly": True})
    return result


def _volumes(settings: JobSettings, replica_type: str) -> List[Dict[str, Any]]:
    if settings.model_claim:
        model: Dict[str, Any] = {"persistentVolumeClaim": {"claimName": settings.model_claim.name}}
    else:
        model = {"emptyDir": {}}
    result: List[Dict[str, Any]] = []
    if settings.config:
        result.append({"name": "config", "configMap": {"name": config_map_name(settings.name)}})
    result.append({"name": "model", **model})
    if settings.data_claim:
        claim = {"claimName": settings.data_claim.name, "readOnly": True}
        result.append({"name": "data", "persistentVolumeClaim": claim})
    for i, secret in enumerate(settings.secrets):
        result.append({"name": f"secret-{i}", "secret": {"secretName": secret.name}})
    if settings.has_job_token:
        result.append(_secret_volume("job-token", job_secret_name(settings)))
    if _asks_for_token(settings, replica_type):
        result.append(_secret_volume("token", settings.auth_secret))
    return result


def _secret_volume(name: str, secret: str) -> Dict[str, Any]:
    """For the pod's group alone."""
    return {"name": name, "secret": {"secretName": secret, "defaultMode": 0o440}}


def job_secret_name(settings: JobSettings) -> str:
    return settings.job_secret or f"{settings.name}-job-token"
