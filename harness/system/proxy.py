"""A TCP proxy that can be cut and healed.

It stands for a network that fails between a plugin's Kafka client and the brokers: a broker advertises the proxy's
port, and the test cuts the proxy for as long as it likes.
"""

import contextlib
import socket
import threading
from typing import Self

from harness.system.ports import free_port


class Proxy:
    """Passes bytes between clients and one port of loopback, unless it is cut."""

    def __init__(self, target: int) -> None:
        """Listens on a free port, and passes connections on to the port ``target``."""
        self.port = free_port()
        self._target = target
        self._cut = False
        self._pairs: list[socket.socket] = []
        self._server = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Closes all connections; closes each new one at once."""
        self._cut = True
        for each in self._pairs:
            _close(each)
        self._pairs.clear()

    def heal(self) -> None:
        """Accepts connections again."""
        self._cut = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        _close(self._server)
        self.cut()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._server.accept()
                if self._cut:
                    _close(client)
                    continue
                server = socket.create_connection(("127.0.0.1", self._target))
            except ConnectionError:
                _close(client)
                continue
            except OSError:
                return
            self._pairs += [client, server]
            for one, other in ((client, server), (server, client)):
                threading.Thread(target=_pass, args=(one, other), daemon=True).start()


def _pass(one: socket.socket, other: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := one.recv(65536):
            other.sendall(data)
    _close(one)
    _close(other)


def _close(each: socket.socket) -> None:
    with contextlib.suppress(OSError):
        each.shutdown(socket.SHUT_RDWR)
    each.close()
