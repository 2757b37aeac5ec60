"""The task ``cordon``: no new replicas on a volume above its soft limit, until ``plugin.cordon.hold`` after that.

It adds the volume's log directories to ``cordoned.log.dirs`` (KIP-1066, Kafka 4.3), a dynamic property of this broker.
What it has added stands in a second one, ``plugin.cordon.added``, which Kafka changes and keeps together with the
first: so a restart forgets nothing, and only what this task has added is ever taken away.
"""

import math
import time
from datetime import timedelta
from typing import Annotated, Final

from pydantic import BeforeValidator, Field

from quotahost.api import Context
from quotahost.base.background import Clock, LoggedOnce
from quotahost.kafka.admin import BrokerConfig
from quotahost.kafka.client import NoAnswer, login
from quotahost.model.volumes import byte_limits
from quotahost.settings import sections
from quotahost.settings.declaration import PREFIX
from quotahost.settings.types import split
from quotahost.units import Duration
from quotahost.units.show import Unit

CORDONED: Final = "cordoned.log.dirs"
ADDED: Final = PREFIX + "plugin.cordon.added"
_ALL: Final = "*"
_DELETE: Final = "kafka-configs.sh --alter --entity-type brokers --entity-default --delete-config"
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

    class Section(sections.Section):
        """The properties under ``plugin.cordon.``."""

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

    period = timedelta(seconds=1)  # not volumes.period, which may be long when it is shortened live

    def __init__(self, context: Context[Section], clock: Clock = time.monotonic) -> None:
        self._context, self._clock = context, clock
        self._disks = context.disks
        self._section: Cordon.Section = context.section
        self._full_at: dict[str, float] = {}  # when each directory's volume was last seen above its soft limit
        self._tell = LoggedOnce(context.log)
        self._started = self._ask_at = clock()
        self._settled_at = math.inf  # known once there is a first answer
        context.closing.callback(context.metrics.forget, "Cordon", "")

    def reconfigure(self, section: Section) -> None:
        self._section = section

    def run(self) -> None:
        full, free = (set(), set(self._section.added)) if self._section.let_go else self._wanted()
        if (full or free) and self._clock() >= self._ask_at:
            self._ask_at = self._clock() + _REST
            try:
                self._compare(full, free)
            except NoAnswer as why:
                if self._clock() - self._started > self._context.settings.startup_grace.total_seconds():
                    self._tell.report("%s can't be read or changed: %s", CORDONED, why)
        self._context.metrics.gauge("Cordon", "", "LogDirs", float(len(self._section.added)))

    def _wanted(self) -> tuple[set[str], set[str]]:
        """The log directories to cordon and to free by what the disks show; none where they show nothing."""
        settings, added, now = self._context.settings, set(self._section.added), self._clock()
        age, disks = self._disks.latest()
        if disks is None or age > settings.validity.total_seconds():
            return set(), set()
        above = set()
        for volume in disks.volumes:
            in_force = byte_limits(volume, *settings.static.storage.limits_of(volume))
            if in_force and in_force.breaches_soft(volume.consumed):
                above.add(volume.name)
        full = {directory for directory, name in disks.places if name in above}
        self._full_at.update(dict.fromkeys(full, now))
        # Where nothing was seen yet, the volume may have been above its limit before the broker's start.
        since = now - self._section.hold.total_seconds()
        held = {directory for directory in added if self._full_at.get(directory, self._started) > since}
        # Of a directory that is offline nobody knows how full its volume is.
        return full - added, (added & dict(disks.places).keys()) - full - held

    def _compare(self, full: set[str], free: set[str]) -> None:
        """Change what Kafka has cordoned, as far as that is for this task to change. Raises NoAnswer."""
        # Each time: credentials, or this broker's address, may be others by now.
        mine = login(self._context)
        admin = mine.admin(self._context.settings.snapshots_topic)
        broker = BrokerConfig(admin, self._context.node_id, mine.config(careful=False))
        now = broker.listed(CORDONED)
        if self._settled_at == math.inf:
            self._settled_at = self._ask_at = self._clock() + _SETTLED
        if self._clock() < self._settled_at:
            return
        if now is None:
            self._tell.report("this Kafka has no %s (KIP-1066, Kafka 4.3 and newer): nothing is cordoned", CORDONED)
            return
        if now.elsewhere:
            told = (
                "%s is set in server.properties or for all brokers, and nothing is changed; take it out there (%s %s)"
            )
            self._tell.report(told, CORDONED, _DELETE, CORDONED)
            return
        # What an operator has cordoned needs no addition, and is not ours to take away.
        new = set() if _ALL in now.entries else full - set(now.entries)
        if not new and not free:
            return
        if self._context.settings.shadow.everything:
            self._tell.report("shadow=all: %s would be cordoned, %s no longer", sorted(new), sorted(free))
            return
        gone, added = free & set(now.entries), sorted((set(self._section.added) | new) - free)
        broker.change(
            {CORDONED: sorted(new)} if new else None,
            {CORDONED: sorted(gone)} if gone else None,
            {ADDED: ",".join(added) or None},
        )
        # Kafka tells us the same by reconfigure(), a moment later.
        self._section = self._section.model_copy(update={"added": tuple(added)})
        self._tell.healed()
        for directories, what in ((new, "cordoned: no new replica is put there"), (gone, "no longer cordoned")):
            if directories:
                self._context.log.warning("%s: %s", ", ".join(sorted(directories)), what)
