"""What Kafka measures of a broker's own load, as raw counters: who wants a rate takes the difference of two."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Load:
    """Counters that only grow, as of one moment.

    The idle share of an interval is the difference of a counter, divided by the difference of ``at_ns``. What this
    Kafka doesn't tell is -1, or empty.
    """

    at_ns: int  # the moment, in ns of Java's monotonic clock
    handlers_idle_ns: int  # for how long the request handlers have waited for requests, in the mean of them
    network_idle_ns: Mapping[str, int]  # by listener, for how long its network threads have waited for the network
    queued: int  # how many requests wait for a handler now
