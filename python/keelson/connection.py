"""The script's end of a connection with one of Keelson's programs: packets out and in, and the memory that comes with them."""

from __future__ import annotations

import array
import mmap
import os
import socket
import struct
import weakref
from typing import Callable, List, Optional

from . import protocol
from .errors import AgentLost

SLICE_SECONDS = 0.2
# 0 would be no wait at all, and another kind of error.
_SHORTEST_SECONDS = 1e-4


class Connection:
    """One thread uses it. Every wait is made of slices of 0.2 s, between which `on_slice` is called, which may raise."""

    def __init__(self, connection: socket.socket, program: str, on_slice: Callable[[], None]) -> None:
        """`program`: the name of the one at the other end, for errors."""
        # Waits are the kernel's: Python's own would take two more system calls for each message.
        connection.settimeout(None)
        _bound(connection, socket.SO_SNDTIMEO, SLICE_SECONDS)
        _bound(connection, socket.SO_RCVTIMEO, SLICE_SECONDS)
        self._longest_wait = SLICE_SECONDS
        _connections.add(connection)
        self._socket = connection
        self._program = program
        self.on_slice = on_slice
        self._was_reset = False
        self._buffer = bytearray(protocol.MAX_BYTES)
        # Of memory that has come and was not taken.
        self.descriptors: List[int] = []

    def send(self, packet: bytes) -> bool:
        """False: the program is gone. What it said before that can still be received."""
        while True:
            try:
                self._socket.send(packet)
                return True
            except BlockingIOError:
                self.on_slice()
            except OSError:
                return False

    def receive(self, patience: float = SLICE_SECONDS) -> Optional[memoryview]:
        """A packet, which lasts until the next one; an empty one: the program is gone; None: none came within `patience`,
        which is a slice at the most."""
        wait = min(SLICE_SECONDS, max(_SHORTEST_SECONDS, patience))
        if wait != self._longest_wait:
            _bound(self._socket, socket.SO_RCVTIMEO, wait)
            self._longest_wait = wait
        try:
            count, ancillary, _, _ = self._socket.recvmsg_into([self._buffer], socket.CMSG_SPACE(4))
        except BlockingIOError:
            return None
        except ConnectionResetError:
            # It comes before the messages that are still there.
            self._was_reset, is_second = True, self._was_reset
            return memoryview(b"") if is_second else None
        except OSError:
            return memoryview(b"")
        for level, kind, data in ancillary:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                self.descriptors += array.array("i", data)
        return memoryview(self._buffer)[:count]

    def take_memory(self, byte_count: int) -> memoryview:
        """That which came last. It stays mapped as long as anybody has a view. AgentLost: none came."""
        if not self.descriptors:
            raise AgentLost(f"{self._program}: expected memory, found none")
        descriptor = self.descriptors.pop()
        try:
            return memoryview(mmap.mmap(descriptor, byte_count))
        finally:
            os.close(descriptor)

    def close(self) -> None:
        self._socket.close()
        for descriptor in self.descriptors:
            os.close(descriptor)
        self.descriptors.clear()


def _bound(connection: socket.socket, wait: int, seconds: float) -> None:
    """`wait`: SO_RCVTIMEO or SO_SNDTIMEO, after which a call fails with EAGAIN."""
    whole = int(seconds)
    connection.setsockopt(socket.SOL_SOCKET, wait, struct.pack("@ll", whole, round(1e6 * (seconds - whole))))


class _Connections(weakref.WeakSet):  # type: ignore[type-arg]
    """Workers of a DataLoader are forked, and may outlive a script that is killed: if they had its end of the connection,
    the program would not see that it is gone."""

    def __init__(self) -> None:
        super().__init__()
        os.register_at_fork(after_in_child=self._close)

    def _close(self) -> None:
        for connection in list(self):
            connection.close()


_connections = _Connections()
