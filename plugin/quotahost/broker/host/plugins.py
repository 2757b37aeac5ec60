"""The host builds, keeps and closes the plugins of its node, guards every call to them, and runs the tasks' threads.

1. ``Builder`` finds, checks and constructs each plugin that the settings name and this node needs (``discovery``), and
   gives it its context. ``live_change`` calls it at the start and at each change.
2. ``PluginSet`` has the plugins of one configuration. ``new_clients`` uses the suppliers, and ``factor`` the factor
   source and the policy. ``Scheduler`` runs each task on its own thread.
3. ``Guard`` makes the calls to plugins, or gets a report of their failure. It counts a failure and logs it once, and
   the host goes on. The caller passes the consequence of the failure, which the log line states.
4. ``Notifier`` passes Kafka's client quotas and the cluster to the plugins that listen.
"""

import logging
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeAlias, TypeVar

from quotahost.api import (
    Broker,
    Context,
    DataSourceTask,
    Disks,
    Metrics,
    QuotaFactorSource,
    QuotaPolicy,
    QuotaSupplier,
    Role,
)
from quotahost.api.context import LoadedPlugin
from quotahost.base.background import Clock, LoggedOnce, Periodic, start_daemon
from quotahost.broker.discovery import (
    PluginError,
    check_period,
    configured,
    construct,
    failing,
    is_own,
    load,
    plugin_settings,
)
from quotahost.broker.host.exemptions import node_id
from quotahost.broker.host.protocol import Shim
from quotahost.kafka.listeners import Listeners
from quotahost.model import ClientQuotaChange, Cluster, QuotaEntity, QuotaType, State
from quotahost.settings.broker import Settings
from quotahost.settings.properties import SNAPSHOT_READERS

T = TypeVar("T")
log = logging.getLogger("quotahost.plugins")
_tasks_log = logging.getLogger("quotahost.tasks")

CLOSE_WITHIN: Final = 2.0  # seconds for all tasks together, out of the 4 s that the shim waits for the host


# ---- a call of a plugin ----------------------------------------------------------------------------------------


class Guard:
    """Counts every failure of a plugin. Logs each error type of each method once, until the method works again.

    Loops over thousands of clients or volumes catch a plugin's errors themselves, and report failures here.
    """

    def __init__(self, shim: Shim, clock: Clock = time.monotonic) -> None:
        self._shim = shim
        #: The logged faults, by plugin and method, then by the error's type.
        self._faults = defaultdict[tuple[str, str], dict[type, LoggedOnce]](
            lambda: defaultdict(lambda: LoggedOnce(log, logging.ERROR, clock))
        )

    def begins(self, plugin: str) -> None:
        """A new plugin has this name: log its failures, even if the plugin before it has failed in the same way."""
        self._shim.count("Plugin", plugin, "Errors", 0.0)
        for key in [key for key in list(self._faults) if key[0] == plugin]:
            del self._faults[key]

    def tell(self, text: str) -> None:
        """Log what a plugin's code will do next: if the code ends the process, this is the last line of the log."""
        self._shim.log(log.name, logging.INFO, text)

    def call(self, plugin: str, what: str, consequence: str, function: Callable[[], T], instead: Any = None) -> T:
        """Return the plugin's answer, or ``instead`` if it fails. After a success the next failure is logged again."""
        try:
            answer = function()
        except BaseException as error:  # a plugin's SystemExit counts as its failure, and must not end the broker
            self.report(plugin, what, consequence, error)
            answer = instead
        else:
            self.heal(plugin, what)
        return answer

    def call_if_there(self, name: str, plugin: object, method: str, consequence: str, *arguments: object) -> None:
        if callable(found := getattr(plugin, method, None)):
            self.call(name, f"{method}()", consequence, lambda: found(*arguments))

    def report(self, plugin: str, what: str, consequence: str, error: BaseException) -> None:
        self._shim.count("Plugin", plugin, "Errors")
        self._faults[plugin, what][type(error)].report(
            "plugin %s failed in %s; %s. Further failures of this kind are only counted (quotahost:"
            "type=Plugin,name=%s, Errors)", plugin, what, consequence, plugin, exc_info=error,
        )  # fmt: skip
        # A Future may raise the same error again and again, and the error would keep each frame that it passes.
        passed: BaseException | None = error
        while passed is not None and passed.__traceback__ is not None:
            passed.__traceback__ = None
            passed = passed.__context__

    def heal(self, plugin: str, what: str) -> None:
        # A copy, because the thread of a task that a live change has left behind may report meanwhile.
        faults = list(self._faults.get((plugin, what), {}).values())
        if sum(fault.healed() for fault in faults):  # sum() and not any(), so that every fault heals
            log.info("plugin %s works again in %s", plugin, what)


