"""Checks how a running cluster keeps quotahost's topics: compaction, replicas, the size of a record, whose time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from quotahost.cli.console import Finding, good, note, weak, wrong
from quotahost.kafka.rights import Rights
from quotahost.kafka.topics import Shape
from quotahost.records.topics import REFUSED, TICKS, Topic

_DELETED: Final = (REFUSED, TICKS)  # nobody needs the past of these
_LARGEST: Final = 1048588  # bytes; Kafka's default, to which a producer's default fits


def check_shapes(rights: Rights, topics: Mapping[str, Topic]) -> Iterator[Finding]:
    """What is wrong or weak with the topics that the client may look at."""
    seen = {name: shape for name, shape in rights.shapes.items() if shape.config is not None}
    found = [finding for name, shape in seen.items() for finding in _of_topic(name, topics[name], shape)]
    yield from found
    if seen and not found:
        yield good(f"replicas, compaction and size of records are right: {', '.join(seen)}")
    unseen = [name for name in rights.shapes if name not in seen]
    if unseen:
        yield note(f"the configuration of {', '.join(unseen)} is not checked: DescribeConfigs is missing there")


def _of_topic(name: str, topic: Topic, shape: Shape) -> Iterator[Finding]:
    config = shape.config or {}
    if topic not in _DELETED and "compact" not in config.get("cleanup.policy", "compact"):
        yield wrong(
            f"{name} has cleanup.policy={config['cleanup.policy']}: it loses the records of silent brokers",
            "kafka-configs.sh: cleanup.policy=compact",
        )
    if config.get("message.timestamp.type", "LogAppendTime") != "LogAppendTime":
        yield weak(
            f"{name} has message.timestamp.type={config['message.timestamp.type']}: ages then follow the clocks of its "
            "writers",
            "kafka-configs.sh: message.timestamp.type=LogAppendTime",
        )
    largest = int(config.get("max.message.bytes", _LARGEST))
    if largest < _LARGEST:
        yield weak(
            f"{name} has max.message.bytes={largest}: the records of a large cluster may not fit",
            f"kafka-configs.sh: max.message.bytes={_LARGEST}",
        )
    yield from _of_replicas(name, shape.replicas, int(config.get("min.insync.replicas", 1)))


def _of_replicas(name: str, replicas: int, least: int) -> Iterator[Finding]:
    remedy = "kafka-configs.sh: min.insync.replicas=1"
    if least > replicas:
        yield wrong(f"{name} has {replicas} replicas and min.insync.replicas={least}: nobody can write to it", remedy)
    elif least == replicas > 1:
        yield weak(f"{name} has min.insync.replicas={least} of {replicas}: one broker down ends all writing", remedy)
