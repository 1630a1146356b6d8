"""Keelson's programs as the tests run them: those in $KEELSON_BINARY_DIR, else the release build's."""

import json
import os
import socket
import subprocess

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BINARIES = os.environ.get("KEELSON_BINARY_DIR", os.path.join(REPOSITORY, "build", "release", "bin"))
TIMEOUT_SECONDS = 60


def run(program, *arguments, exit_code=0, tf_config=None, timeout=TIMEOUT_SECONDS):
    """Its standard output; its standard error where it fails, with an exit code above 1."""
    environment = {name: value for name, value in os.environ.items() if name != "TF_CONFIG"}
    if tf_config is not None:
        environment["TF_CONFIG"] = json.dumps(tf_config)
    result = subprocess.run(
        [os.path.join(BINARIES, program), *arguments],
        capture_output=True,
        text=True,
        timeout=timeout,
        env=environment,
    )
    if result.returncode != exit_code:
        raise AssertionError(f"{program} ended with {result.returncode}:\n{result.stdout}{result.stderr}")
    return result.stderr if exit_code > 1 else result.stdout


def free_port():
    with socket.socket() as listener:
        listener.bind(("localhost", 0))
        return listener.getsockname()[1]
