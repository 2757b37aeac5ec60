"""FakeHost is a host without a broker: it builds one plugin, calls it like the real host, and keeps its announcements.

FakeHost calls the plugin on one thread that stands for the host thread, and waits only a limited time for each answer.
Every failure of a call becomes a :class:`ContractBroken`, which the plugin's author sees.
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
Entry: TypeAlias = Callable[[Context[Any]], PluginT] | str  # an entry point, or the name of an installed plugin
_REFUSED = (discovery.PluginError, SettingsError)


class ContractBroken(AssertionError):
    """The plugin breaks the contract; the message has the number of the sentence."""

    def __init__(self, number: int, sentence: str) -> None:
        super().__init__(f"{sentence} (contract {number} of quotahost.api)")


class Caller:
    """Runs functions one after the other on its own thread."""

    def __init__(self, name: str) -> None:
        self._work: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None] = queue.SimpleQueue()
        # A daemon thread, so that a hanging plugin doesn't keep the test run from ending.
        threading.Thread(target=self._run, name=name, daemon=True).start()

    def call(
        self, what: str, function: Callable[[], T], within: float, *,
        hanging: int = 3, raising: int = 5, passing: tuple[type[BaseException], ...] = (),
    ) -> T:  # fmt: skip
        """Run the function, wait at most ``within`` seconds, and return the answer; ``what`` names the call in errors.

        Raises ContractBroken with the number ``hanging`` if the function takes longer, and with the number ``raising``
        if the function raises an exception that is not one of ``passing``.
        """
        answer: Future[T] = Future()
        self._work.put((function, answer))
        # result(within) would raise a TimeoutError, which the plugin may raise as well.
        if not wait([answer], within).done:
            raise ContractBroken(hanging, f"{what} did not return within {within:g} s")
        error = answer.exception()
        if error is None or isinstance(error, (ContractBroken, *passing)):
            return answer.result()
        raise ContractBroken(raising, f"{what} raised {type(error).__name__}: {error}") from error

    def end(self) -> None:
        """End the thread after its present function."""
        self._work.put(None)

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            function, answer = work
            try:
                answer.set_result(function())
            except BaseException as error:  # also SystemExit: it is the plugin's failure
                answer.set_exception(error)


class FakeHost(Generic[PluginT]):
    """Runs one plugin in one role, on a thread that stands for the host thread.

    A method that calls the plugin raises AssertionError if the plugin raises or hangs. ``broker`` is the context's
    ``broker`` and ``metrics``. ``announced`` lists each call of ``answers_changed`` as (principal, client-id), with
    None for any.
    """

    patience: ClassVar[float] = 5.0  # seconds after which a call times out
    start_patience: ClassVar[float] = 10.0  # seconds for importing and building; a broker waits for 30 s

    def __init__(
        self, role: Role, entry: Entry[PluginT], properties: Properties | None = None, *,
        name: str | None = None, node_id: int = 1, broker: FakeBroker | None = None,
    ) -> None:  # fmt: skip
        """Build the plugin as at a broker's start. ``entry``, ``properties`` and ``name`` are as in ``check_supplier``.

        ``broker`` answers the plugin's questions; the default broker has no answers. Raises PluginError or
        SettingsError as at a broker's start, and AssertionError if the plugin hangs.
        """
        self.announced: list[tuple[str | None, str | None]] = []
        self.broker = broker or FakeBroker()
        self._role, self._name, self._node = role, name or _name(entry), node_id
        self._entry = discovery.load(role, entry) if isinstance(entry, str) else entry
        self._host_thread = Caller("fake-quotahost-host")
        # A task has its own thread, as on a broker.
        is_task = role is Role.TASK
        self._task_thread = Caller(f"fake-quotahost-task-{self._name}") if is_task else self._host_thread
        # The monitor gets a function, because a live change replaces the settings while its thread runs.
        self._disks = DiskMonitor(self.broker, self.broker, node_id, lambda: self._in_force)
        try:
            self._in_force = self._settings(properties or {})
            self._loaded = self._build(self._in_force)
        # If __init__ raises, the caller gets no object to close, so the threads end here, also at a KeyboardInterrupt.
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
        """Run a function that calls the plugin on the host thread; ``what`` names the call in errors."""
        return self._host_thread.call(what, function, self.patience)

    def quota(self, principal: str, client_id: str, quota_type: QuotaType) -> Quota | None:
        """The supplier's answer for a client and a quota type."""
        supplier: Any = self.plugin
        quota: Callable[[], Quota | None] = partial(supplier.quota, Client(principal, client_id), quota_type)
        return self.call("quota()", quota)

    def client_quota(self, change: ClientQuotaChange) -> None:
        """Call the plugin's ``client_quota_changed``, if it has the method: a Kafka client quota was set or removed."""
        self._hand("client_quota_changed", change)

    def cluster(self, *brokers: int, cluster_id: str = "fake") -> None:
        """Call the plugin's ``cluster_changed``, if it has the method: the live brokers are now these."""
        self._hand("cluster_changed", Cluster(cluster_id, frozenset(brokers)))

    def tick(self) -> None:
        """Call the plugin's ``tick``, if it has the method: a second has passed."""
        self._hand("tick")

    def factor_in_force(self, factor: float) -> None:
        """Call the policy's ``factor_in_force``, if it has the method: this factor has applied since the last call."""
        self._hand("factor_in_force", factor)

    def run(self, within: float = 30.0) -> None:
        """Run the task once on the task's thread. The run must end ``within`` this number of seconds."""
        task: Any = self.plugin
        self._task_thread.call("run()", task.run, within, hanging=4)

    def reconfigure(self, properties: Properties) -> None:
        """Change the broker's properties live. A plugin without ``reconfigure`` is rebuilt, and the old one closed.

        Raises PluginError or SettingsError if the new properties are refused; then nothing has changed.
        """
        settings = self._settings(properties)
        reconfigure = getattr(self.plugin, "reconfigure", None)
        # The cases are those of broker.host.plugins: the plugin's properties are equal, it adapts, or it is rebuilt.
        if settings.plugin.get(self._name, {}) == self.context.settings.plugin.get(self._name, {}):
            self.context.settings = settings
        elif callable(reconfigure):
            section = discovery.plugin_settings(self._role, self._name, settings, self._entry)
            self.context.settings, self.context.section = settings, section
            self.call("reconfigure()", lambda: reconfigure(section))
        else:
            # The old plugin is closed last: if the build fails, the old plugin continues, as on a broker.
            new = self._build(settings)
            self._close_plugin()
            self._loaded = new
        self._in_force = settings

    def close(self) -> None:
        """Close the plugin as at the broker's shutdown, and end the threads of this fake host."""
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
        # The settings refuse plugin.NAME.* if no property names the plugin, so the role's property names it here.
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

        return self._host_thread.call(
            "building the plugin", build, self.start_patience, hanging=2, raising=1, passing=_REFUSED
        )

    def _close_plugin(self) -> None:
        def close() -> None:
            with self.context.closing:
                if callable(found := getattr(self.plugin, "close", None)):
                    found()

        # A task closes on its own thread (contract 7); for the other roles this attribute is the host thread.
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
