"""The flags of the launcher and of its commands for other terminals."""

import argparse
import os
from typing import Tuple

from tfjob_api.command_flags import Parser, count
from tfjob_api.operator_version import NEWEST, OperatorVersion

from .addresses import DASHBOARD_PORT
from .gpus import parse_gpus
from .operator_rules import MAX_RESTARTS
from .status_view import FORMATS

PROGRAM = "tfjob_local.py"
# The value of --dashboard_port without a page.
NO_DASHBOARD = -1
# --config of chief and servers that wait for what a Python worker says.
CONFIG_FROM_SCRIPT = "script"
REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

_RUN_DESCRIPTION = """\
Runs a Kubeflow TFJob, PyTorchJob or TrainJob as processes on this machine: the same file that `kubectl apply`
takes, with the operator's restarts, conditions and clean-up. Takes TFJob v1, v1beta2, v1beta1, v1alpha2,
PyTorchJob v1, TrainJob v1alpha1 and OpenShift Templates; ConfigMaps, Secrets, claims and the runtime of a
TrainJob may stand in the same files."""

_RUN_EPILOG = """\
from a second terminal (each with --help; --job NAME where several run):
  %(prog)s status [-o table|yaml|json]   replicas, conditions, progress
  %(prog)s scale worker=4                more or fewer replicas
  %(prog)s kill worker-1                 SIGKILL: exit code 137
  %(prog)s delete worker-1               deletes the pod, as the drain of its node does
  %(prog)s suspend | resume | stop

examples:
  %(prog)s deploy/tfjob/mnist.yaml
  %(prog)s job.yaml --workers=4 --training_steps=2000 --follow=chief
  %(prog)s template.yaml --param JOB_NAME=mnist --param WORKERS=2
  %(prog)s job.yaml --image='*=as-is'    the manifest's own commands, on this machine
  %(prog)s job.yaml --run_commands       its init containers' commands and hostPath volumes, too
  %(prog)s torch.yaml --run_commands     a PyTorchJob's own script, where this machine has it
  %(prog)s trainjob.yaml runtime.yaml    a TrainJob and the runtime that it names
  %(prog)s job.yaml --dry_run            what would run, and with which TF_CONFIG
  %(prog)s job.yaml -- --seed=7          what follows -- goes to every role

exit code: 0 the job succeeded; that of the replica that failed it (1 where there is none); 2 bad
input, nothing was started; 128 + n it was ended by signal n."""


def run_parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog=PROGRAM,
        usage="%(prog)s [run] MANIFEST... [flags] [-- flags for every role]",
        description=_RUN_DESCRIPTION,
        epilog=_RUN_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("manifests", metavar="MANIFEST", nargs="+", help="file with the TFJob, PyTorchJob or TrainJob (YAML or JSON)")
    _add_manifest_flags(parser.add_argument_group("the manifest"))
    _add_training_flags(parser.add_argument_group("training"))
    _add_machine_flags(parser.add_argument_group("this machine"))
    _add_operator_flags(parser.add_argument_group("the operator"))
    _add_output_flags(parser.add_argument_group("output"))
    return parser


def command_parser(command: str) -> argparse.ArgumentParser:
    """Returns the parser of a command for a second terminal."""
    parser = Parser(prog=f"{PROGRAM} {command}", description=_COMMANDS[command], allow_abbrev=False)
    if command == "scale":
        parser.add_argument(
            "replicas", metavar="ROLE=N", nargs="+", type=_role_count, help="worker=4: the number wanted"
        )
    if command in ("kill", "delete"):
        parser.add_argument("replica", metavar="REPLICA", help="worker-1")
    if command == "status":
        parser.add_argument(
            "-o",
            "--output",
            choices=FORMATS,
            default="table",
            help="yaml and json: the job with its status",
        )
    parser.add_argument("--job", metavar="NAME", default="", help="which one, where several run")
    parser.add_argument("--run_dir", metavar="DIR", default="", help="the job of this run directory")
    return parser


_COMMANDS = {
    "status": "Shows a running job; with --run_dir a finished one too.",
    "scale": "Changes how many replicas of a role a running job has.",
    "kill": "Sends SIGKILL to a replica of a running job: it ends with exit code 137.",
    "delete": "Deletes a replica's pod, as the drain of its node does, and makes a new one. With --strict_emulation "
    "operators from 1.7 on fail the job instead, as on a cluster, unless the pod is a dynamic worker's.",
    "suspend": "Ends all replicas of a running job, the one that leads it first, until the command resume.",
    "resume": "Starts the replicas of a suspended job again.",
    "stop": "Ends a running job: SIGTERM, the grace period, SIGKILL. A second time: SIGKILL at once.",
}
COMMANDS = tuple(_COMMANDS)


def _add_manifest_flags(group: "argparse._ArgumentGroup") -> None:
    group.add_argument(
        "--param",
        metavar="K=V",
        action="append",
        type=_pair,
        default=[],
        help="parameter of a Template (repeatable)",
    )
    group.add_argument("--job", metavar="NAME", default="", help="which job, where the files have several")
    group.add_argument(
        "--ps",
        type=count,
        metavar="N",
        help="parameter servers, instead of the manifest's or where it has none; 0: chief and workers have the variables",
    )
    group.add_argument("--workers", type=count, metavar="N", help="workers or nodes, instead of the manifest's")


