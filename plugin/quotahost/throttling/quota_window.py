"""How far back Kafka looks for a quota: the longest time that the rate of a client may be measured over.

Two places need one answer: the host limits how fast the factor may fall (``Tap``), and the supplier
``cluster-quota`` how fast a share may fall. Both want no client muted for longer than ``max.mute``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class QuotaWindows(NamedTuple):
    """Over which windows a broker measures PRODUCE, FETCH and REQUEST: how many, and of how many seconds each."""

    number: int
    size: int


def quota_windows(broker: Mapping[str, str]) -> QuotaWindows:
    """``quota.window.num`` and ``quota.window.size.seconds`` of the broker's own properties, or Kafka's defaults."""
    number, size = broker.get("quota.window.num") or "11", broker.get("quota.window.size.seconds") or "1"
    return QuotaWindows(int(number), int(size))


def quota_window(broker: Mapping[str, str]) -> float:
    """The longest window in seconds: (``quota.window.num`` + 1) x ``quota.window.size.seconds``.

    ``SampledStat`` keeps one sample more than ``quota.window.num`` as long as it overlaps the monitored time, and
    ``Rate.windowSize`` counts from the start of the oldest sample (both in ``org.apache.kafka.common.metrics.stats``
    of Kafka 4.3.1). Kafka mutes for (rate - limit) / limit x window (``QuotaUtils.throttleTime``), so a shorter
    window here would allow a step that mutes for longer.

    Args:
        broker: the broker's own properties; Kafka's defaults stand for those that are missing.
    """
    windows = quota_windows(broker)
    return float((windows.number + 1) * windows.size)
