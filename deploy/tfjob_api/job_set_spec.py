"""Reads the JobSet of a training runtime: one Job, and the rules of both."""

from dataclasses import dataclass
from typing import Any, Dict, FrozenSet, List, Optional, Tuple

from . import schema
from .fields import FieldReader
from .job_kind import TRAIN_JOB
from .job_set import (
    BACKOFF_LIMIT,
    BACKOFF_LIMIT_EXCEEDED,
    DEADLINE_EXCEEDED,
    JOB_FAILURE_ACTIONS,
    POD_FAILURE_ACTIONS,
    POD_FAILURE_POLICY,
    JobFailureRule,
    JobSetRules,
    PodFailureRule,
)

ANCESTOR_LABEL = "trainer.kubeflow.org/trainjob-ancestor-step"
# The Job that a TrainJob's `trainer` changes, and the container in it.
NODE = TRAIN_JOB.container
# Why a Job fails, as a rule of the JobSet may say; the launcher's Jobs know the first three.
_JOB_FAILURE_REASONS = (
    BACKOFF_LIMIT_EXCEEDED,
    DEADLINE_EXCEEDED,
    POD_FAILURE_POLICY,
    "FailedIndexes",
    "MaxFailedIndexesExceeded",
)
_DISRUPTION = "DisruptionTarget"
_NOT_EMULATED = "the launcher does not do what it says"


@dataclass(frozen=True)
class JobSetSpec:
    rules: JobSetRules
    # "Never" or "OnFailure".
    restart_policy: str
    # None: the Job's parallelism is not set.
    parallelism: Optional[int]
    pod_template: Dict[str, Any]
    # The template's path.
    where: str
    # "": the JobSet's name, as the torch policy expects it.
    subdomain: str
    # Whether the pods have names that others find.
    has_host_names: bool


def read_job_set(fields: FieldReader, spec: Dict[str, Any], where: str) -> JobSetSpec:
    """`spec`: the JobSet's. ManifestError."""
    fields.warn_unknown(spec, where, schema.JOB_SET_SPEC)
    if spec.get("coordinator"):
        fields.warn(f"{where}.coordinator", "ignored locally")
    job, where_job = _read_replicated_job(fields, spec, where)
    network = fields.mapping(spec.get("network"), f"{where}.network")
    fields.warn_unknown(network, f"{where}.network", schema.NETWORK)
    _check_success_policy(fields, spec.get("successPolicy"), f"{where}.successPolicy")
    max_restarts, job_rules = _read_failure_policy(fields, spec.get("failurePolicy"), f"{where}.failurePolicy")
    fields.warn_unknown(job, where_job, schema.KUBERNETES_JOB_SPEC)
    unknown_rules = ("backoffLimitPerIndex", "managedBy", "manualSelector", "maxFailedIndexes", "selector", "successPolicy")
    fields.refuse(job, where_job, unknown_rules, _NOT_EMULATED)
    fields.choice(job.get("completionMode"), f"{where_job}.completionMode", ("Indexed",), "")
    template = fields.mapping(job.get("template"), f"{where_job}.template")
    restart_policy = _read_restart_policy(fields, template, f"{where_job}.template")
    backoff_limit = fields.count(job.get("backoffLimit"), f"{where_job}.backoffLimit")
    rules = JobSetRules(
        backoff_limit=BACKOFF_LIMIT if backoff_limit is None else backoff_limit,
        active_deadline_seconds=fields.count(job.get("activeDeadlineSeconds"), f"{where_job}.activeDeadlineSeconds"),
        pod_failure_rules=_read_pod_rules(fields, job.get("podFailurePolicy"), f"{where_job}.podFailurePolicy"),
        max_restarts=max_restarts,
        job_failure_rules=job_rules,
    )
    if rules.pod_failure_rules and restart_policy != "Never":
        what = f"it needs the pods' restartPolicy Never, found {restart_policy}"
        raise fields.error(f"{where_job}.podFailurePolicy", what)
    host_names = network.get("enableDNSHostnames")
    return JobSetSpec(
        rules=rules,
        restart_policy=restart_policy,
        parallelism=fields.count(job.get("parallelism"), f"{where_job}.parallelism"),
        pod_template=template,
        where=f"{where_job}.template",
        subdomain=fields.text(network.get("subdomain"), f"{where}.network.subdomain"),
        has_host_names=host_names is None or fields.boolean(host_names, f"{where}.network.enableDNSHostnames"),
    )


def _read_replicated_job(fields: FieldReader, spec: Dict[str, Any], where: str) -> Tuple[Dict[str, Any], str]:
    """The spec of the only Job, which is the trainer's, and its path."""
    jobs = fields.mappings(spec.get("replicatedJobs"), f"{where}.replicatedJobs")
    names = [fields.required_text(job.get("name"), f"{path}.name") for path, job in jobs]
    if names != [NODE]:
        found = ", ".join(names) or "none"
        what = f"expected one job, {NODE}, as a TrainJob's nodes are all that runs here, found {found}"
        raise fields.error(f"{where}.replicatedJobs", what)
    path, replicated = jobs[0]
    fields.warn_unknown(replicated, path, schema.REPLICATED_JOB)
    fields.refuse(replicated, path, ("dependsOn",), "there is no other job")
    number = fields.count(replicated.get("replicas"), f"{path}.replicas")
    if number not in (None, 1):
        raise fields.expected(f"{path}.replicas", "1, as Trainer does", number)
    template = fields.mapping(replicated.get("template"), f"{path}.template")
    metadata = fields.mapping(template.get("metadata"), f"{path}.template.metadata")
    where_labels = f"{path}.template.metadata.labels"
    ancestor = fields.text_map(metadata.get("labels"), where_labels).get(ANCESTOR_LABEL)
    if ancestor != "trainer":
        raise fields.expected(where_labels, f"{ANCESTOR_LABEL}: trainer, without which nothing of a TrainJob counts", ancestor)
    where_job = f"{path}.template.spec"
    return fields.mapping(template.get("spec"), where_job), where_job


