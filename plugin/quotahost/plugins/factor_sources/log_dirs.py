"""The factor source ``log-dirs``: every broker's log directories, asked of the brokers; no topic is needed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Final

from pydantic import BaseModel, ConfigDict, Field

from quotahost.api import Context
from quotahost.model import ClusterVolumes, LogDir, Volume
from quotahost.units import Duration

_CLOSE_WITHIN: Final = 0.5


class LogDirs:
    """Asks as Strimzi's plugin does (DescribeLogDirs, KIP-113), with the broker's own Admin client.

    Each broker asks all, and each answer lists every replica, so this is for small clusters and long intervals. A log
    directory is a volume of its own, since the answer doesn't say which share a file store. A stopped broker counts
    as unknown until it is unregistered.
    """

    class Section(BaseModel):
        """The properties under ``plugin.log-dirs.``."""

        model_config = ConfigDict(extra="forbid", frozen=True)

        interval: Duration = Field(
            default=timedelta(seconds=10), description="How often the brokers are asked."
        )

    def __init__(self, context: Context[Section], clock: Callable[[], float] = time.monotonic) -> None:
        """Begin to ask; waits for nothing. ``clock`` in seconds, monotonic."""
        self._context, self._clock = context, clock
        self._started = clock()
        self._interval = context.section.interval.total_seconds()
        self._stop = threading.Event()
        self._answer: tuple[float, ClusterVolumes] | None = None
        self._told_failure = False
        self._thread = context.start_thread(context.name, self._run)

    def reconfigure(self, section: Section) -> None:
        """Ask at the new interval."""
        self._interval = section.interval.total_seconds()

    def read(self) -> ClusterVolumes | None:
        """The last answer; the last volumes, but unknown, once it is older than ``validity``; None before the first."""
        if self._answer is None:
            return None
        answered_at, told = self._answer
        longest = self._context.settings.validity.total_seconds() + self._interval
        if self._clock() - answered_at > longest:
            # No age in it: who compares sentences would see a new one every second.
            silent = (
                f"the cluster has not told its log dirs for more than validity + interval ({longest:g} s)"
            )
            return ClusterVolumes(told.volumes, (silent,))
        return told

    def close(self) -> None:
        """End the thread; one that waits for an answer is left to end by itself."""
        self._stop.set()
        self._thread.join(_CLOSE_WITHIN)

    def _run(self) -> None:
        while not self._stop.is_set():
            self._ask()
            self._stop.wait(self._interval if self._answer else min(1.0, self._interval))

    def _ask(self) -> None:
        try:
            brokers = self._context.broker.registered()
            alive = [broker for broker, fenced in brokers.items() if not fenced]
            told = self._context.broker.log_dirs(alive)
        except Exception as problem:
            self._failed(problem)
            return
        unknown = [f"broker {broker} is stopped" for broker, fenced in brokers.items() if fenced]
        silent = set(alive) - {each.broker for each in told}
        unknown += [f"broker {broker} doesn't tell its log dirs" for broker in sorted(silent)]
        self._answer = (self._clock(), _volumes(told, unknown))
        self._told_failure = False

    def _failed(self, problem: Exception) -> None:
        """Told once; not while the broker's own listener may not be open yet."""
        starting = self._clock() - self._started < self._context.settings.startup_grace.total_seconds()
        if (self._answer or not starting) and not self._told_failure:
            self._context.log.warning("the cluster doesn't tell its log dirs: %s", problem)
            self._told_failure = True


def _volumes(told: list[LogDir], unknown: list[str]) -> ClusterVolumes:
    volumes, unknown = [], list(unknown)
    for each in told:
        if each.error or not each.path:
            unknown.append(f"broker {each.broker}, log dir {each.path or '?'}: {each.error or 'no answer'}")
        elif each.capacity is None or each.usable is None:
            unknown.append(f"broker {each.broker}, log dir {each.path}: the broker doesn't tell its capacity")
        else:
            volumes.append(
                Volume(str(each.broker), each.path, each.capacity, max(0, each.capacity - each.usable))
            )
    return ClusterVolumes(tuple(volumes), tuple(unknown))
