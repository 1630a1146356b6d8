"""Chooses the address on which each replica listens on this machine: a free port, or an address of its own.

The ports lie below the range that the kernel gives to outgoing connections, so that no client takes
one while its replica is being restarted. Launchers that run at the same time keep out of each other's
way by a socket of that port's (or network's) name in the abstract namespace; the kernel frees it with
the launcher.
"""

import functools
import itertools
import random
import socket
from typing import Callable, Dict, List, Mapping, Optional, Protocol, Sequence, Tuple

from tfjob_api.model import TrainingJob

HOST = "127.0.0.1"
_LOWEST_PORT = 15000
# Networks 127.x.y.0/24 that are tried before giving up; 127.0.0.0/24 is left to others.
_NETWORK_TRIES = 64
_HOSTS_PER_NETWORK = 254
# For the first evaluator's page, and how many ports from there on are tried.
DASHBOARD_PORT = 6006
_DASHBOARD_TRIES = 100


class AddressesError(Exception):
    """No free port or address was found; the text is one line."""


class Reservations:
    """Names that no other launcher of this machine holds while this one does."""

    def __init__(self) -> None:
        self._sockets: List[socket.socket] = []

    def __enter__(self) -> "Reservations":
        return self

    def __exit__(self, *unused: object) -> None:
        for reservation in self._sockets:
            reservation.close()
        self._sockets.clear()

    def take(self, name: str, usable: Callable[[], bool]) -> bool:
        """False: another launcher holds the name, or the port or network is not `usable`."""
        reservation = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            reservation.bind(f"\0keelson-{name}")
        except OSError:
            reservation.close()
            return False
        if not usable():
            reservation.close()
            return False
        self._sockets.append(reservation)
        return True


class FreePorts:
    """A port of 127.0.0.1 for every replica."""

    def __init__(self, reservations: Reservations):
        self._reservations = reservations

    def allocate(self, wanted_ports: Sequence[int]) -> List[str]:
        """One "host:port" for each of `wanted_ports`, whose numbers do not matter here."""
        end = _first_ephemeral_port()
        start = random.randrange(_LOWEST_PORT, end)
        addresses: List[str] = []
        for port in itertools.chain(range(start, end), range(_LOWEST_PORT, start)):
            if len(addresses) == len(wanted_ports):
                break
            if self._reservations.take(f"port-{port}", functools.partial(_can_bind, "0.0.0.0", port)):
                addresses.append(f"{HOST}:{port}")
        if len(addresses) < len(wanted_ports):
            raise AddressesError(f"{len(addresses)} free ports on {HOST}, {len(wanted_ports)} needed")
        return addresses


class LoopbackAliases:
    """The manifest's own ports, each replica on its own 127.x.y.z."""

    def __init__(self, reservations: Reservations):
        self._reservations = reservations
        # The addresses of the last network that was reserved and are not given out yet.
        self._hosts: List[str] = []

    def allocate(self, wanted_ports: Sequence[int]) -> List[str]:
        addresses: List[str] = []
        for port in wanted_ports:
            while not (self._hosts and _can_bind(self._hosts[0], port)):
                if len(self._hosts) > 1:
                    del self._hosts[0]
                else:
                    self._hosts = self._reserve_network(port)
            addresses.append(f"{self._hosts.pop(0)}:{port}")
        return addresses

    def _reserve_network(self, port: int) -> List[str]:
        hosts = _take_network(self._reservations, lambda host: _can_bind(host, port))
        if not hosts:
            raise AddressesError(
                f"port {port} is not free on any 127.x.y.z that was tried: a program that listens on "
                f"0.0.0.0:{port} takes it everywhere; without --loopback_aliases other ports are used"
            )
        return hosts


class OwnHosts:
    """A 127.x.y.z for each replica, and the manifest's own port, which is this job's on all addresses of the machine:
    torch listens on all of them. Another port where something else may have it."""

    def __init__(self, reservations: Reservations):
        self._reservations = reservations
        self._hosts: List[str] = []
        # The manifest's port -> the one here.
        self._ports: Dict[int, int] = {}

    def allocate(self, wanted_ports: Sequence[int]) -> List[str]:
        # A replica of this job may listen everywhere by now: the port is not tried again.
        return [f"{self._host()}:{self._port(port)}" for port in wanted_ports]

    def _host(self) -> str:
        if not self._hosts:
            self._hosts = _take_network(self._reservations, lambda host: True)
        if not self._hosts:
            raise AddressesError("no network 127.x.y.0/24 that was tried is free of other launchers")
        return self._hosts.pop(0)

    def _port(self, port: int) -> int:
        if port not in self._ports:
            is_free = self._reservations.take(f"port-{port}", functools.partial(can_listen, port))
            self._ports[port] = port if is_free else _free_port(self._reservations)
        return self._ports[port]


