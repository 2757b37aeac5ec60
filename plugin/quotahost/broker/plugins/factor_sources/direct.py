"""The factor sources ``local`` (own disks), ``log-dirs`` (asks all brokers) and ``fixed`` (for drills) read no topic.

``local`` reports this broker's own volumes, as the host's monitor sees them (``context.disks``), so each broker
throttles only by its own disks. ``log-dirs`` asks all brokers for their log directories as Strimzi's quota plugin does
(DescribeLogDirs; KIP-113, and KIP-827 for the sizes), with the broker's own Admin client. Each broker asks all other
brokers and every answer lists all replicas, so use ``log-dirs`` only for small clusters and long intervals. ``fixed``
reports the factor of a property, for drills: it reads no volumes and protects no disk.
"""

import math
import time
from collections import defaultdict
from datetime import timedelta

from pydantic import Field

from quotahost.api import Context
from quotahost.base.background import Clock
from quotahost.kafka.registered_brokers import ClusterPoll
from quotahost.model import ClusterVolumes, Factor, LogDir, Volume
from quotahost.settings import sections
from quotahost.units import Duration


class Local:
    """Reports this broker's file stores."""

    def __init__(self, context: Context) -> None:
        self._disks = context.disks

    def read(self) -> ClusterVolumes:
        return self._disks.known()


class Fixed:
    """Reports the factor of ``plugin.fixed.factor``, however full the disks are; it can be changed live."""

    class Section(sections.Section):
        """The properties under ``plugin.fixed.``."""

        factor: float = Field(1.0, ge=0, le=1, description="The factor to report: 1 OPEN, 0 PAUSE, else THROTTLE.")

    def __init__(self, context: Context[Section]) -> None:
        self.reconfigure(context.section)

    def reconfigure(self, section: Section) -> None:
        self._factor = Factor(section.factor, f"fixed by plugin.fixed.factor={section.factor:g}")

    def read(self) -> Factor:
        return self._factor


class LogDirs:
    """Reports every log directory as a separate volume, because the answer doesn't say which ones share a file store.

    If a broker doesn't answer, its last answer counts for ``validity``, because Kafka may not have fenced the broker
    yet. After that the broker is unknown. For fenced brokers the property ``fenced.brokers`` decides.
    """

    class Section(sections.Section):
        """The properties under ``plugin.log-dirs.``."""

        interval: Duration = Field(default=timedelta(seconds=10), description="How often the brokers are asked.")

    def __init__(self, context: Context[Section], clock: Clock = time.monotonic) -> None:
        self._context, self._clock = context, clock
        self._interval = context.section.interval.total_seconds()
        # The poll's thread replaces the tuple as a whole and never resets it to None, so the host thread needs no lock.
        self._answer: tuple[float, ClusterVolumes] | None = None
        self._last: dict[int, tuple[float, list[LogDir]]] = {}  # by registered broker: time and content of its answer
        failure = "the brokers do not report their log directories: %s"
        self._poll = ClusterPoll(context, context.name, self._ask, lambda: self._interval, failure)

    def reconfigure(self, section: Section) -> None:
        self._interval = section.interval.total_seconds()
        self._poll.wake()

    def read(self) -> ClusterVolumes | None:
        """The last answer, None before the first answer; unknown when it is older than ``validity`` + ``interval``."""
        if self._answer is None:
            return None
        answered_at, volumes = self._answer
        # An answer may be one interval old before the next one is due, and interval may be longer than validity.
        longest = self._context.settings.validity.total_seconds() + self._interval
        if self._clock() - answered_at > longest:
            silent = f"the brokers have not reported their log directories for validity + interval ({longest:g} s)"
            return ClusterVolumes(volumes.volumes, (silent,))
        return volumes

    def _ask(self) -> None:
        brokers, settings, now = self._context.broker.registered(), self._context.settings, self._clock()
        longest = settings.validity.total_seconds()
        told: dict[int, list[LogDir]] = defaultdict(list)
        for directory in self._context.broker.log_dirs([broker for broker, fenced in brokers.items() if not fenced]):
            told[directory.broker].append(directory)
        counts: list[LogDir] = []
        unknown: list[str] = []
        for broker, fenced in sorted(brokers.items()):
            at, last = self._last.get(broker, (-math.inf, []))
            if fenced and settings.fenced_brokers == "unknown":
                unknown.append(f"broker {broker} is fenced")
            elif (fenced or now - at <= longest) and not any(directory.path for directory in told[broker]):
                counts += last
            elif told[broker]:
                counts += told[broker]
            else:  # a broker that is missing in the answer must not look like a broker without disks
                unknown.append(f"broker {broker} does not report its log directories")
            if sound := [directory for directory in told[broker] if directory.path and not directory.error]:
                self._last[broker] = now, sound
        self._last = {broker: answer for broker, answer in self._last.items() if broker in brokers}
        self._answer = now, _volumes(counts, unknown)


def _volumes(directories: list[LogDir], unknown: list[str]) -> ClusterVolumes:
    """The directories whose sizes are known; for each other directory, a sentence is added to ``unknown``."""
    volumes = []
    for directory in directories:
        broker, path = directory.broker, directory.path
        if directory.error or not path:
            unknown.append(f"broker {broker}, log dir {path or '?'}: {directory.error or 'no answer'}")
        elif directory.capacity is None or directory.usable is None:
            unknown.append(f"broker {broker}, log dir {path}: the broker reports no capacity")
        else:
            consumed = max(0, directory.capacity - directory.usable)
            volumes.append(Volume(str(broker), path, directory.capacity, consumed))
    return ClusterVolumes(tuple(volumes), tuple(unknown))
