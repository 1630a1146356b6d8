"""Defines the flags of keelson.py."""

import argparse
from typing import TypeAlias

from tfjob_api.command_flags import Parser, count
from tfjob_api.job_kind import PYTORCH_JOB, TF_JOB, JobKind
from tfjob_api.model import CLEAN_POD_POLICIES, RESTART_POLICIES
from tfjob_api.status import TYPES

from .image_build import BUILDERS, VARIANTS
from .settings import ROLES

_Commands: TypeAlias = "argparse._SubParsersAction[Parser]"

# --kind -> the kind of job.
KINDS = {"tensorflow": TF_JOB, "pytorch": PYTORCH_JOB}
DESCRIPTION = "Trains on a Kubernetes cluster that has the training operator."
EXAMPLES = """\
examples:
  keelson.py build --image keelson:1 --registry registry.example.com/me --push
  keelson.py submit --name mnist --image registry.example.com/me/keelson:1 --ps 2 --workers 4 \\
      --config configs/mnist_cnn.textproto --pvc models:/model
  keelson.py submit --name mnist --image keelson:1 --workers 4 --gpus 1 --dry_run
  keelson.py submit --name mnist --image keelson:1 --ps 0 --workers 4 --pvc models
  keelson.py submit --kind pytorch --name mnist --image keelson:1 --workers 4 --pvc models
  keelson.py submit --name mnist --local --workers 2 -- --learning_rate=0.01
  keelson.py wait --resubmit 3 mnist
  keelson.py status mnist
  keelson.py dashboard mnist
  keelson.py logs -f --name mnist worker 1
  keelson.py scale --name mnist --workers 8
  keelson.py delete mnist

exit codes: 0 done; 1 the job failed or the cluster refused; 2 bad input, nothing was changed;
124 not within --timeout; 130 interrupted: the job goes on"""


def kind_flag(kind: JobKind) -> str:
    """The flag that names the kind in a command, with a space behind it; "" for the default."""
    name = next(name for name, other in KINDS.items() if other == kind)
    return "" if kind == TF_JOB else f"--kind {name} "


def make_parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="keelson.py",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    _add_submit(commands)
    _add_status(commands)
    _add_logs(commands)
    _add_dashboard(commands)
    _add_scale(commands)
    _add_wait(commands)
    _add_delete(commands)
    _add_list(commands)
    _add_build(commands)
    return parser


def seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f'expected seconds > 0, found "{text}"')
    return value


def port(text: str) -> int:
    if text.isdecimal() and int(text) < 65536:
        return int(text)
    raise argparse.ArgumentTypeError(f'expected a port of 0..65535, found "{text}"')


def _add_command(commands: _Commands, name: str, what: str) -> argparse.ArgumentParser:
    parser = commands.add_parser(name, help=what, description=what, allow_abbrev=False)
    cluster = parser.add_argument_group("cluster")
    cluster.add_argument("--namespace", "-n", metavar="NAME", default="", help="default: the context's")
    cluster.add_argument("--context", metavar="NAME", default="", help="of the kubeconfig")
    cluster.add_argument("--kubeconfig", metavar="FILE", default="", help="default: kubectl's")
    what_kind = "of job: a TFJob (tensorflow, the default) or a PyTorchJob"
    cluster.add_argument("--kind", choices=tuple(KINDS), default="tensorflow", help=what_kind)
    cluster.add_argument("--kubectl", metavar="PATH", default="kubectl", help="the program to use")
    return parser