# ---- all plugins of one configuration --------------------------------------------------------------------------

#: A plugin's entry point, and its validated properties ``plugin.NAME.*`` or None, by the plugin's role and name.
Sections: TypeAlias = Mapping[tuple[Role, str], tuple[Any, Any]]


class PluginSet:
    """The plugins of one Settings, in the order of the settings, and by role with their names."""

    def __init__(self, plugins: Sequence[LoadedPlugin]) -> None:
        """Raises PluginError if a factor source names no valid quota types, or if two factor sources watch the disks.

        A source that watches the disks must come first: the defaults of other properties depend on the first name.
        """
        self._plugins = plugins
        of: dict[Role, list[tuple[str, Any]]] = {role: [] for role in Role}
        for loaded in plugins:
            of[loaded.role].append((loaded.context.name, loaded.plugin))
        self.suppliers: Sequence[tuple[str, QuotaSupplier]] = of[Role.SUPPLIER]
        self.tasks = [loaded for loaded in plugins if loaded.role is Role.TASK]
        self.policy: tuple[str, QuotaPolicy] | None = next(iter(of[Role.POLICY]), None)
        self.typed_sources: list[tuple[str, QuotaFactorSource, Collection[QuotaType]]] = []
        self.factor_source: tuple[str, QuotaFactorSource] | None = None
        for loaded in (each for each in plugins if each.role is Role.FACTOR_SOURCE):
            name = loaded.context.name
            with failing(loaded.role, name, "does not implement its role"):
                types = loaded.quota_types
            if types is not None:
                self.typed_sources.append((name, loaded.plugin, types))
            elif self.factor_source:
                also = "already says how full the disks are; name one of the two in factor.source, beside sources"
                text = f"{self.factor_source[0]} {also} for single quota types such as load"
                raise PluginError(loaded.role, name, text)
            elif self.typed_sources:
                first = self.typed_sources[0][0]
                raise PluginError(loaded.role, first, f"it is for single quota types; name {name} first")
            else:
                self.factor_source = name, loaded.plugin

    def __iter__(self) -> Iterator[LoadedPlugin]:
        return iter(self._plugins)


def apart(plugins: Iterable[LoadedPlugin], others: Iterable[LoadedPlugin]) -> list[LoadedPlugin]:
    """The plugins that are not in ``others``, compared by identity: a plugin's class may define its own equality."""
    ids = {id(loaded.plugin) for loaded in others}
    return [loaded for loaded in plugins if id(loaded.plugin) not in ids]


def _section_text(plugin: LoadedPlugin, settings: Settings) -> dict[str, str]:
    return settings.plugin.get(plugin.context.name, {})


def adopt(plugins: PluginSet, settings: Settings, sections: Sections, guard: Guard) -> None:
    for loaded in plugins:
        name, before = loaded.context.name, _section_text(loaded, loaded.context.settings)
        loaded.context.settings = settings
        if _section_text(loaded, settings) != before:
            _, loaded.context.section = sections[loaded.role, name]
            guard.call_if_there(name, loaded.plugin, "reconfigure", "its old properties stay", loaded.context.section)


