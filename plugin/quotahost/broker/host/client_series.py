"""The series by client of the Prometheus endpoint: of few clients, read rarely, and gone once a client is idle.

A scope that clients share has series as one client has them. Names are whatever a client sends: Prometheus' client
escapes them, and here the long ones are cut.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Final
from zlib import crc32

from quotahost.background import LoggedOnce
from quotahost.model.use import ClientUse, LimitedBy

_log = logging.getLogger("quotahost.host")

# By the catalogue's attribute, the values by labels.
Series = Mapping[str, Mapping[tuple[str, ...], float]]

INTERVAL: Final = 5.0  # seconds between looks, at least
_PART: Final = 0.02  # of a thread's time that looks may take
_LONGEST: Final = 100  # characters of a label's value


class ClientSeries:
    """Looks who uses what when it is time, and keeps the series until then."""

    def __init__(
        self, uses: Callable[[int], list[ClientUse]], most: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Of ``uses`` (``broker.host.looks.uses``) show at most so many rows; ``clock`` in seconds, monotonic."""
        self._uses, self._most, self._clock = uses, most, clock
        self._series: Series = {}
        self._due = clock()
        self._fault = LoggedOnce(_log)

    def read(self) -> Series:
        """The series as they are now."""
        began = self._clock()
        if began >= self._due:
            self._series = self._look()
            ended = self._clock()
            # With 50,000 active clients a look takes a tenth of a second or more.
            self._due = ended + max(INTERVAL, (ended - began) / _PART)
        return self._series

    def _look(self) -> Series:
        try:
            uses = self._uses(self._most)
        except (ConnectionError, ValueError) as error:
            self._fault.report("The metrics by client can't be read (%s): they are left out", error)
            return {}
        self._fault.healed()
        return series(uses)


def series(uses: Iterable[ClientUse]) -> Series:
    """The series of those that are not idle."""
    rates: dict[tuple[str, ...], float] = {}
    quotas: dict[tuple[str, ...], float] = {}
    limits: dict[tuple[str, ...], float] = {}
    delays: dict[tuple[str, ...], float] = {}
    bounds: dict[tuple[str, ...], float] = {}
    for use in uses:
        if not use.rate and not use.is_held_back:
            continue
        labels = (_cut(use.user), _cut(use.client_id), _cut(use.scope), str(use.quota_type))
        rates[labels] = use.rate
        delays[labels] = use.delay_ms / 1000
        if use.quota is not None:
            quotas[labels] = use.quota
        if use.limit is not None:
            limits[labels] = use.limit
        if use.bound_by != LimitedBy.NOTHING:
            bounds[*labels, use.bound_by] = 1
    return {"Rate": rates, "Quota": quotas, "Limit": limits, "DelayMs": delays, "LimitedBy": bounds}


def _cut(name: str) -> str:
    """A name that is too long is cut; the hash of the whole of it keeps two apart that begin alike."""
    if len(name) <= _LONGEST:
        return name
    return f"{name[: _LONGEST - 9]}~{crc32(name.encode('utf-8', 'replace')):08x}"
