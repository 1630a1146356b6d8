"""A free port on this machine for every replica.

The ports lie below the range that the kernel gives to outgoing connections, so that no client takes
one while its replica is being restarted. Launchers that run at the same time keep out of each other's
way by a socket of that port's name in the abstract namespace; the kernel frees it with the launcher.
"""

import random
import socket
from typing import List

from .job import TFJob
from .tf_config import Addresses

HOST = "127.0.0.1"
_LOWEST_PORT = 15000


class PortsError(Exception):
    """No free port was found."""


class PortAllocator:
    """Keeps its ports reserved against other launchers while it is open."""

    def __init__(self) -> None:
        self._reservations: List[socket.socket] = []

    def __enter__(self) -> "PortAllocator":
        return self

    def __exit__(self, *unused: object) -> None:
        for reservation in self._reservations:
            reservation.close()
        self._reservations.clear()

    def allocate(self, count: int) -> List[int]:
        candidates = list(range(_LOWEST_PORT, _first_ephemeral_port()))
        random.shuffle(candidates)
        ports: List[int] = []
        for port in candidates:
            if len(ports) == count:
                break
            if self._reserve(port):
                ports.append(port)
        if len(ports) < count:
            raise PortsError(f"{len(ports)} free ports on {HOST}, {count} needed")
        return ports

    def _reserve(self, port: int) -> bool:
        reservation = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            reservation.bind(f"\0keelson-port-{port}")
            with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
                probe.bind(("0.0.0.0", port))
        except OSError:
            reservation.close()
            return False
        self._reservations.append(reservation)
        return True


def local_addresses(job: TFJob, allocator: PortAllocator) -> Addresses:
    ports = iter(allocator.allocate(job.total_replicas()))
    return {
        replica_type: [f"{HOST}:{next(ports)}" for _ in range(spec.replicas)]
        for replica_type, spec in job.replica_specs.items()
    }


def _first_ephemeral_port() -> int:
    try:
        with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as file:
            low = int(file.read().split()[0])
    except (OSError, ValueError):
        low = 32768
    return low if low > _LOWEST_PORT + 1000 else 32768