def close(plugins: Iterable[LoadedPlugin], guard: Guard, *, tasks: bool = False) -> None:
    for loaded in plugins:
        if tasks or loaded.role != Role.TASK:
            close_plugin(loaded, guard)


def close_plugin(loaded: LoadedPlugin, guard: Guard) -> None:
    name, consequence = loaded.context.name, "the host removes it all the same"
    guard.call_if_there(name, loaded.plugin, "close", consequence)
    guard.call(name, "closing its resources", consequence, loaded.context.closing.close)


# ---- building --------------------------------------------------------------------------------------------------

_ABOUT_VOLUMES: Final = (Role.FACTOR_SOURCE, Role.POLICY)


def judges_alone(settings: Settings) -> bool:
    """Whether a controller that is no broker follows volumes: it must read snapshots and know the brokers' address."""
    return settings.factor_source in SNAPSHOT_READERS and "bootstrap.servers" in settings.kafka_admin


class NodeRoles:
    """Decides by the node's process roles which plugins it has.

    A broker has all plugins. A controller that is no broker has the suppliers, for the rates of partition mutations. If
    it knows the brokers' address, it also follows the brokers' volumes, so that it can refuse new topics and partitions
    in a PAUSE (Java's ``Fence``).
    """

    def __init__(self, properties: Mapping[str, str]) -> None:
        #: Whether the node is a broker; a controller that is no broker has no log directories of clients' topics.
        self.broker = not Listeners(properties).controller_alone

    def needs(self, role: Role, name: str, settings: Settings) -> bool:
        """Whether this node has this plugin. Tasks and ``load`` need a broker's disks or clients."""
        about_volumes = role in _ABOUT_VOLUMES and name in (settings.factor_source, settings.policy)
        return self.broker or role is Role.SUPPLIER or (about_volumes and judges_alone(settings))

    def applied(self, settings: Settings, *, watches_disks: bool) -> Settings:
        """The settings for Java. If no plugin follows volumes, a silent host must not look like a full disk.

        The default of ``fallback.action`` may be PAUSE for a source that turns out to be for single quota types.
        """
        wanted = watches_disks or "fallback_action" in settings.model_fields_set
        if wanted and (self.broker or judges_alone(settings)):
            return settings
        return settings.model_copy(update={"fallback_action": State.OPEN})


class Builder:
    """Builds the plugins that the settings name, at the start and at a live change."""

    def __init__(
        self, broker: Broker, metrics: Metrics, answers_changed: Callable[..., None], open_disks: Callable[[], Disks],
        guard: Guard,
    ) -> None:  # fmt: skip
        """Every plugin's context gets the arguments except the guard, which closes the plugins of a failed build."""
        self._broker, self._metrics, self._guard = broker, metrics, guard
        self._answers_changed, self._open_disks = answers_changed, open_disks
        self._node = node_id(broker.properties())
        self._roles = NodeRoles(broker.properties())

    def validate(self, settings: Settings) -> Sections:
        """Import this node's plugins and validate their properties. Raises PluginError or SettingsError."""
        sections: dict[tuple[Role, str], tuple[Any, Any]] = {}
        for role, name in configured(settings):
            if self._roles.needs(role, name, settings):
                entry = load(role, name, self._guard.tell)
                sections[role, name] = entry, plugin_settings(role, name, settings, entry)
        return sections

    def build(self, settings: Settings, sections: Sections, old: PluginSet) -> PluginSet:
        """Build every plugin of ``sections``, or keep the plugin of ``old`` if it can stay. ``old`` doesn't change.

        A plugin can stay if its own properties are the same, or if it has a method ``reconfigure``. If a plugin can't
        be constructed, raises PluginError and closes the plugins that were built before it.
        """
        plugins: list[LoadedPlugin] = []
        new: list[LoadedPlugin] = []
        try:
            for (role, name), (entry, section) in sections.items():
                kept = next((each for each in old if (each.role, each.context.name) == (role, name)), None)
                if not (kept and self._stays(kept, settings)):
                    new.append(kept := self._construct(role, name, settings, entry, section))
                plugins.append(kept)
            return PluginSet(plugins)
        except BaseException:
            # The new plugins may have started threads, which nothing else would end.
            close(reversed(new), self._guard, tasks=True)
            raise

    def _stays(self, plugin: LoadedPlugin, settings: Settings) -> bool:
        same = _section_text(plugin, settings) == _section_text(plugin, plugin.context.settings)
        return same or callable(getattr(plugin.plugin, "reconfigure", None))

    def _construct(self, role: Role, name: str, settings: Settings, entry: Any, section: Any) -> LoadedPlugin:
        context = Context(
            name, section, settings, self._node, logging.getLogger(f"quotahost.plugin.{name}"),
            self._answers_changed, open_disks=self._open_disks, broker=self._broker, metrics=self._metrics,
        )  # fmt: skip
        if not is_own(str(getattr(entry, "__module__", ""))):
            self._guard.tell(f"{role} {name!r} is being built")
        return construct(role, entry, context)


