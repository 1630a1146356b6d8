"""Ports that replicas listen on beside tfjob-port: each has a machine of its own on a cluster, not here."""

import socket
from typing import Callable, Dict, List, Tuple

from tfjob_api.model import ReplicaSpec, TFJob
from tfjob_api.naming import Addresses

from .flag_translation import flag_value, has_flag, remove_flag

_SERVICE_FLAGS = ("metrics_port", "dashboard_port")


class LocalPorts:
    def __init__(self, warn: Callable[[str], None]):
        self._warn = warn
        # (replica type, flag, port): is it free? Asked before the replica takes it itself.
        self._free: Dict[Tuple[str, str, int], bool] = {}

    def localise(
        self, job: TFJob, spec: ReplicaSpec, program: str, args: List[str], addresses: Addresses
    ) -> List[str]:
        """The arguments of one of Keelson's programs, with ports that are free here."""
        for flag in _SERVICE_FLAGS:
            args = self._service_port(job, spec, flag, args)
        # The port to serve on stands in the local address.
        args = remove_flag(args, "port")
        if job.dynamic_workers and program == "chief" and not has_flag(args, "chief_hosts"):
            # Its sparse TF_CONFIG does not say where it listens itself.
            args.append(f"--chief_hosts={addresses[spec.type][0]}")
        return args

    def _service_port(self, job: TFJob, spec: ReplicaSpec, flag: str, args: List[str]) -> List[str]:
        """0, which means any free port, where others want the same one."""
        value = flag_value(args, flag)
        if value is None or not value.isdecimal() or int(value) == 0:
            return args
        sharers = job.total_replicas() if flag == "metrics_port" else spec.replicas
        if sharers <= 1:
            if self._free.setdefault((spec.type, flag, int(value)), _is_free(int(value))):
                return args
            self._warn(f"--{flag}={value} becomes --{flag}=0, port {value} is taken: the log names the port")
        return remove_flag(args, flag) + [f"--{flag}=0"]


def _is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("0.0.0.0", port))
        except OSError:
            return False
    return True
