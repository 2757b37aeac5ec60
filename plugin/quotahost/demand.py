"""What a client would use of its quota on this broker, out of what Kafka measures there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from quotahost.broker import ClientUsage
from quotahost.usage import ClientKey

_NEAR: Final = 0.9  # of its limit: it is what holds the client back
_MORE: Final = 1.25  # room to grow in
_SILENCE: Final = 1.0  # seconds
_HELD: Final = 1.5  # seconds for which a delay tells that the client is held back


@dataclass(slots=True)
class _Delay:
    """The mean delay last seen, in seconds, and when it was last another one."""

    seconds: float
    changed_at: float | None


class Demands:
    """Remembers each client's delay from look to look: the mean moves when Kafka delays the client again."""

    def __init__(self) -> None:
        """Nobody was seen yet."""
        self._delays: dict[ClientKey, _Delay] = {}

    def look(self, used: list[ClientUsage], now: float) -> dict[ClientKey, float | None]:
        """The demand of each client in bytes/s, None where it wants all that it can get.

        0 is the demand of a client that is silent for longer than its delays explain: Kafka's rate falls only slowly,
        as its windows pass, so it doesn't tell. ``now`` in seconds, monotonic.
        """
        self._delays = {key_of(each): self._delay(each, now) for each in used}
        return {key_of(each): self._demand(each, now) for each in used}

    def _delay(self, used: ClientUsage, now: float) -> _Delay:
        before = self._delays.get(key_of(used))
        if before is None:
            return _Delay(used.delay, None)
        if used.delay != before.seconds:
            return _Delay(used.delay, now if used.delay > 0 else None)
        return before

    def _demand(self, used: ClientUsage, now: float) -> float | None:
        if is_silent(used):
            return 0.0
        changed_at = self._delays[key_of(used)].changed_at
        delayed = changed_at is not None and now - changed_at <= used.delay + _HELD
        if delayed or (used.limit is not None and used.rate >= _NEAR * used.limit):
            return None
        return used.rate * _MORE


def is_silent(used: ClientUsage) -> bool:
    """Whether it asks no more, though no delay keeps it from asking."""
    return used.idle > _SILENCE + used.delay


def key_of(used: ClientUsage) -> ClientKey:
    """Whose use it is."""
    return ClientKey(used.user, used.client_id, used.quota_type)
