"""Measures what a client that never backs off costs a broker that turns it back, beside one that Kafka throttles.

The client sends 1 MB produce requests as fast as it can. The closed fence of one broker turns the client back, and the
topic's quota on another. Stock brokers throttle it with a client quota of the same rate, and with a request quota,
whose longest throttle time is as long as a refusal's: one quota window.
"""

import multiprocessing
import os
import socket
import struct
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from bench.markdown import table
from bench.names import OtherClient
from harness.clients.raw import PRODUCE, produce_body, record_batch
from harness.java.jmx import Jmx
from harness.kafka.admin import create_topic, set_quota
from harness.kafka.node import KafkaNode
from harness.kafka.settings import INTERNAL
from harness.plugin import FENCE, JAR, plugin_properties
from harness.system.process import cpu_seconds

RATE: Final = 5_000_000  # bytes/s that the quotas allow
FIRST: Final = 5.0  # seconds in which the JVM warms up, client quotas apply, and topic quotas let a burst pass
WARM_UP: Final = 3.0  # seconds
MEASURED: Final = 8.0  # seconds
USERS: Final = {"alice": "secret"}  # alice is exempt; names.OtherClient measures her latency
_REQUESTS: Final = "kafka.network:type=RequestMetrics,name=RequestBytes,request=Produce"

REQUEST_BYTES: Final = 1_000_000  # bytes of the one record in each request
_READ: Final = 65_536


class Means(StrEnum):
    """The means with which a broker holds the client off."""

    THROTTLED = "throttled, client quota"
    REQUESTS = "throttled, request quota"
    FENCE = "turned back, fence"
    TOPIC = "turned back, topic quota"


STOCK: Final[Mapping[Means, Mapping[str, float]]] = {
    Means.THROTTLED: {"producer_byte_rate": RATE},
    Means.REQUESTS: {"request_percentage": 0.001},
}

# The number of connections, and whether each is closed after one request, by name.
CLIENTS: Final = {
    "4 connections": (4, False),
    "16 connections": (16, False),
    "4 threads that reconnect for each request": (4, True),
    "no such client": (0, False),
}


@dataclass(frozen=True)
class Cost:
    """The broker's costs per second of the measurement, and the p99 in ms of another client's records."""

    cpu: float  # seconds of CPU
    received: float  # bytes of produce requests
    appended: float  # bytes of the topic's records
    requests: float
    p99: float


@contextmanager
def running(means: Means) -> Iterator[KafkaNode]:
    """Runs a broker that holds off every client except alice, for the topic ``flooded``."""
    settings = {"static.excluded.principal.name.list": "User:alice", "fence.authorizer": "none"}
    if means is Means.FENCE:
        settings |= {"factor.source": "fixed", "plugin.fixed.factor": "0", "static.produce": str(RATE)}
    if means is Means.TOPIC:
        settings |= {"topics.total.bytes.in.per.sec.threshold": str(RATE)}
        settings |= {"topics.bytes.in.per.sec.threshold": f"flooded:{RATE}"}
    stock = STOCK.get(means)
    properties = {} if stock else plugin_properties(settings) | FENCE
    with (
        tempfile.TemporaryDirectory() as folder,
        KafkaNode(Path(folder), classpath=[JAR], properties=properties, users=USERS, heap="1g", jvm_options=()) as node,
    ):
        for topic in ("t", "flooded"):
            create_topic(node, topic, config={"retention.bytes": "200000000", "segment.bytes": "50000000"})
        if stock:
            set_quota(node, stock, user="ANONYMOUS")
        yield node


def cost(node: KafkaNode, connections: int, reconnects: bool) -> Cost:
    """Lets the client run for a while, and returns the costs."""
    with flood(node, "flooded", connections, reconnects=reconnects):
        other = OtherClient(node).start()
        time.sleep(WARM_UP)
        other.delays.clear()  # its first records waited for the connection, and 1 % of the others are few
        began = time.monotonic()
        cpu, (count, received), appended = cpu_seconds(node.pid), _requests(node), _appended(node)
        time.sleep(MEASURED)
        seconds = time.monotonic() - began
        cpu, (count_after, received_after) = cpu_seconds(node.pid) - cpu, _requests(node)
        appended = _appended(node) - appended
        p99 = other.p99()
    requests, received = count_after - count, received_after - received
    return Cost(cpu / seconds, received / seconds, appended / seconds, requests / seconds, p99)


def _requests(node: KafkaNode) -> tuple[int, float]:
    """Returns the produce requests since the broker's start, and their bytes: Yammer's mean is sum over count."""
    (bean,) = Jmx(node).query(_REQUESTS).values()
    return int(bean["Count"]), bean["Count"] * bean["Mean"]


def _appended(node: KafkaNode) -> int:
    beans = Jmx(node).query("kafka.server:type=BrokerTopicMetrics,name=BytesInPerSec,topic=flooded")
    return sum(int(bean["Count"]) for bean in beans.values())


def measure(means: Means) -> dict[str, Cost]:
    """Returns the costs by client."""
    with running(means) as node:
        with flood(node, "flooded", 4):
            time.sleep(FIRST)
        return {name: cost(node, *shape) for name, shape in CLIENTS.items()}


def report(costs: dict[Means, dict[str, Cost]]) -> str:
    """Returns a Markdown table; ratios are to the same client, throttled."""
    heads = ["a client that never backs off", "", "CPU s/s", "ratio", "MB/s received", "ratio"]
    rows = []
    for name in CLIENTS:
        peer = costs[Means.THROTTLED][name]
        for means, by_client in costs.items():
            each = by_client[name]
            rows.append([
                name, means,
                f"{each.cpu:.3f}", f"{each.cpu / peer.cpu:.2f}",
                f"{each.received / 1e6:.2f}", f"{each.received / peer.received:.2f}",
                f"{each.appended / 1e6:.2f}", f"{each.requests:,.0f}",
                f"{each.p99:.1f}", f"{each.p99 / peer.p99:.2f}",
            ])  # fmt: skip
    heads += ["MB/s appended", "requests/s", "p99 of another, ms", "ratio"]
    return table(heads, rows)


def main() -> str:
    """Measures all means; returns the Markdown table."""
    return report({means: measure(means) for means in Means})


# ---- the client ----


@contextmanager
def flood(node: KafkaNode, topic: str, connections: int, *, reconnects: bool = False) -> Iterator[None]:
    """Floods a topic as ANONYMOUS while the body runs, from a process of its own, which delays no other client here.

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
    while os.getppid() == parent:  # if the bench was killed, it can't end this process
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
            time.sleep(0.1)  # no broker listens: it has not started yet, or has ended
