"""Runs the requested command, and turns any error into one line."""

import signal
import sys
from typing import Sequence

from tfjob_api.command_flags import split_at_dashes
from tfjob_api.fields import ManifestError

from .addresses import AddressesError
from .control import ControlError
from .control_client import ControlClientError
from .flags import COMMANDS, command_parser, run_parser
from .kubelet.plan import PlanError
from .local_plan import InputError
from .remote_commands import run_command
from .run_job import run_job

EXIT_FAILED = 1
EXIT_BAD_INPUT = 2


def main(argv: Sequence[str]) -> int:
    """The exit code: see flags.run_parser's help; of a command for a second terminal 0, 1 or 2."""
    try:
        if argv and argv[0] in COMMANDS:
            run_command(argv[0], command_parser(argv[0]).parse_args(argv[1:]))
            return 0
        own, extra = split_at_dashes(argv[1:] if argv and argv[0] == "run" else argv)
        return run_job(run_parser().parse_args(own), extra)
    except (ManifestError, InputError, PlanError, AddressesError) as error:
        return _complain(str(error), EXIT_BAD_INPUT)
    except (ControlError, ControlClientError) as error:
        return _complain(str(error), EXIT_FAILED)
    except KeyboardInterrupt:
        return 128 + signal.SIGINT  # Before anything was started.
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return _complain(f"{where}{error.strerror or error}", EXIT_BAD_INPUT)


def _complain(text: str, exit_code: int) -> int:
    print(f"tfjob_local: {text}", file=sys.stderr)
    return exit_code
