"""A plugin gets a Context when it is built, with its settings, section, broker, disks, log and callbacks."""

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

# Covariant, so that a helper can take any plugin's context as ``Context[object]``. This is safe because plugins only
# read ``section``; only the host replaces it.
SectionT_co = TypeVar("SectionT_co", default=None, covariant=True)
PluginT_co = TypeVar("PluginT_co", default=Any, covariant=True)


class AnswersChanged(Protocol):
    """The type of ``Context.answers_changed``."""

    def __call__(self, principal: str | None = None, client_id: str | None = None) -> None:
        """Announce changed answers for one principal, one client-id, one client (both), or all clients (neither)."""


@dataclass(frozen=True)
class LoadedPlugin(Generic[PluginT_co]):
    """A plugin that was built for a role, and its context, in which the plugin sees live changes."""

    role: Role
    plugin: PluginT_co
    context: Context[Any]

    @cached_property
    def quota_types(self) -> frozenset[QuotaType] | None:
        """A factor source's quota types, None for a source of volumes (contract 14). They are read once.

        Raises TypeError if the attribute has no quota types, and passes on an exception of the plugin.
        """
        return as_quota_types(self.plugin.quota_types) if hasattr(self.plugin, "quota_types") else None


def silent(principal: str | None = None, client_id: str | None = None) -> None:
    """Do nothing: the ``answers_changed`` of a context without a host."""


def no_disks() -> Disks:
    """Raise LookupError: a context without a host has no disks."""
    raise LookupError("there is no monitor of the disks here")


@dataclass(slots=True)
class Context(Generic[SectionT_co]):
    """The argument that the host passes when it builds a plugin. Plugins only read it.

    ``Context[MySection]`` is the context of a plugin whose attribute ``Section`` is ``MySection``. Plain ``Context`` is
    the context of a plugin without its own properties.
    """

    name: str  # the name of the plugin's entry point
    #: The plugin's own properties ``plugin.NAME.*``, validated by the pydantic model ``Section``; None if the plugin
    #: has no ``Section``. A live change replaces this object.
    section: SectionT_co
    #: The broker-wide settings in force. A live change replaces this object, so read a setting whenever you need it.
    settings: Settings
    node_id: int  # ``node.id`` of this broker
    log: logging.Logger  # writes to the broker's own log
    #: A supplier calls ``answers_changed(principal=None, client_id=None)``, from any thread, when it would now return
    #: other quotas than it has returned: for one principal, one client-id, both together or, without any, all clients.
    answers_changed: AnswersChanged = silent
    open_disks: Callable[[], Disks] = no_disks  # Private: returns the host's monitor, for ``disks``
    broker: Broker = field(kw_only=True)  # answers questions about this broker and its cluster
    metrics: Metrics = field(kw_only=True)  # publishes the plugin's numbers
    #: Private: holds quotahost's own clients; the host closes them after the plugin's ``close``, last in, first out.
    closing: ExitStack = field(kw_only=True, default_factory=ExitStack)

    @property
    def disks(self) -> Disks:
        """The host's one monitor of this broker's disks, shared by all plugins.

        Read this property when the plugin is built: the first read starts the monitor and waits at most one second for
        its first look. The host closes the monitor.
        """
        return self.open_disks()

    def start_thread(self, name: str, run: Callable[[], None]) -> threading.Thread:
        """Run a function on a daemon thread ``quotahost-NAME``; the function may ask the broker.

        If ``run`` raises, the exception is logged and counted, and the thread ends. The plugin must end its threads in
        ``close``.
        """

        def body() -> None:
            try:
                run()
            except BaseException:  # also SystemExit, which a library may raise
                self.log.exception("thread %s of plugin %s ended", name, self.name)
                self.metrics.count("Plugin", self.name, "Errors")

        return start_daemon(name, body)
