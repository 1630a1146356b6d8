"""Strict schemas of the manifests' kinds.

TFJob, JobSet and Trainer publish theirs, and in them those of pods, Jobs, claims and label selectors. Of the
rest, the part that our manifests use stands here, with the names and types of the Go sources (kubernetes/api,
prometheus-operator v1, openshift/api template v1).
"""

from functools import lru_cache
from typing import Any, Dict, Mapping, Sequence, Tuple

from published_schemas import part, published_schemas
from reduce_crds import METADATA, Schema

STRING: Schema = {"type": "string"}
INTEGER: Schema = {"type": "integer"}
COUNT: Schema = {"type": "integer", "minimum": 0}
BOOLEAN: Schema = {"type": "boolean"}
INT_OR_STRING: Schema = {"anyOf": [INTEGER, STRING]}


def fields(required: Sequence[str] = (), /, **properties: Schema) -> Schema:
    """An object with these fields alone."""
    return {
        "type": "object",
        "additionalProperties": False,
        "required": list(required),
        "properties": properties,
    }


def list_of(item: Schema) -> Schema:
    return {"type": "array", "items": item, "minItems": 1}


def map_of(item: Schema) -> Schema:
    return {"type": "object", "additionalProperties": item}


def one_of(*values: str) -> Schema:
    return {"enum": list(values)}


def _object(api_version: str, kind: str, required: Sequence[str] = ("spec",), **parts: Schema) -> Schema:
    return fields(
        ["apiVersion", "kind", "metadata", *required],
        apiVersion={"const": api_version},
        kind={"const": kind},
        metadata={**METADATA, "required": ["name"]},
        **parts,
    )


_CONFIG_MAP = _object(
    "v1", "ConfigMap", (), data=map_of(STRING), binaryData=map_of(STRING), immutable=BOOLEAN
)
_SECRET = _object(
    "v1", "Secret", (), data=map_of(STRING), stringData=map_of(STRING), type=STRING, immutable=BOOLEAN
)
_SERVICE = _object(
    "v1",
    "Service",
    spec=fields(
        ["selector", "ports"],
        type=one_of("ClusterIP", "NodePort", "LoadBalancer"),
        clusterIP=STRING,
        publishNotReadyAddresses=BOOLEAN,
        selector=map_of(STRING),
        ports=list_of(
            fields(
                ["port"],
                name=STRING,
                port=INTEGER,
                targetPort=INT_OR_STRING,
                protocol=one_of("TCP", "UDP", "SCTP"),
            )
        ),
    ),
)
_SERVICE_ACCOUNT = _object("v1", "ServiceAccount", (), automountServiceAccountToken=BOOLEAN)
_POLICY_PORTS = list_of(
    fields(port=INT_OR_STRING, endPort=INTEGER, protocol=one_of("TCP", "UDP", "SCTP"))
)
_INGRESS_BACKEND = fields(
    ["service"],
    service=fields(["name", "port"], name=STRING, port=fields(name=STRING, number=INTEGER)),
)
_INGRESS = _object(
    "networking.k8s.io/v1",
    "Ingress",
    spec=fields(
        ["rules"],
        ingressClassName=STRING,
        tls=list_of(fields(hosts=list_of(STRING), secretName=STRING)),
        rules=list_of(
            fields(
                ["http"],
                host=STRING,
                http=fields(
                    ["paths"],
                    paths=list_of(
                        fields(
                            ["pathType", "backend"],
                            path=STRING,
                            pathType=one_of("Exact", "Prefix", "ImplementationSpecific"),
                            backend=_INGRESS_BACKEND,
                        )
                    ),
                ),
            )
        ),
    ),
)
_TEMPLATE = _object(
    "template.openshift.io/v1",
    "Template",
    ("objects",),
    labels=map_of(STRING),
    message=STRING,
    parameters=list_of(
        fields(
            ["name"],
            name={"type": "string", "pattern": "^[A-Za-z0-9_]+$"},
            displayName=STRING,
            description=STRING,
            value=STRING,
            required=BOOLEAN,
        )
    ),
    # Validated as what they are when the parameters are filled in.
    objects=list_of({"type": "object"}),
)


