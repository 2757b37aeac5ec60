"""Puts a scene together and plays it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Final

from quotahost.model import Volume
from quotahost.model.bounds import Bounds, bounds
from quotahost.settings.broker import Settings
from quotahost.settings.declaration import PREFIX
from quotahost.simulation.broker import Broker
from quotahost.simulation.checks import Checks
from quotahost.simulation.client import Client
from quotahost.simulation.disk import Disk
from quotahost.simulation.events import Events
from quotahost.simulation.scene import DiskPlan, Scene
from quotahost.simulation.sources import Source
from quotahost.simulation.topic import SESSION, Topic

VOLUME: Final = "/data"


class World:
    """All that moves in a run.

    Attributes:
        events: the clock, and what happens when.
        settings: of all brokers.
        topic: of the snapshots; None with one broker.
        disks, brokers, clients: in the scene's order.
        checks: what was found to be wrong.
    """

    def __init__(self, scene: Scene) -> None:
        self.scene, self.events = scene, Events()
        self.settings = settings_of(scene.properties)
        several = len(scene.disks) > 1
        self.topic = Topic(scene, self.settings, self.events) if several else None
        self.disks = [self._disk(plan, str(i + 1)) for i, plan in enumerate(scene.disks)]
        sources = [
            Source(str(i + 1), disk, _topics(scene, i), self.settings, self.topic, self.events)
            for i, disk in enumerate(self.disks)
        ]
        self.brokers = [
            Broker(scene, self.settings, i, source, self.disks, self.events) for i, source in enumerate(sources)
        ]
        self.clients = [
            Client(plan, self.brokers[plan.home], self.events, 37 + 61 * i) for i, plan in enumerate(scene.clients)
        ]
        self.checks = Checks(self)
        for broker in self.brokers:
            broker.checks = self.checks
            broker.alive = lambda index: self.brokers[index].up
        for index, dies, back in scene.deaths:
            self._death(self.brokers[index], dies, back)
        for index, begins, ends in scene.hangs:
            self._hang(self.brokers[index], begins, ends)

    def run(self) -> None:
        """Play it to its end."""
        with quiet():
            for broker in self.brokers:
                broker.start()
            self.events.run(self.scene.ms)
            self.checks.end()

    def _disk(self, plan: DiskPlan, broker: str) -> Disk:
        volume = Volume(broker, VOLUME, plan.capacity, plan.used, plan.soft, plan.hard)
        own = self.settings
        found = bounds(volume, plan.soft or own.storage_soft, plan.hard or own.storage_hard)
        found = found or Bounds(plan.capacity, plan.capacity)
        return Disk(plan, volume, found, found.lets_go_at(own.pause_resume_free_share), self.events)

    def _hang(self, broker: Broker, begins: int, ends: int) -> None:
        self.events.at(begins, lambda: broker.hang(ends))
        over = begins + self.checks.lease_over
        if over < ends:
            self.events.at(over, lambda: self.checks.silent(broker, begins))

    def _death(self, broker: Broker, dies: int, back: int) -> None:
        def fence() -> None:
            if self.topic and not broker.up:
                self.topic.fence(str(broker.index + 1), True)

        def die() -> None:
            broker.stop()
            self.events.after(SESSION, fence)

        self.events.at(dies, die)
        self.events.at(back, broker.start)


def _topics(scene: Scene, index: int) -> frozenset[str]:
    """The topics with a replica on a broker's disk; each client's has the client's name."""
    return frozenset(each.name for each in scene.clients if index in each.places)


@lru_cache
def settings_of(properties: tuple[tuple[str, str], ...]) -> Settings:
    """The settings of these properties, without ``client.quota.callback.``.

    Raises:
        SettingsError: one or more of them are unknown or wrong.
    """
    return Settings.from_properties({PREFIX + name: text for name, text in properties})


@contextmanager
def quiet() -> Iterator[None]:
    """Keep the host's lines out of the log: nobody's broker changes its state."""
    log = logging.getLogger("quotahost")
    before = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(before)
