"""While somebody watches: looks of this broker for ``quotahost top``, clients explained, volumes opened. A part of the
task ``publish-usage``.

1. Who watches writes a record to ``__quotahost_watch`` again and again (``quotahost.records.watch``); :class:`Watchers`
   keeps the newest of each.
2. Every two seconds, and at once for a new question, :class:`LooksPublisher` has the broker looked at and publishes
   that to ``__quotahost_looks``, with the explanations of clients that watchers ask for.
3. :class:`OpenedVolumes` measures the volumes that a watcher has opened, on threads of their own.

While nobody watches, nothing is looked at and nothing is published, but for one record at the start, and one at the end
without any client.
"""

import threading
import time
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Final

from quotahost.api import Context
from quotahost.base.background import Clock, LineLimit
from quotahost.broker.disks.file_stores import cluster_id, log_dirs
from quotahost.broker.disks.topics import measure
from quotahost.kafka.follower import Follower
from quotahost.kafka.publisher import Publisher
from quotahost.model.use import MeasuredVolume
from quotahost.records.look import MAX_ANSWERS, MAX_OPENED, MAX_USES, Answered, encode, of
from quotahost.records.watch import Watch, decode

EVERY: Final = 2.0  # seconds between looks that are published
_REST: Final = 20  # the next look is at least so many times as far away as one takes, or listing of files of a core
_SILENCE: Final = 600.0  # seconds after which the topic is read anew, if nobody has watched
_MOST: Final = 16  # watchers that are known by name
_MOST_HEARD: Final = 1000  # records between two looks at who watches
BETWEEN: Final = 2.0  # seconds between the two looks at a volume


class LooksPublisher:
    """Looks at the broker every two seconds while somebody watches."""

    def __init__(self, context: Context, clock: Clock = time.monotonic) -> None:
        self._context, self._clock = context, clock
        settings, name = context.settings, context.name
        self._watchers = Watchers(context, clock)
        self._opened = OpenedVolumes(context)
        # The first record makes both topics, and shows that this broker answers those who watch.
        self._publisher = Publisher(
            context, settings.looks_topic, self._lost, clock, [settings.watch_topic], f"{name}-looks"
        )
        self._due, self._empty = clock(), False
        self._rest = clock()  # no question is answered before
        self._cluster = ""
        self._follower = Follower(
            context, settings.watch_topic, self._watchers.record, lambda: _SILENCE, absent=self._watch_is_absent,
            connection=f"{name}-watch",
        )  # fmt: skip

    def run(self) -> None:
        # busy() comes first: it also reports a lost record.
        if self._publisher.busy():
            return
        watchers = self._watchers.now()
        due = self._rest if self._watchers.asked and watchers else self._due
        began = self._clock()
        if began < due or (self._empty and not watchers):
            return
        # Before it is sent: a failure may be reported at once, and must have the last word.
        self._empty, self._due, self._watchers.asked = not watchers, began + EVERY, False
        self._publisher.send(str(self._context.node_id).encode(), lambda: self._encoded(list(watchers.values())))
        ended = self._clock()
        self._rest = ended + _REST * (ended - began)
        self._due = max(self._due, self._rest)

    def _encoded(self, watchers: Sequence[Watch]) -> bytes:
        """The record, with the questions that were asked last, as many as it has room for answers."""
        broker, node = self._context.broker, str(self._context.node_id)
        look = broker.look(MAX_USES if watchers else 0)
        asked = [(watch.watcher, watch.client) for watch in watchers if watch.client is not None]
        answers = [Answered(watcher, tuple(broker.explain(client))) for watcher, client in asked[-MAX_ANSWERS:]]
        opened = [watch.volume.name for watch in reversed(watchers) if watch.volume and watch.volume.broker == node]
        self._cluster = self._cluster or cluster_id(log_dirs(broker.properties()))
        # Without a monitor of the disks there are no volumes to open, and opening starts none.
        known = {volume.name for volume in look.volumes}
        measured = self._opened.of([name for name in list(dict.fromkeys(opened))[:MAX_OPENED] if name in known])
        return encode(of(node, self._cluster, look, answers, measured, bool(watchers)))

    def _lost(self) -> None:
        """The last record was not delivered."""
        self._due, self._empty = self._clock(), False

    def _watch_is_absent(self) -> None:
        """The follower's thread: nobody can watch without the topic."""
        if self._clock() >= self._due:
            self._empty = False
            self._publisher.make_topics()