class DashboardPorts:
    """A port for the page of each evaluator: the requested one, or the next free one."""

    def __init__(self, reservations: Reservations, chosen: Optional[int] = None):
        """`chosen`: by the user, in place of the manifest's; 0: any free one."""
        self._reservations = reservations
        self._chosen = chosen
        self._known: Dict[str, int] = {}

    @property
    def known(self) -> Mapping[str, int]:
        """Replica name ("evaluator-0") -> its port, for all that were requested."""
        return self._known

    def of(self, replica_name: str, manifests: Optional[int]) -> int:
        """The same for each restart. AddressesError: the user's choice is taken, or all are."""
        if replica_name not in self._known:
            self._known[replica_name] = self._find(manifests)
        return self._known[replica_name]

    def _find(self, manifests: Optional[int]) -> int:
        wanted = next((port for port in (self._chosen, manifests) if port is not None), DASHBOARD_PORT)
        if wanted == 0:
            return _free_port(self._reservations)
        if wanted == self._chosen and not self._known:
            if not self._take(wanted):
                raise AddressesError(f"--dashboard_port {wanted}: the port is taken")
            return wanted
        last = min(wanted + _DASHBOARD_TRIES - 1, 65535)
        for port in range(wanted, last + 1):
            if self._take(port):
                return port
        raise AddressesError(
            f"no free port for the dashboard from {wanted} to {last}; --dashboard_port=0 takes any"
        )

    def _take(self, port: int) -> bool:
        return self._reservations.take(f"port-{port}", functools.partial(can_listen, port))


class AddressSource(Protocol):
    def allocate(self, wanted_ports: Sequence[int]) -> List[str]: ...


class AddressBook:
    """The addresses of one job's replicas: more with every scale-up, none ever changes."""

    def __init__(self, source: AddressSource):
        self._source = source
        self._known: Dict[str, List[str]] = {}

    def of(self, job: TrainingJob) -> Dict[str, List[str]]:
        """Replica type -> address of each replica that `job` has now."""
        wanted = self._missing(job)
        for (replica_type, _), address in zip(wanted, self._source.allocate([port for _, port in wanted])):
            self._known[replica_type].append(address)
        return {
            replica_type: self._known[replica_type][: spec.replicas]
            for replica_type, spec in job.replica_specs.items()
        }

    def _missing(self, job: TrainingJob) -> List[Tuple[str, int]]:
        missing = []
        for replica_type, spec in job.replica_specs.items():
            known = self._known.setdefault(replica_type, [])
            missing += [(replica_type, spec.port)] * (spec.replicas - len(known))
        return missing


def _take_network(reservations: Reservations, usable: Callable[[str], bool]) -> List[str]:
    """The hosts of a network whose first one is `usable`; none: too many are not, or are other launchers'."""
    for _ in range(_NETWORK_TRIES):
        network = f"127.{random.randint(1, 254)}.{random.randint(0, 255)}"
        if reservations.take(f"network-{network}", functools.partial(usable, f"{network}.1")):
            return [f"{network}.{host}" for host in range(1, _HOSTS_PER_NETWORK + 1)]
    return []


def _free_port(reservations: Reservations) -> int:
    return int(FreePorts(reservations).allocate([0])[0].rpartition(":")[2])


def can_listen(port: int) -> bool:
    """Binds like a server: ended connections that linger do not block the port."""
    return _can_bind("0.0.0.0", port, reuse=True)


def _can_bind(host: str, port: int, reuse: bool = False) -> bool:
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, reuse)
            probe.bind((host, port))
    except OSError:
        return False
    return True


def _first_ephemeral_port() -> int:
    low: Optional[int] = None
    try:
        with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as file:
            low = int(file.read().split()[0])
    except (OSError, ValueError):
        pass
    return low if low is not None and low > _LOWEST_PORT + 1000 else 32768
