"""Every manifest under deploy/: its documents, and the roles with their pod templates."""

import json
import os
import re
import subprocess
import sys
import unittest
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Set, Tuple

import yaml

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "deploy"))

from tfjob_api.job_document import replica_specs  # noqa: E402  (needs the path above)
from tfjob_api.job_kind import JOB_KINDS  # noqa: E402
from tfjob_local.kubelet.program_flags import Flag, read_flags  # noqa: E402

BINARY_DIR = Path(os.environ.get("KEELSON_BINARY_DIR", REPOSITORY / "build" / "release" / "bin"))
FOLDERS = ("deploy/tfjob", "deploy/pytorchjob", "deploy/trainer", "deploy/kubernetes", "deploy/openshift")
# Program -> role, as in `command`.
ROLES = {"chief": "chief", "ps_server": "ps", "worker": "worker", "evaluator": "evaluator"}
# --config of programs that wait for what a script says.
CONFIG_FROM_SCRIPT = "script"
# Where the image has python/examples.
IMAGE_SCRIPTS = "/opt/keelson/examples"


@dataclass(frozen=True)
class Document:
    # "deploy/tfjob/mnist.yaml: TFJob mnist", for messages.
    name: str
    # From the repository's root.
    path: str
    content: Mapping[str, Any]

    @property
    def kind(self) -> str:
        return str(self.content["kind"])

    @property
    def metadata_name(self) -> str:
        return str(self.content["metadata"]["name"])


@dataclass(frozen=True)
class Role:
    """The pods of one role of one job."""

    # "deploy/tfjob/mnist.yaml: worker", for messages.
    name: str
    path: str
    # The kind of the object that makes the pods: "TFJob", "PyTorchJob", "JobSet", "StatefulSet", "Job",
    # "ClusterTrainingRuntime".
    kind: str
    # "ps", "chief", "master", "worker", "evaluator".
    role: str
    replicas: int
    # The DNS names of the role's pods, by index, from within the namespace.
    hosts: Tuple[str, ...]
    # The object around the pod template: the ReplicaSpec, the Job's or the StatefulSet's spec.
    owner: Mapping[str, Any]
    template: Mapping[str, Any]
    dynamic_workers: bool = False

    @property
    def pod(self) -> Mapping[str, Any]:
        return self.template["spec"]

    @property
    def container(self) -> Mapping[str, Any]:
        """The one that runs Keelson."""
        (container,) = self.pod["containers"]
        return container

    def containers(self) -> List[Mapping[str, Any]]:
        return [*self.pod.get("initContainers", ()), *self.pod["containers"]]

    @property
    def script(self) -> Optional[Path]:
        """The repository's copy of the script that runs; None: one of Keelson's programs runs."""
        command = self.container["command"]
        if command[0] in ROLES:
            return None
        python, path = command
        name = path.removeprefix(f"{IMAGE_SCRIPTS}/")
        if python != "python3" or name == path:
            raise AssertionError(f"{self.name}: expected python3 {IMAGE_SCRIPTS}/SCRIPT, found {command}")
        return REPOSITORY / "python" / "examples" / name

    @property
    def program(self) -> str:
        """Which of Keelson's programs runs; "": a script."""
        return "" if self.script else str(self.container["command"][0])

    @property
    def metrics_port(self) -> Optional[int]:
        """Programs serve metrics, scripts do not."""
        return None if self.script else int(self.flags()["metrics_port"])

    @property
    def page_port(self) -> Optional[int]:
        """That of the dashboard; None: it serves none."""
        ports = re.findall(r"\bpage=(\d+)", self._script_text()) or [self.flags().get("dashboard_port")]
        (port,) = ports
        return None if port is None else int(port)

    def paths(self) -> Set[str]:
        """The files and directories of the pod that flags, or the script, name."""
        values = [self.flags().get(flag) for flag in ("config", "model_dir", "data_dir")]
        values += re.findall(r'"(/[^"]*)"', self._script_text())
        return {value for value in values if value is not None and value != CONFIG_FROM_SCRIPT}

    def model_dir(self) -> str:
        (path,) = [path for path in self.paths() if re.match(r"/model(/|$)", path)]
        return path

    def _script_text(self) -> str:
        return self.script.read_text(encoding="utf-8") if self.script else ""

    def arguments(self) -> Sequence[str]:
        return self.container.get("args", ())

    def flags(self) -> Dict[str, str]:
        """Name -> value of `--name=value`; a flag without a value has "" here. A script has none."""
        flags: Dict[str, str] = {}
        for argument in self.arguments():
            name, _, value = argument.removeprefix("--").partition("=")
            if name in flags:
                raise AssertionError(f"{self.name}: --{name} is given twice")
            flags[name] = value
        return flags


needs_programs = unittest.skipUnless(
    all((BINARY_DIR / program).exists() for program in ROLES), f"the programs are not in {BINARY_DIR}"
)


def flags_of(program: str) -> Mapping[str, Flag]:
    return read_flags(str(BINARY_DIR / program))


def default_of(program: str, flag: str) -> str:
    answer = subprocess.run([BINARY_DIR / program, "--help=json"], capture_output=True, text=True, check=True)
    (default,) = (row["default"] for row in json.loads(answer.stdout)["flags"] if row["name"] == flag)
    return str(default)


def manifest_paths() -> List[str]:
    """From the repository's root."""
    paths = [path for folder in FOLDERS for path in sorted((REPOSITORY / folder).glob("*.yaml"))]
    return [str(path.relative_to(REPOSITORY)) for path in paths]


