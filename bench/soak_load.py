"""The load and the changes of the memory soak: clients that come and go, new limits, scrapes, a disk that fills."""

from __future__ import annotations

import http.client
import itertools
import math
import threading
import time
from abc import ABC, abstractmethod
from datetime import UTC, datetime
from typing import Final, Self

from confluent_kafka import Producer

from harness.clients.many_clients import introduce_clients
from harness.clients.raw import RawClient
from harness.clients.rawbatch import record_batch
from harness.kafka.admin import DEFAULT, alter_broker_config, set_quota
from harness.kafka.node import KafkaNode
from harness.plugin import CALLBACK, PREFIX, prefixed
from quotahost.model import Volume
from quotahost.records.cluster_volumes import ClusterRecord, Filling, encode

BATCH: Final = record_batch(1_000)
SOFT: Final = ("0.9", "0.03", "0.95")  # soft limits above and below what is free, so that the factor moves
SCRAPE_S, CHANGE_S, DISK_S = 5.0, 60.0, 0.5
TIDE_S: Final = 300.0  # of one turn of the disk, from free to above its soft limit and back


class Repeated(ABC):
    """Does something every so many seconds on a thread of its own, for the time of a ``with`` block."""

    def __init__(self, period: float) -> None:
        """Starts nothing yet."""
        self._period = period
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        """Starts."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stops."""
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        for number in itertools.count():
            if self._stopping.wait(self._period):
                return
            self.once(number)

    @abstractmethod
    def once(self, number: int) -> None:
        """Does it for the time ``number``, from 0."""


class Visitors(Repeated):
    """Each second a new client-id on a new connection writes and goes; nineteen others of a thousand only knock."""

    def __init__(self, node: KafkaNode) -> None:
        """Takes a running node with a topic t."""
        super().__init__(1.0)
        self._node = node

    def once(self, number: int) -> None:
        """Twenty clients; five requests that write."""
        client = RawClient(self._node, f"visitor-{number % 2000}")
        with client:
            for _ in range(5):
                client.produce("t", BATCH)
        introduce_clients(self._node, (f"knocks-{(number * 19 + n) % 1000}" for n in range(19)))


class Changes(Repeated):
    """Changes the clients' default rate once a minute, by the plugin's own properties where there is the plugin."""

    def __init__(self, node: KafkaNode) -> None:
        """Takes a running node."""
        super().__init__(CHANGE_S)
        self._node = node
        self._callback = node.properties.get(PREFIX + "class") == CALLBACK

    def once(self, number: int) -> None:
        """The next rate."""
        rate = 1_000_000 + number % 7 * 100_000
        quotas = {"consumer_byte_rate": rate}
        if self._callback:
            soft = SOFT[number % len(SOFT)]
            changed = {"static.produce": str(rate), "static.storage.soft.min-free-percent": soft}
            alter_broker_config(self._node, prefixed(changed), self._node.node_id)
        else:
            quotas["producer_byte_rate"] = rate
        set_quota(self._node, quotas, client_id=DEFAULT)


class Scrapes(Repeated):
    """Reads the Prometheus endpoint; ``factors`` are those that it showed."""

    def __init__(self, port: int) -> None:
        """Takes its port on loopback."""
        super().__init__(SCRAPE_S)
        self._port = port
        self.factors: set[float] = set()

    def once(self, number: int) -> None:
        """One scrape on a connection of its own."""
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=10)
        connection.request("GET", "/metrics")
        answer = connection.getresponse()
        lines = answer.read().decode().splitlines()
        self.factors |= {float(line.split()[-1]) for line in lines if line.startswith("quotahost_factor ")}
        connection.close()


class Disk(Repeated):
    """Publishes the cluster's record, as the pipeline does, with a disk that fills and empties: the factor moves."""

    def __init__(self, node: KafkaNode) -> None:
        """Takes a running node; connects at once, by a client-id that passes the fence."""
        super().__init__(DISK_S)
        self._node = node
        self._producer = Producer(node.client_config(client_id="quotahost-0") | {"log_level": 4})
        self._run_id = int(time.time() * 1000)

    def once(self, number: int) -> None:
        """One record; the volume's free share goes from 0.4 to 0.1 and back."""
        tide = (1 + math.sin(2 * math.pi * number * DISK_S / TIDE_S)) / 2
        volume = Volume(str(self._node.node_id), "/dev/soak", 10**12, int(10**12 * (0.6 + 0.3 * tide)))
        now = datetime.now(UTC)
        record = ClusterRecord(
            self._node.cluster_id,
            self._run_id,
            number,
            now,
            now,
            reporting=1,
            volume_count=1,
            fullest=(Filling(volume),),
            affected=frozenset({"t", f"topic-{number % 50}"}),
        )
        self._producer.produce("__quotahost_cluster_volumes", key=record.cluster.encode(), value=encode(record))
        self._producer.poll(0)

    def __exit__(self, *_: object) -> None:
        """Stops, and sends what is left."""
        super().__exit__()
        self._producer.flush(10)
