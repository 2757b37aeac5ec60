"""What a broker and its topics are expected to take in: ``topics.*``, by "Broker side quota (V1)".

While the broker takes in more than its total, the fence turns producers back from the topics above their thresholds.
"""

from __future__ import annotations

import math
import re
from typing import Annotated, Final, Literal, Self

from pydantic import BeforeValidator, model_validator

from quotahost.records.topics import SPARED
from quotahost.settings.declaration import Frozen, declare
from quotahost.settings.rate_lists import parse_list
from quotahost.settings.types import ONE_OF, split
from quotahost.units import BytesLimit
from quotahost.units.show import Unit, show_number

_TOTAL: Final = "topics.total.bytes.in.per.sec.threshold"
_TOPIC: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}")  # org.apache.kafka.common.internals.Topic
Threshold = tuple[str, float]
RejectError = Annotated[Literal["NOT_ENOUGH_REPLICAS", "THROTTLING_QUOTA_EXCEEDED", "POLICY_VIOLATION"], ONE_OF]


def _thresholds(value: object) -> tuple[Threshold, ...]:
    rates = parse_list(value, _topic)
    if None in rates.values():
        raise ValueError("has a topic with the rate unlimited; write bytes/s, such as 50M")
    return tuple((topic, rate) for topic, rate in rates.items() if rate is not None)


def _topic(text: str, quoted: str) -> str:
    topic = text.strip()
    if not _TOPIC.fullmatch(topic):
        raise ValueError(f"has the entry {quoted}, whose name is no topic's; write letters, digits, ., _ and -")
    return topic


def _spared(value: object) -> tuple[str, ...]:
    # A dict, unlike a set, keeps the operator's order.
    return tuple(dict.fromkeys(_topic(part, repr(part)) for part in split(value, ",")))


def _show(thresholds: tuple[Threshold, ...]) -> str:
    return ", ".join(f"{topic}: {show_number(rate)} bytes/s" for topic, rate in thresholds) or "none"


Thresholds = Annotated[
    tuple[Threshold, ...], BeforeValidator(_thresholds), Unit("TOPIC:bytes/s, comma-separated", _show)
]
Spared = Annotated[
    tuple[str, ...], BeforeValidator(_spared), Unit("topics, comma-separated", lambda v: ", ".join(v) or "none")
]


class TopicSettings(Frozen):
    """The thresholds, in bytes/s of this broker; without a total there are no topic quotas."""

    total: BytesLimit = declare(_TOTAL)
    """What this broker is expected to take in. While it takes in more, producers are turned back from the topics that
    take in more than is expected of them; needs the fence. `unlimited`: no topic quotas."""
    thresholds: Thresholds = declare("topics.bytes.in.per.sec.threshold", default="")
    """What single topics are expected to take in: `important:50M,other:5M`, together at most the total. All other
    topics share equally what is left."""
    reject_error: RejectError = declare("topics.reject.error", default="NOT_ENOUGH_REPLICAS")
    """The error by which a producer is turned back: NOT_ENOUGH_REPLICAS, and it tries again; POLICY_VIOLATION,
    and it drops the records; THROTTLING_QUOTA_EXCEEDED, and Kafka's own producer tries again, librdkafka drops."""

    spared: Spared = declare("topics.spared", default=",".join(SPARED))
    """Topics that are never turned back and have no share: by default Kafka's own and quotahost's. Names are whole.
    quotahost's own are spared in any case, by the names that `snapshots.topic` and the like give them."""

    @model_validator(mode="after")
    def _takes_effect(self) -> Self:
        without = next((topic for topic, _ in self.thresholds if topic in self.spared), None)
        if without is not None:
            raise ValueError(f"topic {without} has a threshold, but is never turned back (topics.spared); remove one")
        return self

    @model_validator(mode="after")
    def _fits(self) -> Self:
        # fsum: with sum(), the order of the topics could decide whether thresholds that use up the total still fit.
        wanted = math.fsum(rate for _, rate in self.thresholds)
        if self.thresholds and self.total is None:
            raise ValueError(f"topics have thresholds, but the broker has none; set {_TOTAL}")
        if self.total is not None and wanted > self.total:
            raise ValueError(
                f"the topics' thresholds are {show_number(wanted)} bytes/s together, above the "
                f"{show_number(self.total)} of {_TOTAL}; lower them, or raise the total"
            )
        return self
