"""Reads a TFJob v1 manifest and refuses what the operator would refuse.

The admission texts are those of the training operator 1.9 (its validating webhook). Beyond them, what
the operator accepts but could never finish is refused here too: a job without chief and worker 0,
an unknown replica type, two types that differ only in case.
"""

import random
import re
import string
from dataclasses import replace
from typing import Any, Dict, List, Optional, Tuple

import yaml

from .fields import FieldReader, ManifestError
from .job import Container, EnvironmentVariable, ReplicaSpec, TFJob, Volume, VolumeMount

API_VERSION = "kubeflow.org/v1"
CONTAINER_NAME = "tensorflow"
REPLICA_TYPES = ("Chief", "Evaluator", "Master", "PS", "Worker")
RESTART_POLICIES = ("Always", "OnFailure", "Never", "ExitCode")
CLEAN_POD_POLICIES = ("All", "Running", "None")
MAX_NAME_LENGTH = 63

_DNS_1035 = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_SPEC_KEYS = ("tfReplicaSpecs", "runPolicy", "successPolicy", "enableDynamicWorker")
_RUN_POLICY_KEYS = (
    "cleanPodPolicy",
    "ttlSecondsAfterFinished",
    "activeDeadlineSeconds",
    "backoffLimit",
    "schedulingPolicy",
    "suspend",
    "managedBy",
)
_REPLICA_KEYS = ("replicas", "restartPolicy", "template")


