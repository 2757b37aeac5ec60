"""How full a broker's volumes are, and what fills one of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from quotahost.model.volumes import Volume


@dataclass(frozen=True, slots=True)
class VolumeUse:
    """How full one volume of a broker is.

    Attributes:
        name: its name on that broker.
        capacity: bytes.
        consumed: bytes.
        soft: the bytes consumed above which the policy may lower the factor; None if it tells no limits.
        hard: the bytes consumed at which the factor is 0, likewise.
        factor: what the policy makes of the volume; None without a policy.
    """

    name: str
    capacity: float
    consumed: float
    soft: float | None = None
    hard: float | None = None
    factor: float | None = None


@dataclass(frozen=True, slots=True)
class TopicUse:
    """What a topic, or several together, takes of a volume.

    Attributes:
        name: with a note where it is being deleted; what is no topic stands in brackets.
        used: bytes on the disk.
        written: bytes/s that were appended.
    """

    name: str
    used: int
    written: float


@dataclass(frozen=True, slots=True)
class MeasuredVolume:
    """A volume that was looked at twice, and what fills it.

    Attributes:
        volume: as it was at the second look.
        directories: its log directories.
        seconds: between the looks.
        growth: bytes/s by which its consumption changed, of whatever files.
        topics: those that take most, then others that grow most; the last may be the sum of all others.
        unread: what could not be listed, and why.
    """

    volume: Volume
    directories: Sequence[str]
    seconds: float
    growth: float
    topics: Sequence[TopicUse]
    unread: Sequence[str] = ()

    def until(self, consumed: float | None) -> float | None:
        """Seconds until so many bytes are used at this growth; None if that is never, or the bytes aren't known."""
        if consumed is None:
            return None
        left = consumed - self.volume.consumed
        return 0.0 if left <= 0 else left / self.growth if self.growth > 0 else None
