"""Counts the bytes of shares of cluster-wide quotas that each broker reads, for many brokers, by a model of the topic.

The model has real records, as the pipeline writes them, and adds up those that lie in the partition that a broker
reads. The peer is the rule of before: all records with each batch, in one partition, read by everybody.
"""

from collections import Counter
from datetime import UTC, datetime
from typing import Final

from bench.markdown import table
from quotahost.model import QuotaType
from quotahost.pipeline.queries import SHARES_EVERY
from quotahost.pipeline.shares import REFRESH
from quotahost.records.shares import Share, Shares, encode, partition_of, partitions_for
from quotahost.records.usage import MAX_CLIENTS, ClientKey

BROKERS: Final = (3, 100, 1000)


def record_bytes(clients: int = MAX_CLIENTS) -> int:
    """The size of one broker's record with so many clients, whose names together have 40 characters."""
    shares = tuple(
        Share(ClientKey(f"User-of-a-team-{n:05}", f"application-{n:08}", QuotaType.PRODUCE), 1e6 / (n + 3), 1e6 / 3)
        for n in range(clients)
    )
    return len(encode(Shares("1000", 1_800_000_000_000, 123_456, datetime.now(UTC), shares, "M" * 22)))


def in_one_partition(brokers: int, partitions: int) -> int:
    """How many brokers' records the fullest partition has."""
    return max(Counter(partition_of(str(n), partitions) for n in range(1, brokers + 1)).values())


def main() -> str:
    """A Markdown table, in bytes/s."""
    size, batches = record_bytes(), 1 / SHARES_EVERY.total_seconds()
    quiet = 1 / REFRESH.total_seconds()
    rows = []
    for brokers in BROKERS:
        before = brokers * size * batches
        partitions = partitions_for(brokers)
        own = in_one_partition(brokers, partitions) * size
        figures = (before, own * batches, own * quiet, brokers * size * quiet)
        shown = [f"{figure / 1000:,.1f}" for figure in figures]
        rows.append([f"{brokers:,}", str(partitions), *shown, f"{own * batches / before:.5f} x"])
    heads = [
        "brokers", "partitions", "before, kB/s", "all shares change with each batch, kB/s", "none changes, kB/s",
        "none changes, an old topic of one partition, kB/s", "now / before",
    ]  # fmt: skip
    words = f"Each broker's record has {MAX_CLIENTS} clients, the most there are, and {size:,} bytes."
    return f"{words}\n\n{table(heads, rows)}"
