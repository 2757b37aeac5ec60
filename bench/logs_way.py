"""Counts the lines of the log while a factor goes all the way down, to a stop, and up again, among many clients.

The way down takes DOWN seconds in hundredths, the stop STOPPED seconds, the way up UP seconds. Meanwhile the clients
send requests in turn, so that the limits that the tap moves are those of sensors in use.
"""

from __future__ import annotations

import re
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from typing import Final

from bench.logs import BATCH, broker, introduce, write_factor
from bench.markdown import machine_line, table
from harness.clients.raw import RawClient
from harness.kafka.admin import create_topic
from harness.kafka.node import KafkaNode
from harness.plugin import FENCE

DOWN: Final = 60.0
STOPPED: Final = 10.0
UP: Final = 30.0
AFTER: Final = 15.0  # seconds until the tap has let go
STEPS: Final = 100
_LOGGER: Final = re.compile(r"\(([\w.$]+)\) \[[^]]*]$")


def measure(clients: int) -> list[str]:
    """The lines that a broker with that many clients logs on the way."""
    with tempfile.TemporaryDirectory() as folder, broker(Path(folder), True, max_mute="30s", **FENCE) as node:
        create_topic(node, "t")
        with RawClient(node, "first") as client:
            introduce(node, client, clients, True)
        with _sending(node, clients):
            begin = node.log.end()
            _go(node)
            return node.log.text(begin).splitlines()


def _go(node: KafkaNode) -> None:
    down = [1 - n / STEPS for n in range(1, STEPS + 1)]
    for factors, seconds, pause in ((down, DOWN, STOPPED), ([1 - factor for factor in down], UP, AFTER)):
        began = time.monotonic()
        for number, factor in enumerate(factors, 1):
            write_factor(node, factor)
            time.sleep(max(0.0, began + seconds * number / STEPS - time.monotonic()))
        time.sleep(pause)


@contextmanager
def _sending(node: KafkaNode, clients: int) -> Iterator[None]:
    stopping = threading.Event()

    def send() -> None:
        names = cycle(f"client-{n}" for n in range(clients))
        with RawClient(node, "first") as client:
            while not stopping.wait(0.005):
                client.rename(next(names))
                client.produce("t", BATCH)

    sender = threading.Thread(target=send, daemon=True)
    sender.start()
    try:
        yield
    finally:
        stopping.set()
        sender.join(60)


def main(clients: int = 2_000) -> str:
    """A Markdown table: the lines, and the loggers of most of them."""
    lines = measure(clients)
    loggers = Counter(match[1] for line in lines if (match := _LOGGER.search(line))).most_common(4)
    heads = [f"{clients:,} clients, the factor from 1 to 0 and back", "lines of the log", "of them, by logger"]
    row = ["quotahost", f"{len(lines):,}", ", ".join(f"{logger} {count}" for logger, count in loggers)]
    return table(heads, [row]) + "\n\n" + machine_line()
