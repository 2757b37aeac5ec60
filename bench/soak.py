"""Compares the resident memory over time of a broker with quotahost and of a stock broker under the same load.

Both have the same heap, which is touched at the start, so only memory outside of the heap can grow. Meanwhile clients
come and go, limits change, the metrics are scraped, and a disk fills and empties.
"""

import itertools
import math
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple
from urllib.request import urlopen

from confluent_kafka import Producer

from bench.markdown import table
from harness.clients.consumer import ConsumerLoad
from harness.clients.producer import ProducerLoad
from harness.clients.raw import RawClient, introduce_clients, record_batch
from harness.kafka.admin import DEFAULT, alter_broker_config, create_topic, set_quota
from harness.kafka.node import KafkaNode
from harness.plugin import CALLBACK, FENCE, JAR, PREFIX, plugin_properties, prefixed
from harness.system.background import Background
from harness.system.ports import free_port
from quotahost.model import Volume
from quotahost.records.cluster_volumes import ClusterRecord, VolumeTrend, encode

WARM_UP: Final = 8 * 60.0  # seconds before the first counted sample
EVERY: Final = 10.0  # seconds between two samples
RATE: Final = 200_000  # bytes/s of the producer that runs all the time
HEAP: Final = "256m"
# Both brokers have these: the heap is resident from the start, and the log's disk use is bounded.
_JVM: Final = (f"-Xms{HEAP}", "-XX:+AlwaysPreTouch")
_LOG: Final = {
    "log.segment.bytes": "4194304",
    "log.retention.bytes": "33554432",
    "log.retention.check.interval.ms": "30000",
}

BATCH: Final = record_batch(1_000)
SOFT: Final = ("0.9", "0.03", "0.95")  # soft limits above and below the free share, so that the factor moves
SCRAPE_S, CHANGE_S, DISK_S = 5.0, 60.0, 0.5
TIDE_S: Final = 300.0  # seconds in which the disk goes from free to above its soft limit and back


class Sample(NamedTuple):
    """Hours since the start; resident MB in total, and without mapped files."""

    hours: float
    rss: float
    anonymous: float


def brokers(folder: Path) -> tuple[KafkaNode, KafkaNode, int]:
    """Makes a broker with almost all of quotahost that one broker can use, a stock broker, and the port for scrapes."""
    port = free_port()
    settings = {
        "static.scope": "client",
        "static.produce": "1M",
        "factor.source": "cluster-volumes,load",
        "factor.scope": "topics",
        "budgets": "on",
        "topics.total.bytes.in.per.sec.threshold": "50M",
        "supplier": "cluster-quota,client-quotas,static",
        "tasks": "publish-volumes,publish-usage",
        "static.storage.soft.min-free-percent": "0.3",
        "static.storage.hard.min-free-percent": "0.02",
        "clients.max": "1000",
        "clients.idle": "2m",
        "metrics.port": str(port),
        "fence.authorizer": "none",
    }
    mine = KafkaNode(
        folder / "quotahost",
        classpath=[JAR],
        properties=plugin_properties(settings) | FENCE | _LOG,
        heap=HEAP,
        jvm_options=_JVM,
        class_archive=False,
    )
    stock = KafkaNode(folder / "stock", properties=_LOG, heap=HEAP, jvm_options=_JVM, class_archive=False)
    return mine, stock, port


def sample(node: KafkaNode, begin: float) -> Sample:
    """Returns the node's memory now; ``begin`` is the monotonic time of the start."""
    status = Path(f"/proc/{node.pid}/status").read_text().splitlines()
    sizes = {line.split(":")[0]: int(line.split()[1]) * 1024 / 1e6 for line in status if line.endswith(" kB")}
    return Sample((time.monotonic() - begin) / 3600, sizes["VmRSS"], sizes["RssAnon"])


def slope(samples: Sequence[Sample], pick: int) -> float:
    """Returns MB/h by linear regression."""
    hours = [each.hours for each in samples]
    return statistics.linear_regression(hours, [each[pick] for each in samples]).slope


def run(minutes: float) -> dict[str, list[Sample]]:
    """Returns the samples after the warm-up, by broker."""
    with tempfile.TemporaryDirectory(prefix="quotahost-soak-") as folder:
        mine, stock, port = brokers(Path(folder))
        nodes = {"quotahost": mine, "stock": stock}
        with mine, stock:
            factors = set[float]()
            with ExitStack() as stack:
                stack.enter_context(Every(SCRAPE_S, partial(scrape, port, factors)))
                for load in itertools.chain.from_iterable(map(loads, nodes.values())):
                    stack.enter_context(load)
                stack.enter_context(disk(mine))
                samples = watch(nodes, minutes)
            if len(factors) < 2:
                raise AssertionError(f"the factor did not move: {factors}")
    return samples


