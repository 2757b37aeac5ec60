"""The host thread builds all plugins at its start, then serves in rounds, and closes the plugins at its end.

**The start.** The host reads the properties, builds all plugins (``live_change``, ``plugins``), waits until the host
before it has ended, and gives exemptions, settings and the factor to Java; a broker that starts waits for this. If a
property is wrong, or a plugin is unknown or can't be built, the start fails with one sentence that says so.

**The rounds.** In each round, until the broker closes the host:

1. The host takes new clients and events from Java's inbox. It waits 0.1 s for them at most. This call renews the lease:
   a host that hangs in a plugin loses the lease, and Java applies ``fallback.action``.
2. The host handles the events: Kafka's client quotas, the cluster, live changes of properties, questions.
3. The host calls the suppliers' ``tick()`` once a second.
4. The host asks Java for the clients whose answers have changed, and asks the suppliers about the clients of step 1
   (``new_clients``).
5. The host reads the factor source every ``factor.interval`` (``factor``).

**The end.** The host closes tasks and plugins within the 4 s that the shim waits. If one fails, the others still close.
"""

import logging
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, Final

from quotahost.api import Disks
from quotahost.base.background import Clock, LoggedOnce
from quotahost.base.errors import QuotahostError
from quotahost.broker.discovery import secrets
from quotahost.broker.disks.file_stores import log_dirs
from quotahost.broker.disks.monitor import DiskMonitor, NoDisks
from quotahost.broker.host.broker import HostBroker
from quotahost.broker.host.broker_status import answer_question
from quotahost.broker.host.cluster_query import ClusterQuery
from quotahost.broker.host.exemptions import Exemptions, node_id
from quotahost.broker.host.exporter import exporter
from quotahost.broker.host.factor import FactorLoop, PauseMemory
from quotahost.broker.host.live_change import Configuration, LiveChange, without_unknown
from quotahost.broker.host.logs import Logs
from quotahost.broker.host.messages import Batch, Event, client_quota, cluster
from quotahost.broker.host.new_clients import NewClients, measured
from quotahost.broker.host.plugins import Builder, Guard, NodeRoles, Notifier, PluginSet, Scheduler, adopt, apart, close
from quotahost.broker.host.protocol import Shim
from quotahost.broker.host.shadow import Shadow
from quotahost.broker.host.stacks import HangingHost, disable_fault_handler, stacks_of_a_long_start
from quotahost.broker.metrics import OF_PLUGINS
from quotahost.model import Cluster
from quotahost.settings.broker import Settings, read_properties

log = logging.getLogger("quotahost.host")
_factor_log = logging.getLogger("quotahost.factor")

TAKE: Final = 0.1  # seconds: the host sees an answers_changed() of a plugin's own thread after this time at the latest
TICK: Final = 1.0  # seconds between calls of a supplier's tick()


