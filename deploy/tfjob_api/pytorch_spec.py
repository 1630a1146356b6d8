"""Reads what a PyTorchJob's spec has beside replica types and runPolicy."""

from typing import Any, Dict, Optional

from . import schema
from .fields import FieldReader
from .model import ElasticPolicy
from .operator_version import OperatorVersion

_BACKENDS = ("c10d", "etcd", "etcd-v2")
_WORDS = ("auto", "cpu", "gpu")


def read_nproc_per_node(fields: FieldReader, version: OperatorVersion, spec: Dict[str, Any]) -> Optional[str]:
    """None: not set, or of no meaning to the operator. ManifestError."""
    where = "spec.nprocPerNode"
    text = fields.text(spec.get("nprocPerNode"), where)
    if spec.get("nprocPerNode") is None:
        return None
    if not version.has_torchrun_variables:
        fields.warn(where, f"dropped, operator {version} does not know it")
        return None
    if text not in _WORDS and not (text.isdecimal() and int(text) > 0):
        # The operator takes it, and torchrun does not.
        raise fields.expected(where, f"{', '.join(_WORDS)} or a number of processes, as a string", text)
    return text


def read_elastic_policy(
    fields: FieldReader, version: OperatorVersion, spec: Dict[str, Any]
) -> Optional[ElasticPolicy]:
    """None: not set, or of no meaning to the operator. ManifestError."""
    where = "spec.elasticPolicy"
    if spec.get("elasticPolicy") is None:
        return None
    if not version.knows_elastic_policy:
        fields.warn(where, f"dropped, operator {version} does not know it")
        return None
    policy = fields.mapping(spec["elasticPolicy"], where)
    fields.warn_unknown(policy, where, schema.ELASTIC_POLICY)

    def count(key: str) -> Optional[int]:
        return fields.count(policy.get(key), f"{where}.{key}")

    def text(key: str) -> Optional[str]:
        return fields.text(policy.get(key), f"{where}.{key}") or None

    if policy.get("metrics"):
        what = "on a cluster a HorizontalPodAutoscaler changes the number of workers; ignored locally"
        fields.warn(f"{where}.metrics", what)
    if policy.get("nProcPerNode") is not None and version.has_webhook:
        fields.warn(f"{where}.nProcPerNode", "spec.elasticPolicy.nProcPerNode is deprecated, use spec.nprocPerNode instead")
    backend = policy.get("rdzvBackend")
    result = ElasticPolicy(
        min_replicas=count("minReplicas"),
        max_replicas=count("maxReplicas"),
        rdzv_backend=None if backend is None else fields.choice(backend, f"{where}.rdzvBackend", _BACKENDS, ""),
        rdzv_host=text("rdzvHost"),
        rdzv_port=count("rdzvPort"),
        rdzv_id=text("rdzvId"),
        rdzv_conf=_read_conf(fields, policy.get("rdzvConf"), f"{where}.rdzvConf"),
        standalone=fields.boolean(policy.get("standalone"), f"{where}.standalone"),
        nproc_per_node=count("nProcPerNode"),
        max_restarts=count("maxRestarts"),
    )
    least, most = result.min_replicas, result.max_replicas
    if least is not None and most is not None and least > most:
        raise fields.expected(f"{where}.minReplicas", f"at most maxReplicas, {most}", least)
    return result


def _read_conf(fields: FieldReader, value: Any, where: str) -> Any:
    """ "KEY=VALUE" for each entry. An empty list ends the operator's reconciliation with a panic."""
    if value == []:
        raise fields.error(where, "expected entries with key and value, found an empty list, on which the operator panics")
    result = []
    for path, entry in fields.mappings(value, where):
        fields.warn_unknown(entry, path, schema.RDZV_CONF)
        key = fields.required_text(entry.get("key"), f"{path}.key")
        result.append(f"{key}={fields.text(entry.get('value'), f'{path}.value')}")
    return tuple(result)
