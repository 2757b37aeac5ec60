"""The task ``cordon``: while a volume of this broker is above its soft limit, Kafka puts no new replicas there.

It adds the volume's log directories to ``cordoned.log.dirs`` (KIP-1066, Kafka 4.3), a dynamic property of this broker.
What it has added stands in a second one, ``plugin.cordon.added``, which Kafka changes and keeps together with the
first: so a restart forgets nothing, and only what this task has added is ever taken away.
"""

import time
from datetime import timedelta
from typing import Annotated, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from quotahost.api import Context, DiskState
from quotahost.background import Clock, LoggedOnce
from quotahost.kafka.admin import BrokerConfig, Listed
from quotahost.kafka.client import NoAnswer, client_config
from quotahost.model.volumes import byte_limits
from quotahost.settings.declaration import PREFIX
from quotahost.settings.types import split
from quotahost.units import Duration
from quotahost.units.show import Unit

CORDONED: Final = "cordoned.log.dirs"
ADDED: Final = PREFIX + "plugin.cordon.added"
_ALL: Final = "*"
_REST: Final = 10.0  # seconds between two questions for what is cordoned
#: Seconds after the first answer until anything is changed. A broker that answers has read its stored properties, but
#: ours among them reach this task a moment later.
_SETTLED: Final = 5.0

Directories = Annotated[
    tuple[str, ...],
    BeforeValidator(lambda value: tuple(split(value, ",")) if isinstance(value, str) else value),
    Unit("log directories, comma-separated", lambda directories: ", ".join(directories) or "none"),
]


class Cordon:
    """Cordons at once, and lets go when a volume has been at or below its soft limit for ``plugin.cordon.hold``.

    A directory that an operator takes out of ``cordoned.log.dirs`` meanwhile stays out until its volume was below the
    limit; one that an operator put there stays in. Where ``cordoned.log.dirs`` stands in ``server.properties``, or for
    all brokers, nothing is changed, since a value for this broker alone would hide it.

    Nothing is freed when the task is closed, since a broker that restarts must not take new replicas meanwhile. Who
    wants to do without the task sets ``plugin.cordon.let-go`` first.
    """

    class Section(BaseModel):
        """The properties under ``plugin.cordon.``."""

        model_config = ConfigDict(extra="forbid", frozen=True)

        hold: Duration = Field(
            default=timedelta(minutes=1),
            description="How long a volume has to be at or below its soft limit before its log directories are free.",
        )
        let_go: bool = Field(
            default=False,
            description="true: free all that the task has cordoned, and cordon nothing; set it before you leave the "
            "task out, which by itself frees nothing.",
        )
        added: Directories = Field(
            default=(),
            description="What the task itself has cordoned; it writes this for its own broker. Not to be set.",
        )

    def __init__(
        self, context: Context[Section], clock: Clock = time.monotonic, broker: BrokerConfig | None = None
    ) -> None:
        """``broker`` has this broker's dynamic properties; None for those that the context's broker leads to."""
        self._context, self._clock, self._given, self._broker = context, clock, broker, broker
        self.period: timedelta = context.settings.volumes_period
        self._disks = context.disks
        self._section: Cordon.Section = context.section
        self._full_at: dict[str, float] = {}  # when each directory's volume was last seen above its soft limit
        self._tell = LoggedOnce(context.log)
        self._started = self._ask_at = clock()
        self._settled_at: float | None = None

    def reconfigure(self, section: Section) -> None:
        self._section = section

    def run(self) -> None:
        self.period = max(self._context.settings.volumes_period, timedelta(seconds=1))
        added = set(self._section.added)
        if self._section.let_go:
            self._change(set(), added, added)
        else:
            self._follow(added)
        self._context.metrics.gauge("Cordon", "", "LogDirs", float(len(self._section.added)))

    def _follow(self, added: set[str]) -> None:
        """Cordon and free by what the disks show; where they show nothing, all stays as it is."""
        age, disks = self._disks.latest()
        if disks is None or age > self._context.settings.validity.total_seconds():
            return
        full = self._full(disks)
        # Of a directory that is offline nobody knows how full its volume is.
        free = (added & dict(disks.places).keys()) - full - self._held(added)
        self._change(full - added, free, added)

    def _full(self, disks: DiskState) -> set[str]:
        """The log directories on volumes above their soft limit, which this notes."""
        limits_of, above = self._context.settings.static.storage.limits_of, set()
        for volume in disks.volumes:
            in_force = byte_limits(volume, *limits_of(volume))
            if in_force and in_force.breaches_soft(volume.consumed):
                above.add(volume.name)
        full, now = {directory for directory, name in disks.places if name in above}, self._clock()
        self._full_at.update(dict.fromkeys(full, now))
        return full

    def _held(self, added: set[str]) -> set[str]:
        """Those whose volumes were above the limit within ``hold``, or may have been before the broker's start."""
        since = self._clock() - self._section.hold.total_seconds()
        return {directory for directory in added if self._full_at.get(directory, self._started) > since}

    def _change(self, full: set[str], free: set[str], added: set[str]) -> None:
        if (not full and not free) or self._clock() < self._ask_at:
            return
        try:
            # Where an operator has cordoned everything already, there is nothing to do each time.
            self._ask_at = self._clock() + _REST
            now = self._properties().listed(CORDONED)
            if self._settled_at is None:
                self._settled_at = self._ask_at = self._clock() + _SETTLED
            if self._clock() >= self._settled_at:
                self._compare(now, full, free, added)
        except NoAnswer as why:
            self._broker = self._given  # credentials, or this broker's address, may be others by now
            if self._clock() - self._started > self._context.settings.startup_grace.total_seconds():
                self._tell.report("%s can't be read or changed: %s", CORDONED, why)

    def _compare(self, now: Listed | None, full: set[str], free: set[str], added: set[str]) -> None:
        if now is None:
            self._tell.report("this Kafka has no %s (KIP-1066, Kafka 4.3 and newer): nothing is cordoned", CORDONED)
            return
        if now.elsewhere:
            self._tell.report("%s is set in server.properties or for all brokers: nothing is changed", CORDONED)
            return
        # What an operator has cordoned needs no addition, and is not ours to take away.
        new = set() if _ALL in now.entries else full - set(now.entries)
        if not new and not free:
            return
        if self._context.settings.shadow.everything:
            self._tell.report("shadow=all: %s would be cordoned, %s no longer", sorted(new), sorted(free))
            return
        self._put(new, free & set(now.entries), (added | new) - free)

    def _put(self, new: set[str], gone: set[str], added: set[str]) -> None:
        self._properties().change(
            {CORDONED: sorted(new)} if new else None,
            {CORDONED: sorted(gone)} if gone else None,
            {ADDED: ",".join(sorted(added)) or None},
        )
        # Kafka tells us the same by reconfigure(), a moment later.
        self._section = self._section.model_copy(update={"added": tuple(sorted(added))})
        self._ask_at = self._clock()
        self._tell.healed()
        for directories, what in ((new, "cordoned: no new replica is put there"), (gone, "no longer cordoned")):
            if directories:
                self._context.log.warning("%s: %s", ", ".join(sorted(directories)), what)

    def _properties(self) -> BrokerConfig:
        if self._broker is None:
            self._broker = BrokerConfig(client_config(self._context), self._context.node_id)
        return self._broker
