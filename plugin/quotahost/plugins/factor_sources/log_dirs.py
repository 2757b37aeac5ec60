"""The factor source ``log-dirs``: asks all brokers for their log directories; no topic is needed.

It asks as Strimzi's quota plugin does (DescribeLogDirs; KIP-113, and KIP-827 for the sizes), with the broker's own
Admin client. Each broker asks all others and every answer lists all replicas, so this source is for small clusters
and long intervals. The host reads the last answer, and the policy turns its volumes into factors.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta

from pydantic import BaseModel, ConfigDict, Field

from quotahost.api import Context
from quotahost.model import ClusterVolumes, LogDir, Volume
from quotahost.plugins.kafka.cluster_poll import ClusterPoll
from quotahost.units import Duration


class LogDirs:
    """Reports every log directory as a volume of its own: the answer doesn't say which of them share a file store.

    A fenced broker is unknown until it is unregistered.
    """

    class Section(BaseModel):
        """The properties under ``plugin.log-dirs.``."""

        model_config = ConfigDict(extra="forbid", frozen=True)

        interval: Duration = Field(default=timedelta(seconds=10), description="How often the brokers are asked.")

    def __init__(self, context: Context[Section], clock: Callable[[], float] = time.monotonic) -> None:
        """Begin to ask, without waiting for an answer. ``clock`` in seconds, monotonic."""
        self._context, self._clock = context, clock
        self._interval = context.section.interval.total_seconds()
        # The poll's thread replaces it as a whole, and never by None again, so the host thread needs no lock.
        self._answer: tuple[float, ClusterVolumes] | None = None
        failure = "the cluster doesn't answer for its log dirs: %s"
        self._poll = ClusterPoll(context, context.name, self._ask, lambda: self._interval, failure, clock)

    def reconfigure(self, section: Section) -> None:
        """Ask at the new interval."""
        self._interval = section.interval.total_seconds()

    def read(self) -> ClusterVolumes | None:
        """The last answer, None before the first. Once it is older than ``validity`` + ``interval`` it is unknown."""
        if self._answer is None:
            return None
        answered_at, volumes = self._answer
        # An answer is an interval old before the next one is due, and interval may be longer than validity.
        longest = self._context.settings.validity.total_seconds() + self._interval
        if self._clock() - answered_at > longest:
            # The sentence names no age: the cause of the factor would be a new one every second.
            silent = f"the cluster has not answered for its log dirs for validity + interval ({longest:g} s)"
            return ClusterVolumes(volumes.volumes, (silent,))
        return volumes

    def close(self) -> None:
        """End the thread; one that waits for an answer is left to end by itself."""
        self._poll.close()

    def _ask(self) -> None:
        brokers = self._context.broker.registered()
        in_service = [broker for broker, fenced in brokers.items() if not fenced]
        directories = self._context.broker.log_dirs(in_service)
        unknown = [f"broker {broker} is fenced" for broker, fenced in brokers.items() if fenced]
        # A broker that is left out of the answer must not look as if it had no disks.
        silent = set(in_service) - {each.broker for each in directories}
        unknown += [f"broker {broker} doesn't answer for its log dirs" for broker in sorted(silent)]
        self._answer = (self._clock(), _volumes(directories, unknown))


def _volumes(directories: list[LogDir], unknown: list[str]) -> ClusterVolumes:
    """The directories whose sizes are known; ``unknown`` gets a sentence for each of the others."""
    volumes = []
    for each in directories:
        if each.error or not each.path:
            unknown.append(f"broker {each.broker}, log dir {each.path or '?'}: {each.error or 'no answer'}")
        elif each.capacity is None or each.usable is None:
            unknown.append(f"broker {each.broker}, log dir {each.path}: the broker reports no capacity")
        else:
            consumed = max(0, each.capacity - each.usable)
            volumes.append(Volume(str(each.broker), each.path, each.capacity, consumed))
    return ClusterVolumes(tuple(volumes), tuple(unknown))
