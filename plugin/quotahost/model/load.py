"""What Kafka measures of a broker's own load, as raw counters: who wants a rate takes the difference of two."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Load:
    """Counters that only grow, each with the time of the same moment; -1 for one that this Kafka doesn't offer.

    The idle share of an interval is the difference of a counter, divided by the difference of ``at_ns``.

    Attributes:
        at_ns: when they were read, in ns of Java's monotonic clock.
        handlers_idle_ns: for how long the request handlers have waited for requests, in ns, on the mean of them.
        network_idle_ns: for how long the network threads have waited for the network, likewise.
        queued: how many requests wait for a handler now.
    """

    at_ns: int
    handlers_idle_ns: int
    network_idle_ns: int
    queued: int
