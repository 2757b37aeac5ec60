"""These functions list the topics in a volume's log directories, with the size and the growth of each topic.

Kafka keeps a replica in the directory ``TOPIC-PARTITION``. Kafka appends ``.ID-future`` while it moves the replica
between two log directories, ``.ID-delete`` after the topic is deleted, and ``.ID-stray`` if the broker should not have
the replica (``LocalLog``, ``UnifiedLog`` and ``LogManager``). Kafka creates and deletes files during a listing; a
deleted file counts as 0 bytes. No function follows links. Every function that reads a directory may block on a disk
that hangs.
"""

import os
import re
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from quotahost.broker.disks.file_stores import read_disks
from quotahost.model import Volume
from quotahost.model.use import MeasuredVolume, TopicUse
from quotahost.model.volumes import MAX_TOPICS
from quotahost.units.show import counted

#: The most entries of a log directory that are read; a broker holds some 10,000 partitions.
MAX_ENTRIES: Final = 100_000
LIST_EVERY: Final = 1.0  # seconds between listings of one volume
OTHERS: Final = "(other files)"
MOST: Final = 10  # the largest topics to show, and as many of the fastest growing ones
_REPLICA: Final = re.compile(r"([A-Za-z0-9._-]{1,249})-([0-9]{1,10})(?:\.[0-9a-f]{32}-(future|delete|stray))?")
_GOING: Final = {"delete": " (being deleted)", "stray": " (stray)", "future": "", None: ""}
_STAY: Final = (None, "future")
_METADATA: Final = "__cluster_metadata"
_BLOCK: Final = 512  # bytes; POSIX counts st_blocks in this unit, whatever block size the file system has
_LOG: Final = ".log"


def topic_of(directory: str) -> tuple[str, bool]:
    """Return a directory's topic, with a note if deleted or stray, and whether it stays; OTHERS if it has no topic."""
    match = _REPLICA.fullmatch(directory)
    if match is None:
        return OTHERS, False
    return match[1] + _GOING[match[3]], match[3] in _STAY


def replicas(directory: str) -> Iterator[tuple[str, int]]:
    """Yield topic and partition of each replica that stays. Raises OSError if there are too many or on a read error."""
    with os.scandir(directory) as entries:
        for number, entry in enumerate(entries):
            if number >= MAX_ENTRIES:
                raise OSError(f"{directory} has more than {MAX_ENTRIES:,} entries")
            if (match := _REPLICA.fullmatch(entry.name)) and match[3] in _STAY:
                yield match[1], int(match[2])


def topics(directories: Iterable[str]) -> frozenset[str] | None:
    """The topics, except the metadata log, with a replica that stays; None on a read error or if there are too many."""
    try:
        names = frozenset(topic for directory in directories for topic, _ in replicas(directory)) - {_METADATA}
    except OSError:
        return None
    return names if len(names) <= MAX_TOPICS else None


@dataclass(slots=True)
class Listing:
    """The log directories of one volume at one moment."""

    at: float  # seconds, monotonic
    #: The bytes on disk by topic. Kafka's index files are sparse and take fewer bytes than their length.
    used: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    logs: dict[str, tuple[str, int]] = field(default_factory=dict)  # topic and length of each ``.log`` file, by path
    partitions: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))  # by topic, those that stay
    unread: list[str] = field(default_factory=list)  # the directories that could not be listed, with the reason


def list_files(directories: Iterable[str]) -> Listing:
    seen = Listing(time.monotonic())
    for directory in directories:
        for entry in _entries(directory, seen):
            _add(entry, seen)
    return seen


def _add(entry: os.DirEntry[str], seen: Listing) -> None:
    is_directory = entry.is_dir(follow_symlinks=False)
    topic, stays = topic_of(entry.name) if is_directory else (OTHERS, False)
    if stays:
        seen.partitions[topic].append(entry.path)
    for file in _entries(entry.path, seen) if is_directory else [entry]:
        with suppress(OSError):  # Kafka may have deleted the file by now
            status = file.stat(follow_symlinks=False)
            seen.used[topic] += status.st_blocks * _BLOCK
            if stays and file.name.endswith(_LOG):
                seen.logs[file.path] = topic, status.st_size


def _entries(directory: str, seen: Listing) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(directory) as entries:
            yield from entries
    except FileNotFoundError:
        pass  # Kafka has deleted the partition meanwhile
    except OSError as error:
        seen.unread.append(f"{directory}: {error.strerror or error}")


def written(before: Listing, now: Listing) -> dict[str, float]:
    """Bytes/s that were appended to each topic between two listings; deleted bytes are not subtracted."""
    span = max(now.at - before.at, 1e-3)
    rates: dict[str, float] = defaultdict(float)
    for path, (topic, length) in now.logs.items():
        # A file may have become shorter, because the log cleaner replaces files.
        rates[topic] += max(0, length - before.logs.get(path, ("", 0))[1]) / span
    return dict(rates)


def measure(name: str, directories: Sequence[str], seconds: float) -> tuple[MeasuredVolume, Listing]:
    """Measure the volume with these log directories; also return the later listing. Raises OSError if it is gone."""
    before, first = _volume(directories), list_files(directories)
    time.sleep(seconds)
    now, second = _volume(directories), list_files(directories)
    span = max(second.at - first.at, 1e-3)
    growth = (now.consumed - before.consumed) / span
    topics = largest(second.used, written(first, second))
    # ``name`` stays the name, because a volume's name depends on the other volumes of the broker.
    measured = MeasuredVolume(name, now.capacity, now.consumed, directories, span, growth, topics, second.unread)
    return measured, second


def _volume(directories: Sequence[str]) -> Volume:
    disks = read_disks("", directories)
    if not disks.volumes:
        raise OSError("; ".join(disks.offline))
    return disks.volumes[0]


def largest(used: Mapping[str, int], rates: Mapping[str, float]) -> list[TopicUse]:
    """The largest topics, the fastest growing topics, and the sum of all others; both mappings are by topic."""
    order = sorted(used, key=lambda topic: used[topic], reverse=True)
    quick = sorted(rates, key=lambda topic: rates[topic], reverse=True)
    shown = list(dict.fromkeys([*order[:MOST], *[topic for topic in quick[:MOST] if rates[topic] > 0]]))
    uses = [TopicUse(topic, used.get(topic, 0), rates.get(topic, 0.0)) for topic in shown]
    if rest := used.keys() - set(shown):
        size, rate = sum(used[topic] for topic in rest), sum(rates.get(topic, 0.0) for topic in rest)
        uses.append(TopicUse(f"({counted(len(rest), 'others')})", size, rate))
    return uses
