"""The task ``cordon`` keeps new replicas away from a volume above its soft limit.

The task adds the volume's log directories to ``cordoned.log.dirs`` (KIP-1066, Kafka 4.3), a dynamic property of this
broker. It lists the added directories in a second property, ``plugin.cordon.added``. Kafka changes and stores both
properties together. So the task remembers its directories after a restart, and it removes only directories of its own.
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
from quotahost.records.topics import SNAPSHOTS
from quotahost.settings import sections
from quotahost.settings.declaration import PREFIX
from quotahost.settings.types import split
from quotahost.units import Duration
from quotahost.units.show import Unit

CORDONED: Final = "cordoned.log.dirs"
ADDED: Final = PREFIX + "plugin.cordon.added"
_ALL: Final = "*"
_DELETE: Final = "kafka-configs.sh --alter --entity-type brokers --entity-default --delete-config"
_REST: Final = 10.0  # seconds between two reads of the cordoned directories
#: Seconds after the first answer before the task changes anything. A broker that answers has read its stored
#: properties, but quotahost's properties reach this task a moment later.
_SETTLED: Final = 5.0

Directories = Annotated[
    tuple[str, ...],
    BeforeValidator(lambda value: tuple(split(value, ",")) if isinstance(value, str) else value),
    Unit("log directories, comma-separated", lambda directories: ", ".join(directories) or "none"),
]


class Cordon:
    """Cordons immediately, and frees a volume that has been at or below its soft limit for ``plugin.cordon.hold``.

    If an operator removes a directory from ``cordoned.log.dirs`` meanwhile, the task does not add it again before its
    volume was below the limit. The task does not remove a directory that an operator has added. It changes nothing if
    ``cordoned.log.dirs`` is set in ``server.properties`` or for all brokers: a value for this broker would hide that.

    The task frees nothing when it is closed, because a broker that restarts must not take new replicas meanwhile. To
    stop using the task, an operator first sets ``plugin.cordon.let-go``.
    """

    class Section(sections.Section):
        """The properties under ``plugin.cordon.``."""

        hold: Duration = Field(
            default=timedelta(minutes=1),
            description="How long a volume has to be at or below its soft limit before the task frees its directories.",
        )
        let_go: bool = Field(
            default=False,
            description="true: the task frees all directories that it has cordoned and cordons no more. Set it before "
            "you remove the task, because removing it frees nothing.",
        )
        added: Directories = Field(
            default=(),
            description="The directories that the task has cordoned. It writes this for its own broker; don't set it.",
        )

    period = timedelta(seconds=1)  # not volumes.period: a live change from a long to a short one would apply late

    def __init__(self, context: Context[Section], clock: Clock = time.monotonic) -> None:
        self._context, self._clock = context, clock
        self._disks = context.disks
        self._section: Cordon.Section = context.section
        self._full_at: dict[str, float] = {}  # when each directory's volume was last seen above its soft limit
        self._tell = LoggedOnce(context.log)
        self._started = self._ask_at = clock()
        self._settled_at = math.inf  # set after the first answer
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
        """The log directories to cordon and to free; none if there is no fresh look at the disks."""
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
        # A volume that was never seen above its limit may have been above it before this start, so the start counts.
        since = now - self._section.hold.total_seconds()
        held = {directory for directory in added if self._full_at.get(directory, self._started) > since}
        # An offline directory is not freed, because the fill of its volume is unknown.
        return full - added, (added & dict(disks.places).keys()) - full - held

    def _compare(self, full: set[str], free: set[str]) -> None:
        """Change the cordoned directories as far as they belong to this task. Raises NoAnswer."""
        # The task logs in each time, because credentials or this broker's address may have changed.
        mine = login(self._context)
        admin = mine.admin(self._context.settings.named(SNAPSHOTS))
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
            told = "%s is set in server.properties or for all brokers, so nothing changes; remove it there (%s %s)"
            self._tell.report(told, CORDONED, _DELETE, CORDONED)
            return
        # A directory that an operator has cordoned needs no addition, and the task must not remove it.
        new = set() if _ALL in now.entries else full - set(now.entries)
        if not new and not free:
            return
        if self._context.settings.shadow.everything:
            self._tell.report("shadow=all: the task would cordon %s and free %s", sorted(new), sorted(free))
            return
        gone, added = free & set(now.entries), sorted((set(self._section.added) | new) - free)
        broker.change(
            {CORDONED: sorted(new)} if new else None,
            {CORDONED: sorted(gone)} if gone else None,
            {ADDED: ",".join(added) or None},
        )
        # Kafka hands over the same value through reconfigure() a moment later.
        self._section = self._section.model_copy(update={"added": tuple(added)})
        self._tell.healed()
        for directories, what in ((new, "cordoned: Kafka puts no new replica there"), (gone, "no longer cordoned")):
            if directories:
                self._context.log.warning("%s: %s", ", ".join(sorted(directories)), what)