class Watchers:
    """Keeps who watches until when, by the records that the follower's thread leaves to the task's.

    Anybody who may write to the topic watches, under as many names as they like: a record doesn't tell its writer's
    principal. Nobody can watch for longer than a record says, or have more than one look published for all. So the
    newest records win: whoever asks now displaces who was heard longest ago (a refused record of reason ``crowd``).
    """

    def __init__(self, context: Context[object], clock: Clock) -> None:
        self._context, self._clock = context, clock
        self._heard: deque[Watch] = deque(maxlen=_MOST_HEARD)
        self._until: dict[str, tuple[float, Watch]] = {}  # in the order of their newest records
        self._lines = LineLimit(1, clock)
        self.asked = False  # whether somebody has begun to watch, or asked something else; who answers sets it back

    def record(self, key: bytes | None, value: bytes | None, live: bool, written_ms: int | None = None) -> None:
        """A record was read. The writer of an old one may be gone, and writes again otherwise."""
        if value is not None and live:
            self._heard.append(decode(key, value))

    def now(self) -> Mapping[str, Watch]:
        now = self._clock()
        while self._heard:
            self._take(self._heard.popleft(), now)
        self._until = {name: (until, watch) for name, (until, watch) in self._until.items() if until > now}
        return {name: watch for name, (_, watch) in self._until.items()}

    def _take(self, watch: Watch, now: float) -> None:
        until, before = self._until.pop(watch.watcher, (now, None))
        if not watch.seconds:
            return
        displaced = len(self._until) >= _MOST and self._until.pop(next(iter(self._until)))[0] > now
        self._until[watch.watcher] = now + watch.seconds, watch
        # Who watches on with the same question waits for the next look.
        same = before is not None and (before.client, before.volume) == (watch.client, watch.volume)
        self.asked |= until <= now or not same
        if displaced:
            self._context.metrics.count("Refused", "crowd", "Records")
            if self._lines.passes():
                self._context.log.warning(
                    "more than %d watch: the newest questions are answered. See who writes to %s%s",
                    _MOST, self._context.settings.watch_topic, self._lines.left_out(),
                )  # fmt: skip


class OpenedVolumes:
    """Measures volumes, each on a thread of its own: a disk that hangs holds up nothing else.

    A volume is measured once, as long as somebody asks for it; whoever asks again and again keeps no core busy.
    """

    def __init__(self, context: Context, clock: Clock = time.monotonic) -> None:
        self._context, self._clock, self._rest = context, clock, clock()
        self._lock = threading.Lock()
        self._measured: dict[str, MeasuredVolume] = {}
        self._running: set[str] = set()

    def of(self, names: Collection[str]) -> Sequence[MeasuredVolume]:
        """Those of these volumes that are measured; the others soon are. No call waits for a disk."""
        with self._lock:
            self._measured = {name: measured for name, measured in self._measured.items() if name in names}
            for name in names if self._clock() >= self._rest else ():
                if name not in self._measured and name not in self._running:
                    self._running.add(name)
                    self._context.start_thread("opened-volume", partial(self._run, name))
            return [self._measured[name] for name in names if name in self._measured]

    def _run(self, name: str) -> None:
        disks = self._context.disks.latest()[1]
        directories = [directory for directory, volume in disks.places if volume == name] if disks else []
        try:
            measured = measure(name, directories, BETWEEN)[0]
        except Exception as error:  # most often the disk's; or no other volume would be measured after a defect
            measured = MeasuredVolume(name, 0, 0, directories, 0.0, 0.0, (), (str(error) or "it is gone",))
        with self._lock:
            self._running.remove(name)
            # Who waits for a disk takes no core, so what counts is this thread's own time.
            self._rest = self._clock() + _REST * time.thread_time()
            self._measured[name] = measured