# ---- Kafka's news ----------------------------------------------------------------------------------------------


class Notifier:
    """Passes client quotas and the cluster to plugins, and keeps both for plugins that a live change builds later."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._client_quotas: dict[tuple[QuotaType, QuotaEntity], ClientQuotaChange] = {}
        self.cluster: Cluster | None = None

    def tell(self, plugins: Iterable[LoadedPlugin], news: ClientQuotaChange | Cluster) -> None:
        if isinstance(news, Cluster):
            self.cluster = news
        elif news.rate is None:
            self._client_quotas.pop((news.quota_type, news.entity), None)
        else:
            self._client_quotas[news.quota_type, news.entity] = news
        self._hand(plugins, news)

    def introduce(self, plugins: Iterable[LoadedPlugin]) -> None:
        for change in self._client_quotas.values():
            self._hand(plugins, change)
        if self.cluster is not None:
            self._hand(plugins, self.cluster)

    def _hand(self, plugins: Iterable[LoadedPlugin], news: ClientQuotaChange | Cluster) -> None:
        listener = "cluster_changed" if isinstance(news, Cluster) else "client_quota_changed"
        for loaded in plugins:
            self._guard.call_if_there(loaded.context.name, loaded.plugin, listener, "it misses a change", news)


# ---- tasks -----------------------------------------------------------------------------------------------------


class Scheduler:
    """Runs each task on its own thread: a task may wait for Kafka or for disks, and the host thread must not wait."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._running: dict[int, tuple[str, Periodic]] = {}  # by the task's id()

    def set(self, tasks: Iterable[LoadedPlugin[DataSourceTask]]) -> None:
        wanted = {id(loaded.plugin): loaded for loaded in tasks}
        ended = [self._running.pop(key) for key in self._running.keys() - wanted.keys()]
        for name, thread in ended:
            if not thread.close(CLOSE_WITHIN / len(ended)):
                _tasks_log.warning("task %s did not end in time: its thread goes on, and the host doesn't wait", name)
        for key, loaded in wanted.items():
            if key not in self._running:
                self._running[key] = loaded.context.name, self._start(loaded)

    def _start(self, loaded: LoadedPlugin[DataSourceTask]) -> Periodic:
        name, task = loaded.context.name, loaded.plugin
        period = check_period(task.period)

        def seconds() -> float:
            # A task may change its period while it runs, even to an invalid value.
            nonlocal period
            period = self._guard.call(name, "period", "the last one stays", lambda: check_period(task.period), period)
            return period

        def run() -> None:
            self._guard.call(name, "run()", "it runs again after its period", task.run)

        # The task closes on its own thread, so that no run() is active meanwhile (contract, sentences 4 and 7).
        end = partial(close_plugin, loaded, self._guard)
        return Periodic(f"task-{name}", run, seconds, partial(start_daemon, at_end=end))
