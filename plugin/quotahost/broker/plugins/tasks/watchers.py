"""Who watches, as the records of ``__quotahost_watch`` say it (``quotahost.records.watch``)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from quotahost.api import Context
from quotahost.background import LineLimit
from quotahost.model import Client
from quotahost.records.codec import Refused
from quotahost.records.look import MAX_ANSWERS, MAX_OPENED
from quotahost.records.watch import Watch, decode

_MOST: Final = 16  # watchers that are known by name


class Watchers:
    """Keeps who watches until when. The follower's thread writes, the task's reads.

    Anybody who may write to the topic watches, under as many names as they like: a record doesn't tell its writer's
    principal. Nobody can watch for longer than a record says, or have more than one look published for all. So the
    newest records win: whoever asks now displaces who was heard longest ago, and nobody can lock others out by names
    alone. Each displaced one is counted among the refused records, as ``crowd``, and logged once a minute at most.
    """

    def __init__(self, context: Context[object], clock: Callable[[], float]) -> None:
        """Nobody watches. ``clock`` in seconds, monotonic."""
        self._context, self._clock = context, clock
        self._lock = threading.Lock()
        self._until: dict[str, tuple[float, Watch]] = {}  # in the order of their newest records
        self._lines = LineLimit(1, clock)
        self._changed = False

    # ---- the follower's thread: quotahost.kafka.follower.Reader ----

    def record(self, key: bytes | None, value: bytes | None, live: bool, written_ms: int | None = None) -> None:
        """Take a record, unless it is an old one: who wrote that may be gone, and writes again otherwise."""
        if value is None or not live:
            return
        try:
            self.take(decode(key, value))
        except Refused as problem:
            self._context.metrics.count("Refused", problem.reason, "Records")
            self._context.log.debug("refused a record: %s", problem)

    def caught_up(self) -> None:
        """See Reader."""

    def take(self, watch: Watch) -> None:
        """Somebody watches from now on, or no longer."""
        now = self._clock()
        with self._lock:
            before = self._until.pop(watch.watcher, None)
            if not watch.seconds:
                return
            displaced = len(self._until) >= _MOST and self._until.pop(next(iter(self._until)))[0] > now
            self._until[watch.watcher] = now + watch.seconds, watch
            # Who watches on with the same question waits for the next look.
            self._changed |= before is None or before[0] <= now or _asked(before[1]) != _asked(watch)
        if displaced:
            self._context.metrics.count("Refused", "crowd", "Records")
            if self._lines.passes():
                self._context.log.warning(
                    "more than %d watch: the newest questions are answered. See who writes to %s%s",
                    _MOST, self._context.settings.watch_topic, self._lines.left_out(),
                )  # fmt: skip

    # ---- the task's thread ----

    def now(self) -> Mapping[str, Watch]:
        """The newest records of those who watch, in the order in which they were written."""
        now = self._clock()
        with self._lock:
            self._until = {name: each for name, each in self._until.items() if each[0] > now}
            return {name: watch for name, (_, watch) in self._until.items()}

    def changed(self) -> bool:
        """Whether somebody began to watch, or asked something else, since the last call."""
        with self._lock:
            changed, self._changed = self._changed, False
            return changed


def questions(watchers: Mapping[str, Watch]) -> Mapping[str, Client]:
    """The clients that they asked last to have explained, as many as a record has room for answers."""
    asked = [(name, watch.client) for name, watch in watchers.items() if watch.client is not None]
    return dict(asked[-MAX_ANSWERS:])


def opened(watchers: Mapping[str, Watch], broker: str) -> Sequence[str]:
    """The volumes of this broker that they opened last, as many as a record has room for."""
    volumes = [watch.volume for watch in reversed(list(watchers.values())) if watch.volume is not None]
    return list(dict.fromkeys(volume.name for volume in volumes if volume.broker == broker))[:MAX_OPENED]


def _asked(watch: Watch) -> tuple[object, object]:
    return watch.client, watch.volume