@lru_cache(maxsize=None)
def kinds() -> Mapping[Tuple[str, str], Schema]:
    """(apiVersion, kind) -> schema."""
    published = published_schemas()
    jobset = published["jobset.x-k8s.io/v1alpha2", "JobSet"]
    pod_template = part(
        published["kubeflow.org/v1", "TFJob"], "spec", "tfReplicaSpecs", "*", "template"
    )
    pod = part(pod_template, "spec")
    selector = part(pod, "topologySpreadConstraints", "*", "labelSelector")
    schemas = [
        _CONFIG_MAP,
        _SECRET,
        _SERVICE,
        _SERVICE_ACCOUNT,
        _INGRESS,
        _TEMPLATE,
        *_selecting_kinds(selector),
        _object(
            "v1",
            "PersistentVolumeClaim",
            spec=part(pod, "volumes", "*", "ephemeral", "volumeClaimTemplate", "spec"),
        ),
        _object("v1", "Pod", spec=pod),
        _object("batch/v1", "Job", spec=part(jobset, "spec", "replicatedJobs", "*", "template", "spec")),
        *_controllers(selector, pod_template),
    ]
    by_kind: Dict[Tuple[str, str], Schema] = {_key(schema["properties"]): schema for schema in schemas}
    return {**by_kind, **published}


def _selecting_kinds(selector: Schema) -> Sequence[Schema]:
    peers = list_of(
        fields(
            podSelector=selector,
            namespaceSelector=selector,
            ipBlock=fields(["cidr"], cidr=STRING, **{"except": list_of(STRING)}),
        )
    )
    return [
        _object(
            "networking.k8s.io/v1",
            "NetworkPolicy",
            spec=fields(
                ["podSelector"],
                podSelector=selector,
                policyTypes=list_of(one_of("Ingress", "Egress")),
                ingress=list_of(fields(**{"from": peers, "ports": _POLICY_PORTS})),
                egress=list_of(fields(to=peers, ports=_POLICY_PORTS)),
            ),
        ),
        _object(
            "policy/v1",
            "PodDisruptionBudget",
            spec=fields(
                ["selector"],
                selector=selector,
                maxUnavailable=INT_OR_STRING,
                minAvailable=INT_OR_STRING,
                unhealthyPodEvictionPolicy=one_of("IfHealthyBudget", "AlwaysAllow"),
            ),
        ),
        _object(
            "monitoring.coreos.com/v1",
            "PodMonitor",
            spec=fields(
                ["selector", "podMetricsEndpoints"],
                jobLabel=STRING,
                podTargetLabels=list_of(STRING),
                namespaceSelector=fields(any=BOOLEAN, matchNames=list_of(STRING)),
                selector=selector,
                podMetricsEndpoints=list_of(
                    fields(
                        ["port"],
                        port=STRING,
                        path=STRING,
                        interval=STRING,
                        scrapeTimeout=STRING,
                        scheme=STRING,
                    )
                ),
            ),
        ),
    ]


def _controllers(selector: Schema, pod_template: Schema) -> Sequence[Schema]:
    return [
        _object(
            "apps/v1",
            "StatefulSet",
            spec=fields(
                ["selector", "serviceName", "template"],
                replicas=COUNT,
                serviceName=STRING,
                selector=selector,
                podManagementPolicy=one_of("OrderedReady", "Parallel"),
                template=pod_template,
            ),
        ),
        _object(
            "apps/v1",
            "Deployment",
            spec=fields(
                ["selector", "template"], replicas=COUNT, selector=selector, template=pod_template
            ),
        ),
    ]


def _key(properties: Mapping[str, Any]) -> Tuple[str, str]:
    return properties["apiVersion"]["const"], properties["kind"]["const"]
