"""``LooksPublisher`` publishes looks at this broker while a ``quotahost top`` watches, as part of ``publish-usage``.

1. Each watcher writes a record to ``__quotahost_watch`` again and again (``quotahost.records.watch``).
   :class:`Watchers` keeps the latest record of each watcher.
2. Every two seconds, and immediately for a new question, :class:`LooksPublisher` looks at the broker and publishes the
   look to ``__quotahost_looks``, with the explanations of clients that watchers ask for.
3. On separate threads, :class:`OpenedVolumes` measures the volumes that a watcher has opened.

While there are no watchers, the task publishes only one record at its start, and one record without any client after
the last watcher has gone.
"""

import math
import threading
import time
from collections import deque
from collections.abc import Collection, Sequence
from functools import partial
from typing import Final

from quotahost.api import Context
from quotahost.base.background import Clock, LoggedOnce
from quotahost.broker.disks.file_stores import cluster_id, log_dirs
from quotahost.broker.disks.topics import measure
from quotahost.kafka.follower import Follower
from quotahost.kafka.publisher import Publisher
from quotahost.model.use import MeasuredVolume
from quotahost.records.look import MAX_ANSWERS, MAX_OPENED, MAX_USES, Answered, encode, of
from quotahost.records.topics import LOOKS, WATCH
from quotahost.records.watch import Watch, decode

EVERY: Final = 2.0  # seconds between published looks
_REST: Final = 20  # the pause is 20 x the time of the last look, or 20 x the CPU time of the last measured volume
_SILENCE: Final = 600.0  # seconds without a watcher after which the topic is read again
_MOST: Final = 16  # the most watchers that are kept
_MOST_HEARD: Final = 1000  # the most records that are kept between two runs of the task
BETWEEN: Final = 2.0  # seconds between the two listings of a volume


class LooksPublisher:
    """Looks at the broker every two seconds while there are watchers."""

    def __init__(self, context: Context, clock: Clock = time.monotonic) -> None:
        self._context, self._clock = context, clock
        looks, watch = map(context.settings.named, (LOOKS, WATCH))
        self._watchers = Watchers(context, clock)
        self._opened = OpenedVolumes(context)
        # The first record creates both topics and shows that this broker answers watchers.
        self._publisher = Publisher[Sequence[Watch]](
            context, looks, _is_news, clock, lambda: [watch], f"{context.name}-looks"
        )
        self._rest = -math.inf  # no look starts before this time
        self._cluster = ""
        self._follower = Follower(
            context, watch, self._watchers.record, lambda: _SILENCE, absent=self._watch_is_absent,
            connection=f"{context.name}-watch",
        )  # fmt: skip

    def run(self) -> None:
        watchers = self._watchers.now()
        seen = watchers if self._clock() >= self._rest else None
        self._publisher.offer(seen, self._encoded, EVERY if watchers else math.inf)

    def _encoded(self, watchers: Sequence[Watch]) -> bytes:
        """The record, with answers to the latest questions, as many as fit."""
        began, broker, node = self._clock(), self._context.broker, str(self._context.node_id)
        look = broker.look(MAX_USES if watchers else 0)
        asked = [(watch.watcher, watch.client) for watch in watchers if watch.client is not None]
        answers = [Answered(watcher, tuple(broker.explain(client))) for watcher, client in asked[-MAX_ANSWERS:]]
        opened = [watch.volume.name for watch in reversed(watchers) if watch.volume and watch.volume.broker == node]
        self._cluster = self._cluster or cluster_id(log_dirs(broker.properties()))
        # If no disk monitor runs, a look has no volumes, and a question about a volume does not start the monitor.
        names = {volume.name for volume in look.volumes}
        measured = self._opened.of([name for name in list(dict.fromkeys(opened))[:MAX_OPENED] if name in names])
        record = encode(of(node, self._cluster, look, answers, measured, bool(watchers)))
        # The time to connect doesn't count: while the controllers have no quorum, it is up to 10 s.
        ended = self._clock()
        self._rest = ended + _REST * (ended - began)
        return record

    def _watch_is_absent(self) -> None:
        """Have the next record create the topic, because watchers need it. The follower's thread calls this."""
        if self._clock() - self._publisher.sent_at >= EVERY:
            self._publisher.publish_again()
            self._publisher.make_topics()


