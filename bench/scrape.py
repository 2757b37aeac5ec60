"""How long a scrape of the metrics takes with 50,000 active clients, beside one with few, and without those by client.

Each client has sensors of its own by a request quota for each pair of user and client-id. The clients go on asking, one
after the other, all of them within Kafka's quota windows, while the endpoint is scraped once a second. Looks at the
clients are taken by a thread of their own (``broker/host/exporter.py``), which a scrape meets now and then. So the
slowest scrape is told beside the median.
"""

import itertools
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from urllib.request import urlopen

from bench.markdown import machine_line, table
from harness.clients.many_clients import introduce_clients
from harness.kafka.admin import DEFAULT, set_quota
from harness.kafka.node import KafkaNode
from harness.plugin import JAR, PREFIX, plugin_properties
from harness.system.ports import free_port

CLIENTS: Final = 50_000
FEW: Final = 20
SHOWN: Final = 200  # the default of metrics.clients
SCRAPES: Final = 60
WINDOWS: Final = 10.0  # seconds, within which each client asks once
PARTS: Final = 100
AIM: Final = 0.1  # seconds


@contextmanager
def asking(node: KafkaNode, clients: int) -> Iterator[None]:
    """So many clients that ask again and again, for the time of the block; all have asked once before."""
    names = [f"client-{number:05}" for number in range(clients)]
    ends = threading.Event()

    def run() -> None:
        for part in itertools.cycle(range(PARTS)):
            introduce_clients(node, names[part::PARTS])
            if ends.wait(WINDOWS / PARTS):
                return

    introduce_clients(node, names)
    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        ends.set()
        thread.join()


def scrapes(node: KafkaNode) -> tuple[list[float], int]:
    """The seconds that each scrape took, and the bytes of the last."""
    took: list[float] = []
    size = 0
    for _ in range(SCRAPES):
        began = time.perf_counter()
        with urlopen(f"http://127.0.0.1:{node.properties[PREFIX + 'metrics.port']}/metrics", timeout=60) as page:
            size = len(page.read())
        took.append(time.perf_counter() - began)
        time.sleep(1)
    return took, size


def _row(what: str, took: list[float], size: int, peer: float) -> list[str]:
    median, most = statistics.median(took), max(took)
    numbers = [f"{1e3 * median:.1f}", f"{1e3 * most:.1f}", f"{most / peer:.1f}", f"{size / 1e3:.0f}"]
    return [what, *numbers, "yes" if most < AIM else "no"]


def measured(clients: int, metrics_clients: int) -> tuple[list[float], int]:
    """The scrapes of a broker with so many clients that shows so many of them."""
    settings = {
        "supplier": "client-quotas",
        "metrics.port": str(free_port()),
        "metrics.clients": str(metrics_clients),
        "clients.max": "60000",
    }
    with (
        tempfile.TemporaryDirectory() as folder,
        KafkaNode(
            Path(folder), classpath=[JAR], properties=plugin_properties(settings), heap="2g", jvm_options=()
        ) as node,
    ):
        set_quota(node, {"request_percentage": 50.0}, DEFAULT, DEFAULT)
        with asking(node, clients):
            time.sleep(WINDOWS)
            return scrapes(node)


def main() -> str:
    """The figures as Markdown."""
    few = measured(FEW, SHOWN)
    rows = [
        _row(f"{clients:,} clients, metrics.clients={shown}", *found, max(few[0]))
        for clients, shown, found in (
            (FEW, SHOWN, few),
            (CLIENTS, SHOWN, measured(CLIENTS, SHOWN)),
            (CLIENTS, 0, measured(CLIENTS, 0)),
        )
    ]
    heads = ["", "median, ms", "slowest, ms", "slowest / with few", "kB", f"below {1e3 * AIM:g} ms"]
    return table(heads, rows) + "\n\n" + machine_line()
