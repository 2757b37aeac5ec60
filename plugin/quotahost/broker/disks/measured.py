"""What fills a volume: its own numbers and its topics, by two looks some seconds apart.

``quotahost explain --volume`` measures in its own process; for ``quotahost top`` of a cluster a broker does so when
somebody opens one of its volumes. These functions may block on a disk that hangs.

A look lists the log directories (``look``). A topic's directory is ``TOPIC-PARTITION``; Kafka appends ``.ID-future``
while it moves the partition between two log directories, ``.ID-delete`` once the topic is deleted, and ``.ID-stray`` if
the broker should not have it (Kafka's LocalLog). Files come and go while they are listed: what has gone counts as 0.
"""

from __future__ import annotations

import os
import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from quotahost.broker.disks.file_stores import read_disks
from quotahost.model import Volume
from quotahost.model.use import MeasuredVolume, TopicUse

OTHERS: Final = "(other files)"
_PARTITION: Final = re.compile(r"(.+?)-(\d+)(?:\.[0-9a-f]{32}-(future|delete|stray))?")
_GOING: Final = {"delete": " (being deleted)", "stray": " (stray)", "future": "", None: ""}
_BLOCK: Final = 512  # POSIX counts st_blocks in these, whatever the file system's own blocks are
_LOG: Final = ".log"


@dataclass(slots=True)
class Look:
    """The log directories of one volume at one moment.

    Attributes:
        at: seconds, monotonic.
        used: by topic the bytes that its files take on the disk; Kafka's index files are sparse and take less than
            their length.
        logs: the length of each file of records by its path.
        partitions: by topic its directories, without those that are going.
        unread: the directories that could not be listed, with the reason.
    """

    at: float
    used: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    logs: dict[str, tuple[str, int]] = field(default_factory=dict)
    partitions: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    unread: list[str] = field(default_factory=list)


def look(directories: Iterable[str]) -> Look:
    """List the log directories. It waits for the disk for as long as that takes."""
    found = Look(time.monotonic())
    for directory in directories:
        for entry in _entries(directory, found):
            _add(entry, found)
    return found


def topic_of(directory: str) -> tuple[str, bool]:
    """The topic of a directory's name with a note where it is going, and whether it stays; OTHERS for any other."""
    match = _PARTITION.fullmatch(directory)
    if match is None:
        return OTHERS, False
    topic, _, fate = match.groups()
    return topic + _GOING[fate], fate in (None, "future")


def _add(entry: os.DirEntry[str], found: Look) -> None:
    if not entry.is_dir(follow_symlinks=False):
        found.used[OTHERS] += _used(entry)
        return
    topic, stays = topic_of(entry.name)
    if stays:
        found.partitions[topic].append(entry.path)
    for file in _entries(entry.path, found):
        found.used[topic] += _used(file)
        if stays and file.name.endswith(_LOG):
            found.logs[file.path] = topic, _length(file)


def _entries(directory: str, found: Look) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(directory) as entries:
            yield from entries
    except FileNotFoundError:  # a partition was deleted meanwhile
        if Path(directory).parent.exists():
            return
        found.unread.append(f"{directory}: it is gone")
    except OSError as error:
        found.unread.append(f"{directory}: {error.strerror or error}")


def _used(file: os.DirEntry[str]) -> int:
    try:
        return file.stat(follow_symlinks=False).st_blocks * _BLOCK
    except OSError:
        return 0


def _length(file: os.DirEntry[str]) -> int:
    try:
        return file.stat(follow_symlinks=False).st_size
    except OSError:
        return 0


def written(before: Look, now: Look) -> dict[str, float]:
    """Bytes/s that were appended to each topic between two looks; what was deleted meanwhile is not taken off."""
    span = max(now.at - before.at, 1e-3)
    rates: dict[str, float] = defaultdict(float)
    for path, (topic, length) in now.logs.items():
        # The cleaner puts a shorter file in the place of another one.
        rates[topic] += max(0, length - before.logs.get(path, ("", 0))[1]) / span
    return dict(rates)


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
