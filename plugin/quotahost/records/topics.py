"""The configuration of the topics that keep the newest record of each key.

Brokers (:mod:`quotahost.plugins.kafka.topics`) and the pipeline both make missing topics; whoever is first uses this.
"""

from __future__ import annotations

from typing import Final

COMPACTED: Final = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.1",
    "segment.ms": "3600000",  # only closed segments are compacted
    "segment.bytes": "16777216",
    "message.timestamp.type": "LogAppendTime",  # one clock, Kafka's, however those of its clients go
}
