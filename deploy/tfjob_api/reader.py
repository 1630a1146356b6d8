"""Manifest files -> Manifest: the job, what stands beside it, and what there is to say about them."""

import copy
import random
from dataclasses import dataclass, field, replace
from typing import Any, Dict, List, Mapping, Optional, Sequence

from . import hints, legacy, lint, schema
from .admission import Admission
from .documents import Document, load_files, source_name, take_apart
from .fields import FieldReader
from .job_kind import JOB_KINDS, PYTORCH_JOB, TF_JOB, TRAIN_JOB, JobKind
from .model import (
    ADDED_SERVERS,
    CLEAN_POD_POLICIES,
    DEFAULT_NAMESPACE,
    RESTART_POLICIES,
    Manifest,
    ReplicaSpec,
    RunPolicy,
    TrainingJob,
)
from .objects import read_objects
from .operator_pod import without_operators_variables
from .operator_version import NEWEST, OperatorVersion
from .pod_rules import label_warnings
from .pod_template import PodTemplateReader
from .pytorch_spec import read_elastic_policy, read_nproc_per_node
from .selection import select_job
from .template import expand_templates
from .trainjob_admission import check_train_job
from .trainjob_lint import train_job_warnings
from .trainjob_reader import TrainJobReader, with_nodes
from .trainjob_runtime import find_runtime, read_runtime

# The characters of which the API server makes generated names.
_SUFFIX_CHARACTERS = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX_LENGTH = 5
# What a TrainJob's manifest has in place of a version; its controller is another one.
_NEWEST = OperatorVersion.parse(NEWEST)


@dataclass(frozen=True)
class ReadOptions:
    # The parameters of Templates.
    parameters: Mapping[str, str] = field(default_factory=dict)
    # Replica type -> number, in place of the manifest's; PS may be added, or left out by 0.
    replicas: Mapping[str, int] = field(default_factory=dict)
    # None: the newest that the manifest's apiVersion was made for.
    version: Optional[OperatorVersion] = None
    # The name of the job, if the files have several; "": the only one.
    job_name: str = ""
    # Policies directly under spec count in v1 too; False: they are dropped, as operators from 1.2 on do.
    honour_misplaced_policies: bool = True


def read_manifest(paths: Sequence[str], options: ReadOptions = ReadOptions()) -> Manifest:
    """Reads the files as one; "-" is standard input. ManifestError."""
    return _read(load_files(paths), source_name(paths[0]), options)


def read_documents(documents: Sequence[Any], source: str, options: ReadOptions = ReadOptions()) -> Manifest:
    """The same for documents in memory. `source` is named in errors instead of a file. ManifestError."""
    return _read(take_apart(documents, source), source, options)


def _read(documents: List[Document], source: str, options: ReadOptions) -> Manifest:
    documents = expand_templates(documents, source, options.parameters)
    chosen, others = select_job(documents, source, options.job_name)
    fields = FieldReader(chosen.source)
    if chosen.kind == TRAIN_JOB.name:
        return _read_train_job(fields, chosen.value, others, options)
    kind = JOB_KINDS.get(chosen.kind, TF_JOB)
    api_version = legacy.read_api_version(fields, chosen.value, kind)
    version = options.version or OperatorVersion.for_api_version(api_version)
    document = legacy.to_v1(
        fields, chosen.value, kind, api_version, version, options.honour_misplaced_policies
    )
    document = _with_name(fields, document)
    admission = Admission(fields, version, kind)
    admission.check_document(document)
    _warn_of_no_replicas(fields, document, kind)
    document = _with_replicas(fields, document, kind, options.replicas)
    job = _JobReader(fields, version, kind).read(document)
    admission.check_job(job)
    fields.warnings.extend(lint.job_warnings(job, version))
    return _manifest(fields, job, version, others, document)


