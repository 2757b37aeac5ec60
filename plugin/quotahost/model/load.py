"""What Kafka measures of a broker's own load, as raw counters: who wants a rate takes the difference of two."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Load:
    """Counters that only grow, as of one moment.

    The idle share of an interval is the difference of a counter, divided by the difference of ``at_ns``.

    Attributes:
        at_ns: the moment, in ns of Java's monotonic clock.
        handlers_idle_ns: for how long the request handlers have waited for requests, in ns, in the mean of them; -1 if
            this Kafka doesn't tell.
        network_idle_ns: by listener, for how long its network threads have waited for the network, likewise; empty if
            this Kafka doesn't tell.
        queued: how many requests wait for a handler now; -1 if this Kafka doesn't tell.
    """

    at_ns: int
    handlers_idle_ns: int
    network_idle_ns: Mapping[str, int]
    queued: int
