"""Compares one broker with another under the same load: start, memory, produce throughput.

``pairs`` compares a broker with the callback and one without it. ``child`` compares Python in the broker's own process
and in a child, which also idles and is killed under load. The order of the runs alternates, so that a slower machine
affects both alike. For the throughput both brokers run together, and one producer changes from one to the other every
few seconds. ``flood`` watches the memory while new clients come all the time to a broker with a small table.
"""

import os
import signal
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from bench import jvm
from bench.markdown import table
from harness.clients.producer import ProducerLoad
from harness.clients.raw import introduce_clients
from harness.kafka.admin import create_topic
from harness.kafka.admin_socket import quota_now
from harness.kafka.node import KafkaNode
from harness.plugin import JAR, plugin_properties
from harness.system.process import children, cpu_seconds
from harness.system.waiting import eventually

WARM_UP: Final = 5.0  # seconds before a measurement
MEASURED: Final = 3.0  # seconds of each slice of the throughput
SLICES: Final = 12  # of each broker
IDLE: Final = 20.0  # seconds
STOCK: Final = "stock"
Figures = Iterator[tuple[str, float]]


def pairs(count: int) -> str:
    """Returns the medians over so many pairs of a broker with the callback and one without."""
    runs = _alternate(("broker", STOCK), count, lambda form: _measure(form, static__scope="client"))
    differences = {
        name: statistics.median(a - b for a, b in zip(by_form["broker"], by_form[STOCK], strict=True))
        for name, by_form in runs.items()
    }
    rows = [[name, f"{difference:+.2f}"] for name, difference in differences.items()]
    rows.append(["produced, ratio", f"{_throughput(('broker', STOCK)):.3f}"])
    return table([f"with the callback less without, median of {count} pairs", ""], rows)


def child(count: int) -> str:
    """Returns the medians over so many pairs of Python in the broker's process and in a child."""

    def measure(form: str) -> Figures:
        yield from jvm.newclients(f"python.process={form}").items()
        yield from _measure(form, static__scope="client", static__produce="1G")

    forms = ("broker", "child")
    runs = _alternate(forms, count, measure)
    rows = [
        [name, *(f"{statistics.median(by_form[form]):.2f}" if form in by_form else "" for form in forms)]
        for name, by_form in runs.items()
    ]
    rows.append(["produced, ratio", "1", f"{_throughput(('child', 'broker')):.3f}"])
    return table([f"median of {count}; ms where nothing else stands there", *forms], rows)


def flood(count: int) -> str:
    """Returns the resident memory in MB after each tenth of so many new clients."""
    rows = []
    with _node("broker", clients__max="10000", static__produce="1M", static__scope="client") as node:
        for tenth in range(1, 11):
            introduce_clients(node, (f"flood-{tenth}-{n}" for n in range(count // 10)))
            rows.append([f"{tenth * count // 10:,}", f"{node.rss() / 1e6:.0f}"])
    return table(["clients seen", "resident MB"], rows)


def _alternate(
    forms: tuple[str, str], count: int, measure: Callable[[str], Figures]
) -> dict[str, dict[str, list[float]]]:
    """Returns the values of each figure by form, from so many runs of each form."""
    runs: dict[str, dict[str, list[float]]] = {}
    for number in range(count):
        for form in forms if number % 2 else reversed(forms):
            for name, value in measure(form):
                runs.setdefault(name, {}).setdefault(form, []).append(value)
    return runs


@contextmanager
def _node(form: str, **settings: str) -> Iterator[KafkaNode]:
    """Runs a broker in one of the forms; in settings of quotahost two underscores stand for a dot."""
    given = {name.replace("__", "."): value for name, value in settings.items()}
    properties = {} if form == STOCK else plugin_properties(given | {"python.process": form})
    with (
        tempfile.TemporaryDirectory() as folder,
        KafkaNode(Path(folder), classpath=[JAR], properties=properties, class_archive=False, jvm_options=()) as node,
    ):
        yield node


def _measure(form: str, **settings: str) -> Figures:
    """Returns the known figures of one broker."""
    began = time.monotonic()
    with _node(form, **settings) as node:
        yield "broker start, s", time.monotonic() - began
        yield "resident memory after the start, all processes, MB", sum(map(_rss, [node.pid, *children(node.pid)]))
        if form != "child":
            return
        create_topic(node, "t")
        with ProducerLoad(node.client_config(client_id="p"), "t", record_size=1_000) as load:
            time.sleep(WARM_UP)
            os.kill(children(node.pid)[0], signal.SIGKILL)
            began = time.monotonic()
            introduce_clients(node, ["new"])
            eventually(lambda: not quota_now(node, "ANONYMOUS", "new", "PRODUCE").newcomer, poll=0.01)
            yield "kill -9 under load: a new client has its quota after, s", time.monotonic() - began
            yield "kill -9 under load: failed records", float(len(load.errors))
        time.sleep(WARM_UP)
        (pid,) = children(node.pid)
        before = cpu_seconds(pid)
        time.sleep(IDLE)
        yield "idle CPU of the child, percent of a core", (cpu_seconds(pid) - before) / IDLE * 100


def _throughput(forms: tuple[str, str]) -> float:
    """Returns a producer's throughput on a broker of the first form, as a share of that on one of the second form."""
    rates: dict[str, list[float]] = {form: [] for form in forms}
    settings = {"static__scope": "client", "static__produce": "1G"}
    with ExitStack() as brokers:
        nodes = {form: brokers.enter_context(_node(form, **settings)) for form in forms}
        for node in nodes.values():
            create_topic(node, "t", config={"segment.bytes": str(64 << 20), "retention.bytes": str(256 << 20)})
        for number in range(SLICES):
            for form in forms if number % 2 else reversed(forms):
                with ProducerLoad(nodes[form].client_config(client_id="p"), "t", record_size=1_000) as load:
                    time.sleep(MEASURED / 2)
                    begin = time.monotonic()
                    time.sleep(MEASURED)
                    rates[form].append(load.meter.rate(begin, time.monotonic()))
    return statistics.median(a / b for a, b in zip(rates[forms[0]], rates[forms[1]], strict=True))


def _rss(pid: int) -> float:
    """Returns the resident memory in MB."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6
