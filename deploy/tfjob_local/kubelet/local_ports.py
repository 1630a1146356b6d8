"""Ports that replicas listen on beside tfjob-port: each has a machine of its own on a cluster, not here."""

from typing import Callable, Dict, List, Mapping, Optional, Protocol, Tuple

from tfjob_api.model import ReplicaSpec, TrainingJob
from tfjob_api.naming import Addresses

from ..addresses import can_listen
from .flag_translation import flag_value, has_flag, remove_flag

# The flags of programs that serve a page: the evaluator, which refuses the others without the first, and the
# chief that is the whole job.
_PAGE_FLAGS = {
    "evaluator": ("dashboard_port", "dashboard_address", "auth_token_file", "runs"),
    "chief": ("dashboard_port", "dashboard_address"),
}


# The manifest names this port of the container.
_PAGE_PORT = "dashboard"
# Only this machine reaches it.
LOCAL_ADDRESS = "127.0.0.1"


class PageAddresses(Protocol):
    """Implemented by addresses.DashboardPorts."""

    def of(self, replica_name: str, manifests: Optional[int]) -> int:
        """The port of that replica's page; `manifests`: what its own arguments say."""


class LocalPorts:
    def __init__(self, pages: Optional[PageAddresses], warn: Callable[[str], None]):
        """`pages`: None: none is served."""
        self._pages = pages
        self._warn = warn
        # (replica type, port): is it free? Asked before the replica takes it itself.
        self._free: Dict[Tuple[str, int], bool] = {}

    def localise(
        self,
        job: TrainingJob,
        spec: ReplicaSpec,
        replica_name: str,
        program: str,
        args: List[str],
        addresses: Addresses,
    ) -> List[str]:
        """The arguments of one of Keelson's programs, with ports that are free here."""
        args = _local_metrics(self._metrics_port(job, spec, args))
        if program == "evaluator" or program == "chief" and job.total_replicas() == 1:
            args = self._dashboard(replica_name, program, args)
        # The port to serve on stands in the local address.
        args = remove_flag(args, "port")
        if job.dynamic_workers and program == "chief" and not has_flag(args, "chief_hosts"):
            # Its sparse TF_CONFIG does not have its own address.
            args.append(f"--chief_hosts={addresses[spec.type][0]}")
        return args

    def prepare_page(self, spec: ReplicaSpec, replica_name: str, environment: Dict[str, str]) -> None:
        """Tells a script whose manifest has a port for the page which one it has here (python/keelson/pod_paths.py)."""
        for port in spec.container.ports:
            if port.name == _PAGE_PORT:
                own = None if self._pages is None else self._pages.of(replica_name, port.port)
                environment["KEELSON_PAGE_PORT"] = "none" if own is None else str(own)

    @staticmethod
    def prepare_metrics(variables: Mapping[str, str], environment: Dict[str, str]) -> None:
        """Has a script whose manifest asks for metrics serve them on any free port, which its log names."""
        if variables.get("KEELSON_METRICS_PORT"):
            environment["KEELSON_METRICS_PORT"] = "0"
            environment.setdefault("KEELSON_METRICS_ADDRESS", LOCAL_ADDRESS)

    def _metrics_port(self, job: TrainingJob, spec: ReplicaSpec, args: List[str]) -> List[str]:
        """0, which means any free port, where others want the same one."""
        port = _port(args, "metrics_port")
        if not port:
            return args
        if job.total_replicas() <= 1:
            if self._free.setdefault((spec.type, port), can_listen(port)):
                return args
            self._warn(
                f"--metrics_port={port} becomes --metrics_port=0, port {port} is taken: "
                "the log names the port"
            )
        return remove_flag(args, "metrics_port") + ["--metrics_port=0"]

    def _dashboard(self, replica_name: str, program: str, args: List[str]) -> List[str]:
        """A port of this run's, and this machine alone, where the manifest does not say otherwise."""
        if self._pages is None:
            for flag in _PAGE_FLAGS[program]:
                args = remove_flag(args, flag)
            return args
        if flag_value(args, "dashboard_port") is not None and _port(args, "dashboard_port") is None:
            return args  # No port: the program says so.
        port = self._pages.of(replica_name, _port(args, "dashboard_port"))
        args = remove_flag(args, "dashboard_port") + [f"--dashboard_port={port}"]
        return args if has_flag(args, "dashboard_address") else args + [f"--dashboard_address={LOCAL_ADDRESS}"]


def _local_metrics(args: List[str]) -> List[str]:
    """Metrics for this machine alone, where the manifest does not say otherwise."""
    if _port(args, "metrics_port") is None or has_flag(args, "metrics_address"):
        return args
    return args + [f"--metrics_address={LOCAL_ADDRESS}"]


def _port(args: List[str], flag: str) -> Optional[int]:
    value = flag_value(args, flag)
    return int(value) if value is not None and value.isdecimal() and int(value) < 65536 else None
