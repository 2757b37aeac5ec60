"""The budgets of storage in a factor source: which there are, how much is used, also while leaders change.

1. While ``budgets=on``, a follower reads the topic of the cluster-wide quotas, on a thread of its own, and keeps the
   budgets in it (``by_name``).
2. :meth:`Budgets.volumes`, on the host thread, tells this broker's disk monitor which topics to look for, and makes a
   volume of each budget: its bytes, how many are used in the cluster, and its topics on this broker.

Where the bytes come from is the source's part: ``snapshots`` adds up what brokers publish, ``cluster-volumes`` takes
the pipeline's sums. The policy judges these volumes like any other; the factor is for writers to their topics alone.

When a broker leaves service, its leaders' bytes no longer count, and with the new leaders they do ten seconds after
that (``quotahost.broker.disks.budgets``). In between no less counts than before: else each restart of a broker would
let those on whose budget is used up.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from quotahost.api import Context
from quotahost.base.background import Clock
from quotahost.kafka.follower import Follower
from quotahost.model import Volume
from quotahost.model.budgets import Budget, Part, as_volume, in_cluster
from quotahost.records.budgets import LatestBudgets

_NOWHERE: Final = Part(0, frozenset())
_SILENCE: Final = 3600.0  # seconds without a record of a quota after which the topic is read again
#: Seconds from the moment at which a broker is out of service to that at which the new leaders' bytes are read.
_TAKEN_OVER: Final = 13.0

#: Names of budgets with the bytes that count for them on a broker, and whether that broker is in service.
Used = tuple[Iterable[tuple[str, int]], bool]


class Budgets:
    """Follows the budgets of the topic, and makes volumes of them."""

    def __init__(self, context: Context, clock: Clock = time.monotonic) -> None:
        self._context, self._topic, self._clock = context, context.settings.quotas_topic, clock
        #: None before the topic is read; replaced as a whole when one has changed.
        self.by_name: Mapping[str, Budget] | None = None
        self._latest = LatestBudgets()
        self._follower: Follower | None = None
        self._made: tuple[tuple[object, ...], tuple[Volume, ...]] = (), ()  # of what, and the volumes
        self._used: dict[str, tuple[int, int]] = {}  # by budget the bytes that count, and those that no longer do
        self._at_least: dict[str, tuple[int, float]] = {}  # of those of which more no longer counts: bytes, until when
        context.closing.callback(self.close)

    def close(self) -> None:
        if self._follower:
            self._follower.close()
            self._context.disks.budgets.wanted = None
        self._follower, self.by_name, self._latest, self._used = None, None, LatestBudgets(), {}

    # ---- the host thread ----

    def volumes(self, told: Sequence[Used] | None) -> tuple[Volume, ...] | None:
        """Each budget as a volume, by what is used; None: that, or which there are, is not known yet."""
        settings = self._context.settings
        if settings.budgets == "off":
            if self._follower is not None:
                self.close()
            return ()
        if self._follower is None:
            self._follower = Follower(
                self._context, self._topic, self.record, lambda: _SILENCE, self.caught_up, self._put,
                connection=f"{self._context.name}-budgets", begins=self._latest.begins,
            )  # fmt: skip
        look, budgets, share = self._context.disks.budgets, self.by_name, settings.budget_soft_share
        parts = look.parts
        if budgets is not None:
            look.wanted = budgets
        if budgets == {}:
            return ()
        if budgets is None or parts is None or told is None:
            return None
        now = self._clock()
        held = {name: held for name, held in self._at_least.items() if now < held[1]}
        # Adding up takes 28 ms with 100 brokers and 1,000 budgets, and mostly nothing has changed.
        if self._made[0] != (of := (budgets, parts, share, told)) or held != self._at_least:
            self._at_least = held
            used = self._taken(budgets, told, now)
            # A record raises a budget, so nobody is turned back from their topic.
            topics = {name: parts.get(name, _NOWHERE).topics - {self._topic} for name in budgets}
            self._made = of, tuple(as_volume(budgets[name], used[name], topics[name], share) for name in budgets)
        return self._made[1]

    def _taken(self, budgets: Mapping[str, Budget], told: Sequence[Used], now: float) -> dict[str, int]:
        before, self._used = self._used, in_cluster(budgets, told)
        for name, (_, gone) in self._used.items():
            used_before, gone_before = before.get(name, (0, gone))
            if gone > gone_before:
                most, _ = self._at_least.get(name, (0, now))
                self._at_least[name] = max(most, used_before), now + _TAKEN_OVER
        return {name: max(used, self._at_least.get(name, (0, now))[0]) for name, (used, _) in self._used.items()}

    # ---- the follower's thread ----

    def record(self, key: bytes | None, value: bytes | None, live: bool, written_ms: int | None = None) -> None:
        self._latest.record(key, value, live)
        if live:
            self._put()

    def caught_up(self) -> None:
        """From now on the budgets are those that were read."""
        self._latest.caught_up()
        self._put()

    def _put(self) -> None:
        """Also while there is no topic: those that were read before stay, as somebody may have deleted it."""
        # The same object as long as nothing has changed: the disk monitor looks at once for other ones.
        if self.by_name != self._latest.by_name:
            self.by_name = dict(self._latest.by_name)
