"""A TrainJob and its runtime -> the job: what Trainer makes of both, as the pods of one replica type."""

import copy
import math
from typing import Any, Dict, List, Mapping, Tuple

from . import schema
from .containers import ContainerReader
from .fields import FieldReader
from .job_kind import TRAIN_JOB
from .job_set_spec import NODE
from .model import DEFAULT_NAMESPACE, ReplicaSpec, RunPolicy, TrainingJob
from .naming import pod_name
from .pod_rules import label_warnings
from .pod_template import PodTemplateReader
from .quantity import parse_quantity
from .trainjob_pod import TORCH_VARIABLES
from .trainjob_runtime import PROCESS_WORDS, Runtime, read_processes

_NODE_TYPE = TRAIN_JOB.worker_type
_TRAINER = "spec.trainer"
# Behind it the name of the pod, of at most 63 characters, has a hyphen and five that the cluster makes up.
_MAX_HOST_LENGTH = 57


def with_nodes(fields: FieldReader, document: Dict[str, Any], replicas: Mapping[str, int]) -> Dict[str, Any]:
    """The document with as many nodes as there shall be workers. ManifestError: other replicas are asked for."""
    numbers = {_NODE_TYPE if name == "Worker" else name: count for name, count in replicas.items()}
    nodes = numbers.pop(_NODE_TYPE, None)
    for name, count in numbers.items():
        if count > 0:
            raise fields.error(_TRAINER, f"a TrainJob has no {name}, but {count} replicas are asked for")
    if nodes is None:
        return document
    spec = fields.mapping(document.get("spec"), "spec")
    trainer = fields.mapping(spec.get("trainer"), _TRAINER)
    return {**document, "spec": {**spec, "trainer": {**trainer, "numNodes": nodes}}}


