"""Compares Python in the broker's own process with Python in a child process: the same broker and load, in pairs.

Single new clients and bursts are those of ``newclients``, in a JVM with the callback and nothing else. A broker then
starts, idles, serves a producer and, in the child's form, loses its child by kill -9 under that load.
"""

from __future__ import annotations

import os
import signal
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from bench import newclients
from bench.markdown import table
from harness.clients.many_clients import introduce_clients
from harness.clients.producer import ProducerLoad
from harness.kafka.admin import create_topic
from harness.kafka.admin_socket import quota_now
from harness.kafka.node import KafkaNode
from harness.plugin import JAR, plugin_properties
from harness.system.process import cpu_seconds
from harness.system.waiting import eventually

FORMS: Final = ("broker", "child")
WARM_UP: Final = 5.0  # seconds before a measurement
MEASURED: Final = 10.0  # seconds


def children(node: KafkaNode) -> list[int]:
    """The process ids of a broker's children."""
    tasks = Path(f"/proc/{node.pid}/task").glob("*/children")
    return [int(pid) for task in tasks for pid in task.read_text().split()]


def _rss(pid: int) -> float:
    """Resident MB."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def _broker(form: str) -> Iterator[tuple[str, float]]:
    with tempfile.TemporaryDirectory() as folder:
        properties = plugin_properties({"python.process": form, "static.produce": "1G", "static.scope": "client"})
        node = KafkaNode(Path(folder), classpath=[JAR], properties=properties, class_archive=False, jvm_options=())
        began = time.monotonic()
        with node:
            yield "broker start, s", time.monotonic() - began
            yield "resident memory after the start, all processes, MB", sum(map(_rss, [node.pid, *children(node)]))
            create_topic(node, "t")
            with ProducerLoad(node.client_config(client_id="p"), "t", record_size=1_000) as load:
                time.sleep(WARM_UP)
                begin = time.monotonic()
                time.sleep(MEASURED)
                yield "produced, MB/s", load.meter.rate(begin, time.monotonic()) / 1e6
                if form == "child":
                    os.kill(children(node)[0], signal.SIGKILL)
                    began = time.monotonic()
                    introduce_clients(node, ["new"])
                    eventually(lambda: not quota_now(node, "ANONYMOUS", "new", "PRODUCE").newcomer, poll=0.01)
                    yield "kill -9 under load: a new client has its quota after, s", time.monotonic() - began
                    yield "kill -9 under load: failed records", float(len(load.errors))
            if form == "child":
                time.sleep(WARM_UP)
                (pid,), before = children(node), cpu_seconds(children(node)[0])
                time.sleep(2 * MEASURED)
                yield "idle CPU of the child, percent of a core", (cpu_seconds(pid) - before) / (2 * MEASURED) * 100


def main(pairs: int) -> str:
    """A Markdown table with medians over so many pairs."""
    found: dict[str, dict[str, list[float]]] = {}
    for number in range(pairs):
        for form in FORMS if number % 2 else reversed(FORMS):
            for name, value in [*newclients.run(f"python.process={form}").items(), *_broker(form)]:
                found.setdefault(name, {}).setdefault(form, []).append(value)

    def cell(values: list[float] | None) -> str:
        return f"{statistics.median(values):.2f}" if values else ""

    rows = [[name, *(cell(by_form.get(form)) for form in FORMS)] for name, by_form in found.items()]
    return table([f"median of {pairs}; ms where nothing else stands there", *FORMS], rows)
