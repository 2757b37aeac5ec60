"""What a plugin is given when it is built."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from quotahost.api.broker import Broker, Metrics
from quotahost.api.disks import Disks
from quotahost.api.roles import Role
from quotahost.settings.broker import Settings


def nothing_changed(principal: str | None = None, client_id: str | None = None) -> None:
    """Default for a context made without a host."""


@dataclass(frozen=True, slots=True)
class LoadedPlugin:
    """A plugin that was built for a role, and the context that it was given, by which it sees live changes."""

    role: Role
    plugin: Any
    context: Context


def no_disks() -> Disks:
    """Default for a context made without a host."""
    raise LookupError("there is no monitor of the disks here")


def _no_source(name: str, metrics: Metrics) -> LoadedPlugin:
    """Default for a context made without a host."""
    raise LookupError(f"there is no factor source {name!r} here")


@dataclass(slots=True)
class Context:
    """What a plugin is given when it is built. Plugins only read it.

    Attributes:
        name: its entry point name.
        section: its validated ``plugin.NAME.*``, or None if it declares no ``Section``.
        settings: the broker-wide settings in force. The host replaces them when they change live, so read them
            when they are needed and keep no part of them.
        node_id: ``node.id`` of this broker.
        log: a logger that ends in the broker's own log.
        broker: what a plugin may ask of the broker that it runs in.
        metrics: where a plugin shows numbers.
        answers_changed: a supplier calls it, from any thread, when quotas that it gave are no
            longer what it would answer: for one principal, one client-id, both, or (no argument) all. The
            host asks again for those clients and publishes what differs.
        factor_source: builds the factor source of that entry point name, which reads its own ``plugin.NAME.*``,
            asks the same broker and shows its numbers through the metrics that are passed. It runs on the calling
            thread, may take its time and raises what is wrong. For a factor source that leans on another
            (``factor.source.second``).
        open_disks: answers the host's monitor of this broker's disks; see ``disks``.
    """

    name: str
    section: Any
    settings: Settings
    node_id: int
    log: logging.Logger
    answers_changed: Callable[..., None] = nothing_changed
    factor_source: Callable[[str, Metrics], LoadedPlugin] = _no_source
    open_disks: Callable[[], Disks] = no_disks
    broker: Broker = field(kw_only=True)
    metrics: Metrics = field(kw_only=True)

    @property
    def disks(self) -> Disks:
        """This broker's disks, which one monitor of the host looks at for all plugins.

        Take it when the plugin is built: the first plugin that does starts the monitor, and waits a second at most
        for the first look. The host closes the monitor.
        """
        return self.open_disks()

    def start_thread(self, name: str, run: Callable[[], None]) -> threading.Thread:
        """Run it on a daemon thread of the plugin's own, which may ask the broker; an error ends it, logged."""

        def body() -> None:
            try:
                run()
            except BaseException:
                self.log.exception("thread %s of plugin %s ended", name, self.name)
            finally:
                self.broker.thread_ends()

        thread = threading.Thread(target=body, name=f"quotahost-{name}", daemon=True)
        thread.start()
        return thread