class Host:
    """One run of the Python host, on the shim's host thread."""

    def __init__(
        self, shim: Shim, clock: Clock = time.monotonic, in_jvm: bool = True, logs: Logs | None = None
    ) -> None:
        """``in_jvm``: whether Python runs in the broker's own process."""
        self._shim, self._clock, self._logs = shim, clock, logs
        self._guard = Guard(shim, clock)
        self._clients = NewClients(shim, self._guard, clock)
        self._notifier = Notifier(self._guard)
        self._scheduler = Scheduler(self._guard)
        self._plugins = PluginSet(())
        self._broken_events = LoggedOnce(log)
        self._shadow = Shadow(shim, clock)
        self._tick_at = clock()
        self._in_jvm, self._fault_handler = in_jvm, LoggedOnce(log)
        self._look_at_disks: Callable[[], None] = lambda: None  # replaced if this node has disks
        self._opened = ExitStack()  # closes after the plugins

    def run(self) -> None:
        try:
            changes = self._start()
        # serve.py, or main() of a child, catches any other error, and the shim refuses the start with the traceback.
        except QuotahostError as problem:
            self._shim.refuse(str(problem))
        else:
            self._serve(changes)
        finally:
            self._close()

    def _start(self) -> LiveChange:
        given, started = self._shim.properties(), self._shim.started_with()
        # After the broker's start an unknown name can only come from Kafka's stored configuration: ignore it.
        strict = not self._shim.restarted()
        (settings, _), _ = without_unknown(given, started, read_properties, strict=strict)
        # The broker's start waits 30 s at most for this call, and then 30 s at most for ready().
        self._shim.starting()
        self._shim.forget_left(*OF_PLUGINS)
        self._broker = HostBroker(self._shim, settings)
        self._roles = NodeRoles(self._broker.properties())
        self._disks = self._open_disks()
        builder = Builder(self._broker, self._shim, self._clients.answers_changed, self._disks, self._guard)
        changes = LiveChange(
            self._shim, builder, self._guard, self._clock, self._install, self._hide, started, strict=strict
        )
        self._opened.callback(changes.drop)
        dumps = strict or not self._in_jvm
        # Every plugin is validated before the first one is built, so a wrong property leaves no thread behind.
        with stacks_of_a_long_start(allowed=dumps):
            changes.stage(given)
        self._shim.built()
        # FactorLoop reads the factor in force, which the host before this one may change until built() returns.
        self._factor = FactorLoop(self._shim, self._guard, self._clock, self._pause_memory)
        if endpoint := exporter(settings, self._shim):
            self._opened.callback(endpoint.close)
        self._hanging = HangingHost(lambda: self._broker.settings.validity.total_seconds())
        self._opened.callback(self._hanging.close)
        with stacks_of_a_long_start(allowed=dumps):
            changes.apply(given)
            self._disable_fault_handler()
            self._factor.step(self._plugins, self._broker.settings)
        # The broker goes on from here: limits, exemptions and full disks are in place before its first request.
        self._shim.ready(changes.in_force.asked, given)
        self._asked_for_fence = False
        self._cluster = ClusterQuery(self._shim, node_id(self._broker.properties()) if self._roles.broker else None)
        self._opened.callback(self._cluster.start().close)
        log.info("quotahost serves with suppliers %s", ", ".join(name for name, _ in self._plugins.suppliers))
        return changes

    def _open_disks(self) -> Callable[[], Disks]:
        own = self._broker.properties()
        self._pause_memory = PauseMemory(log_dirs(own) if self._roles.broker else [])
        if not self._roles.broker:
            return lambda: NoDisks(own)
        disks = DiskMonitor(
            self._broker, self._shim, node_id(own), lambda: self._broker.settings, self._clock,
            self._pause_memory.write, self._shim.left("Volume"),
        )  # fmt: skip
        self._opened.callback(disks.close)
        self._look_at_disks = disks.wake
        self._broker.largest = disks.budgets.largest
        return disks.started

    def _install(self, new_one: Configuration) -> None:
        settings, plugins, old, before = new_one.settings, new_one.plugins, self._plugins, self._broker.settings
        adopt(plugins, settings, new_one.sections, self._guard)
        new = apart(plugins, old)
        for plugin in new:
            self._guard.begins(plugin.context.name)
        # Kafka has reported its client quotas to the old plugins only; new plugins must know them before they answer.
        self._notifier.introduce(new)
        self._broker.refresh(settings)
        self._hide(before)  # again, because refresh() may have changed the login of the plugins' client
        self._look_at_disks()
        if plugins.factor_source is not None or self._pause_memory.before or self._pause_memory.budgets:
            self._disks()  # for any source: the disk monitor's thread stores a PAUSE for the next start, or removes it
        self._exemptions = Exemptions(settings, self._broker.properties(), self._broker.principals)
        if self._notifier.cluster:
            self._exemptions.know(self._notifier.cluster.brokers)
        # Exempt clients go to Java before the settings: snapshots must pass the fence from the first request on.
        self._exempt()
        self._factor.forget()
        self._clients.configure(plugins.suppliers, settings)
        applied = self._roles.applied(settings, watches_disks=plugins.factor_source is not None)
        self._shim.configure(applied, measured(settings, plugins))
        self._shadow.configure(settings)
        self._scheduler.set(plugins.tasks)
        self._plugins = plugins
        # Last, when nothing calls the old plugins any more.
        close(apart(old, plugins), self._guard)
        self._clients.answers_changed()

    def _hide(self, settings: Settings) -> None:
        """Keep the secrets of these settings, and of the settings in force, out of the log from now on."""
        if self._logs:
            both = self._broker.settings, settings
            self._logs.secrets = {secret for each in both for secret in secrets(each, self._broker)}

    def _exempt(self) -> None:
        exempt = self._exemptions
        self._shim.exempt(exempt.principals, sorted(exempt.client_ids), exempt.internal_client_ids)
        self._shim.spare(exempt.spared_topics)

    # ---- each round ----

    def _serve(self, changes: LiveChange) -> None:
        batch = Batch(())
        while not batch.closing:
            batch = self._shim.take(TAKE)
            self._hanging.goes_on()
            # Events come first: suppliers must know Kafka's stored client quotas before they answer for a client.
            for event in batch.events:
                self._handle_guarded(event, changes)
            self._cluster.hand_on(self._know, changes.on_stored)
            # tick() comes before ask_again(), so changes that tick() announces take effect in the same round.
            self._tick()
            self._clients.ask_again()
            self._clients.resolve(batch)
            changes.expire()
            self._factor.step(self._plugins, self._broker.settings)
            self._ask_for_fence()
            if self._logs:
                self._logs.hold()

    def _handle_guarded(self, event: Event, changes: LiveChange) -> None:
        try:
            self._handle(event.kind, event.fields, changes)
        except Exception:
            if event.kind in ("cluster", "reconfigure"):
                raise  # part of the change may be in force, e.g. if Java's heap is full, and Java sends it only once
            self._shim.count("Host", "", "EventErrors")
            text = "The event %s can't be handled, and the host goes on without it"
            self._broken_events.report(text, event.kind, exc_info=True)
        else:
            self._broken_events.healed()

    def _handle(self, kind: str, fields: tuple[Any, ...], changes: LiveChange) -> None:
        match kind:
            case "client-quota":
                self._notifier.tell(self._plugins, client_quota(fields))
            case "cluster":
                self._cluster.kafka_tells()
                self._know(cluster(fields))
            case "validate":
                changes.on_validate(fields)
            case "reconfigure":
                changes.on_reconfigure(fields)
                if self._broker.changed():
                    self._install(changes.in_force)
            case "question":
                ticket, *words = fields
                answer_question(self._shim, ticket, words, self._broker.largest)
            case "clients-table":
                answer_question(self._shim, fields[0], [kind, str(self._broker.settings.metrics_clients)])
            case _:  # "closing" only wakes the loop
                pass

    def _know(self, now: Cluster) -> None:
        if self._exemptions.know(now.brokers):
            self._exempt()
        self._notifier.tell(self._plugins, now)

    def _tick(self) -> None:
        now = self._clock()
        if now < self._tick_at:
            return
        self._tick_at = now + TICK
        self._disable_fault_handler()
        for name, supplier in self._plugins.suppliers:
            self._guard.call_if_there(name, supplier, "tick", "its answers stay as they were")

    def _disable_fault_handler(self) -> None:
        if self._in_jvm and disable_fault_handler():
            self._fault_handler.report(
                "a plugin enabled Python's faulthandler, and quotahost disabled it again: it replaces the JVM's "
                "SIGSEGV handler, and the broker would crash; remove faulthandler.enable() from the plugin"
            )

    def _ask_for_fence(self) -> None:
        """Warn once if a PAUSE or topic quotas need a fence and there is none."""
        settings = self._broker.settings
        may_pause = self._plugins.factor_source is not None and not settings.shadow.factor
        has_quotas = settings.topics.total is not None and not settings.shadow.all_topics
        needs_fence = self._roles.broker and (may_pause or has_quotas)
        # A broker creates its authorizer after its callback, and before it knows the cluster (BrokerServer.startup).
        if not needs_fence or self._notifier.cluster is None or self._asked_for_fence:
            return
        self._asked_for_fence = True
        if not self._shim.fence():
            _factor_log.warning(
                "authorizer.class.name is not org.quotahost.QuotaFence: without the fence a PAUSE only slows each "
                "producer to floor.bytes, and a producer can evade this by opening new connections; "
                "factor.scope=topics slows all clients, budgets slow nobody, and topic quotas turn no request back"
            )

    # ---- the end ----

    def _close(self) -> None:
        # Tasks and plugins close before the disk monitor that they read. Tasks close on their own threads, within 2 s
        # for all tasks.
        self._scheduler.set([])
        self._shadow.close()
        close(list(self._plugins), self._guard)
        self._opened.close()
