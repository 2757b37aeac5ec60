"""A TCP proxy that can be cut and healed, for a network that fails."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import Self

from harness.system.ports import free_port


class Proxy:
    """Passes bytes between clients and one address of loopback, while it isn't cut."""

    def __init__(self, target: int) -> None:
        """Begins to listen on a free port.

        Args:
            target: the port to pass to.
        """
        self.port = free_port()
        self._target = target
        self._cut = False
        self._pairs: list[socket.socket] = []
        self._server = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Closes all connections, and every new one at once."""
        self._cut = True
        for each in self._pairs:
            _close(each)
        self._pairs.clear()

    def heal(self) -> None:
        """Takes connections again."""
        self._cut = False

    def __enter__(self) -> Self:
        """As it is."""
        return self

    def __exit__(self, *_: object) -> None:
        """Ends it and its connections."""
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
