"""A client that sends single requests of known size at known times.

Tests use this client to predict Kafka's throttle times to the millisecond, which a real client's batching and
pipelining would hide. kafka-python's classes encode and decode the messages, in versions that the caller knows: in old
versions, whose requests are short, and for changes of topics also in versions that know strict quotas (KIP-599). A
client with a strict version gets an error for each refused topic. For an older version the broker does everything and
then mutes the connection.
"""

import itertools
import select
import socket
import struct
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, Self

from kafka.protocol.admin import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from kafka.protocol.consumer import FetchRequest, FetchResponse
from kafka.protocol.producer import ProduceRequest, ProduceResponse
from kafka.record.memory_records import MemoryRecordsBuilder

from harness.kafka.node import KafkaNode
from harness.kafka.settings import INTERNAL

Kind = Literal["create", "grow", "delete"]

PRODUCE: Final = (0, 3)  # the key and version of Produce
QUOTA_EXCEEDED: Final = 89  # Errors.THROTTLING_QUOTA_EXCEEDED
_FETCH, _API_VERSIONS = (1, 4), (18, 0)
_ACKS, _TIMEOUT_MS, _WAIT_MS = -1, 10_000, 0
_BATCH: Final = 500  # clients that send requests before their responses are read
#: The last version without strict quotas and the first version with them, by kind.
_MUTATIONS: Final = {"create": (4, 6), "grow": (1, 3), "delete": (3, 5)}
_ANSWERS: Final[dict[int, Any]] = {
    0: ProduceResponse, 1: FetchResponse, 19: CreateTopicsResponse, 20: DeleteTopicsResponse,
    37: CreatePartitionsResponse,
}  # fmt: skip


def now_ms() -> int:
    """Returns the wall clock as Kafka reads it: ``Time.SYSTEM.milliseconds``."""
    return time.time_ns() // 1_000_000


@dataclass(frozen=True, slots=True)
class RoundTrip:
    """One request and its response.

    The broker read its clock at some moment between ``sent_ms`` and ``received_ms``.
    """

    api: tuple[int, int]  # key and version of request and response
    sent_ms: int  # wall clock in ms before the request was sent
    received_ms: int  # wall clock in ms when the response was there
    body_size: int  # bytes of the request without its header; a PRODUCE quota is charged with these bytes
    response: bytes  # the response from its correlation id on; a FETCH quota is charged with its length

    @property
    def duration_ms(self) -> int:
        """The milliseconds from sending to receiving: the uncertainty of the moment of the charge."""
        return self.received_ms - self.sent_ms

    @property
    def answer(self) -> Any:
        """The response as kafka-python decodes it."""
        key, version = self.api
        return _ANSWERS[key].decode(self.response, version=version, header=True)

    @property
    def throttle_ms(self) -> int:
        """The time in ms for which the broker mutes the connection, or tells the client to wait."""
        return int(self.answer.throttle_time_ms)

    @property
    def errors(self) -> dict[str, tuple[int, str | None]]:
        """Error code and message by topic, in the order of the answer; no message before DeleteTopics v5."""
        answer = self.answer
        topics = next(getattr(answer, name) for name in ("topics", "results", "responses") if hasattr(answer, name))
        return {topic.name: (topic.error_code, topic.error_message) for topic in topics}


