"""Reads the client quotas that a node enforces, whichever callback decides them.

Kafka's own JMX beans show rates but no bounds. A node started with ``probe=True`` loads the metrics reporter
``QuotaProbe.java``, which shows both; this module reads its bean.
"""

import json
from dataclasses import dataclass
from typing import Final

from harness.java.jmx import Jmx
from harness.kafka.node import KafkaNode

# The value that ClientQuotaManager.quotaLimit uses for a callback's null.
_UNLIMITED: Final = float(2**63 - 1)


@dataclass(frozen=True, slots=True)
class EnforcedQuota:
    """A quota metric of the broker: which clients are measured together, and their limit."""

    quota_type: str  # PRODUCE, FETCH, REQUEST or CONTROLLER_MUTATION
    tags: dict[str, str]  # Kafka's metric tags; Kafka's own callback gives ``user`` and ``client-id``
    bound: float | None  # the limit per second (bytes, percent or mutations); None if unlimited
    value: float  # Kafka compares it with the limit: a rate, or for CONTROLLER_MUTATION the remaining tokens


def enforced_quotas(node: KafkaNode, quota_type: str | None = None, **tags: str) -> list[EnforcedQuota]:
    """Returns the quota metrics with these tags, and of this type if one is given. The node needs ``probe=True``.

    Kafka makes a metric at a client's first request and removes it after an hour of silence. In tag names, ``_`` stands
    for ``-``: ``enforced_quotas(node, "PRODUCE", client_id="app")``.
    """
    lines = Jmx(node).get("harness:type=QuotaProbe", "Quotas")
    wanted = {name.replace("_", "-"): value for name, value in tags.items()}
    found = [_parsed(line) for line in lines]
    return [quota for quota in found if quota_type in (None, quota.quota_type) and wanted.items() <= quota.tags.items()]


def _parsed(line: str) -> EnforcedQuota:
    metric = json.loads(line)
    bound = None if metric["bound"] == _UNLIMITED else metric["bound"]
    return EnforcedQuota(metric["type"], metric["tags"], bound, metric["value"])
