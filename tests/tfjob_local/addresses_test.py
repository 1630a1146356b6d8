"""Replicas listen on unused addresses, and keep them."""

import contextlib
import socket
import unittest
from unittest import mock

import support  # Sets the path that the next imports need.
from tfjob_api.model import Container, ContainerPort, ReplicaSpec, TrainingJob
from tfjob_local import addresses
from tfjob_local.addresses import (
    DASHBOARD_PORT,
    AddressBook,
    AddressesError,
    DashboardPorts,
    FreePorts,
    LoopbackAliases,
    OwnHosts,
    Reservations,
)


def job(ports=None, **replicas):
    """job(PS=2, Worker=3); `ports`: replica type -> the manifest's port."""
    specs = {}
    for replica_type, count in replicas.items():
        port = (ports or {}).get(replica_type)
        container = Container(ports=(ContainerPort(port, "tfjob-port"),) if port else ())
        specs[replica_type] = ReplicaSpec(replica_type, count, "Never", container)
    return TrainingJob("j", "default", specs)


def free_port():
    with socket.socket() as probe:
        probe.bind(("0.0.0.0", 0))
        return probe.getsockname()[1]


class AddressTest(unittest.TestCase):
    def setUp(self):
        self.reservations = self.enterContext(Reservations())


class OwnHostsTest(AddressTest):
    """A port may be taken on all addresses: no two jobs here have the same."""

    def test_each_replica_has_a_host_of_its_own_and_the_manifests_port(self):
        port = free_port()
        found = AddressBook(OwnHosts(self.reservations)).of(job({"Worker": port, "Master": port}, Master=1, Worker=2))
        everywhere = [address.split(":") for address in found["Master"] + found["Worker"]]
        self.assertEqual({int(number) for _, number in everywhere}, {port})
        self.assertEqual(len({host for host, _ in everywhere}), 3)
        for host, _ in everywhere:
            self.assertRegex(host, r"^127\.")

    def test_another_port_where_a_program_listens_everywhere(self):
        with socket.socket() as server:
            server.bind(("0.0.0.0", 0))
            server.listen()
            taken = server.getsockname()[1]
            found = OwnHosts(self.reservations).allocate([taken, taken])
        ports = {int(address.split(":")[1]) for address in found}
        self.assertEqual(len(ports), 1)
        self.assertNotIn(taken, ports)

    def test_more_replicas_have_the_port_that_the_first_one_listens_on_everywhere(self):
        book, port = AddressBook(OwnHosts(self.reservations)), free_port()
        first = book.of(job({"Worker": port}, Worker=1))["Worker"]
        with socket.socket() as server:
            server.bind(("0.0.0.0", port))
            server.listen()
            found = book.of(job({"Worker": port}, Worker=3))["Worker"]
        self.assertEqual(found[:1], first)
        self.assertEqual({address.split(":")[1] for address in found}, {str(port)})
        self.assertEqual(len(set(found)), 3)

    def test_another_port_where_another_launcher_has_it(self):
        port = free_port()
        OwnHosts(self.reservations).allocate([port])
        with Reservations() as other:
            (address,) = OwnHosts(other).allocate([port])
        self.assertNotEqual(int(address.split(":")[1]), port)


class FreePortsTest(AddressTest):
    def test_each_replica_has_a_port_of_its_own_that_can_be_bound(self):
        found = AddressBook(FreePorts(self.reservations)).of(job(PS=2, Worker=3))
        self.assertEqual({t: len(a) for t, a in found.items()}, {"PS": 2, "Worker": 3})
        everywhere = found["PS"] + found["Worker"]
        self.assertEqual(len(set(everywhere)), 5)
        for address in everywhere:
            host, port = address.split(":")
            self.assertEqual(host, "127.0.0.1")
            with socket.socket() as server:
                server.bind((host, int(port)))

    def test_launchers_at_the_same_time_have_different_ports(self):
        first = FreePorts(self.reservations).allocate([2222] * 200)
        with Reservations() as other:
            second = FreePorts(other).allocate([2222] * 200)
        self.assertFalse(set(first) & set(second))

    def test_a_name_is_free_again_when_its_holder_is_gone(self):
        with Reservations() as other:
            self.assertTrue(other.take("addresses-test", lambda: True))
            self.assertFalse(self.reservations.take("addresses-test", lambda: True))
        self.assertTrue(self.reservations.take("addresses-test", lambda: True))

    def test_what_is_not_usable_is_not_kept(self):
        self.assertFalse(self.reservations.take("addresses-test", lambda: False))
        with Reservations() as other:
            self.assertTrue(other.take("addresses-test", lambda: True))

    def test_too_many_are_an_error(self):
        with mock.patch("tfjob_local.addresses._first_ephemeral_port", return_value=15020):
            with self.assertRaisesRegex(AddressesError, r"^\d+ free ports on 127\.0\.0\.1, 21 needed$"):
                FreePorts(self.reservations).allocate([2222] * 21)


