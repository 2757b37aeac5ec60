"""Makes many client-ids known to a broker without starting a client for each.

Every Kafka request names its client-id, whatever connection it comes over. So one connection can send requests of
a hundred thousand clients, which tests of the quota table and of newcomers need.
"""

import itertools
import socket
import struct
from collections.abc import Iterable
from typing import BinaryIO, Final

from harness.kafka.node import KafkaNode

# The key and version of ApiVersions. Version 0 has no body, and Kafka charges it to the REQUEST quota like any request.
_API_VERSIONS: Final = (18, 0)
_BATCH: Final = 500  # requests that are sent before their responses are read


def introduce_clients(
    node: KafkaNode, client_ids: Iterable[str | None], api: tuple[int, int] = _API_VERSIONS, body: bytes = b""
) -> int:
    """Sends one request for each client-id, as ANONYMOUS, and waits for the responses.

    Args:
        node: a running broker.
        client_ids: any text, also the empty one, which librdkafka cannot send; None sends no client-id at all.
        api: the key and version of the request; one whose header has version 1.
        body: of each request.

    Returns:
        How many requests the broker answered.

    Raises:
        ConnectionError: the broker closed the connection.
    """
    requests = (_request(client_id, api, body) for client_id in client_ids)
    answered = 0
    address = ("127.0.0.1", int(node.bootstrap.rpartition(":")[2]))
    with socket.create_connection(address, timeout=60) as sock, sock.makefile("rb") as answers:
        while batch := list(itertools.islice(requests, _BATCH)):
            sock.sendall(b"".join(batch))
            for _ in batch:
                _skip_answer(answers)
            answered += len(batch)
    return answered


def _request(client_id: str | None, api: tuple[int, int], body: bytes) -> bytes:
    """A request with header version 1: api key, api version, correlation id, client-id."""
    name = None if client_id is None else client_id.encode()
    header = struct.pack(">hhih", *api, 0, -1 if name is None else len(name)) + (name or b"")
    return struct.pack(">i", len(header) + len(body)) + header + body


def _skip_answer(answers: BinaryIO) -> None:
    length = answers.read(4)
    if len(length) < 4 or len(answers.read(int.from_bytes(length))) < int.from_bytes(length):
        raise ConnectionError("the broker closed the connection")
