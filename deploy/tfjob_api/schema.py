"""The field names that the resource definitions (v1.9.4; of Trainer 2.1.0) have; the API server drops all others."""

JOB = ("apiVersion", "kind", "metadata", "spec", "status")
# By kind.
JOB_SPEC = {
    "TFJob": ("tfReplicaSpecs", "runPolicy", "successPolicy", "enableDynamicWorker"),
    "PyTorchJob": ("pytorchReplicaSpecs", "runPolicy", "elasticPolicy", "nprocPerNode"),
}

ELASTIC_POLICY = tuple("""
    maxReplicas maxRestarts metrics minReplicas nProcPerNode rdzvBackend rdzvConf rdzvHost rdzvId rdzvPort standalone
    """.split())
RDZV_CONF = ("key", "value")

RUN_POLICY = tuple("""
    activeDeadlineSeconds backoffLimit cleanPodPolicy managedBy schedulingPolicy suspend ttlSecondsAfterFinished
    """.split())

REPLICA_SPEC = ("replicas", "restartPolicy", "template")

# These are fields of a TrainJob and of its runtime.
TRAIN_JOB_SPEC = tuple("""
    annotations initializer labels managedBy podTemplateOverrides runtimeRef suspend trainer
    """.split())
RUNTIME_REFERENCE = ("apiGroup", "kind", "name")
TRAINER = ("args", "command", "env", "image", "numNodes", "numProcPerNode", "resourcesPerNode")
RUNTIME_SPEC = ("mlPolicy", "podGroupPolicy", "template")
TORCH_POLICY = ("elasticPolicy", "numProcPerNode")
JOB_SET_SPEC = tuple("""
    coordinator failurePolicy managedBy network replicatedJobs startupPolicy successPolicy suspend
    ttlSecondsAfterFinished
    """.split())
REPLICATED_JOB = ("dependsOn", "groupName", "name", "replicas", "template")
NETWORK = ("enableDNSHostnames", "publishNotReadyAddresses", "subdomain")
FAILURE_POLICY = ("maxRestarts", "restartStrategy", "rules")
FAILURE_RULE = ("action", "name", "onJobFailureReasons", "targetReplicatedJobs")
SUCCESS_POLICY = ("operator", "targetReplicatedJobs")
KUBERNETES_JOB_SPEC = tuple("""
    activeDeadlineSeconds backoffLimit backoffLimitPerIndex completionMode completions managedBy manualSelector
    maxFailedIndexes parallelism podFailurePolicy podReplacementPolicy selector successPolicy suspend template
    ttlSecondsAfterFinished
    """.split())
POD_FAILURE_RULE = ("action", "onExitCodes", "onPodConditions")
EXIT_CODES = ("containerName", "operator", "values")
POD_CONDITION = ("status", "type")

POD_TEMPLATE = ("metadata", "spec")

POD_SPEC = tuple("""
    activeDeadlineSeconds affinity automountServiceAccountToken containers dnsConfig dnsPolicy
    enableServiceLinks ephemeralContainers hostAliases hostIPC hostNetwork hostPID hostUsers hostname
    hostnameOverride imagePullSecrets initContainers nodeName nodeSelector os overhead preemptionPolicy
    priority priorityClassName readinessGates resourceClaims resources restartPolicy runtimeClassName
    schedulerName schedulingGates schedulingGroup securityContext serviceAccount serviceAccountName
    setHostnameAsFQDN shareProcessNamespace subdomain terminationGracePeriodSeconds tolerations
    topologySpreadConstraints volumes
    """.split())

CONTAINER = tuple("""
    args command env envFrom image imagePullPolicy lifecycle livenessProbe name ports readinessProbe
    resizePolicy resources restartPolicy restartPolicyRules securityContext startupProbe stdin stdinOnce
    terminationMessagePath terminationMessagePolicy tty volumeDevices volumeMounts workingDir
    """.split())

ENVIRONMENT_VARIABLE = ("name", "value", "valueFrom")
VALUE_SOURCE = ("configMapKeyRef", "fieldRef", "fileKeyRef", "resourceFieldRef", "secretKeyRef")
ENVIRONMENT_SOURCE = ("configMapRef", "prefix", "secretRef")
CONTAINER_PORT = ("containerPort", "hostIP", "hostPort", "name", "protocol")
RESOURCES = ("claims", "limits", "requests")
VOLUME_MOUNT = tuple("""
    mountPath mountPropagation name readOnly recursiveReadOnly subPath subPathExpr
    """.split())
