"""A TCP proxy that can be cut and healed, and an address that swallows packets.

The proxy simulates a network that fails between a plugin's Kafka client and the brokers: a broker advertises the
proxy's port, and the test cuts the proxy for as long as it likes.
"""

import contextlib
import socket
import threading
from collections.abc import Iterator
from typing import Self

from harness.system.ports import free_port


class Proxy:
    """Passes bytes between clients and one port of loopback, unless it is cut."""

    def __init__(self, target: int) -> None:
        """Listens on a free port, and passes connections on to the port ``target``."""
        self.port = free_port()
        self._target = target
        self._cut = False
        self._passes = threading.Event()
        self._passes.set()
        self._pairs: list[socket.socket] = []
        self._server = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Closes all connections, and closes each new connection immediately."""
        self._cut = True
        for each in self._pairs:
            _close(each)
        self._pairs.clear()

    def swallow(self) -> None:
        """Passes nothing on, and closes nothing, so no peer notices that the network has failed."""
        self._passes.clear()

    def heal(self) -> None:
        """Accepts connections again, and passes on the swallowed bytes, as TCP does."""
        self._cut = False
        self._passes.set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        _close(self._server)
        self.cut()
        self._passes.set()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._server.accept()
                self._passes.wait()
                server = socket.create_connection(("127.0.0.1", self._target))
            except ConnectionError:
                _close(client)
                continue
            except OSError:
                return
            self._pairs += [client, server]
            if self._cut:  # the cut may be later than this connection
                _close(client)
                _close(server)
            for one, other in ((client, server), (server, client)):
                threading.Thread(target=self._pass, args=(one, other), daemon=True).start()

    def _pass(self, one: socket.socket, other: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := one.recv(65536):
                self._passes.wait()
                other.sendall(data)
        self._passes.wait()
        _close(one)
        _close(other)


@contextlib.contextmanager
def swallowing() -> Iterator[str]:
    """Yields an address that neither accepts nor refuses connections: its queue is full, so the kernel drops them."""
    with contextlib.ExitStack() as sockets:
        server = sockets.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        with contextlib.suppress(TimeoutError):
            while True:
                sockets.enter_context(socket.create_connection(server.getsockname(), timeout=0.2))
        yield f"127.0.0.1:{server.getsockname()[1]}"


def _close(each: socket.socket) -> None:
    with contextlib.suppress(OSError):
        each.shutdown(socket.SHUT_RDWR)
    each.close()
