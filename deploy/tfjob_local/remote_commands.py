"""The commands that a second terminal gives to a running job."""

import argparse
import sys
from typing import Any, Dict, Mapping

from .control import ControlDirectory
from .control_client import ControlClientError, ask, find_job, finished_view
from .status_view import render


def run_command(command: str, options: argparse.Namespace) -> None:
    """Prints the answer. ControlClientError: there is no such job, or it refuses."""
    if command == "status":
        sys.stdout.write(render(_view(options), options.output))
        return
    with ControlDirectory() as directory:
        job = find_job(directory, options.job, options.run_dir)
        try:
            reply = ask(directory, job.socket_name, {"command": command, **_arguments(options)})
        except OSError as error:
            raise ControlClientError(f"{job} does not answer: {error.strerror or error}") from error
    print(reply["text"])


def _view(options: argparse.Namespace) -> Mapping[str, Any]:
    """Returns the view of the running job, or of one that has ended if its directory is named."""
    try:
        with ControlDirectory() as directory:
            return find_job(directory, options.job, options.run_dir).view
    except ControlClientError:
        view = _finished(options.run_dir) if options.run_dir else None
        if view is None:
            raise
        return view


def _finished(run_dir: str) -> Any:
    try:
        view = finished_view(run_dir)
    except ValueError as error:
        raise ControlClientError(str(error)) from error
    return None if view is None else {**view, "running": False}


def _arguments(options: argparse.Namespace) -> Dict[str, Any]:
    if "replicas" in options:
        return {"replicas": dict(options.replicas)}
    if "replica" in options:
        return {"replica": options.replica}
    return {}
