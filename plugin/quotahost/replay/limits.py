"""The volumes of a replay: as they were recorded, and with the limits of the new settings."""

from __future__ import annotations

from collections.abc import Iterable

from quotahost.model import Limit, LimitType, Volume
from quotahost.model.bounds import bounds
from quotahost.report.values import Bucket, Name
from quotahost.settings.broker import Settings
from quotahost.settings.volume_overrides import match

Limits = tuple[Limit | None, Limit | None]  # soft and hard


def recorded(name: Name, bucket: Bucket) -> Volume:
    """A volume as it was read, with the limits that were published with it."""
    soft, hard = (
        None if each is None else Limit(LimitType.CONSUMED_BYTES, each) for each in (bucket.soft, bucket.hard)
    )
    return Volume(name.broker, name.volume, bucket.capacity, bucket.last, soft, hard)


def own_limits(settings: Settings, names: Iterable[Name]) -> dict[Name, Limits]:
    """The limits that these settings give to each volume: those of ``static.storage.overrides``, else the broker's.

    Only names of volumes are matched: the history doesn't tell which log directory lies on which volume.
    """
    storage = settings.static.storage
    matched = match(storage.overrides, sorted({name.volume for name in names}), {}).limits
    found = {}
    for name in names:
        soft, hard = matched.get(name.volume, (None, None))
        found[name] = (soft or settings.storage_soft, hard or settings.storage_hard)
    return found


def in_bytes(volume: Volume) -> tuple[int | None, int | None]:
    """From how many bytes on a volume is slowed and paused, by the limits it carries."""
    found = bounds(volume, volume.soft, volume.hard)
    return (None, None) if found is None else (found.soft, found.hard)
