"""The runtime of a TrainJob, among the documents: its policy for training, and its JobSet."""

from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Sequence

from . import schema
from .documents import Document
from .fields import FieldReader
from .job_set_spec import JobSetSpec, read_job_set
from .model import DEFAULT_NAMESPACE
from .selection import RUNTIME_KINDS

API_GROUP = "trainer.kubeflow.org"
API_VERSION = f"{API_GROUP}/v1alpha1"
PROCESS_WORDS = ("auto", "cpu", "gpu")


@dataclass(frozen=True)
class Runtime:
    # Errors in the runtime name the file that it stands in.
    fields: FieldReader
    # "ClusterTrainingRuntime torch": errors begin with it.
    title: str
    # mlPolicy's; where there is none, the Job's parallelism.
    num_nodes: int
    # Whether the torch policy tells the pods of one another.
    is_torch: bool
    # "auto", "2": processes of each pod.
    processes: str
    job_set: JobSetSpec


def find_runtime(fields: FieldReader, document: Dict[str, Any], others: Sequence[Document]) -> Document:
    """The one that the TrainJob names. ManifestError: it is not there."""
    where = "spec.runtimeRef"
    spec = fields.mapping(document.get("spec"), "spec")
    reference = fields.mapping(spec.get("runtimeRef"), where)
    fields.warn_unknown(reference, where, schema.RUNTIME_REFERENCE)
    fields.choice(reference.get("apiGroup"), f"{where}.apiGroup", (API_GROUP,), API_GROUP)
    kind = fields.choice(reference.get("kind"), f"{where}.kind", RUNTIME_KINDS, RUNTIME_KINDS[0])
    name = fields.required_text(reference.get("name"), f"{where}.name")
    namespace = _namespace(document)
    runtimes = [other for other in others if other.kind in RUNTIME_KINDS]
    for other in runtimes:
        # Those of the cluster have no namespace.
        if (other.kind, other.name) == (kind, name) and (kind == RUNTIME_KINDS[0] or _namespace(other.value) == namespace):
            return other
    place = "" if kind == RUNTIME_KINDS[0] else f" in the namespace {namespace}"
    found = ", ".join(_describe(runtime) for runtime in runtimes) or "none"
    what = f"expected the {kind} {name}{place} in this file or in another one of the command, found {found}"
    raise fields.error(f"{where}.name", what)


def read_runtime(document: Document, warnings: List[str]) -> Runtime:
    """`warnings`: the TrainJob's, to which those of the runtime are added. ManifestError."""
    fields = FieldReader(document.source, warnings)
    title = str(document)
    version = document.value.get("apiVersion")
    if version != API_VERSION:
        raise fields.expected(f"{title}: apiVersion", API_VERSION, version)
    where = f"{title}: spec"
    spec = fields.mapping(document.value.get("spec"), where)
    fields.warn_unknown(spec, where, schema.RUNTIME_SPEC)
    if spec.get("podGroupPolicy"):
        fields.warn(f"{where}.podGroupPolicy", "no pod waits for a place here, ignored locally")
    template = fields.mapping(spec.get("template"), f"{where}.template")
    where_job_set = f"{where}.template.spec"
    job_set = read_job_set(fields, fields.mapping(template.get("spec"), where_job_set), where_job_set)
    policy = fields.mapping(spec.get("mlPolicy"), f"{where}.mlPolicy")
    for key in policy:
        if key not in ("numNodes", "torch"):
            what = "expected a policy of torch, or none, which are what the launcher knows"
            raise fields.error(f"{where}.mlPolicy.{key}", what)
    torch = policy.get("torch")
    number = fields.count(policy.get("numNodes"), f"{where}.mlPolicy.numNodes")
    if not policy:
        number = job_set.parallelism
    return Runtime(
        fields=fields,
        title=title,
        num_nodes=1 if number is None else number,
        is_torch=torch is not None,
        processes=_read_torch(fields, torch, f"{where}.mlPolicy.torch"),
        job_set=job_set,
    )


def read_processes(fields: FieldReader, value: Any, where: str) -> Optional[str]:
    """numProcPerNode, a number or a word; None: it is not set."""
    if value is None:
        return None
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return str(value)
    if value in PROCESS_WORDS:
        return str(value)
    raise fields.expected(where, f"{', '.join(PROCESS_WORDS)} or a number of processes", value)


def _read_torch(fields: FieldReader, value: Any, where: str) -> str:
    policy = fields.mapping(value, where)
    fields.warn_unknown(policy, where, schema.TORCH_POLICY)
    if policy.get("elasticPolicy"):
        fields.warn(f"{where}.elasticPolicy", "no effect, Trainer has no elastic jobs yet: the number of nodes stays")
    return read_processes(fields, policy.get("numProcPerNode"), f"{where}.numProcPerNode") or PROCESS_WORDS[0]


def _namespace(value: Dict[str, Any]) -> str:
    metadata = value.get("metadata")
    return str(metadata.get("namespace") or DEFAULT_NAMESPACE) if isinstance(metadata, dict) else DEFAULT_NAMESPACE


def _describe(runtime: Document) -> str:
    place = "" if runtime.kind == RUNTIME_KINDS[0] else f" in the namespace {_namespace(runtime.value)}"
    return f"{runtime}{place}"
