"""A host without a broker: builds one plugin, calls it as the host would, and remembers what it announces.

A thread stands for the host thread, and each call has a time within which the plugin must answer. Whatever goes wrong
in a call ends in :class:`ContractBroken`, the failure that a plugin's author sees.
"""

import logging
import queue
import re
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from functools import partial
from typing import Any, ClassVar, Generic, Self, TypeAlias

from typing_extensions import TypeVar  # typing's has no default before Python 3.13

from quotahost.api import Context, Role
from quotahost.api.context import LoadedPlugin
from quotahost.broker import discovery
from quotahost.broker.disks.monitor import DiskMonitor
from quotahost.model import Client, ClientQuotaChange, Cluster, Quota, QuotaType
from quotahost.settings.broker import Settings
from quotahost.settings.declaration import PREFIX, SettingsError
from quotahost.testing.broker import FakeBroker

T = TypeVar("T")
PluginT = TypeVar("PluginT", default=Any)
Properties: TypeAlias = Mapping[str, str]
Entry: TypeAlias = Callable[[Context[Any]], PluginT] | str  # or the name of an installed one
_REFUSED = (discovery.PluginError, SettingsError)


class ContractBroken(AssertionError):
    """The plugin breaks a sentence of the contract, which the message names by its number."""

    def __init__(self, number: int, sentence: str) -> None:
        super().__init__(f"{sentence} (contract {number} of quotahost.api)")


class Caller:
    """Runs functions on one thread of its own, one after the other."""

    def __init__(self, name: str) -> None:
        self._work: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None] = queue.SimpleQueue()
        # A daemon, so that a plugin that hangs doesn't hang the test run.
        threading.Thread(target=self._run, name=name, daemon=True).start()

    def call(
        self, what: str, function: Callable[[], T], within: float, *,
        hanging: int = 3, raising: int = 5, passing: tuple[type[BaseException], ...] = (),
    ) -> T:  # fmt: skip
        """Run the function ``within`` so many seconds, and return its answer; ``what`` names the call.

        Raises ContractBroken number ``hanging`` if it took longer, ``raising`` if it raised anything but ``passing``.
        """
        answer: Future[T] = Future()
        self._work.put((function, answer))
        # Not result(within): a TimeoutError that the plugin raises would look like ours.
        if not wait([answer], within).done:
            raise ContractBroken(hanging, f"{what} did not return within {within:g} s")
        error = answer.exception()
        if error is None or isinstance(error, (ContractBroken, *passing)):
            return answer.result()
        raise ContractBroken(raising, f"{what} raised {type(error).__name__}: {error}") from error

    def end(self) -> None:
        """Let the thread end after what it does now."""
        self._work.put(None)

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            function, answer = work
            try:
                answer.set_result(function())
            except BaseException as error:  # SystemExit, too, is a plugin's failure
                answer.set_exception(error)