def _is_news(before: Sequence[Watch], now: Sequence[Watch]) -> bool:
    """Whether a watcher is new or has a new question, or the last watcher has gone."""
    had, has = ({(watch.watcher, watch.client, watch.volume) for watch in each} for each in (before, now))
    return not has <= had or (bool(had) and not has)


class Watchers:
    """Keeps the watchers and the end of each watch. The follower's thread hands the records to the task's thread.

    Every client that may write to the topic can watch under any number of names, because a record doesn't contain its
    writer's principal. But each watch ends after its seconds, and the broker publishes one look for all watchers.
    If there are too many watchers, a new one displaces the one with the oldest record (a refusal of reason ``crowd``).
    """

    def __init__(self, context: Context[object], clock: Clock) -> None:
        self._context, self._clock = context, clock
        self._heard: deque[Watch] = deque(maxlen=_MOST_HEARD)
        self._until: dict[str, tuple[float, Watch]] = {}  # in the order of the latest record of each watcher
        self._crowd = LoggedOnce(context.log, clock=clock)

    def record(self, key: bytes | None, value: bytes | None, live: bool, written_ms: int | None = None) -> None:
        """Keep a live record. The writer of an old record may be gone; if not, it writes again."""
        if value is not None and live:
            self._heard.append(decode(key, value))

    def now(self) -> Sequence[Watch]:
        """The latest record of each watcher, the latest last."""
        now = self._clock()
        while self._heard:
            self._take(self._heard.popleft(), now)
        self._until = {name: (until, watch) for name, (until, watch) in self._until.items() if until > now}
        return [watch for _, watch in self._until.values()]

    def _take(self, watch: Watch, now: float) -> None:
        self._until.pop(watch.watcher, None)
        if not watch.seconds:
            return
        displaced = len(self._until) >= _MOST and self._until.pop(next(iter(self._until)))[0] > now
        self._until[watch.watcher] = now + watch.seconds, watch
        if displaced:
            self._context.metrics.count("Refused", "crowd", "Records")
            text = "more than %d watchers: only the latest are answered. Check which clients write to %s"
            self._crowd.report(text, _MOST, self._context.settings.named(WATCH))
            self._crowd.healed()  # each displaced watcher counts, and the log has a line a minute


class OpenedVolumes:
    """Measures each volume on a separate thread, so that a disk that hangs delays nothing else.

    A volume is measured once for as long as watchers ask for it, so repeated questions do not keep a core busy.
    """

    def __init__(self, context: Context, clock: Clock = time.monotonic) -> None:
        self._context, self._clock, self._rest = context, clock, clock()
        self._lock = threading.Lock()
        self._measured: dict[str, MeasuredVolume] = {}
        self._running: set[str] = set()

    def of(self, names: Collection[str]) -> Sequence[MeasuredVolume]:
        """Return the measured volumes, and start to measure the others. No call waits for a disk."""
        with self._lock:
            self._measured = {name: measured for name, measured in self._measured.items() if name in names}
            for name in names if self._clock() >= self._rest else ():
                if name not in self._measured and name not in self._running:
                    self._context.start_thread("opened-volume", partial(self._run, name))
                    self._running.add(name)  # after the start, which may fail; the thread's end waits for the lock
            return [self._measured[name] for name in names if name in self._measured]

    def _run(self, name: str) -> None:
        disks = self._context.disks.latest()[1]
        directories = [directory for directory, volume in disks.places if volume == name] if disks else []
        try:
            measured = measure(name, directories, BETWEEN)[0]
        except Exception as error:  # usually the disk's; the name must leave ``_running`` after any error
            measured = MeasuredVolume(name, 0, 0, directories, 0.0, 0.0, (), (str(error) or "the volume is gone",))
        with self._lock:
            self._running.remove(name)
            # The pause depends on the CPU time of this thread, because waiting for a disk uses no core.
            self._rest = self._clock() + _REST * time.thread_time()
            self._measured[name] = measured
