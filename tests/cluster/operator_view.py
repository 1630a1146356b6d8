"""What an operator makes of a job, in a form that the launcher's own answer can have too.

An answer is JSON: the pods by name with labels, annotations, restart policy and, of each container, the
variables and ports; the Services by name. It holds nothing that differs from one cluster to another.
"""

from typing import Any, Dict, Iterable, List, Mapping, Sequence, Tuple

from tfjob_api.job_kind import JOB_KINDS
from tfjob_api.model import Container, Manifest, ReplicaSpec
from tfjob_api.naming import cluster_addresses, labels, pod_name, replicas
from tfjob_api.operator_pod import operator_init_containers, operator_variables

Answer = Dict[str, Dict[str, Any]]
_CONTAINERS = [kind.container for kind in JOB_KINDS.values()]
# Where a variable has no value of its own: it comes from the pod, the node or another object.
FROM_ELSEWHERE = "(from elsewhere)"


def launchers_answer(manifest: Manifest) -> Answer:
    """What tfjob_api says that the operator of `manifest.version` makes."""
    job, version = manifest.job, manifest.version
    addresses = cluster_addresses(job, version=version)
    answer: Answer = {"pods": {}, "services": {}}
    for replica_type, index in replicas(job):
        spec = job.replica_specs[replica_type]
        name = pod_name(job.name, replica_type, index)
        own = labels(job, replica_type, index, version)
        ports = _own_ports(spec)
        variables = _own_variables(spec.container)
        for variable, value in operator_variables(job, addresses, version, replica_type, index).items():
            # Where the container has one of that name, the later one counts.
            variables.pop(variable, None)
            variables[variable] = value
        inits = (*spec.init_containers, *operator_init_containers(job, version, replica_type))
        answer["pods"][name] = {
            "labels": {**spec.labels, **own},
            "annotations": dict(spec.annotations),
            "restartPolicy": "Never" if spec.restart_policy == "ExitCode" else spec.restart_policy,
            "env": variables,
            "ports": ports,
            "initContainers": {init.name: _own_variables(init) for init in inits},
        }
        # A Service is told nothing of the leader.
        selector = {key: text for key, text in own.items() if not key.endswith("job-role")}
        answer["services"][name] = {"labels": selector, "selector": selector, "clusterIP": "None", "ports": ports}
    return answer


def operators_answer(pods: Iterable[Mapping[str, Any]], services: Iterable[Mapping[str, Any]]) -> Answer:
    """The same of a cluster's objects."""
    return {
        "pods": {pod["metadata"]["name"]: _pod(pod) for pod in pods},
        "services": {service["metadata"]["name"]: _service(service) for service in services},
    }


def compare(found: Answer, expected: Answer) -> Tuple[int, List[str]]:
    """How many values were compared, and a line for each difference."""
    ours, theirs = dict(_flatten(expected)), dict(_flatten(found))
    places = sorted(set(ours) | set(theirs))
    nothing = "nothing"
    lines = [
        f"{place}: expected {ours.get(place, nothing)}, found {theirs.get(place, nothing)}"
        for place in places
        if ours.get(place, nothing) != theirs.get(place, nothing)
    ]
    return len(places), lines


def _own_ports(spec: ReplicaSpec) -> List[List[Any]]:
    """The operator adds its port where the container has none of that name."""
    ports: List[List[Any]] = [[port.name, port.port] for port in spec.container.ports]
    if all(name != spec.kind.port_name for name, _ in ports):
        ports.append([spec.kind.port_name, spec.kind.port])
    return ports


def _own_variables(container: Container) -> Dict[str, str]:
    return {
        variable.name: FROM_ELSEWHERE
        if variable.reference or variable.field_path or variable.resource
        else variable.value
        for variable in container.environment
    }


def _pod(pod: Mapping[str, Any]) -> Dict[str, Any]:
    metadata, spec = pod["metadata"], pod["spec"]
    (container,) = [entry for entry in spec["containers"] if entry["name"] in _CONTAINERS]
    return {
        "labels": metadata.get("labels", {}),
        "annotations": metadata.get("annotations", {}),
        "restartPolicy": spec["restartPolicy"],
        "env": _variables(container),
        "ports": [[port.get("name", ""), port["containerPort"]] for port in container.get("ports", ())],
        "initContainers": {init["name"]: _variables(init) for init in spec.get("initContainers", ())},
    }


def _variables(container: Mapping[str, Any]) -> Dict[str, str]:
    return {
        variable["name"]: FROM_ELSEWHERE if "valueFrom" in variable else variable.get("value", "")
        for variable in container.get("env", ())
    }


def _service(service: Mapping[str, Any]) -> Dict[str, Any]:
    spec = service["spec"]
    return {
        "labels": service["metadata"].get("labels", {}),
        "selector": spec["selector"],
        "clusterIP": spec["clusterIP"],
        "ports": [[port.get("name", ""), port["port"]] for port in spec["ports"]],
    }


def _flatten(value: Any, place: str = "") -> Iterable[Tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _flatten(item, f"{place}/{key}")
    elif isinstance(value, Sequence) and not isinstance(value, str):
        yield place, sorted(value)
    else:
        yield place, value