class RawClient:
    """One connection, as ANONYMOUS.

    A broker that throttles the client mutes its connection, so the next response comes later. Every method raises
    ConnectionError if the broker closes the connection, and TimeoutError if no response comes in time.
    """

    def __init__(self, node: KafkaNode, client_id: str | None, listener: str = INTERNAL) -> None:
        """Connects to a listener of the node. With ``client_id`` None, requests carry no client-id."""
        self.rename(client_id)
        self._socket: Final = socket.create_connection(("127.0.0.1", node.ports[listener]))

    def rename(self, client_id: str | None) -> None:
        """Makes further requests carry this client-id: one connection can be many clients."""
        name = None if client_id is None else client_id.encode()
        self._client = struct.pack(">h", -1 if name is None else len(name)) + (name or b"")

    def produce(self, topic: str, batch: bytes) -> RoundTrip:
        """Sends a record batch to partition 0, by Produce v3."""
        return self.ask(PRODUCE, produce_body(topic, batch))

    def fetch(self, topic: str, max_bytes: int) -> RoundTrip:
        """Reads partition 0 from its beginning, by Fetch v4."""
        partition = FetchRequest.FetchTopic.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=max_bytes)
        topics = [FetchRequest.FetchTopic(topic=topic, partitions=[partition])]
        request = FetchRequest(
            replica_id=-1, max_wait_ms=_WAIT_MS, min_bytes=0, max_bytes=max_bytes, isolation_level=0, topics=topics
        )
        return self.ask(_FETCH, request.encode(version=_FETCH[1]))

    def mutate(
        self, kind: Kind, topics: Mapping[str, int], *, strict: bool = True, validate_only: bool = False
    ) -> RoundTrip:
        """Changes topics with one request; its answer comes before the connection is muted.

        Args:
            kind: sends CreateTopics v6, CreatePartitions v3 or DeleteTopics v5; if not strict v4, v1 or v3.
            topics: the number of partitions that each topic shall have, by name; "delete" ignores the number.
            strict: whether to use a version that gets an error when the quota is exceeded.
            validate_only: the broker checks the request but changes nothing; not for "delete".
        """
        options: dict[str, Any] = {"timeout_ms": 3 * _TIMEOUT_MS}
        if kind != "delete":
            options["validate_only"] = validate_only
        request: Any
        if kind == "create":
            form = CreateTopicsRequest.CreatableTopic
            named = [form(name=name, num_partitions=count, replication_factor=1) for name, count in topics.items()]
            request = CreateTopicsRequest(topics=named, **options)
        elif kind == "grow":
            grown = CreatePartitionsRequest.CreatePartitionsTopic
            more = [grown(name=name, count=count, assignments=None) for name, count in topics.items()]
            request = CreatePartitionsRequest(topics=more, **options)
        else:
            request = DeleteTopicsRequest(topic_names=list(topics), **options)
        version = _MUTATIONS[kind][strict]
        # The tags at the end of a flexible header (KIP-482) stand before the body.
        body = (b"\0" if strict else b"") + request.encode(version=version)
        return self.ask((request.API_KEY, version), body)

    def ping(self) -> None:
        """Sends ApiVersions v0, and doesn't wait for the response; see ``has_response``."""
        self._send(_API_VERSIONS, b"")

    def has_response(self, within: float) -> bool:
        """Returns whether the response to a ping arrives within so many seconds; if so, reads the response."""
        if not select.select([self._socket], [], [], within)[0]:
            return False
        self._receive(within)
        return True

    def ask(self, api: tuple[int, int], body: bytes, timeout: float = 60) -> RoundTrip:
        """Sends one request (``api`` is its key and version) and waits for the response."""
        sent = now_ms()
        self._send(api, body)
        response = self._receive(timeout)
        return RoundTrip(api, sent, now_ms(), len(body), response)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def _send(self, api: tuple[int, int], body: bytes) -> None:
        request = struct.pack(">hhi", *api, 0) + self._client + body
        self._socket.sendall(struct.pack(">i", len(request)) + request)

    def _receive(self, timeout: float) -> bytes:
        self._socket.settimeout(timeout)
        return self._exactly(int.from_bytes(self._exactly(4)))

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            part = self._socket.recv(size - len(data))
            if not part:
                raise ConnectionError("the broker closed the connection")
            data += part
        return data


def introduce_clients(
    node: KafkaNode, client_ids: Iterable[str | None], api: tuple[int, int] = _API_VERSIONS, body: bytes = b""
) -> int:
    """Introduces clients with one request of each, all over one connection, as ANONYMOUS.

    Args:
        node: a running broker.
        client_ids: any text, also the empty one, which librdkafka cannot send; None sends no client-id at all.
        api: the key and version of the request. ApiVersions v0 has no body, and Kafka charges it to the REQUEST quota.
        body: of each request.

    Returns:
        The number of requests that the broker answered.
    """
    answered, names = 0, iter(client_ids)
    with RawClient(node, None) as client:
        while batch := list(itertools.islice(names, _BATCH)):
            for client_id in batch:
                client.rename(client_id)
                client._send(api, body)
            for _ in batch:
                client._receive(60)
            answered += len(batch)
    return answered


def produce_body(topic: str, batch: bytes) -> bytes:
    """Returns the body of a Produce request with a record batch for partition 0."""
    data = ProduceRequest.TopicProduceData
    partition = data.PartitionProduceData(index=0, records=batch)
    topics = [data(name=topic, partition_data=[partition])]
    request = ProduceRequest(transactional_id=None, acks=_ACKS, timeout_ms=_TIMEOUT_MS, topic_data=topics)
    return bytes(request.encode(version=PRODUCE[1]))


def record_batch(value: int | bytes) -> bytes:
    """Returns a batch of Kafka's message format 2 with one record without a key: this value, or so many zeros."""
    content = bytes(value)
    builder = MemoryRecordsBuilder(magic=2, compression_type=0, batch_size=len(content) + 1000)
    builder.append(timestamp=now_ms(), key=None, value=content)
    builder.close()
    return bytes(builder.buffer())