def _add_training_flags(group: "argparse._ArgumentGroup") -> None:
    group.add_argument("--data_dir", metavar="DIR", help="IDX files, or those of the config (default: the manifest's)")
    group.add_argument(
        "--model_dir",
        metavar="DIR",
        help="snapshots and event files (default: RUN_DIR/model); resumes what is there",
    )
    group.add_argument("--config", metavar="FILE", help=f'TrainConfig, instead of the manifest\'s; "{CONFIG_FROM_SCRIPT}": what a Python worker says')
    group.add_argument("--training_steps", type=count, metavar="N", help="steps to train in all")
    group.add_argument(
        "--device", metavar="DEVICE", help="what workers compute on: cpu, cuda, cuda:0,1, auto"
    )
    group.add_argument("--precision", metavar="P", help="of their GPUs: float32, tf32, bfloat16")


def _add_machine_flags(group: "argparse._ArgumentGroup") -> None:
    group.add_argument(
        "--image",
        metavar="PATTERN=WHAT",
        action="append",
        default=[],
        help="what runs in place of images of this name: role (Keelson's program or script for the role, the default), "
        "as-is (the manifest's own command), or a directory of programs (repeatable); the last two "
        "mean init containers of such images, too",
    )
    group.add_argument(
        "--run_commands",
        action="store_true",
        help="run the commands of all init containers and the Python scripts of a PyTorchJob or TrainJob that this machine has, "
        "use hostPath volumes, and give Keelson's programs all of env, as this user on this machine (default: left "
        "out, with a warning, and Keelson's worker in place of a script); the manifest's commands, these "
        "and those of --image, get no more of the user's environment than PATH, HOME, LANG, TZ and limits of "
        "GPUs and threads",
    )
    group.add_argument(
        "--pvc",
        metavar="CLAIM=DIR",
        action="append",
        type=_pair,
        default=[],
        help="directory of a claim (repeatable)",
    )
    group.add_argument(
        "--bin_dir",
        metavar="DIR",
        default=os.path.join(REPOSITORY, "build", "release", "bin"),
        help="where Keelson's four programs are (default: build/release/bin)",
    )
    group.add_argument(
        "--run_dir", metavar="DIR", help="logs, volumes and status (default: a new runs/JOB-TIME)"
    )
    group.add_argument(
        "--gpus",
        metavar="LIST",
        type=_gpus,
        help="GPUs to deal out, such as 0,1, or none (default: all there are)",
    )
    group.add_argument(
        "--loopback_aliases",
        action="store_true",
        help="each replica has a 127.x.y.z of its own and keeps the manifest's port",
    )

    group.add_argument(
        "--dashboard_port",
        metavar="PORT",
        type=_dashboard_port,
        help="of the evaluator's page: a number, 0 for any free one, or none (default: the manifest's, else "
        f"{DASHBOARD_PORT}, or the next one that is free)",
    )
    group.add_argument(
        "--auth_token_file",
        metavar="FILE",
        help="with the job's token: who has it may change the job in the page and with keelson_ctl",
    )


def _add_operator_flags(group: "argparse._ArgumentGroup") -> None:
    group.add_argument(
        "--operator_version",
        metavar="V",
        type=_version,
        help=f"training operator to behave as (default: {NEWEST}, or the newest one for an older apiVersion)",
    )
    group.add_argument(
        "--strict_emulation",
        action="store_true",
        help="exactly as that operator and the kubelet, known bugs included",
    )
    group.add_argument(
        "--max_restarts",
        type=count,
        default=MAX_RESTARTS,
        metavar="N",
        help="restarts of one replica before the job fails; not with --strict_emulation "
        "(default: %(default)s)",
    )


def _add_output_flags(group: "argparse._ArgumentGroup") -> None:
    group.add_argument(
        "--follow",
        metavar="WHO",
        action="append",
        default=[],
        help="show these logs: chief, worker-1, a role, all, none; repeatable or with commas (default: none; "
        "errors and warnings of all replicas are always shown)",
    )
    group.add_argument(
        "--color",
        choices=("auto", "always", "never"),
        default="auto",
        help="auto: on terminals, unless NO_COLOR is set",
    )
    group.add_argument("--dry_run", action="store_true", help="print what would run; start nothing")


def _pair(text: str) -> Tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator or not name:
        raise argparse.ArgumentTypeError(f'expected NAME=VALUE, found "{text}"')
    return name, value


def _dashboard_port(text: str) -> int:
    if text == "none":
        return NO_DASHBOARD
    if text.isdecimal() and int(text) < 65536:
        return int(text)
    raise argparse.ArgumentTypeError(f'expected a port of 0..65535 or none, found "{text}"')


def _role_count(text: str) -> Tuple[str, int]:
    role, number = _pair(text)
    return role, count(number)


def _version(text: str) -> OperatorVersion:
    try:
        return OperatorVersion.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _gpus(text: str) -> Tuple[str, ...]:
    try:
        return parse_gpus(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