class DashboardPortsTest(AddressTest):
    """The machine's own ports, in a range that is free."""

    def setUp(self):
        super().setUp()
        self.taken = set()
        patch = mock.patch("tfjob_local.addresses.can_listen", lambda port: port not in self.taken)
        patch.start()
        self.addCleanup(patch.stop)
        # A test of another process at the same time may have taken the names.
        self.first = int(FreePorts(self.reservations).allocate([0])[0].split(":")[1]) + 1
        self.enterContext(mock.patch("tfjob_local.addresses.DASHBOARD_PORT", self.first))

    def ports(self, chosen=None):
        return DashboardPorts(self.reservations, chosen)

    def test_the_default_is_tensorboards(self):
        self.assertEqual(DASHBOARD_PORT, 6006)

    def test_default_manifest_and_choice(self):
        self.assertEqual(self.ports().of("evaluator-0", None), self.first)
        self.assertEqual(self.ports().of("evaluator-0", self.first + 10), self.first + 10)
        self.assertEqual(self.ports(self.first + 20).of("evaluator-0", self.first), self.first + 20)

    def test_the_next_one_that_is_free(self):
        self.taken = {self.first, self.first + 1}
        ports = self.ports()
        self.assertEqual(ports.of("evaluator-0", None), self.first + 2)
        self.assertEqual(ports.of("evaluator-1", None), self.first + 3)
        # The port is known from then on, whichever program listens there.
        self.taken.add(self.first + 2)
        self.assertEqual(ports.of("evaluator-0", None), self.first + 2)
        self.assertEqual(ports.known, {"evaluator-0": self.first + 2, "evaluator-1": self.first + 3})

    def test_launchers_at_the_same_time_have_different_ports(self):
        with Reservations() as other:
            self.assertEqual(DashboardPorts(other).of("evaluator-0", None), self.first)
            self.assertEqual(self.ports().of("evaluator-0", None), self.first + 1)

    def test_the_users_choice_is_not_replaced(self):
        self.taken = {self.first}
        with self.assertRaisesRegex(AddressesError, f"^--dashboard_port {self.first}: the port is taken$"):
            self.ports(self.first).of("evaluator-0", None)

    def test_the_users_choice_is_of_the_first_evaluator(self):
        self.taken = {self.first + 1}
        ports = self.ports(self.first)
        self.assertEqual([ports.of(f"evaluator-{i}", None) for i in (0, 1)], [self.first, self.first + 2])

    def test_any_port(self):
        for ports, manifests in ((self.ports(0), self.first), (self.ports(), 0)):
            found = ports.of("evaluator-0", manifests)
            self.assertNotIn(found, (0, self.first))
            self.assertEqual(ports.of("evaluator-0", manifests), found)

    def test_none_is_free(self):
        self.taken = set(range(65536))
        with self.assertRaisesRegex(AddressesError, "^no free port for the dashboard from 65530 to 65535; "):
            self.ports().of("evaluator-0", 65530)


class CanListenTest(unittest.TestCase):
    def test_whom_it_hinders(self):
        with socket.socket() as server:
            server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            server.bind(("127.0.0.1", 0))
            port = server.getsockname()[1]
            server.listen()
            self.assertFalse(addresses.can_listen(port))
            client = socket.create_connection(("127.0.0.1", port))
            connection, _ = server.accept()
        # A connection that the server closes first lingers, and does not block the port.
        connection.close()
        client.close()
        self.assertTrue(addresses.can_listen(port))


class ScaleTest(AddressTest):
    def test_addresses_of_replicas_never_change(self):
        book = AddressBook(FreePorts(self.reservations))
        small = job(PS=1, Worker=1)
        before = book.of(small)
        more = book.of(small.with_replicas({"Worker": 3}))
        self.assertEqual(more["PS"], before["PS"])
        self.assertEqual(more["Worker"][:1], before["Worker"])
        self.assertEqual(len(set(more["Worker"])), 3)
        self.assertEqual(book.of(small), before)
        self.assertEqual(book.of(small.with_replicas({"Worker": 3})), more)


class LoopbackAliasesTest(AddressTest):
    def allocate(self, count, port):
        return LoopbackAliases(self.reservations).allocate([port] * count)

    def test_the_manifests_ports_on_addresses_of_one_network(self):
        worker, ps = free_port(), free_port()
        book = AddressBook(LoopbackAliases(self.reservations))
        addresses = book.of(job(ports={"Worker": worker, "PS": ps}, PS=1, Worker=2))
        self.assertEqual([a.split(":")[1] for a in addresses["Worker"]], [str(worker)] * 2)
        self.assertEqual(addresses["PS"][0].split(":")[1], str(ps))
        hosts = [a.split(":")[0] for a in addresses["Worker"] + addresses["PS"]]
        self.assertEqual(len(set(hosts)), 3)
        self.assertEqual(len({host.rpartition(".")[0] for host in hosts}), 1)
        self.assertTrue(all(host.startswith("127.") and not host.startswith("127.0.0.") for host in hosts))

    def test_more_than_a_networks_hosts(self):
        addresses = self.allocate(300, free_port())
        self.assertEqual(len(set(addresses)), 300)

    def test_an_address_that_is_taken_is_left_out(self):
        port = free_port()
        source = LoopbackAliases(self.reservations)
        first = source.allocate([port])[0].split(":")[0]
        network = first.rpartition(".")[0]
        with contextlib.closing(socket.socket()) as taken:
            taken.bind((f"{network}.2", port))
            self.assertEqual(source.allocate([port]), [f"{network}.3:{port}"])

    def test_a_port_that_is_taken_everywhere_is_an_error(self):
        with socket.socket() as everywhere:
            everywhere.bind(("0.0.0.0", 0))
            everywhere.listen()
            port = everywhere.getsockname()[1]
            with self.assertRaisesRegex(AddressesError, f"port {port} is not free on any 127.x.y.z"):
                self.allocate(1, port)

    def test_two_launchers_have_different_networks(self):
        port = free_port()
        first = self.allocate(1, port)[0].rpartition(".")[0]
        with Reservations() as other:
            self.assertFalse(other.take(f"network-{first}", lambda: True))
