"""TrainJobs and their runtimes as YAML text."""

LABEL = "trainer.kubeflow.org/trainjob-ancestor-step"


def indented(spaces, text):
    return "".join(f"{' ' * spaces}{line}\n" for line in text.splitlines())


def runtime(
    container="",
    pod="",
    job="",
    job_set="",
    policy="numNodes: 1\ntorch: {}",
    kind="ClusterTrainingRuntime",
    name="torch",
):
    """`container`, `pod`, `job` and `job_set` are further lines of the container, the pod's spec, the Job's and the
    JobSet's; `policy` those of mlPolicy."""
    return (
        f"apiVersion: trainer.kubeflow.org/v1alpha1\nkind: {kind}\nmetadata:\n  name: {name}\nspec:\n"
        + (f"  mlPolicy:\n{indented(4, policy)}" if policy else "")
        + f"  template:\n    spec:\n{indented(6, job_set)}"
        + "      replicatedJobs:\n        - name: node\n          template:\n"
        + f"            metadata:\n              labels:\n                {LABEL}: trainer\n"
        + f"            spec:\n{indented(14, job)}              template:\n                spec:\n{indented(18, pod)}"
        + "                  containers:\n                    - name: node\n                      image: example/torch\n"
        + indented(22, container)
    )


def train_job(trainer="numNodes: 2", spec="", name="job", runtime_name="torch"):
    """`trainer` and `spec` are further lines of spec.trainer, which is left out for None, and of spec."""
    lines = "" if trainer is None else f"  trainer:\n{indented(4, trainer)}" if trainer else "  trainer: {}\n"
    return (
        f"apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\nmetadata:\n  name: {name}\nspec:\n"
        f"  runtimeRef:\n    name: {runtime_name}\n{lines}{indented(2, spec)}"
    )


def documents(*texts):
    return "---\n".join(texts)