class TrainJobReader:
    """Reads a document that trainjob_admission has accepted."""

    def __init__(self, fields: FieldReader, runtime: Runtime):
        self._fields = fields
        self._runtime = runtime

    def read(self, document: Dict[str, Any]) -> TrainingJob:
        fields = self._fields
        metadata, spec = document["metadata"], document["spec"]
        fields.warn_unknown(document, "", schema.JOB)
        fields.warn_unknown(spec, "spec", schema.TRAIN_JOB_SPEC)
        fields.warnings.extend(label_warnings(metadata.get("labels"), "metadata.labels"))
        trainer = fields.mapping(spec.get("trainer"), _TRAINER)
        fields.warn_unknown(trainer, _TRAINER, schema.TRAINER)
        self._check_trainer(trainer)
        container, node = self._read_node(metadata["name"], trainer)
        processes = ""
        # Trainer does so where the TrainJob has a trainer, even an empty one.
        if self._runtime.is_torch and spec.get("trainer") is not None:
            processes = self._processes(trainer, container)
        return TrainingJob(
            name=metadata["name"],
            namespace=metadata.get("namespace") or DEFAULT_NAMESPACE,
            replica_specs={_NODE_TYPE: node},
            run_policy=RunPolicy(suspend=fields.boolean(spec.get("suspend"), "spec.suspend")),
            kind=TRAIN_JOB,
            nproc_per_node=processes or None,
            job_set=self._runtime.job_set.rules,
        )

    def _check_trainer(self, trainer: Dict[str, Any]) -> None:
        """Errors in it are told with its own paths; warnings come with the container that it becomes a part of."""
        fields = FieldReader(self._fields.source)
        containers = ContainerReader(fields)
        fields.text(trainer.get("image"), f"{_TRAINER}.image")
        for key in ("command", "args"):
            fields.texts(trainer.get(key), f"{_TRAINER}.{key}")
        for variable in containers.read_environment(trainer.get("env"), f"{_TRAINER}.env"):
            if self._runtime.is_torch and variable.name in TORCH_VARIABLES:
                what = f"expected none of the torch policy's own, {', '.join(TORCH_VARIABLES)}, found {variable.name}"
                raise fields.error(f"{_TRAINER}.env", what)
        where = f"{_TRAINER}.resourcesPerNode"
        resources = fields.mapping(trainer.get("resourcesPerNode"), where)
        for key in ("requests", "limits"):
            containers.read_quantities(resources.get(key), f"{where}.{key}")

    def _read_node(self, job_name: str, trainer: Dict[str, Any]) -> Tuple[Dict[str, Any], ReplicaSpec]:
        """The container as Trainer makes it, and all pods."""
        runtime, job_set = self._runtime, self._runtime.job_set
        template = copy.deepcopy(job_set.pod_template)
        container = self._node_container(template)
        _override(container, trainer)
        replicas = self._read_number(job_name, trainer)
        pod = PodTemplateReader(runtime.fields, TRAIN_JOB).read(template, job_set.where)
        return container, pod.of_replicas(_NODE_TYPE, replicas, job_set.restart_policy, TRAIN_JOB)

    def _node_container(self, template: Dict[str, Any]) -> Dict[str, Any]:
        fields = self._runtime.fields
        where = f"{self._runtime.job_set.where}.spec"
        pod = fields.mapping(template.get("spec"), where)
        containers: List[Dict[str, Any]] = [c for _, c in fields.mappings(pod.get("containers"), f"{where}.containers")]
        for container in containers:
            if container.get("name") == NODE:
                return container
        found = ", ".join(str(container.get("name")) for container in containers) or "none"
        raise fields.error(f"{where}.containers", f"expected a container {NODE}, found {found}")

    def _read_number(self, job_name: str, trainer: Dict[str, Any]) -> int:
        """Of nodes."""
        fields, where = self._fields, f"{_TRAINER}.numNodes"
        replicas = fields.count(trainer.get("numNodes"), where)
        if replicas is None:
            fields, where = self._runtime.fields, f"{self._runtime.title}: spec.mlPolicy.numNodes"
            replicas = self._runtime.num_nodes
        if replicas < 1:
            raise fields.expected(where, "at least 1", replicas)
        longest = pod_name(job_name, _NODE_TYPE, replicas - 1)
        if len(longest) > _MAX_HOST_LENGTH:
            rule = f"must be no more than {_MAX_HOST_LENGTH} characters, found {len(longest)}"
            what = f'the host of a pod is called "{longest}": {rule}'
            raise self._fields.error("metadata.name", what)
        return replicas

    def _processes(self, trainer: Dict[str, Any], container: Dict[str, Any]) -> str:
        """PET_NPROC_PER_NODE: without GPUs as many as CPUs are asked for, where nothing else is said."""
        own = read_processes(self._fields, trainer.get("numProcPerNode"), f"{_TRAINER}.numProcPerNode")
        processes = own or self._runtime.processes
        resources = container.get("resources") or {}
        amounts = [resources.get(key) or {} for key in ("requests", "limits")]
        has_gpus = any("gpu" in name.lower() and str(amount) != "0" for each in amounts for name, amount in each.items())
        if processes == PROCESS_WORDS[1] or (processes == PROCESS_WORDS[0] and not has_gpus):
            cpus = (parse_quantity(str(each.get("cpu", "0"))) for each in amounts)
            return str(max(1, next((math.ceil(cpu) for cpu in cpus if cpu), 1)))
        return processes


def _override(container: Dict[str, Any], trainer: Dict[str, Any]) -> None:
    """What a TrainJob's trainer sets takes the place of the runtime's; a variable that of one of its name."""
    for key in ("image", "command", "args"):
        if trainer.get(key) is not None:
            container[key] = trainer[key]
    if trainer.get("resourcesPerNode"):
        container["resources"] = trainer["resourcesPerNode"]
    variables = {variable.get("name"): variable for variable in trainer.get("env") or []}
    if variables and isinstance(container.get("env") or [], list):
        kept = [variables.pop(v.get("name"), v) for v in container.get("env") or [] if isinstance(v, dict)]
        container["env"] = [*kept, *variables.values()]
