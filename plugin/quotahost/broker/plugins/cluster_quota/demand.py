"""Estimates what a client would use of its quota on this broker, from what Kafka measures there.

Kafka measures only what a client was allowed to do. The task ``publish-usage`` publishes the demand, by which the
pipeline divides cluster-wide quotas, and the share book uses it to find out which clients are silent.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from quotahost.model import ClientUsage
from quotahost.records.usage import ClientKey

_NEAR: Final = 0.9  # of its limit: from here on the limit is what holds the client back
_MORE: Final = 1.25  # times its rate is the demand of a client that nothing holds back: room to grow in
_SILENCE: Final = 1.0  # seconds
#: Request threads note the beat of a clock that the watch moves every 0.2 s, so that they read no time themselves.
_BEAT: Final = 0.25  # seconds; Usage.java knows no more exactly when a client last asked
_HELD: Final = 1.5  # seconds for which a new delay shows that the client is held back


@dataclass(frozen=True, slots=True)
class _Seen:
    """A client at the last look; times in monotonic seconds.

    Attributes:
        asked_at: when it last asked.
        waits_until: until when Kafka makes it wait since then.
        delay: the mean of its delays, in seconds.
        delayed_at: when that mean last changed, because Kafka delayed it once more. None if it never did.
    """

    asked_at: float
    waits_until: float
    delay: float
    delayed_at: float | None


class Demands:
    """Estimates demands, and remembers each client from look to look.

    Attributes:
        silent: the clients that asked for nothing lately, as of the last look.
    """

    def __init__(self, window: float) -> None:
        """``window`` is ``quotahost.throttling.quota_window``, in seconds."""
        self._window = window
        self._seen: dict[ClientKey, _Seen] = {}
        self.silent: frozenset[ClientKey] = frozenset()

    def look(self, used: Iterable[ClientUsage], now: float) -> dict[ClientKey, float | None]:
        """The demand of each client in bytes/s, None where it wants all that it can get.

        The demand of a ``silent`` client is 0: it has asked for nothing for a second longer than Kafka made it wait.
        Its rate doesn't show that, because Kafka's rates fall only slowly, as windows pass.

        Args:
            used: what Kafka measures now.
            now: in seconds, monotonic.
        """
        uses = {key_of(each): each for each in used}
        self._seen = {key: self._see(self._seen.get(key), each, now) for key, each in uses.items()}
        self.silent = frozenset(key for key, each in uses.items() if self._is_silent(key, each, now))
        return {key: self._demand(key, each, now) for key, each in uses.items()}

    def _see(self, before: _Seen | None, used: ClientUsage, now: float) -> _Seen:
        asked_at = now - used.idle
        # Of the past there is only the mean of the delays. It reaches back a minute and is too short where many small
        # ones are among them, so it serves for the first look alone.
        if before is None:
            return _Seen(asked_at, asked_at + used.delay, used.delay, None)
        waits_until = before.waits_until
        # A smaller difference is the clock's coarseness and no new request.
        if asked_at > before.asked_at + _BEAT:
            wait = self._wait(used)
            # Without a wait it is free to ask since its last request; it does not wait until this look.
            waits_until = now + wait if wait else asked_at
        # A mean that falls to 0 shows only that Kafka has forgotten the last delay.
        moved = used.delay != before.delay and used.delay > 0
        return _Seen(max(asked_at, before.asked_at), waits_until, used.delay, now if moved else before.delayed_at)

    def _wait(self, used: ClientUsage) -> float:
        """Seconds that Kafka makes it wait from now on: (rate - limit) / limit x window (``QuotaUtils.throttleTime``).

        The limit is the one at the time when the client asked; a later limit doesn't change the wait.
        """
        if used.limit is None or used.rate <= used.limit:
            return 0.0
        return (used.rate / used.limit - 1) * self._window

    def _is_silent(self, key: ClientKey, used: ClientUsage, now: float) -> bool:
        # A muted client is idle because Kafka told it to wait; as silent it would lose its share to other brokers.
        return used.idle > _SILENCE and now > self._seen[key].waits_until + _SILENCE

    def _demand(self, key: ClientKey, used: ClientUsage, now: float) -> float | None:
        if key in self.silent:
            return 0.0
        seen = self._seen[key]
        delayed = seen.delayed_at is not None and now - seen.delayed_at <= _HELD
        # After its wait a client gets a moment to ask again before its measured rate counts, which is low by then.
        waits = seen.asked_at + _BEAT < seen.waits_until and now < seen.waits_until + _SILENCE
        near = used.limit is not None and used.rate >= _NEAR * used.limit
        return None if delayed or waits or near else used.rate * _MORE


def key_of(used: ClientUsage) -> ClientKey:
    """The key of the client in records of usage and shares."""
    return ClientKey(used.principal, used.client_id, used.quota_type)
