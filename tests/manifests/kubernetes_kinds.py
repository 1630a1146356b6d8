"""Strict schemas of the kinds beside TFJob: the part of each that our manifests use.

Names and types are those of the kinds' Go sources (kubernetes/api, kubernetes-sigs/jobset v1alpha2,
kubeflow/trainer v1alpha1, prometheus-operator v1, openshift/api template v1).
"""

from functools import lru_cache
from typing import Any, Mapping, Sequence, Tuple

from strict_schema import METADATA, Schema, pod_template_schema, tfjob_schema

STRING: Schema = {"type": "string"}
INTEGER: Schema = {"type": "integer"}
COUNT: Schema = {"type": "integer", "minimum": 0}
BOOLEAN: Schema = {"type": "boolean"}
INT_OR_STRING: Schema = {"anyOf": [INTEGER, STRING]}
QUANTITY: Schema = {"anyOf": [INTEGER, {"type": "string", "pattern": r"^[0-9.]+(m|[kMGTPE]i?|)$"}]}


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


_SELECTOR = fields(
    matchLabels=map_of(STRING),
    matchExpressions=list_of(
        fields(
            ["key", "operator"],
            key=STRING,
            operator=one_of("In", "NotIn", "Exists", "DoesNotExist"),
            values=list_of(STRING),
        )
    ),
)

_RESOURCES = fields(requests=map_of(QUANTITY), limits=map_of(QUANTITY))