def job_paths() -> List[str]:
    """Those that hold a job of the training operator."""
    return [path for path in manifest_paths() if any(d.kind in JOB_KINDS for d in documents(path))]


@lru_cache(maxsize=None)
def raw_documents(path: str) -> Sequence[Document]:
    """As they stand in the file, Templates included."""
    text = (REPOSITORY / path).read_text(encoding="utf-8")
    return [_document(path, content) for content in yaml.safe_load_all(text)]


@lru_cache(maxsize=None)
def documents(path: str) -> Sequence[Document]:
    """The documents for a cluster: Templates with their default values filled in. Shared: do not modify."""
    result: List[Document] = []
    for document in raw_documents(path):
        if document.kind == "Template":
            result += [_document(path, content) for content in process_template(document.content)]
        else:
            result.append(document)
    return result


def all_documents() -> List[Document]:
    return [document for path in manifest_paths() for document in documents(path)]


def process_template(
    template: Mapping[str, Any], values: Mapping[str, str] = {}
) -> List[Dict[str, Any]]:
    """The Template's objects as `oc process` prints them; `values` in place of the defaults."""
    parameters = {p["name"]: values.get(p["name"], p["value"]) for p in template["parameters"]}
    objects = [_substitute(content, parameters) for content in template["objects"]]
    for content in objects:
        content["metadata"].setdefault("labels", {}).update(template.get("labels", {}))
    return objects


def roles_of(path: str) -> List[Role]:
    return [role for document in documents(path) for role in _roles(document)]


def peers_port(role: Role) -> int:
    """The port that the job's other pods connect to: the first one of the container."""
    return int(role.container["ports"][0]["containerPort"])


def is_collective(path: str) -> bool:
    """Whether the job has no servers: its chief and workers, or its workers alone, have the variables."""
    return all(role.role != "ps" for role in roles_of(path))


def all_roles() -> List[Role]:
    return [role for path in manifest_paths() for role in roles_of(path)]


def is_of_scripts(path: str) -> bool:
    """Whether the job is what a script says, and no config map's."""
    return any(role.script for role in roles_of(path))


def expand_hosts(pattern: str) -> List[str]:
    """"ps-{0..1}.mnist:2222,x:1" -> its addresses."""
    addresses: List[str] = []
    for part in pattern.split(","):
        found = re.search(r"\{(\d+)\.\.(\d+)\}", part)
        if not found:
            addresses.append(part)
            continue
        numbers = range(int(found.group(1)), int(found.group(2)) + 1)
        addresses += [part[: found.start()] + str(n) + part[found.end() :] for n in numbers]
    return addresses


def _document(path: str, content: Mapping[str, Any]) -> Document:
    return Document(f"{path}: {content['kind']} {content['metadata']['name']}", path, content)


def _substitute(value: Any, parameters: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: _substitute(item, parameters) for key, item in value.items()}
    if isinstance(value, list):
        return [_substitute(item, parameters) for item in value]
    if not isinstance(value, str):
        return value
    raw = re.fullmatch(r"\$\{\{(\w+)\}\}", value)
    if raw:
        return yaml.safe_load(parameters[raw.group(1)])
    return re.sub(r"\$\{(\w+)\}", lambda match: parameters[match.group(1)], value)


def _roles(document: Document) -> Iterator[Role]:
    spec = document.content.get("spec", {})
    name = document.metadata_name
    if document.kind in JOB_KINDS:
        for replica_type, replica in replica_specs(document.content).items():
            hosts = [f"{name}-{replica_type.lower()}-{i}" for i in range(replica["replicas"])]
            dynamic = spec.get("enableDynamicWorker", False)
            yield _role(document, hosts, replica, dynamic, replica_type.lower())
    elif document.kind == "JobSet":
        yield from _jobset_roles(document, spec, name)
    elif document.kind == "ClusterTrainingRuntime":
        # The JobSet is named after the TrainJob, which the pods learn from a label.
        yield from _jobset_roles(document, spec["template"]["spec"], "$(JOB_NAME)")
    elif document.kind == "StatefulSet":
        hosts = [f"{name}-{i}.{spec['serviceName']}" for i in range(spec["replicas"])]
        yield _role(document, hosts, spec)
    elif document.kind == "Job":
        domain = spec["template"]["spec"]["subdomain"]
        yield _role(document, [f"{name}-{i}.{domain}" for i in range(spec["completions"])], spec)


def _jobset_roles(document: Document, spec: Mapping[str, Any], name: str) -> Iterator[Role]:
    for replicated in spec["replicatedJobs"]:
        job = replicated["template"]["spec"]
        hosts = [f"{name}-{replicated['name']}-0-{i}.{name}" for i in range(job["completions"])]
        yield _role(document, hosts, job)


def _role(
    document: Document,
    hosts: Sequence[str],
    owner: Mapping[str, Any],
    dynamic: bool = False,
    role: Optional[str] = None,
) -> Role:
    """`role`: None: that of the program."""
    template = owner["template"]
    role = role or ROLES[template["spec"]["containers"][0]["command"][0]]
    return Role(
        name=f"{document.path}: {role}",
        path=document.path,
        kind=document.kind,
        role=role,
        replicas=len(hosts),
        hosts=tuple(hosts),
        owner=owner,
        template=template,
        dynamic_workers=dynamic,
    )
