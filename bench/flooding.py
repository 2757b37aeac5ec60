"""A client that never backs off: it sends large produce requests one upon the other, whatever the broker answers.

It runs as a process of its own, so that it doesn't delay the client beside it whose latency a bench measures.
"""

from __future__ import annotations

import multiprocessing
import os
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from harness.clients.raw import PRODUCE, produce_body
from harness.clients.rawbatch import record_batch
from harness.kafka.node import KafkaNode
from harness.kafka.settings import INTERNAL

REQUEST_BYTES: Final = 1_000_000  # of the one record in each request
_READ: Final = 65_536


@contextmanager
def flood(node: KafkaNode, topic: str, connections: int, *, reconnects: bool = False) -> Iterator[None]:
    """Floods a topic as ANONYMOUS while the body runs.

    A connection carries requests without waiting for answers, or, if it ``reconnects``, one request and its answer.
    """
    spawn = multiprocessing.get_context("spawn")
    work = (os.getpid(), node.ports[INTERNAL], topic, connections, reconnects)
    process = spawn.Process(target=_run, args=work, daemon=True)
    process.start()
    try:
        yield
    finally:
        process.terminate()
        process.join()


def _run(parent: int, port: int, topic: str, connections: int, reconnects: bool) -> None:
    request = struct.pack(">hhih", *PRODUCE, 0, 5) + b"flood" + produce_body(topic, record_batch(REQUEST_BYTES))
    data = struct.pack(">i", len(request)) + request
    send = _reconnect_forever if reconnects else _pipeline
    for _ in range(connections):
        threading.Thread(target=send, args=(port, data), daemon=True).start()
    while os.getppid() == parent:  # a bench that was killed can't end this process
        time.sleep(0.5)


def _pipeline(port: int, data: bytes) -> None:
    connection = socket.create_connection(("127.0.0.1", port))
    threading.Thread(target=_drain, args=(connection,), daemon=True).start()
    while True:
        connection.sendall(data)


def _drain(connection: socket.socket) -> None:
    while connection.recv(_READ):
        pass


def _reconnect_forever(port: int, data: bytes) -> None:
    while True:
        try:
            with suppress(ConnectionResetError, BrokenPipeError), socket.create_connection(("127.0.0.1", port)) as made:
                made.sendall(data)
                made.recv(_READ)
        except OSError:
            time.sleep(0.1)  # no broker listens there: it has not started yet, or has ended