def loads(node: KafkaNode) -> list[AbstractContextManager[object]]:
    """Returns the loads for a running node, except those that only quotahost gets."""
    create_topic(node, "t")
    return [
        ProducerLoad(node.client_config(client_id="stays"), "t", record_size=1_000, rate=RATE),
        ConsumerLoad(node.client_config(client_id="reads") | {"enable.partition.eof": False}, "t"),
        Every(1.0, partial(visit, node)),
        Every(CHANGE_S, partial(change, node)),
    ]


def watch(nodes: Mapping[str, KafkaNode], minutes: float) -> dict[str, list[Sample]]:
    """Samples each broker every EVERY seconds, from the end of the warm-up."""
    samples: dict[str, list[Sample]] = {name: [] for name in nodes}
    begin = time.monotonic()
    while time.monotonic() < begin + minutes * 60:
        time.sleep(EVERY)
        for name, node in nodes.items():
            now = sample(node, begin)
            if now.hours * 3600 >= WARM_UP:
                samples[name].append(now)
    return samples


def main(minutes: float) -> str:
    """Returns a Markdown table with a row for each broker."""
    rows = []
    for name, samples in run(minutes).items():
        ends = f"{samples[0].rss:.0f} -> {samples[-1].rss:.0f}"
        anonymous = f"{samples[0].anonymous:.0f} -> {samples[-1].anonymous:.0f}"
        rows.append([name, ends, f"{slope(samples, 1):+.1f}", anonymous, f"{slope(samples, 2):+.1f}"])
    heads = [f"{minutes:g} minutes, the first {WARM_UP / 60:.0f} not counted", "resident MB", "MB/h"]
    heads += ["of it without mapped files, MB", "MB/h"]
    return table(heads, rows)


# ---- the load, and the changes ----


class Every(Background):
    """Calls ``act`` every so many seconds on a thread of its own, with a number that counts from 0."""

    def __init__(self, seconds: float, act: Callable[[int], None]) -> None:
        super().__init__()
        self._seconds, self._act = seconds, act

    def _run(self) -> None:
        for number in itertools.count():
            if self._stopping.wait(self._seconds):
                return
            self._act(number)


def visit(node: KafkaNode, number: int) -> None:
    """Writes with a new client-id on a new connection; nineteen other client-ids of a thousand send one request."""
    with RawClient(node, f"visitor-{number % 2000}") as client:
        for _ in range(5):
            client.produce("t", BATCH)
    introduce_clients(node, (f"knocks-{(number * 19 + n) % 1000}" for n in range(19)))


def change(node: KafkaNode, number: int) -> None:
    """Changes the clients' default rate, with the plugin's own properties if the node has the plugin."""
    rate = 1_000_000 + number % 7 * 100_000
    quotas = {"consumer_byte_rate": rate}
    if node.properties.get(PREFIX + "class") == CALLBACK:
        soft = SOFT[number % len(SOFT)]
        changed = {"static.produce": str(rate), "static.storage.soft.min-free-percent": soft}
        alter_broker_config(node, prefixed(changed), node.node_id)
    else:
        quotas["producer_byte_rate"] = rate
    set_quota(node, quotas, client_id=DEFAULT)


def scrape(port: int, factors: set[float], _: int) -> None:
    """Reads the Prometheus endpoint on a connection of its own, and keeps the factors that it shows."""
    with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as page:
        lines = page.read().decode().splitlines()
    factors |= {float(line.split()[-1]) for line in lines if line.startswith("quotahost_factor ")}


@contextmanager
def disk(node: KafkaNode) -> Iterator[None]:
    """Publishes the cluster's record, like the pipeline, with a disk that fills and empties; so the factor moves."""
    producer, run_id = Producer(node.client_config(client_id="quotahost-0") | {"log_level": 4}), int(time.time() * 1000)

    def publish(number: int) -> None:
        """Publishes one record; the volume's free share goes from 0.4 to 0.1 and back."""
        tide = (1 + math.sin(2 * math.pi * number * DISK_S / TIDE_S)) / 2
        volume = Volume(str(node.node_id), "/dev/soak", 10**12, int(10**12 * (0.6 + 0.3 * tide)))
        now, affected = datetime.now(UTC), frozenset({"t", f"topic-{number % 50}"})
        record = ClusterRecord(
            node.cluster_id, run_id, number, now, now, reporting=1, volume_count=1, fullest=(VolumeTrend(volume),),
            affected=affected,
        )  # fmt: skip
        producer.produce("__quotahost_cluster_volumes", key=record.cluster.encode(), value=encode(record))
        producer.poll(0)

    with Every(DISK_S, publish):
        yield
    producer.flush(10)