_CONFIG_MAP = _object(
    "v1", "ConfigMap", (), data=map_of(STRING), binaryData=map_of(STRING), immutable=BOOLEAN
)
_SECRET = _object(
    "v1", "Secret", (), data=map_of(STRING), stringData=map_of(STRING), type=STRING, immutable=BOOLEAN
)
_CLAIM = _object(
    "v1",
    "PersistentVolumeClaim",
    spec=fields(
        ["accessModes", "resources"],
        accessModes=list_of(
            one_of("ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod")
        ),
        resources={**_RESOURCES, "required": ["requests"]},
        storageClassName=STRING,
        volumeName=STRING,
    ),
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
_PEERS = list_of(
    fields(
        podSelector=_SELECTOR,
        namespaceSelector=_SELECTOR,
        ipBlock=fields(["cidr"], cidr=STRING, **{"except": list_of(STRING)}),
    )
)
_POLICY_PORTS = list_of(
    fields(port=INT_OR_STRING, endPort=INTEGER, protocol=one_of("TCP", "UDP", "SCTP"))
)
_NETWORK_POLICY = _object(
    "networking.k8s.io/v1",
    "NetworkPolicy",
    spec=fields(
        ["podSelector"],
        podSelector=_SELECTOR,
        policyTypes=list_of(one_of("Ingress", "Egress")),
        ingress=list_of(fields(**{"from": _PEERS, "ports": _POLICY_PORTS})),
        egress=list_of(fields(to=_PEERS, ports=_POLICY_PORTS)),
    ),
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
_POD_MONITOR = _object(
    "monitoring.coreos.com/v1",
    "PodMonitor",
    spec=fields(
        ["selector", "podMetricsEndpoints"],
        jobLabel=STRING,
        podTargetLabels=list_of(STRING),
        namespaceSelector=fields(any=BOOLEAN, matchNames=list_of(STRING)),
        selector=_SELECTOR,
        podMetricsEndpoints=list_of(
            fields(["port"], port=STRING, path=STRING, interval=STRING, scrapeTimeout=STRING, scheme=STRING)
        ),
    ),
)
_POD_FAILURE_RULE = fields(
    ["action"],
    action=one_of("FailJob", "FailIndex", "Ignore", "Count"),
    onExitCodes=fields(
        ["operator", "values"],
        containerName=STRING,
        operator=one_of("In", "NotIn"),
        values=list_of({"type": "integer", "minimum": 1, "maximum": 255}),
    ),
    onPodConditions=list_of(fields(["type"], type=STRING, status=STRING)),
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
_TRAIN_JOB = _object(
    "trainer.kubeflow.org/v1alpha1",
    "TrainJob",
    spec=fields(
        ["runtimeRef"],
        runtimeRef=fields(["name"], name=STRING, apiGroup=STRING, kind=STRING),
        trainer=fields(
            image=STRING,
            command=list_of(STRING),
            args=list_of(STRING),
            env=list_of(fields(["name"], name=STRING, value=STRING)),
            numNodes=COUNT,
            resourcesPerNode=_RESOURCES,
        ),
        suspend=BOOLEAN,
        activeDeadlineSeconds=COUNT,
        managedBy=STRING,
    ),
)


def _job_spec(pod_template: Schema) -> Schema:
    return fields(
        ["template"],
        completionMode=one_of("Indexed", "NonIndexed"),
        completions=COUNT,
        parallelism=COUNT,
        backoffLimit=COUNT,
        activeDeadlineSeconds=COUNT,
        ttlSecondsAfterFinished=COUNT,
        suspend=BOOLEAN,
        podFailurePolicy=fields(["rules"], rules=list_of(_POD_FAILURE_RULE)),
        template=pod_template,
    )


def _jobset_spec(pod_template: Schema) -> Schema:
    replicated_job = fields(
        ["name", "template"],
        name=STRING,
        replicas=COUNT,
        dependsOn=list_of(fields(["name", "status"], name=STRING, status=one_of("Ready", "Complete"))),
        template=fields(["spec"], metadata=METADATA, spec=_job_spec(pod_template)),
    )
    return fields(
        ["replicatedJobs"],
        replicatedJobs=list_of(replicated_job),
        network=fields(enableDNSHostnames=BOOLEAN, subdomain=STRING, publishNotReadyAddresses=BOOLEAN),
        successPolicy=fields(
            ["operator"], operator=one_of("All", "Any"), targetReplicatedJobs=list_of(STRING)
        ),
        failurePolicy=fields(maxRestarts=COUNT),
        ttlSecondsAfterFinished=COUNT,
        suspend=BOOLEAN,
    )


@lru_cache(maxsize=None)
def kinds() -> Mapping[Tuple[str, str], Schema]:
    """(apiVersion, kind) -> schema. Needs the CRD, for the pods."""
    pod_template = pod_template_schema()
    schemas = [
        _CONFIG_MAP,
        _SECRET,
        _CLAIM,
        _SERVICE,
        _SERVICE_ACCOUNT,
        _NETWORK_POLICY,
        _INGRESS,
        _POD_MONITOR,
        _TEMPLATE,
        _TRAIN_JOB,
        _object("v1", "Pod", spec=pod_template["properties"]["spec"]),
        _object("batch/v1", "Job", spec=_job_spec(pod_template)),
        _object(
            "apps/v1",
            "StatefulSet",
            spec=fields(
                ["selector", "serviceName", "template"],
                replicas=COUNT,
                serviceName=STRING,
                selector=_SELECTOR,
                podManagementPolicy=one_of("OrderedReady", "Parallel"),
                template=pod_template,
            ),
        ),
        _object(
            "apps/v1",
            "Deployment",
            spec=fields(
                ["selector", "template"], replicas=COUNT, selector=_SELECTOR, template=pod_template
            ),
        ),
        _object("jobset.x-k8s.io/v1alpha2", "JobSet", spec=_jobset_spec(pod_template)),
        _object(
            "trainer.kubeflow.org/v1alpha1",
            "ClusterTrainingRuntime",
            spec=fields(
                ["template"],
                mlPolicy=fields(numNodes=COUNT),
                template=fields(["spec"], metadata=METADATA, spec=_jobset_spec(pod_template)),
            ),
        ),
    ]
    by_kind = {_key(schema["properties"]): schema for schema in schemas}
    by_kind["kubeflow.org/v1", "TFJob"] = tfjob_schema()
    return by_kind


def _key(properties: Mapping[str, Any]) -> Tuple[str, str]:
    return properties["apiVersion"]["const"], properties["kind"]["const"]
