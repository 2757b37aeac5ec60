"""``Budgets`` gives a factor source the storage budgets as volumes, also while leaders change.

1. While ``budgets=on``, a follower reads the topic of the cluster-wide quotas on a separate thread, and keeps the
   budgets of the topic in ``by_name``.
2. On the host thread, :meth:`Budgets.volumes` tells this broker's disk monitor which budgets to look for. It returns a
   volume for each budget: its bytes, the bytes used in the cluster, and its topics on this broker. The source supplies
   the used bytes: ``snapshots`` sums what brokers publish, and ``cluster-volumes`` takes the pipeline's sums.
3. The policy judges these volumes like all others. Their factors apply only to clients that write to their topics.

When a broker leaves service, the bytes of its leaders no longer count. The bytes of the new leaders count ten seconds
later (``quotahost.broker.disks.budgets``). Meanwhile at least the former sum counts. Otherwise each restart of a broker
would let writers continue although their budget is used up.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from quotahost.api import Context
from quotahost.base.background import Clock
from quotahost.kafka.follower import Follower
from quotahost.model import Volume
from quotahost.model.budgets import Budget, as_volume, by_service
from quotahost.records.budgets import LatestBudgets
from quotahost.records.topics import QUOTAS

_SILENCE: Final = 3600.0  # seconds without a record of a quota after which the topic is read again
#: Seconds from the end of a broker's service until this broker has read the bytes of the new leaders.
_TAKEN_OVER: Final = 13.0

#: The budgets of a broker by name, each with the bytes that count there, and whether that broker is in service.
Used = tuple[Iterable[tuple[str, int]], bool]


class Budgets:
    """Follows the budgets of the topic, and makes volumes of them."""

    def __init__(self, context: Context, clock: Clock = time.monotonic) -> None:
        self._context, self._topic, self._clock = context, context.settings.named(QUOTAS), clock
        #: The budgets; None before the topic is read. The mapping is replaced as a whole when a budget has changed.
        self.by_name: Mapping[str, Budget] | None = None
        self._latest = LatestBudgets()
        self._follower: Follower | None = None
        self._made: tuple[tuple[object, ...], tuple[Volume, ...]] = (), ()  # the last inputs, and their volumes
        self._used: dict[str, tuple[int, int]] = {}  # by budget: the bytes that count, and those that no longer count
        self._at_least: dict[str, tuple[int, float]] = {}  # after a broker has left: the minimum of bytes, and its end
        context.closing.callback(self.close)

    def close(self) -> None:
        if self._follower:
            self._follower.close()
            self._context.disks.budgets.wanted = None
        self._follower, self.by_name, self._latest, self._used = None, None, LatestBudgets(), {}

    # ---- the host thread ----

    def volumes(self, told: Sequence[Used] | None) -> tuple[Volume, ...] | None:
        """Each budget as a volume; None if the budgets or their used bytes (``told``) are not known yet."""
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
        # The sums take 28 ms with 100 brokers and 1,000 budgets, so they are computed only after a change.
        if self._made[0] != (of := (budgets, parts, share, told)) or held != self._at_least:
            self._at_least = held
            used = self._taken(budgets, told, now)
            # A budget is raised by a record of this topic, so the fence must not turn back writers to this topic.
            here = {name: part.topics - {self._topic} for name, part in parts.items()}
            self._made = of, tuple(as_volume(b, used[n], here.get(n, frozenset()), share) for n, b in budgets.items())
        return self._made[1]

    def _taken(self, budgets: Mapping[str, Budget], told: Sequence[Used], now: float) -> dict[str, int]:
        before, sums = self._used, by_service(told)
        # A broker out of service leads no partition: each of its former partitions has another leader, whose bytes
        # count, or accepts no writes. So its last report adds no bytes to a budget of leaders' bytes.
        self._used = {n: (sum(sums[n]), 0) if b.replicas else (sums[n][0], sums[n][1]) for n, b in budgets.items()}
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
        """Put the budgets that were read into force."""
        self._latest.caught_up()
        self._put()

    def _put(self) -> None:
        """Replace the budgets. If the topic doesn't exist (an operator may have deleted it), the last budgets stay."""
        # The object stays the same if nothing has changed, because a new object makes the disk monitor look again.
        if self.by_name != self._latest.by_name:
            self.by_name = dict(self._latest.by_name)
