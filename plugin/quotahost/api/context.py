"""What a plugin is given when it is built."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from quotahost.api.broker import Broker, NoBroker
from quotahost.api.roles import Role
from quotahost.settings.broker import Settings


def _nothing_changed(principal: str | None = None, client_id: str | None = None) -> None:
    """Default for a context made without a host."""


@dataclass(frozen=True, slots=True)
class LoadedPlugin:
    """A plugin that was built for a role, and the context that it was given, by which it sees live changes."""

    role: Role
    plugin: Any
    context: Context


def _no_source(name: str, broker: Broker) -> LoadedPlugin:
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
        broker: what a plugin may ask of the broker that it lives in, and show there.
        answers_changed: a supplier calls it, from any thread, when quotas that it gave are no
            longer what it would answer: for one principal, one client-id, both, or (no argument) all. The
            host asks again for those clients and publishes what differs.
        factor_source: builds the factor source of that entry point name, with its own ``plugin.NAME.*`` and
            that broker to ask and to show on. It runs on the calling thread, may take its time and raises what is
            wrong. For a factor source that leans on another (``factor.source.second``).
    """

    name: str
    section: Any
    settings: Settings
    node_id: int
    log: logging.Logger
    answers_changed: Callable[..., None] = _nothing_changed
    broker: Broker = field(default_factory=NoBroker)
    factor_source: Callable[[str, Broker], LoadedPlugin] = _no_source

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
