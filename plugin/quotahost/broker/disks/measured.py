"""What fills a volume: its own numbers and its topics, by two looks some seconds apart.

``quotahost explain --volume`` measures in its own process; for ``quotahost top`` of a cluster a broker does so when
somebody opens one of its volumes. These functions may block on a disk that hangs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from quotahost.broker.disks.file_stores import read_disks
from quotahost.broker.disks.listing import Look, look, written
from quotahost.model import Volume
from quotahost.model.volume_use import MeasuredVolume, TopicUse

MOST: Final = 10  # topics that take most; as many that grow most


def measure(
    volume: str, broker: str, directories: Sequence[str], seconds: float, sleep: Callable[[float], object] = time.sleep
) -> tuple[MeasuredVolume, Look]:
    """The volume of this name and broker with these log directories, and the second of two looks at them.

    Raises:
        OSError: the volume can't be read.
    """
    before, first = _volume(volume, broker, directories), look(directories)
    sleep(seconds)
    now, second = _volume(volume, broker, directories), look(directories)
    span = max(second.at - first.at, 1e-3)
    growth = (now.consumed - before.consumed) / span
    topics = largest(second.used, written(first, second))
    return MeasuredVolume(now, directories, span, growth, topics, second.unread), second


def _volume(name: str, broker: str, directories: Sequence[str]) -> Volume:
    disks = read_disks(broker, directories)
    if not disks.volumes:
        raise OSError("; ".join(disks.offline))
    # Its name depends on which other volumes the broker has.
    return replace(disks.volumes[0], name=name)


def largest(used: Mapping[str, int], rates: Mapping[str, float]) -> list[TopicUse]:
    """The topics that take most or grow most, and the sum of the rest; both mappings are by topic."""
    order = sorted(used, key=lambda topic: used[topic], reverse=True)
    quick = sorted(rates, key=lambda topic: rates[topic], reverse=True)
    shown = list(dict.fromkeys([*order[:MOST], *[each for each in quick[:MOST] if rates[each] > 0]]))
    found = [TopicUse(topic, used.get(topic, 0), rates.get(topic, 0.0)) for topic in shown]
    if rest := used.keys() - set(shown):
        size, rate = sum(used[topic] for topic in rest), sum(rates.get(topic, 0.0) for topic in rest)
        found.append(TopicUse(f"({len(rest)} others)", size, rate))
    return found
