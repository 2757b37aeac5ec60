"""Finds free TCP ports on the loopback address.

A node chooses its ports when it is set up and keeps them over restarts, so no other process may take them meanwhile.
"""

import itertools
import os
import socket
from typing import Final

# These ports lie below every system's range for outgoing connections, so that no client takes a port between the choice
# and the broker's start. Each process begins at a different place: parallel test workers have neighbouring pids, so
# their places lie a thousand ports apart.
_FIRST: Final = 15_000
_COUNT: Final = 15_000
_offsets = itertools.count(os.getpid() * 1_009)


def free_port() -> int:
    """Returns a port on which nobody listens and which this process has not used lately.

    Raises:
        OSError: every port is taken.
    """
    for _ in range(_COUNT):
        port = _FIRST + next(_offsets) % _COUNT
        if _is_free(port):
            return port
    raise OSError(f"no free port from {_FIRST} to {_FIRST + _COUNT}")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # like Kafka's own sockets
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
