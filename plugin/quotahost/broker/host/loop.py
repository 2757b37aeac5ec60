"""The host thread: its start, which ends with one sentence where a property is wrong or a plugin is unknown or can't be
built, its rounds, and its end.

**The start**, while the broker waits: read the properties; build all plugins (``live_change``, ``plugins``); wait until
a host before this one has ended; put exemptions, settings and the factor into Java; let the broker go on.

**Each round** then, until the broker closes:

1. take new clients and events from Java's inbox, for at most 0.1 s. Taking renews the lease: a host that hangs in a
   plugin loses it, and Java applies the fallback;
2. handle the events: Kafka's client quotas, the cluster, live changes of properties, questions;
3. once a second call the suppliers' ``tick()``;
4. have those clients come again whose answers have changed, and have the suppliers asked for the new ones
   (``new_clients``);
5. have the factor source read when that is due (``factor``).

**The end**: tasks and plugins close, each guarded, in the 4 s that the shim waits.
"""

import logging
import math
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

TAKE: Final = 0.1  # seconds: how soon answers_changed from a plugin's own thread is seen
TICK: Final = 1.0  # seconds between calls of a supplier's tick()
_SETTLED: Final = 5.0  # seconds: a broker makes its authorizer after its callback


class Host:
    """One life of the Python host, on the shim's host thread."""

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
        self._look_at_disks: Callable[[], None] = lambda: None  # until the node turns out to have disks
        self._opened = ExitStack()  # what closes after the plugins

    def run(self) -> None:
        try:
            changes = self._start()
        # Anything else goes to serve.py, and the shim refuses the start with the traceback.
        except QuotahostError as problem:
            self._shim.refuse(str(problem))
        else:
            self._serve(changes)
        finally:
            self._close()

    def _start(self) -> LiveChange:
        given, started = self._shim.properties(), self._shim.started_with()
        # Later than at the broker's start an unknown name can only be one that Kafka has stored.
        strict = not self._shim.restarted()
        (settings, _), _ = without_unknown(given, started, read_properties, strict=strict)
        # Until here the broker's start waits 30 s at most; what follows has as long again.
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
        # Every plugin is validated before the first one is built, so a wrong property leaves no thread behind.
        with stacks_of_a_long_start():
            changes.stage(given)
        self._shim.built()
        # Only now: the factor in force is read, and the host before this one may have changed it meanwhile.
        self._factor = FactorLoop(self._shim, self._guard, self._clock, self._pause_memory)
        if endpoint := exporter(settings, self._shim):
            self._opened.callback(endpoint.close)
        changes.apply(given)
        self._disable_fault_handler()
        self._factor.step(self._plugins, self._broker.settings)
        # The broker goes on only now: limits, exemptions and full disks are in place before its first request.
        self._shim.ready(changes.in_force.asked, given)
        self._ask_for_fence_at = self._clock() + _SETTLED
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
        # Kafka reported its client quotas to the old plugins; new ones must know them before they are asked.
        self._notifier.introduce(new)
        self._broker.refresh(settings)
        self._hide(before)  # once more: the plugins' login may be another from here on
        self._look_at_disks()
        if plugins.factor_source is not None:
            self._disks()  # whatever the source looks at: the monitor's thread keeps a PAUSE for the next start
        self._exemptions = Exemptions(settings, self._broker.properties(), self._broker.principals)
        if self._notifier.cluster:
            self._exemptions.know(self._notifier.cluster.brokers)
        # The fence learns the exempt clients before the settings: snapshots must pass it from the first request on.
        self._exempt()
        self._factor.forget()
        self._clients.configure(plugins.suppliers, settings)
        applied = self._roles.applied(settings, watches_disks=plugins.factor_source is not None)
        self._shim.configure(applied, measured(settings, plugins))
        self._shadow.configure(settings)
        self._scheduler.set(plugins.tasks)
        self._plugins = plugins
        # Last, when nothing asks the old plugins any more.
        close(apart(old, plugins), self._guard)
        self._clients.answers_changed()

    def _hide(self, settings: Settings) -> None:
        """From now on no line of the log shows the secrets of these settings, or of those in force."""
        if self._logs:
            both = self._broker.settings, settings
            self._logs.secrets = {secret for each in both for secret in secrets(each, self._broker)}

    def _exempt(self) -> None:
        exempt = self._exemptions
        self._shim.exempt(exempt.principals, sorted(exempt.client_ids), exempt.internal_client_ids)
        self._shim.spare(exempt.spared_topics)

    # ---- each round ----

    def _serve(self, changes: LiveChange) -> None:
        hanging = HangingHost(lambda: self._broker.settings.validity.total_seconds())
        self._opened.callback(hanging.close)
        batch = Batch(())
        while not batch.closing:
            batch = self._shim.take(TAKE)
            hanging.goes_on()
            # Events first: suppliers must know Kafka's stored client quotas before they are asked for a client.
            for event in batch.events:
                self._handle_guarded(event, changes)
            self._cluster.hand_on(self._know, changes.on_stored)
            # Changes that tick() announces are asked for again in the same round.
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
                raise  # a part of it may be in force, as where Java's heap is full, and is not handed over again
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
                "a plugin has enabled Python's faulthandler, which is disabled again: it takes the JVM's handler of "
                "SIGSEGV away, and the broker would crash; take faulthandler.enable() out"
            )

    def _ask_for_fence(self) -> None:
        """Warn once, soon after the start, if a PAUSE or topic quotas may have to turn writes back without a fence."""
        settings = self._broker.settings
        may_pause = self._plugins.factor_source is not None and not settings.shadow.factor
        has_quotas = settings.topics.total is not None and not settings.shadow.all_topics
        needs_fence = self._roles.broker and (may_pause or has_quotas)
        if not needs_fence or self._clock() < self._ask_for_fence_at:
            return
        self._ask_for_fence_at = math.inf
        if not self._shim.fence():
            _factor_log.warning(
                "authorizer.class.name is not org.quotahost.QuotaFence: without the fence a PAUSE only slows each "
                "producer to floor.bytes, which one that opens new connections evades; factor.scope=topics slows all "
                "clients, budgets=on nobody, and topic quotas turn nothing back"
            )

    # ---- the end ----

    def _close(self) -> None:
        # Tasks and plugins end before the monitor that they read. Tasks close on their own threads, in 2 s together.
        self._scheduler.set([])
        self._shadow.close()
        close(list(self._plugins), self._guard)
        self._opened.close()
