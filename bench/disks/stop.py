"""Measures what clients that are not exempt append after a full stop.

A quota can't stop a client that reconnects for every batch, because Kafka mutes connections; the fence can.
"""

import time
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final

from bench.disks.brokers import Contender, brokers, free_bytes, is_stopped, min_free, on_disk
from bench.markdown import table
from bench.refusal import flood
from harness.clients.producer import ProducerLoad, fill_topic
from harness.kafka.admin import create_topic
from harness.system.waiting import eventually

HEADROOM: Final = 400_000_000  # bytes
RECONNECTING: Final = 4  # threads, each of which opens a connection for each batch of 1 MB
AFTER: Final = 15.0  # seconds to measure after the stop
RATE: Final = 20e6  # bytes/s of the client that stays connected


@dataclass(frozen=True)
class Stopped:
    """The results of one run."""

    seconds: float  # from the crossing of the hard limit until the plugin reported the stop
    until_then: int  # bytes appended in that time
    reconnecting: int  # bytes that the reconnecting clients appended after the stop
    connected: int  # bytes that the connected client appended after the stop


def run(contender: Contender) -> Stopped:
    """Runs one broker, whose disk the clients fill themselves."""
    with brokers(contender, 1, HEADROOM) as cluster, ExitStack() as stack:
        (node,) = cluster.brokers
        for topic in ("again", "steady", "exempt"):
            create_topic(node, topic)
        stack.enter_context(flood(node, "again", RECONNECTING, reconnects=True))
        stack.enter_context(ProducerLoad(node.client_config("app", "steady"), "steady", rate=RATE))
        directory, limit = node.directory, min_free(node)
        eventually(lambda: free_bytes(directory) <= limit, 60, "a full disk", poll=0.002)
        crossed = time.monotonic()
        at_limit = on_disk(cluster, "*")
        eventually(lambda: is_stopped(node), what="a full stop", poll=0.01)
        seconds = time.monotonic() - crossed
        again, steady, everything = (on_disk(cluster, topic) for topic in ("again", "steady", "*"))
        time.sleep(AFTER)
        assert is_stopped(node), "the broker has let go meanwhile"
        # The broker still serves exempt clients, so it has not crashed.
        fill_topic(node.client_config("filler", "filler"), "exempt", 10_000)
        return Stopped(
            seconds, everything - at_limit, on_disk(cluster, "again") - again, on_disk(cluster, "steady") - steady
        )


def main() -> str:
    """Measures all contenders; returns a Markdown table."""
    heads = [f"in the {AFTER:.0f} s after the full stop", f"{RECONNECTING} clients that reconnect, bytes", "bytes/s"]
    heads += ["a connected client, bytes", "limit to stop, s", "appended until then, MB"]
    rows = []
    for contender in Contender:
        each = run(contender)
        again = [f"{each.reconnecting:,}", f"{each.reconnecting / AFTER:,.0f}"]
        until_stop = [f"{each.seconds:.2f}", f"{each.until_then / 1e6:.0f}"]
        rows.append([contender, *again, f"{each.connected:,}", *until_stop])
    return table(heads, rows)
