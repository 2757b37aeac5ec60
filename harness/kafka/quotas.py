"""The client quotas that a node really enforces, whatever callback decides them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final

from harness.java.jmx import Jmx
from harness.kafka.node import KafkaNode

_UNLIMITED: Final = float(2**63 - 1)  # ClientQuotaManager.quotaLimit makes Long.MAX_VALUE of a null


@dataclass(frozen=True, slots=True)
class EnforcedQuota:
    """A quota metric of the broker: who is measured together, by which limit.

    Attributes:
        quota_type: PRODUCE, FETCH, REQUEST or CONTROLLER_MUTATION.
        tags: Kafka's metric tags; its own callback gives ``user`` and ``client-id``.
        bound: the limit per second (bytes, percent or mutations); None if unlimited.
        value: what Kafka measures against it: a rate, or the tokens left of CONTROLLER_MUTATION.
    """

    quota_type: str
    tags: dict[str, str]
    bound: float | None
    value: float


def enforced_quotas(node: KafkaNode, quota_type: str | None = None, **tags: str) -> list[EnforcedQuota]:
    """The quota metrics of a node started with ``probe=True``, of one type if given, that have these tags.

    A metric exists from a client's first request on, for an hour of silence. In tag names, ``_``
    stands for ``-``: ``enforced_quotas(node, "PRODUCE", client_id="app")``.
    """
    lines = Jmx(node).call("harness:type=QuotaProbe", "quotas")
    wanted = {name.replace("_", "-"): value for name, value in tags.items()}
    found = [_parsed(line) for line in lines]
    return [
        quota
        for quota in found
        if quota_type in (None, quota.quota_type) and wanted.items() <= quota.tags.items()
    ]


def _parsed(line: str) -> EnforcedQuota:
    metric = json.loads(line)
    bound = None if metric["bound"] == _UNLIMITED else metric["bound"]
    return EnforcedQuota(metric["type"], metric["tags"], bound, metric["value"])