class ManifestReader(FieldReader):
    """Turns one file into one TFJob; `warnings` collects what will not be as on a cluster."""

    def __init__(self, path: str, overrides: Optional[Dict[str, int]] = None):
        """`overrides`: replica type -> number of replicas, in place of the manifest's."""
        super().__init__(path)
        self._overrides = overrides or {}

    def read(self) -> TFJob:
        document = self._find_tfjob(self._load_documents())
        metadata = self.mapping(document.get("metadata"), "metadata")
        spec = self.mapping(document.get("spec"), "spec")
        self.warn_unknown(spec, "spec", _SPEC_KEYS)
        name = self._read_name(metadata)
        run_policy = self.mapping(spec.get("runPolicy"), "spec.runPolicy")
        self.warn_unknown(run_policy, "spec.runPolicy", _RUN_POLICY_KEYS)
        job = TFJob(
            name=name,
            namespace=str(metadata.get("namespace") or "default"),
            replica_specs=self._read_replica_specs(spec),
            clean_pod_policy=self.choice(
                run_policy.get("cleanPodPolicy"), "spec.runPolicy.cleanPodPolicy", CLEAN_POD_POLICIES, "None"
            ),
            success_policy=self.choice(
                spec.get("successPolicy"), "spec.successPolicy", ("", "AllWorkers"), ""
            ),
            dynamic_workers=self.boolean(spec.get("enableDynamicWorker"), "spec.enableDynamicWorker"),
            backoff_limit=self.count(run_policy.get("backoffLimit"), "spec.runPolicy.backoffLimit"),
            active_deadline_seconds=self.count(
                run_policy.get("activeDeadlineSeconds"), "spec.runPolicy.activeDeadlineSeconds"
            ),
        )
        if self.boolean(run_policy.get("suspend"), "spec.runPolicy.suspend"):
            raise self.error("spec.runPolicy.suspend", "the job is suspended, expected false")
        self._check_job(job)
        return job

    def _load_documents(self) -> List[Any]:
        try:
            with open(self._path, encoding="utf-8") as file:
                return [document for document in yaml.safe_load_all(file) if document is not None]
        except OSError as error:
            raise ManifestError(f"{self._path}: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise ManifestError(f"{self._path}: not UTF-8 text") from error
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            where = f":{mark.line + 1}:{mark.column + 1}" if mark else ""
            problem = getattr(error, "problem", None) or str(error).splitlines()[0]
            raise ManifestError(f"{self._path}{where}: not YAML: {problem}") from error

    def _find_tfjob(self, documents: List[Any]) -> Dict[str, Any]:
        jobs = [d for d in documents if isinstance(d, dict) and d.get("kind") == "TFJob"]
        kinds = [str(d.get("kind")) if isinstance(d, dict) else "no mapping" for d in documents]
        if len(jobs) != 1:
            found = ", ".join(kinds) or "an empty file"
            raise ManifestError(f"{self._path}: expected one document of kind TFJob, found {found}")
        # A claim is a local directory, made when it is used.
        others = [kind for kind in kinds if kind not in ("TFJob", "PersistentVolumeClaim")]
        if others:
            self.warnings.append(f"ignored locally: {', '.join(others)}")
        version = jobs[0].get("apiVersion")
        if version != API_VERSION:
            raise self.error("apiVersion", f'expected {API_VERSION}, found "{version}"')
        return jobs[0]

    def _read_name(self, metadata: Dict[str, Any]) -> str:
        name = metadata.get("name")
        if not name and metadata.get("generateName"):
            suffix = "".join(random.choices(string.ascii_lowercase + string.digits, k=5))
            name = f"{metadata['generateName']}{suffix}"
        if not name:
            raise self.error("metadata.name", "Required value: name or generateName is required")
        name = str(name)
        if not _DNS_1035.fullmatch(name) or len(name) > MAX_NAME_LENGTH:
            raise self.error(
                "metadata.name",
                f'Invalid value: "{name}": should match: a DNS-1035 label must consist of lower case '
                "alphanumeric characters or '-', start with an alphabetic character, and end with an "
                f"alphanumeric character, at most {MAX_NAME_LENGTH} characters",
            )
        return name

    def _read_replica_specs(self, spec: Dict[str, Any]) -> Dict[str, ReplicaSpec]:
        where = "spec.tfReplicaSpecs"
        if not spec.get("tfReplicaSpecs"):
            raise self.error(where, "Required value: must be required")
        specs: Dict[str, ReplicaSpec] = {}
        for key, value in self.mapping(spec["tfReplicaSpecs"], where).items():
            replica_type = self._replica_type(str(key), where)
            if replica_type in specs:
                raise self.error(f"{where}.{key}", f"second entry for the replica type {replica_type}")
            specs[replica_type] = self._read_replica_spec(replica_type, f"{where}.{key}", value)
        self._apply_overrides(specs)
        return specs

    def _replica_type(self, key: str, where: str) -> str:
        for replica_type in REPLICA_TYPES:
            if key.lower() == replica_type.lower():
                return replica_type
        raise self.error(
            f"{where}.{key}", f"unknown replica type, expected one of {', '.join(REPLICA_TYPES)}"
        )

    def _apply_overrides(self, specs: Dict[str, ReplicaSpec]) -> None:
        for replica_type, replicas in self._overrides.items():
            if replica_type in specs:
                specs[replica_type] = replace(specs[replica_type], replicas=replicas)
            elif replicas > 0:
                raise self.error(
                    f"spec.tfReplicaSpecs.{replica_type}",
                    f"not in the manifest, but {replicas} replicas are asked for",
                )

    def _read_replica_spec(self, replica_type: str, where: str, value: Any) -> ReplicaSpec:
        spec = self.mapping(value, where)
        self.warn_unknown(spec, where, _REPLICA_KEYS)
        template = self.mapping(spec.get("template"), f"{where}.template")
        metadata = self.mapping(template.get("metadata"), f"{where}.template.metadata")
        pod = self.mapping(template.get("spec"), f"{where}.template.spec")
        replicas = self.count(spec.get("replicas"), f"{where}.replicas")
        grace = self.count(
            pod.get("terminationGracePeriodSeconds"), f"{where}.template.spec.terminationGracePeriodSeconds"
        )
        return ReplicaSpec(
            type=replica_type,
            replicas=1 if replicas is None else replicas,
            restart_policy=self._read_restart_policy(spec, pod, where),
            container=self._read_container(pod, f"{where}.template.spec"),
            volumes=self._read_volumes(pod, f"{where}.template.spec.volumes"),
            grace_seconds=30.0 if grace is None else float(grace),
            labels=self.mapping(metadata.get("labels"), f"{where}.template.metadata.labels"),
        )

    def _read_restart_policy(self, spec: Dict[str, Any], pod: Dict[str, Any], where: str) -> str:
        if pod.get("restartPolicy") and not spec.get("restartPolicy"):
            self.warnings.append(
                f"{where}.template.spec.restartPolicy is overwritten by the operator; the policy is Never "
                f"(set {where}.restartPolicy)"
            )
        return self.choice(spec.get("restartPolicy"), f"{where}.restartPolicy", RESTART_POLICIES, "Never")

    def _read_container(self, pod: Dict[str, Any], where: str) -> Container:
        containers = self.sequence(pod.get("containers"), f"{where}.containers")
        if not containers:
            raise self.error(f"{where}.containers", "Required value: must be specified")
        chosen = None
        for i, value in enumerate(containers):
            container = self.mapping(value, f"{where}.containers[{i}]")
            if not container.get("image"):
                raise self.error(f"{where}.containers[{i}].image", "Required value: must be required")
            if container.get("name") == CONTAINER_NAME and chosen is None:
                chosen = i
            else:
                self.warnings.append(f"ignored locally: {where}.containers[{i}] ({container.get('name')})")
        if chosen is None:
            raise self.error(
                f"{where}.containers",
                f"Required value: must have at least one container with name {CONTAINER_NAME}",
            )
        if pod.get("initContainers"):
            self.warnings.append(f"ignored locally: {where}.initContainers")
        return self._read_main_container(containers[chosen], f"{where}.containers[{chosen}]")

    def _read_main_container(self, container: Dict[str, Any], where: str) -> Container:
        for key in ("envFrom", "lifecycle", "livenessProbe", "readinessProbe", "startupProbe"):
            if container.get(key):
                self.warnings.append(f"ignored locally: {where}.{key}")
        return Container(
            command=self.strings(container.get("command"), f"{where}.command"),
            args=self.strings(container.get("args"), f"{where}.args"),
            working_dir=str(container.get("workingDir") or ""),
            environment=self._read_environment(container.get("env"), f"{where}.env"),
            mounts=self._read_mounts(container.get("volumeMounts"), f"{where}.volumeMounts"),
        )

    def _read_environment(self, value: Any, where: str) -> Tuple[EnvironmentVariable, ...]:
        result = []
        for i, entry in enumerate(self.sequence(value, where)):
            entry = self.mapping(entry, f"{where}[{i}]")
            name = entry.get("name")
            if not name:
                raise self.error(f"{where}[{i}].name", "Required value")
            source = self.mapping(entry.get("valueFrom"), f"{where}[{i}].valueFrom")
            field_ref = self.mapping(source.get("fieldRef"), f"{where}[{i}].valueFrom.fieldRef")
            if name == "TF_CONFIG":
                self.warnings.append(f"ignored: {where}[{i}]: the operator overrides TF_CONFIG")
            elif source and not field_ref:
                self.warnings.append(f"ignored locally: {where}[{i}].valueFrom of {name}")
            else:
                text = entry.get("value")
                result.append(
                    EnvironmentVariable(
                        str(name), "" if text is None else str(text), str(field_ref.get("fieldPath") or "")
                    )
                )
        return tuple(result)

    def _read_mounts(self, value: Any, where: str) -> Tuple[VolumeMount, ...]:
        result = []
        for i, entry in enumerate(self.sequence(value, where)):
            entry = self.mapping(entry, f"{where}[{i}]")
            for key in ("name", "mountPath"):
                if not entry.get(key):
                    raise self.error(f"{where}[{i}].{key}", "Required value")
            result.append(
                VolumeMount(str(entry["name"]), str(entry["mountPath"]), str(entry.get("subPath") or ""))
            )
        return tuple(result)

    def _read_volumes(self, pod: Dict[str, Any], where: str) -> Tuple[Volume, ...]:
        result = []
        for i, entry in enumerate(self.sequence(pod.get("volumes"), where)):
            entry = self.mapping(entry, f"{where}[{i}]")
            kinds = [key for key in entry if key != "name"]
            if not entry.get("name") or len(kinds) > 1:
                raise self.error(f"{where}[{i}]", "expected a name and one kind of volume")
            kind = kinds[0] if kinds else "emptyDir"
            details = self.mapping(entry.get(kind), f"{where}[{i}].{kind}")
            source = details.get("claimName") or details.get("path") or ""
            if kind in ("persistentVolumeClaim", "hostPath") and not source:
                key = "path" if kind == "hostPath" else "claimName"
                raise self.error(f"{where}[{i}].{kind}.{key}", "Required value")
            result.append(Volume(str(entry["name"]), kind, str(source)))
        return tuple(result)

    def _check_job(self, job: TFJob) -> None:
        where = "spec.tfReplicaSpecs"
        if "Chief" in job.replica_specs and "Master" in job.replica_specs:
            raise self.error(where, "Forbidden: must not have more than 1 Chief or Master role")
        chief = job.chief_type()
        if chief and job.replicas(chief) != 1:
            raise self.error(f"{where}.{chief}.replicas", f"expected 1, found {job.replicas(chief)}")
        if not chief and job.replicas("Worker") == 0:
            raise self.error(where, "no chief and no worker: nothing would end the job")
        for spec in job.replica_specs.values():
            self._check_mounts(spec, f"{where}.{spec.type}.template.spec")
            pod_name = f"{job.name}-{spec.type.lower()}-{max(spec.replicas - 1, 0)}"
            if len(pod_name) > MAX_NAME_LENGTH:
                raise self.error(
                    "metadata.name", f'"{pod_name}" is longer than {MAX_NAME_LENGTH} characters'
                )
        if job.replicas("PS") and job.clean_pod_policy == "None":
            self.warnings.append(
                "spec.runPolicy.cleanPodPolicy is None: a cluster leaves pods that do not end by themselves"
            )

    def _check_mounts(self, spec: ReplicaSpec, where: str) -> None:
        known = {volume.name for volume in spec.volumes}
        for mount in spec.container.mounts:
            if mount.volume not in known:
                raise self.error(f"{where}.volumes", f'no volume "{mount.volume}" for {mount.path}')
