"""How a topic is made that keeps the newest record of each key, whoever makes it first: a broker or the pipeline."""

from __future__ import annotations

from typing import Final

COMPACTED: Final = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.1",
    "segment.ms": "3600000",  # only closed segments are compacted
    "segment.bytes": "16777216",
    "message.timestamp.type": "LogAppendTime",  # one clock, Kafka's, however those of its clients go
}