def _read_train_job(
    fields: FieldReader, value: Dict[str, Any], others: Sequence[Document], options: ReadOptions
) -> Manifest:
    document = _with_name(fields, {key: part for key, part in value.items() if key != "status"})
    check_train_job(fields, document)
    document = with_nodes(fields, document, options.replicas)
    found = find_runtime(fields, document, others)
    runtime = read_runtime(found, fields.warnings)
    job = TrainJobReader(fields, runtime).read(document)
    places = {replica_type: f"{runtime.job_set.where}.spec.containers" for replica_type in job.replica_specs}
    job = without_operators_variables(job, _NEWEST, fields, places)
    fields.warnings.extend(train_job_warnings(job, runtime))
    return _manifest(fields, job, _NEWEST, [other for other in others if other is not found], document)


def _manifest(
    fields: FieldReader, job: TrainingJob, version: OperatorVersion, others: Sequence[Document], document: Dict[str, Any]
) -> Manifest:
    objects = read_objects(others, job.namespace)
    if objects.others:
        fields.warnings.append(f"ignored locally: {', '.join(objects.others)}")
    return Manifest(job, version, objects, tuple(fields.warnings), document)


def _with_name(fields: FieldReader, document: Dict[str, Any]) -> Dict[str, Any]:
    metadata = fields.mapping(document.get("metadata"), "metadata")
    name = fields.text(metadata.get("name"), "metadata.name")
    prefix = fields.text(metadata.get("generateName"), "metadata.generateName")
    if not name and not prefix:
        hint = hints.missing_name(document)
        raise fields.error("metadata.name", f"Required value: name or generateName is required{hint}")
    if not name:
        name = prefix + "".join(random.choices(_SUFFIX_CHARACTERS, k=_SUFFIX_LENGTH))
    return {**document, "metadata": {**metadata, "name": name}}


def _warn_of_no_replicas(fields: FieldReader, document: Dict[str, Any], kind: JobKind) -> None:
    for replica_type, spec in document["spec"][kind.specs_field].items():
        if spec.get("replicas") == 0:
            fields.warn(
                f"{kind.specs_path}.{replica_type}.replicas",
                f"0: the operator makes a pod nevertheless, and the job fails; leave {replica_type} out",
            )


def _with_replicas(
    fields: FieldReader, document: Dict[str, Any], kind: JobKind, replicas: Mapping[str, int]
) -> Dict[str, Any]:
    specs = dict(document["spec"][kind.specs_field])
    for replica_type, count in replicas.items():
        if count == 0 and replica_type == "PS" and len(specs) > 1:
            # Without servers the job is another one: one with "ps": [] in TF_CONFIG waits for some.
            specs.pop(replica_type, None)
        elif replica_type in specs:
            specs[replica_type] = {**specs[replica_type], "replicas": count}
        elif count > 0 and replica_type == "PS" and replica_type in kind.replica_types:
            specs["PS"] = _added_servers(fields, kind, specs, count)
        elif count > 0:
            raise fields.error(
                f"{kind.specs_path}.{replica_type}", f"not in the manifest, but {count} replicas are asked for"
            )
    return {**document, "spec": {**document["spec"], kind.specs_field: specs}}


def _added_servers(fields: FieldReader, kind: JobKind, specs: Dict[str, Any], count: int) -> Dict[str, Any]:
    """A replica spec for servers that the manifest does not have: the workers' image, command and volumes,
    without what a server has no use for."""
    model = next((t for t in ("Worker", *kind.leader_types) if t in specs), None)
    if model is None:
        raise fields.error(f"{kind.specs_path}.PS", "expected a Worker or a Chief whose template servers can have")
    fields.warn(f"{kind.specs_path}.PS", f"not in the manifest; {count} with the template of {model}")
    spec = copy.deepcopy(specs[model])
    pod = spec["template"]["spec"]
    pod.pop("initContainers", None)
    for container in pod["containers"]:
        container.pop("resources", None)
    metadata = spec["template"].setdefault("metadata", {}) or {}
    annotations = {**(metadata.get("annotations") or {}), ADDED_SERVERS: model}
    spec["template"]["metadata"] = {**metadata, "annotations": annotations}
    return {**spec, "replicas": count}


