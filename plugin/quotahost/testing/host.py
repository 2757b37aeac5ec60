"""A host without a broker: builds one plugin, calls it as the host would, and remembers what it announces."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from importlib.metadata import EntryPoint
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from quotahost.api import Role
from quotahost.discovery import build as discovery
from quotahost.model import Client, ClientQuotaChange, Cluster, Quota, QuotaType
from quotahost.settings.broker import Settings
from quotahost.settings.declaration import PREFIX
from quotahost.testing.broker import FakeBroker
from quotahost.testing.caller import Caller, blame, broken

T = TypeVar("T")
Properties = Mapping[str, str]

START_WITHIN: Final = 10.0  # seconds to import and construct; the broker waits for start.timeout
HANGS: Final = 5.0  # seconds after which a call is given up


class FakeHost:
    """One plugin in one role, on a thread that stands for the host thread.

    Attributes:
        plugin: what the entry made.
        context: what it was given.
        broker: what ``context.broker`` and ``context.metrics`` are.
        announced: the calls of ``answers_changed`` so far, as (principal, client-id), None for any.
    """

    def __init__(
        self,
        role: Role,
        entry: Any,
        properties: Properties | None = None,
        *,
        name: str | None = None,
        node_id: int = 1,
        broker: FakeBroker | None = None,
    ) -> None:
        """Build it as at a broker's start.

        Args:
            role: for which the plugin is built.
            entry: the class or function, an ``EntryPoint``, or the name of an installed one.
            properties: the broker's, with or without ``client.quota.callback.``.
            name: of the entry point, for ``plugin.NAME.*``; a class' own by default (OffPeak: off-peak).
            node_id: of the broker.
            broker: the broker around it; by default one that knows nothing.

        Raises:
            PluginError, SettingsError: as at a broker's start.
            AssertionError: it hangs.
        """
        self.announced: list[tuple[str | None, str | None]] = []
        self.broker = broker or FakeBroker()
        self.role, self.name = role, name or _name(entry)
        self._entry, self._node = _loaded(role, entry), node_id
        self.caller = Caller("fake-quotahost-host")
        self._task = Caller(f"fake-quotahost-task-{self.name}") if role is Role.TASK else self.caller
        try:
            self.context, self.plugin = self._build(self._settings(properties or {}))
        except BaseException:
            self.end()
            raise

    # ---- what the host calls ---------------------------------------------------------------------

    def call(self, what: str, function: Callable[[], T]) -> T:
        """Call something of the plugin on the host thread.

        Raises:
            AssertionError: it raised, or hung.
        """
        try:
            return self.caller.call(function, HANGS)
        except BaseException as error:
            blame(what, error, HANGS)

    def quota(self, principal: str, client_id: str, quota_type: QuotaType) -> Quota | None:
        """The supplier's answer."""
        client = Client(principal, client_id)
        answer: Quota | None = self.call("quota()", lambda: self.plugin.quota(client, quota_type))
        return answer

    def client_quota(self, change: ClientQuotaChange) -> None:
        """Kafka's own client quota was set or removed; told if the plugin listens."""
        self._tell("client_quota_changed", change)

    def cluster(self, *brokers: int, cluster_id: str = "fake") -> None:
        """The cluster consists of these brokers; told if the plugin listens."""
        self._tell("cluster_changed", Cluster(cluster_id, frozenset(brokers)))

    def tick(self) -> None:
        """A second has passed; told if the plugin ticks."""
        self._tell("tick")

    def run(self, within: float = 30.0) -> None:
        """Run the task once, on the task's thread.

        Raises:
            AssertionError: it raised, or took longer.
        """
        try:
            self._task.call(self.plugin.run, within)
        except BaseException as error:
            blame("run()", error, within, hanging=4)

    def reconfigure(self, properties: Properties) -> None:
        """Change the broker's properties live; a plugin without ``reconfigure`` is closed and built anew.

        Raises:
            PluginError, SettingsError: the new properties are refused; nothing has changed.
        """
        settings, plugin = self._settings(properties), self.plugin
        if settings.plugin.get(self.name, {}) == self.context.settings.plugin.get(self.name, {}):
            self.context.settings = settings
        elif callable(getattr(plugin, "reconfigure", None)):
            own = discovery.own_settings(self.role, self.name, settings, self._entry)
            self.context.settings, self.context.section = settings, own
            self.call("reconfigure()", lambda: plugin.reconfigure(own))
        else:
            context, new = self._build(settings)
            self.close_plugin()
            self.context, self.plugin = context, new

    def close(self) -> None:
        """Close the plugin, as at the broker's end, and the threads that stand for the host's."""
        try:
            self.close_plugin()
        finally:
            self.end()

    def close_plugin(self) -> None:
        """Close the plugin alone.

        Raises:
            AssertionError: close() raised, or took longer than the broker grants.
        """
        close = getattr(self.plugin, "close", None)
        try:
            if callable(close):
                self._task.call(close, HANGS)
        except BaseException as error:
            blame("close()", error, HANGS, hanging=7, raising=7)

    def end(self) -> None:
        """End the threads that stand for the host's."""
        self.caller.end()
        self._task.end()

    def __enter__(self) -> Self:
        """For ``with``: closed on the way out."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close; after a failure only the threads, so that the failure is what is seen."""
        self.close() if kind is None else self.end()

    # ---- how it is built -------------------------------------------------------------------------

    def _tell(self, method: str, *what: Any) -> None:
        listener = getattr(self.plugin, method, None)
        if callable(listener):
            self.call(f"{method}()", lambda: listener(*what))

    def _settings(self, properties: Properties) -> Settings:
        given = {PREFIX + key.removeprefix(PREFIX): text for key, text in properties.items()}
        given.setdefault(PREFIX + self.role.broker_property, self.name)
        return Settings.from_properties(given)

    def _build(self, settings: Settings) -> tuple[Any, Any]:
        plugin, around = (self.role, self.name, self._entry), (self.broker, self.broker, self._announce)
        try:
            made = partial(discovery.construct, *plugin, settings, self._node, *around)
            built = self.caller.call(made, START_WITHIN)
        except (discovery.PluginError, ValueError):
            raise
        except BaseException as error:
            blame("building it", error, START_WITHIN, hanging=2, raising=1)
        return built.context, built.plugin

    def _announce(self, principal: str | None = None, client_id: str | None = None) -> None:
        for name in (principal, client_id):
            if name is not None and not isinstance(name, str):
                raise broken(9, f"answers_changed() takes names or None, not {name!r}")
        self.announced.append((principal, client_id))


def _name(entry: Any) -> str:
    if isinstance(entry, str | EntryPoint):
        return entry if isinstance(entry, str) else entry.name
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", getattr(entry, "__name__", type(entry).__name__))
    return re.sub(r"[^a-z0-9-]+", "-", words.lower()).strip("-") or "plugin"


def _loaded(role: Role, entry: Any) -> Any:
    if isinstance(entry, str):
        return discovery.load(role, entry)
    return entry.load() if isinstance(entry, EntryPoint) else entry
