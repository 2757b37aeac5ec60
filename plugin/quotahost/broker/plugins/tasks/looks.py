"""Publishes what ``quotahost top`` shows of this broker, while somebody watches. A part of the task ``publish-usage``.

The topic ``__quotahost_watch`` says who watches (``watchers``); the looks go to ``__quotahost_looks``. While nobody
watches, nothing is looked at and nothing is published, but for one record at the start, and one at the end without any
client.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Final

from quotahost.api import Context
from quotahost.broker.disks.file_stores import cluster_id, log_dirs
from quotahost.broker.plugins.tasks.opened_volumes import OpenedVolumes
from quotahost.broker.plugins.tasks.watchers import Watchers, opened, questions
from quotahost.kafka.follower import Follower
from quotahost.kafka.publisher import RETRY, Publisher
from quotahost.records.look import MAX_USES, Answered, encode, of
from quotahost.records.watch import Watch

EVERY: Final = 2.0  # seconds between looks that are published
_REST: Final = 20  # the next look is at least so many times as far as one takes
_AGAIN: Final = 5.0  # seconds until the next try where nobody watches
_SILENCE: Final = 600.0  # seconds after which the topic is read anew, if nobody has watched


class Looks:
    """Looks at the broker every two seconds while somebody watches."""

    def __init__(self, context: Context, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin to follow the topic of those who watch. ``clock`` in seconds, monotonic."""
        self._context, self._clock = context, clock
        settings = context.settings
        self._watchers = Watchers(context, clock)
        self._opened = OpenedVolumes(context)
        self._publisher = Publisher(
            context, settings.looks_topic, "look", self._lost, clock, [settings.watch_topic], f"{context.name}-looks"
        )
        # The first record makes both topics, and tells that this broker answers those who watch.
        self._due, self._empty, self._absent = clock(), False, False
        self._rest = clock()  # not even news is looked at before
        self._cluster, self._changed = "", False
        self._follower = Follower(
            context, settings.watch_topic, self._watchers, _SILENCE, self._watch_is_absent,
            connection=f"{context.name}-watch",
        )  # fmt: skip

    def run(self) -> None:
        """Look and publish, if it is time."""
        # busy() comes first: it also reports a lost record.
        if self._publisher.busy():
            return
        watchers = self._watchers.now()
        if self._absent:
            self._absent, self._empty = False, False
            self._publisher.make_topics()
        self._changed |= self._watchers.changed()
        due = self._rest if self._changed and watchers else self._due
        if self._clock() < due:
            return
        if watchers or not self._empty:
            self._publish(watchers)

    def close(self) -> None:
        """End the threads, and wait a moment for the record that is on its way."""
        self._opened.close()
        self._follower.close()
        self._publisher.close()

    def _publish(self, watchers: Mapping[str, Watch]) -> None:
        began = self._clock()
        # Before it is sent: a failure may be reported at once, and must have the last word.
        self._empty, self._due, self._changed = not watchers, began + EVERY, False
        self._publisher.send(str(self._context.node_id).encode(), lambda: self._encoded(watchers))
        ended = self._clock()
        self._rest = ended + _REST * (ended - began)
        self._due = max(self._due, self._rest)

    def _encoded(self, watchers: Mapping[str, Watch]) -> bytes:
        broker, node = self._context.broker, str(self._context.node_id)
        look = broker.look(MAX_USES if watchers else 0)
        answers = [Answered(name, tuple(broker.explain(client))) for name, client in questions(watchers).items()]
        self._cluster = self._cluster or cluster_id(log_dirs(broker.properties()))
        # Without a monitor of the disks there are no volumes to open, and opening starts none.
        known = {each.name for each in look.volumes}
        measured = self._opened.of([name for name in opened(watchers, node) if name in known])
        return encode(of(node, self._cluster, look, answers, measured))

    def _lost(self) -> None:
        """The last record was not delivered. Where nobody waits for it there is no hurry."""
        self._due, self._empty = self._clock() + (RETRY if self._watchers.now() else _AGAIN), False

    def _watch_is_absent(self) -> None:
        """The follower's thread: nobody can watch without the topic."""
        if self._clock() >= self._due:
            self._absent = True