class _JobReader:
    """Reads a document that Admission.check_document has accepted."""

    def __init__(self, fields: FieldReader, version: OperatorVersion, kind: JobKind):
        self._fields = fields
        self._version = version
        self._kind = kind

    def read(self, document: Dict[str, Any]) -> TrainingJob:
        fields = self._fields
        metadata = document["metadata"]
        spec = document["spec"]
        fields.warn_unknown(document, "", schema.JOB)
        fields.warn_unknown(spec, "spec", schema.JOB_SPEC[self._kind.name])
        fields.warnings.extend(label_warnings(metadata.get("labels"), "metadata.labels"))
        job = TrainingJob(
            name=metadata["name"],
            namespace=metadata.get("namespace") or DEFAULT_NAMESPACE,
            replica_specs={
                replica_type: self._read_replica_spec(replica_type, value)
                for replica_type, value in spec[self._kind.specs_field].items()
            },
            run_policy=self._read_run_policy(spec.get("runPolicy")),
            kind=self._kind,
        )
        if self._kind == TF_JOB:
            job = self._with_tf_fields(job, spec)
        elif self._kind == PYTORCH_JOB:
            job = replace(
                job,
                elastic_policy=read_elastic_policy(fields, self._version, spec),
                nproc_per_node=read_nproc_per_node(fields, self._version, spec),
            )
        places = {t: f"{self._kind.specs_path}.{t}.template.spec.containers" for t in job.replica_specs}
        return without_operators_variables(job, self._version, fields, places)

    def _with_tf_fields(self, job: TrainingJob, spec: Dict[str, Any]) -> TrainingJob:
        return replace(
            job,
            success_policy=self._fields.choice(
                spec.get("successPolicy"), "spec.successPolicy", ("", "AllWorkers"), ""
            ),
            dynamic_workers=self._read_switch(
                spec, "spec", "enableDynamicWorker", self._version.knows_dynamic_workers
            ),
        )

    def _read_switch(self, value: Dict[str, Any], where: str, key: str, known: bool) -> bool:
        result = self._fields.boolean(value.get(key), f"{where}.{key}")
        if result and not known:
            self._fields.warn(f"{where}.{key}", f"dropped, operator {self._version} does not know it")
        return result and known

    def _read_run_policy(self, value: Any) -> RunPolicy:
        fields = self._fields
        where = "spec.runPolicy"
        policy = fields.mapping(value, where)
        fields.warn_unknown(policy, where, schema.RUN_POLICY)

        def count(key: str) -> Any:
            return fields.count(policy.get(key), f"{where}.{key}")

        clean_pod_policy = fields.choice(
            policy.get("cleanPodPolicy"), f"{where}.cleanPodPolicy", CLEAN_POD_POLICIES, ""
        )
        return RunPolicy(
            clean_pod_policy=clean_pod_policy or None,
            ttl_seconds_after_finished=count("ttlSecondsAfterFinished"),
            active_deadline_seconds=count("activeDeadlineSeconds"),
            backoff_limit=count("backoffLimit"),
            suspend=self._read_switch(policy, where, "suspend", self._version.knows_suspend),
        )

    def _read_replica_spec(self, replica_type: str, value: Dict[str, Any]) -> ReplicaSpec:
        fields = self._fields
        where = f"{self._kind.specs_path}.{replica_type}"
        fields.warn_unknown(value, where, schema.REPLICA_SPEC)
        replicas = fields.count(value.get("replicas"), f"{where}.replicas")
        pod = PodTemplateReader(fields, self._kind).read(value["template"], f"{where}.template")
        policy = fields.choice(
            value.get("restartPolicy"), f"{where}.restartPolicy", RESTART_POLICIES, self._kind.restart_policy
        )
        if pod.restart_policy and pod.restart_policy != policy:
            unset = "" if value.get("restartPolicy") else f"; set {where}.restartPolicy"
            fields.warn(
                f"{where}.template.spec.restartPolicy",
                f"the operator overwrites {pod.restart_policy} with {policy}{unset}",
            )
        return pod.of_replicas(replica_type, 1 if replicas is None else replicas, policy, self._kind)
