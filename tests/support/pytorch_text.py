"""PyTorchJobs as YAML text."""


def replica(replica_type, replicas=1, container="", spec=""):
    """One entry of pytorchReplicaSpecs; `container` and `spec` are further lines of the container and beside
    replicas."""
    number = [] if replicas is None else [f"      replicas: {replicas}"]
    lines = [
        f"    {replica_type}:",
        *number,
        *(f"      {line}" for line in spec.splitlines()),
        "      template:",
        "        spec:",
        "          containers:",
        "            - name: pytorch",
        "              image: example/pytorch",
        *(f"              {line}" for line in container.splitlines()),
    ]
    return "\n".join(lines) + "\n"


def pytorch_job(*replicas, spec="", name="job"):
    """`spec` is further lines of its spec."""
    further = "".join(f"  {line}\n" for line in spec.splitlines())
    return (
        f"apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata:\n  name: {name}\nspec:\n{further}"
        "  pytorchReplicaSpecs:\n" + "".join(replicas)
    )