def _check_success_policy(fields: FieldReader, value: Any, where: str) -> None:
    """Of one Job, All and Any are the same."""
    policy = fields.mapping(value, where)
    fields.warn_unknown(policy, where, schema.SUCCESS_POLICY)
    fields.choice(policy.get("operator"), f"{where}.operator", ("All", "Any"), "All")
    _check_targets(fields, policy, where)


def _check_targets(fields: FieldReader, policy: Dict[str, Any], where: str) -> None:
    for target in fields.texts(policy.get("targetReplicatedJobs"), f"{where}.targetReplicatedJobs"):
        fields.choice(target, f"{where}.targetReplicatedJobs", (NODE,), NODE)


def _read_failure_policy(
    fields: FieldReader, value: Any, where: str
) -> Tuple[Optional[int], Tuple[JobFailureRule, ...]]:
    """How often the JobSet starts anew, None without a policy; the rules."""
    policy = fields.mapping(value, where)
    if value is None:
        return None, ()
    fields.warn_unknown(policy, where, schema.FAILURE_POLICY)
    strategies = ("Recreate", "BlockingRecreate")
    fields.choice(policy.get("restartStrategy"), f"{where}.restartStrategy", strategies, strategies[0])
    rules = []
    for path, entry in fields.mappings(policy.get("rules"), f"{where}.rules"):
        fields.warn_unknown(entry, path, schema.FAILURE_RULE)
        _check_targets(fields, entry, path)
        action = fields.choice(
            fields.required_text(entry.get("action"), f"{path}.action"), f"{path}.action", JOB_FAILURE_ACTIONS, ""
        )
        reasons = fields.texts(entry.get("onJobFailureReasons"), f"{path}.onJobFailureReasons")
        for reason in reasons:
            fields.choice(reason, f"{path}.onJobFailureReasons", _JOB_FAILURE_REASONS, "")
        rules.append(JobFailureRule(action, reasons))
    return fields.count(policy.get("maxRestarts"), f"{where}.maxRestarts") or 0, tuple(rules)


def _read_restart_policy(fields: FieldReader, template: Dict[str, Any], where: str) -> str:
    """That of the pods, as a Job admits it."""
    pod = fields.mapping(template.get("spec"), f"{where}.spec")
    choices = ("Never", "OnFailure")
    return fields.choice(pod.get("restartPolicy"), f"{where}.spec.restartPolicy", choices, TRAIN_JOB.restart_policy)


def _read_pod_rules(fields: FieldReader, value: Any, where: str) -> Tuple[PodFailureRule, ...]:
    rules: List[PodFailureRule] = []
    for path, entry in fields.mappings(fields.mapping(value, where).get("rules"), f"{where}.rules"):
        fields.warn_unknown(entry, path, schema.POD_FAILURE_RULE)
        action = fields.choice(
            fields.required_text(entry.get("action"), f"{path}.action"), f"{path}.action", POD_FAILURE_ACTIONS, ""
        )
        if (entry.get("onExitCodes") is None) == (entry.get("onPodConditions") is None):
            found = "none" if entry.get("onExitCodes") is None else "both"
            raise fields.error(path, f"expected one of onExitCodes, onPodConditions, found {found}")
        if entry.get("onExitCodes") is not None:
            rule = _read_exit_codes(fields, action, entry["onExitCodes"], f"{path}.onExitCodes")
        else:
            rule = _read_conditions(fields, action, entry["onPodConditions"], f"{path}.onPodConditions")
        if rule is not None:
            rules.append(rule)
    return tuple(rules)


def _read_exit_codes(fields: FieldReader, action: str, value: Any, where: str) -> Optional[PodFailureRule]:
    """None: the rule is that of a container that does not run here."""
    codes = fields.mapping(value, where)
    fields.warn_unknown(codes, where, schema.EXIT_CODES)
    operator = fields.choice(
        fields.required_text(codes.get("operator"), f"{where}.operator"), f"{where}.operator", ("In", "NotIn"), ""
    )
    numbers = fields.sequence(codes.get("values"), f"{where}.values")
    values: FrozenSet[int] = frozenset(fields.count(n, f"{where}.values[{i}]") or 0 for i, n in enumerate(numbers))
    if not values or (operator == "In" and 0 in values):
        raise fields.expected(f"{where}.values", "exit codes of failures", codes.get("values"))
    container = fields.text(codes.get("containerName"), f"{where}.containerName")
    if container not in ("", NODE):
        fields.warn(f"{where}.containerName", f"the container {container} does not run here, ignored locally")
        return None
    return PodFailureRule(action, values, negated=operator == "NotIn")


def _read_conditions(fields: FieldReader, action: str, value: Any, where: str) -> Optional[PodFailureRule]:
    """None: pods here never have such a condition."""
    types = []
    for path, entry in fields.mappings(value, where):
        fields.warn_unknown(entry, path, schema.POD_CONDITION)
        kind = fields.required_text(entry.get("type"), f"{path}.type")
        if kind == _DISRUPTION and fields.text(entry.get("status"), f"{path}.status") in ("", "True"):
            types.append(kind)
        else:
            fields.warn(path, f"no pod here has the condition {kind}, ignored locally")
    return PodFailureRule(action, of_disruptions=True) if types else None
