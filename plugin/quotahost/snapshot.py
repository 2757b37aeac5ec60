"""One broker's volumes at one time, as a frozen value."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime

from quotahost.volume import Limit, Volume


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One broker's volumes at one time (proposal 035, Metrics Snapshot).

    A volume without limits of its own gets the broker's (the proposal's note 2).

    Attributes:
        broker: its id.
        taken_at: when the volumes were looked at; kept in UTC.
        volumes: its volumes.
        soft: from where producers are throttled, for all its volumes; None if it sets no such limit.
        hard: where producers are paused; None if it sets no such limit.
        offline: log dirs that are offline or can't be read.
        cluster: the id of its cluster; "" while it is unknown.

    Raises:
        ValueError: ``taken_at`` has no time zone or is not in UTC's range, or a volume is another broker's.
    """

    broker: str
    taken_at: datetime
    volumes: tuple[Volume, ...]
    soft: Limit | None = None
    hard: Limit | None = None
    offline: tuple[str, ...] = ()
    cluster: str = ""

    def __post_init__(self) -> None:
        if self.taken_at.tzinfo is None:
            raise ValueError(f"the time of a snapshot needs a time zone: {self.taken_at}")
        if others := {volume.broker for volume in self.volumes} - {self.broker}:
            raise ValueError(f"a snapshot of broker {self.broker!r} holds volumes of {sorted(others)}")
        object.__setattr__(self, "taken_at", in_utc(self.taken_at))
        object.__setattr__(self, "volumes", tuple(self._with_limits(volume) for volume in self.volumes))

    def _with_limits(self, volume: Volume) -> Volume:
        if volume.soft and volume.hard:
            return volume
        return replace(volume, soft=volume.soft or self.soft, hard=volume.hard or self.hard)


def in_utc(time: datetime) -> datetime:
    """The same time in UTC.

    Raises:
        ValueError: it is before the year 1 or after 9999 there.
    """
    try:
        return time.astimezone(UTC)
    except OverflowError:
        raise ValueError(f"{time} is out of range") from None
