"""What a plugin is given when it is built: settings, section, broker, disks, log; and what it may call by that."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic, Protocol

from typing_extensions import TypeVar  # typing's has no default before Python 3.13

from quotahost.api.broker import Broker, Disks, Metrics
from quotahost.api.roles import Role
from quotahost.base.background import start_daemon
from quotahost.model import QuotaType
from quotahost.model.volumes import as_quota_types
from quotahost.settings.broker import Settings

# Covariant, although the host replaces a section: plugins only read it, so that a helper may take any plugin's
# context as ``Context[object]``.
SectionT_co = TypeVar("SectionT_co", default=None, covariant=True)
PluginT_co = TypeVar("PluginT_co", default=Any, covariant=True)


class AnswersChanged(Protocol):
    """The type of ``Context.answers_changed``."""

    def __call__(self, principal: str | None = None, client_id: str | None = None) -> None:
        """Announce changed answers for one principal, one client-id, both together, or all clients."""


@dataclass(frozen=True)
class LoadedPlugin(Generic[PluginT_co]):
    """A plugin that was built for a role, and the context that it was given, by which it sees live changes."""

    role: Role
    plugin: PluginT_co
    context: Context[Any]

    @cached_property
    def quota_types(self) -> frozenset[QuotaType] | None:
        """For what a factor source is, None for volumes (contract 14): what it says later counts no more.

        Raises TypeError if it is for something else, or what the plugin raises.
        """
        return as_quota_types(self.plugin.quota_types) if hasattr(self.plugin, "quota_types") else None


def silent(principal: str | None = None, client_id: str | None = None) -> None:
    """Announce nothing."""


def no_disks() -> Disks:
    """Fail, in a context without a host."""
    raise LookupError("there is no monitor of the disks here")


@dataclass(slots=True)
class Context(Generic[SectionT_co]):
    """What a plugin is given when it is built. Plugins only read it.

    ``Context[MySection]`` is the context of a plugin whose attribute ``Section`` is ``MySection``; plain ``Context`` is
    that of a plugin without properties of its own.
    """

    name: str  # of the plugin's entry point
    #: The plugin's own properties ``plugin.NAME.*``, validated by the pydantic model ``Section``; None if the plugin
    #: declares no ``Section``. A live change replaces it.
    section: SectionT_co
    #: The broker-wide settings in force. A live change replaces them: read what you need when you need it.
    settings: Settings
    node_id: int  # ``node.id`` of this broker
    log: logging.Logger  # writes to the broker's own log
    #: A supplier calls it, from any thread, when quotas that it returned are no longer what it would return now: for
    #: one ``principal``, one ``client_id``, both together or, without an argument, for all clients.
    answers_changed: AnswersChanged = silent
    open_disks: Callable[[], Disks] = no_disks  # returns the host's monitor of this broker's disks; use ``disks``
    broker: Broker = field(kw_only=True)  # answers questions about this broker and its cluster
    metrics: Metrics = field(kw_only=True)  # shows the plugin's numbers
    #: What ends with the plugin, after its ``close``, the last one first. Private: quotahost's clients are in it.
    closing: ExitStack = field(kw_only=True, default_factory=ExitStack)

    @property
    def disks(self) -> Disks:
        """This broker's disks, which one monitor of the host looks at for all plugins.

        Take it when the plugin is built: the first plugin that does starts the monitor, and waits a second at most
        for the first look. The host closes the monitor.
        """
        return self.open_disks()

    def start_thread(self, name: str, run: Callable[[], None]) -> threading.Thread:
        """Run a function on a daemon thread ``quotahost-NAME`` of the plugin, which may ask the broker.

        An exception of ``run`` is logged and ends the thread. The plugin ends its threads in ``close``.
        """

        def body() -> None:
            try:
                run()
            except BaseException:  # a library's SystemExit is a failure like any other
                self.log.exception("thread %s of plugin %s ended", name, self.name)

        return start_daemon(name, body)
