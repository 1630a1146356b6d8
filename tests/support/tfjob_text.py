"""TFJobs as YAML text, for the Python tests."""


def replica(replica_type, replicas=1, policy="Never", container="", pod="", template=""):
    """One entry of tfReplicaSpecs as YAML; `container`, `pod` and `template` are further lines."""
    lines = [
        f"    {replica_type}:",
        f"      replicas: {replicas}",
        f"      restartPolicy: {policy}",
        "      template:",
        *(f"        {line}" for line in template.splitlines()),
        "        spec:",
        *(f"          {line}" for line in pod.splitlines()),
        "          containers:",
        "            - name: tensorflow",
        "              image: keelson",
        *(f"              {line}" for line in container.splitlines()),
    ]
    return "\n".join(lines) + "\n"


def manifest(*replicas, spec="", name="job", api_version="v1"):
    """A TFJob as YAML; `spec` is further lines of its spec."""
    further = "".join(f"  {line}\n" for line in spec.splitlines())
    return (
        f"apiVersion: kubeflow.org/{api_version}\nkind: TFJob\nmetadata:\n  name: {name}\nspec:\n{further}"
        "  tfReplicaSpecs:\n" + "".join(replicas)
    )