def _add_submit(commands: _Commands) -> None:
    parser = _add_command(commands, "submit", "creates a job and follows its chief's log to the end")
    parser.usage = "%(prog)s --name NAME --image IMAGE [flags] [-- flags for every role]"
    _add_job_flags(parser.add_argument_group("job"))
    _add_training_flags(parser.add_argument_group("training"))
    _add_pod_flags(parser.add_argument_group("pods"))
    _add_policy_flags(parser.add_argument_group("policies"))
    what = parser.add_argument_group("what to do")
    add = what.add_argument
    add("--dry_run", action="store_true", help="prints the manifest and changes nothing")
    add("--local", action="store_true", help="runs it on this machine (tfjob_local.py)")
    add("--local_flag", metavar="FLAG", action="append", default=[], help="for it: --local_flag=--follow=all")
    add("--follow", action="store_true", default=None, help="the chief's log (default)")
    add("--no_follow", action="store_false", dest="follow", help="returns once it is created")
    add("--wait", metavar="CONDITION", choices=TYPES, help="waits for it, without the log")
    _add_timeout(what)
    _add_resubmit(what)
    add("--delete_after", action="store_true", help="deletes the job when it has ended")


def _add_job_flags(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--name", metavar="NAME", required=True, help="of the job")
    add("--image", metavar="IMAGE", default="", help="keelson.py build makes one")
    add(
        "--ps",
        type=count,
        metavar="N",
        help="parameter servers (1); 0: chief and workers have the variables, as in every PyTorchJob",
    )
    add("--workers", type=count, metavar="N", default=1, help="workers (1); 0 and --ps 0: the chief alone")
    add("--gpus", type=count, metavar="N", default=0, help="of each worker (0)")
    add("--evaluator", action="store_true", default=None, help="scores the snapshots (default with --pvc)")
    add("--no_evaluator", action="store_false", dest="evaluator", help="nobody does")
    add("--dashboard", action="store_true", help="the evaluator's page, behind a Service")
    add(
        "--auth_secret",
        metavar="NAME",
        default="",
        help="with the job's token as the key token: who has it may change the running job",
    )
    add(
        "--job_secret",
        metavar="NAME",
        default="",
        help="with the token that the job's pods show one another, as the key token, instead of one made for it",
    )
    add(
        "--dynamic_workers",
        action="store_true",
        default=None,
        help="workers may come and go without failing the job, enableDynamicWorker (default with servers)",
    )
    add("--no_dynamic_workers", action="store_false", dest="dynamic_workers", help="each has its place")


def _add_training_flags(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--config", metavar="FILE", help="TrainConfig; default: an MLP on generated digits")
    add("--training_steps", type=count, metavar="N", help="instead of the config's")
    add("--pvc", metavar="CLAIM[:PATH]", help="for snapshots, ReadWriteMany; at /model")
    add(
        "--model_subdir",
        metavar="DIR",
        default="",
        help="of the claim, with this job's model (the job's name: a later job of the same name resumes it); "
        '".": the claim itself',
    )
    add("--data_pvc", metavar="CLAIM[:PATH]", help="with IDX files; at /data")
    add(
        "--secret",
        metavar="NAME[:PATH]",
        action="append",
        default=[],
        help="its keys as files; at /secrets/NAME",
    )
    add("--env", metavar="K=V", action="append", default=[], help="for every role")


def _add_pod_flags(group: argparse._ArgumentGroup) -> None:
    for role in ROLES:
        add = group.add_argument
        add(f"--{role}_cpu", metavar="Q", default="", help="such as 500m or 2")
        add(f"--{role}_memory", metavar="Q", default="", help="such as 4Gi")
    add("--node_selector", metavar="K=V", action="append", default=[], help="label of nodes")
    add(
        "--no_disruption_budget",
        action="store_false",
        dest="disruption_budget",
        help="drains of nodes evict the job's pods, though the loss of one fails the job",
    )
    add("--toleration", metavar="K[=V][:EFFECT]", action="append", default=[], help="of a node's taint")
    add("--service_account", metavar="NAME", default="", help="of all pods, instead of one made for each role")
    add("--image_pull_secret", metavar="NAME", action="append", default=[], help="for the registry")


def _add_policy_flags(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add(
        "--restart_policy",
        choices=RESTART_POLICIES,
        default="",
        help="of every role (ExitCode; the evaluator's OnFailure)",
    )
    add("--clean_pod_policy", choices=CLEAN_POD_POLICIES, default="Running", help="(%(default)s)")
    add(
        "--ttl", type=count, metavar="S", default=86400, help="deletes the ended job after that (%(default)s)"
    )
    add("--deadline", type=count, metavar="S", help="fails a job that takes longer")
    add("--backoff_limit", type=count, metavar="N", help="restarts before the job fails")


def _add_timeout(group: argparse._ActionsContainer) -> None:
    group.add_argument("--timeout", type=seconds, metavar="S", help="gives up waiting; the job goes on")


def _add_resubmit(group: argparse._ActionsContainer) -> None:
    group.add_argument(
        "--resubmit",
        type=count,
        metavar="N",
        default=0,
        help="deletes the job and creates it again, up to N times, when it failed because it lost pods, as by the "
        "drain of a node: it resumes its model (0)",
    )


def _add_optional_name(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", nargs="?", default="", help="default: the only job there is")


def _add_name_flag(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--name", metavar="NAME", default="", help="of the job; default: the only one there is"
    )


def _add_output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", "--output", choices=("table", "yaml", "json"), default="table")


def _add_status(commands: _Commands) -> None:
    parser = _add_command(commands, "status", "conditions, pods and progress of a job")
    _add_optional_name(parser)
    _add_output(parser)


def _add_logs(commands: _Commands) -> None:
    parser = _add_command(commands, "logs", "the log of one replica")
    _add_name_flag(parser)
    add = parser.add_argument
    add("role", metavar="ROLE", help="chief, ps, worker, evaluator; or worker-1")
    add("index", metavar="INDEX", type=count, nargs="?", default=0, help="(0)")
    add("-f", "--follow", action="store_true", help="to the end of the job, over restarts")
    add("--previous", action="store_true", help="of the run before its last restart in place")
    add("--tail", type=count, metavar="N", help="the last N lines")
    _add_timeout(parser)


def _add_dashboard(commands: _Commands) -> None:
    what = "brings the evaluator's page to this machine, as long as the job runs"
    parser = _add_command(commands, "dashboard", what)
    _add_optional_name(parser)
    parser.add_argument(
        "--port", type=port, metavar="N", help="of this machine; 0: any (6006, or any where that is taken)"
    )
    parser.add_argument("--index", type=count, metavar="N", default=0, help="which evaluator (0)")


def _add_scale(commands: _Commands) -> None:
    parser = _add_command(commands, "scale", "sets the number of workers of a running job")
    _add_name_flag(parser)
    parser.add_argument("--workers", type=count, metavar="N", required=True)


def _add_wait(commands: _Commands) -> None:
    parser = _add_command(commands, "wait", "waits for a condition of a job")
    _add_optional_name(parser)
    parser.add_argument(
        "--for",
        dest="conditions",
        choices=TYPES,
        action="append",
        metavar="CONDITION",
        help=f"any of those given (Succeeded); {', '.join(TYPES)}",
    )
    _add_timeout(parser)
    _add_resubmit(parser)


def _add_delete(commands: _Commands) -> None:
    parser = _add_command(commands, "delete", "deletes a job with its pods and its config")
    parser.add_argument("name", metavar="NAME")


def _add_list(commands: _Commands) -> None:
    _add_output(_add_command(commands, "list", "all jobs of that kind in the namespace"))


def _add_build(commands: _Commands) -> None:
    what = "builds the image from this repository"
    parser = commands.add_parser("build", help=what, description=what, allow_abbrev=False)
    add = parser.add_argument
    add("--image", metavar="NAME[:TAG]", required=True)
    add("--registry", metavar="HOST/PATH", default="", help="put before the image's name")
    add("--builder", choices=BUILDERS, default="", help="default: the first that is installed")
    add("--variant", choices=VARIANTS, default="cpu", help="(%(default)s)")
    add("--base_image", metavar="IMAGE", default="", help="a Debian to compile on; default: the Dockerfile's")
    add("--push", action="store_true", help="to the registry, when it is built")
    add("--dry_run", action="store_true", help="prints the commands")