class FakeHost(Generic[PluginT]):
    """One plugin in one role, on a thread that stands for the host thread.

    What calls the plugin raises AssertionError if that raises or hangs. ``broker`` is the plugin's ``context.broker``
    and ``context.metrics``; ``announced`` has the calls of ``answers_changed`` so far, as (principal, client-id), None
    for any.
    """

    patience: ClassVar[float] = 5.0  # seconds after which a call is given up
    start_patience: ClassVar[float] = 10.0  # seconds for importing and constructing; a broker waits for 30 s

    def __init__(
        self, role: Role, entry: Entry[PluginT], properties: Properties | None = None, *,
        name: str | None = None, node_id: int = 1, broker: FakeBroker | None = None,
    ) -> None:  # fmt: skip
        """Build the plugin as at a broker's start; arguments as of ``check_supplier``.

        ``broker`` is the broker around it, by default one that knows nothing. Raises PluginError or SettingsError as at
        a broker's start, AssertionError if it hangs.
        """
        self.announced: list[tuple[str | None, str | None]] = []
        self.broker = broker or FakeBroker()
        self._role, self._name, self._node = role, name or _name(entry), node_id
        self._entry = discovery.load(role, entry) if isinstance(entry, str) else entry
        self._host_thread = Caller("fake-quotahost-host")
        # As on a broker, a task has a thread of its own.
        is_task = role is Role.TASK
        self._task_thread = Caller(f"fake-quotahost-task-{self._name}") if is_task else self._host_thread
        # A function, because a live change replaces the settings while the monitor's thread runs.
        self._disks = DiskMonitor(self.broker, self.broker, node_id, lambda: self._in_force)
        try:
            self._in_force = self._settings(properties or {})
            self._loaded = self._build(self._in_force)
        # Nobody can close a host that was never made, so its threads end here, after a KeyboardInterrupt too.
        except BaseException:
            self._end()
            raise

    @property
    def plugin(self) -> PluginT:
        return self._loaded.plugin

    @property
    def context(self) -> Context[Any]:
        return self._loaded.context

    # ---- what the host calls ---------------------------------------------------------------------

    def call(self, what: str, function: Callable[[], T]) -> T:
        """Call something of the plugin on the host thread; ``what`` names it in a failure."""
        return self._host_thread.call(what, function, self.patience)

    def quota(self, principal: str, client_id: str, quota_type: QuotaType) -> Quota | None:
        """The supplier's answer."""
        supplier: Any = self.plugin
        quota: Callable[[], Quota | None] = partial(supplier.quota, Client(principal, client_id), quota_type)
        return self.call("quota()", quota)

    def client_quota(self, change: ClientQuotaChange) -> None:
        """Kafka's own client quota was set or removed: hand it to a plugin that listens."""
        self._hand("client_quota_changed", change)

    def cluster(self, *brokers: int, cluster_id: str = "fake") -> None:
        """The cluster consists of these brokers: hand it to a plugin that listens."""
        self._hand("cluster_changed", Cluster(cluster_id, frozenset(brokers)))

    def tick(self) -> None:
        """A second has passed: call ``tick()`` of a plugin that has it."""
        self._hand("tick")

    def factor_in_force(self, factor: float) -> None:
        """This factor has applied since the last call: hand it to a policy that listens."""
        self._hand("factor_in_force", factor)

    def run(self, within: float = 30.0) -> None:
        """Run the task once, on the task's thread, ``within`` so many seconds."""
        task: Any = self.plugin
        self._task_thread.call("run()", task.run, within, hanging=4)

    def reconfigure(self, properties: Properties) -> None:
        """Change the broker's properties live; a plugin without ``reconfigure`` is closed and built anew.

        Raises PluginError or SettingsError if the new properties are refused; then nothing has changed.
        """
        settings = self._settings(properties)
        reconfigure = getattr(self.plugin, "reconfigure", None)
        # The same three cases as in broker.host.plugins: nothing changed for it, it adapts, or it is built anew.
        if settings.plugin.get(self._name, {}) == self.context.settings.plugin.get(self._name, {}):
            self.context.settings = settings
        elif callable(reconfigure):
            section = discovery.plugin_settings(self._role, self._name, settings, self._entry)
            self.context.settings, self.context.section = settings, section
            self.call("reconfigure()", lambda: reconfigure(section))
        else:
            # Before the old one is closed: if it can't be built, the old one goes on, as on a broker.
            new = self._build(settings)
            self._close_plugin()
            self._loaded = new
        self._in_force = settings

    def close(self) -> None:
        """Close the plugin, as at the broker's end, and end the threads that stand for the host's."""
        try:
            self._close_plugin()
        finally:
            self._end()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.close() if kind is None else self._end()

    # ---- how it is built -------------------------------------------------------------------------

    def _hand(self, method: str, *arguments: object) -> None:
        listener = getattr(self.plugin, method, None)
        if callable(listener):
            self.call(f"{method}()", lambda: listener(*arguments))

    def _settings(self, properties: Properties) -> Settings:
        given = {PREFIX + key.removeprefix(PREFIX): text for key, text in properties.items()}
        for name, text in given.items():
            if not isinstance(text, str):
                raise TypeError(f"{name}={text!r}: write a property as text, as in a broker's file")
        # The settings refuse plugin.NAME.* of a plugin that no property names.
        given.setdefault(PREFIX + self._role.broker_property, self._name)
        return Settings.from_properties(given)

    def _build(self, settings: Settings) -> LoadedPlugin[PluginT]:
        def build() -> LoadedPlugin[PluginT]:
            section = discovery.plugin_settings(self._role, self._name, settings, self._entry)
            context = Context(
                self._name, section, settings, self._node, logging.getLogger(f"quotahost.plugin.{self._name}"),
                self._announce, open_disks=self._disks.started, broker=self.broker, metrics=self.broker,
            )  # fmt: skip
            return discovery.construct(self._role, self._entry, context)

        return self._host_thread.call("building it", build, self.start_patience, hanging=2, raising=1, passing=_REFUSED)

    def _close_plugin(self) -> None:
        def close() -> None:
            with self.context.closing:
                if callable(found := getattr(self.plugin, "close", None)):
                    found()

        # A task is closed on its own thread (contract 7); for other roles this is the host thread.
        self._task_thread.call("close()", close, self.patience, hanging=7, raising=7)

    def _end(self) -> None:
        self._disks.close()
        self._host_thread.end()
        self._task_thread.end()

    def _announce(self, principal: str | None = None, client_id: str | None = None) -> None:
        for name in (principal, client_id):
            if name is not None and not isinstance(name, str):
                raise ContractBroken(9, f"answers_changed() takes names or None, not {name!r}")
        self.announced.append((principal, client_id))


def _name(entry: Entry[Any]) -> str:
    if isinstance(entry, str):
        return entry
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", getattr(entry, "__name__", type(entry).__name__))
    return re.sub(r"[^a-z0-9-]+", "-", words.lower()).strip("-") or "plugin"
