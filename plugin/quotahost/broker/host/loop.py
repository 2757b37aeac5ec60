"""The host: everything that happens on the one Python thread that answers for a broker.

In each round the host takes new clients and events from Java's inbox, has the suppliers asked (``resolver``) and puts
their answers into Java's table, and has the factor source read when that is due (``factor``). Taking renews the lease;
a host that hangs in a plugin loses it, and Java applies the fallback. Events bring Kafka's client quotas, the cluster,
and live changes of properties.
"""

from __future__ import annotations

import gc
import logging
import time
from collections.abc import Callable
from functools import partial
from typing import Final

from quotahost.api import Disks
from quotahost.background import LoggedOnce, start_daemon
from quotahost.broker.discovery.entry_points import PluginError
from quotahost.broker.disks.file_stores import log_dirs
from quotahost.broker.disks.monitor import DiskMonitor, NoDisks
from quotahost.broker.host.broker import HostBroker
from quotahost.broker.host.changed_answers import ChangedAnswers
from quotahost.broker.host.client_table import ClientTable
from quotahost.broker.host.cluster_look import ClusterLook
from quotahost.broker.host.exemptions import Exemptions, node_id
from quotahost.broker.host.exporter import Exporter, exporter
from quotahost.broker.host.factor import FactorLoop, MissingFenceWarning
from quotahost.broker.host.fault_handler import FaultHandler, FaultHandlerEnabled
from quotahost.broker.host.guard import Guard
from quotahost.broker.host.looks import uses
from quotahost.broker.host.measured import measured
from quotahost.broker.host.messages import Batch, Event, client_quota, cluster, properties
from quotahost.broker.host.notifier import Notifier
from quotahost.broker.host.plugins.builder import Builder
from quotahost.broker.host.plugins.plugin_set import PluginSet, adopt, close
from quotahost.broker.host.plugins.scheduler import Scheduler
from quotahost.broker.host.questions import Questions
from quotahost.broker.host.remembered_pause import PauseMemory
from quotahost.broker.host.resolver import Resolver, Supplier
from quotahost.broker.host.roles import NodeRoles
from quotahost.broker.host.shadow import Shadow
from quotahost.broker.host.shim import Shim
from quotahost.broker.host.workshop import Configuration, Workshop, without_unknown
from quotahost.model import Cluster
from quotahost.settings.broker import read_properties
from quotahost.settings.declaration import Problem, SettingsError
from quotahost.settings.strimzi import Note, Translation

log = logging.getLogger("quotahost.host")

START_SECONDS: Final = 30.0  # within which the plugins are built; HostThread.java may grant more
TAKE: Final = 0.1  # seconds: how soon answers_changed from a plugin's own thread is seen
TICK: Final = 1.0  # seconds between calls of a supplier's tick()
RETRY: Final = 5.0  # seconds between questions for clients whose supplier failed


class Host:
    """One life of the Python host, on the shim's host thread."""

    def __init__(self, shim: Shim, clock: Callable[[], float] = time.monotonic, in_jvm: bool = True) -> None:
        """``clock`` in seconds, monotonic; ``in_jvm``: whether Python runs in the broker's own process."""
        self._shim, self._clock = shim, clock
        self._guard = Guard(shim)
        self._changed = ChangedAnswers()
        self._notifier = Notifier(self._guard)
        self._scheduler = Scheduler(self._guard, shim.detach)
        self._missing_fence = MissingFenceWarning(shim, clock)
        self._plugins = PluginSet(())
        self._retry_at: float | None = None
        self._failed = False  # whether a supplier has failed for somebody since the last retry
        self._broken_events = LoggedOnce(log)
        self._shadow = Shadow(shim, clock)
        self._questions = Questions(shim, shim.answer)
        self._client_table = ClientTable(
            partial(uses, shim.ask), shim.answer, partial(start_daemon, at_end=shim.detach)
        )
        self._tick_at = clock()
        self._fault_handler = FaultHandler(in_jvm)
        self._logged: set[Note | Problem] = set()
        self._workshop: Workshop | None = None
        self._disks: DiskMonitor | None = None
        self._look = ClusterLook(shim)
        self._exporter: Exporter | None = None
        self._refused: tuple[dict[str, str], str] | None = None  # what Kafka applied last, if that was refused, and why

    def run(self) -> None:
        """Start the plugins, report to the shim that they are ready, and serve until it closes."""
        try:
            self._start()
        # Anything else goes to serve.py, and the shim refuses the start with the traceback.
        except (SettingsError, PluginError, FaultHandlerEnabled) as problem:
            self._shim.refuse(str(problem))
        else:
            self._serve()
        finally:
            self._close()

    def _start(self) -> None:
        self._fault_handler.refuse("Python's start")
        given, strict = self._shim.properties(), not self._shim.restarted()
        # Later than at the broker's start an unknown name can only be one that Kafka has stored.
        settings, translation = read_properties(given) if strict else without_unknown(given, read_properties, [])
        self._log_notes(translation)
        # Until here the broker's start waits 30 s at most; what follows has as long again.
        self._shim.starting(START_SECONDS)
        self._broker = HostBroker(self._shim, settings)
        self._roles = NodeRoles(self._broker.properties())
        disks = self._open_disks()
        builder = Builder(self._broker, self._shim, self._changed.add, disks, self._guard)
        self._workshop = Workshop(builder, self._guard, self._clock, strict=strict)
        # Every plugin is validated before the first one is built, so a wrong property leaves no thread behind.
        self._workshop.stage(given, (settings, translation) if strict else None)
        self._shim.built()
        # Only now: the factor in force is read, and the host before this one may have changed it meanwhile.
        self._factor = FactorLoop(self._shim, self._guard, self._clock, self._pause_memory)
        self._exporter = exporter(settings, self._shim)
        self._install(self._workshop.take(given))
        self._fault_handler.refuse("a plugin")
        self._workshop.strict = False
        gc.collect()  # else freeze() would keep what the imports left behind, too
        gc.freeze()  # imported modules stay: no full collection needs to look at them again
        self._factor.step(self._plugins, self._settings)
        # The broker goes on only now: limits, exemptions and full disks are in place before its first request.
        self._shim.ready(self._in_force.live)
        self._look.start(node_id(self._broker.properties()) if self._roles.broker else None)
        log.info("quotahost serves with suppliers %s", ", ".join(name for name, _ in self._plugins.suppliers()))

    def _open_disks(self) -> Callable[[], Disks]:
        own = self._broker.properties()
        self._pause_memory = PauseMemory(log_dirs(own) if self._roles.broker else [])
        if not self._roles.broker:
            return lambda: NoDisks(own)
        self._disks = DiskMonitor(
            self._broker, self._shim, node_id(own), lambda: self._broker.settings, self._clock, self._pause_memory.write
        )
        return self._disks.started

    # ---- the loop ----

    def _serve(self) -> None:
        while not self._shim.closing():
            batch = self._shim.take(TAKE)
            # Events first: suppliers must know Kafka's stored client quotas before they are asked for a client.
            for event in batch.events:
                self._handle_guarded(event)
            self._look.hand_on(self._know, self._on_stored)
            # Changes that tick() announces are asked for again in the same round.
            self._tick()
            self._ask_again()
            self._resolve(batch)
            self._changes.expire()
            self._factor.step(self._plugins, self._settings)
            self._missing_fence.step(self._roles.broker and self._plugins.factor_source() is not None, self._settings)

    def _resolve(self, batch: Batch) -> None:
        if not batch.clients:
            return
        answers = self._resolver.answers(batch.clients)
        self._shim.publish(batch, answers)
        if answers.incomplete:
            self._failed = True
            # Clients that fail later don't put off a retry that is due already.
            if self._retry_at is None:
                self._retry_at = self._clock() + RETRY

    def _tick(self) -> None:
        now = self._clock()
        if now < self._tick_at:
            return
        self._tick_at = now + TICK
        self._fault_handler.tick()
        for name, supplier in self._plugins.suppliers():
            if callable(tick := getattr(supplier, "tick", None)):
                self._guard.call(name, "tick()", "its answers stay as they were", tick)

    def _ask_again(self) -> None:
        """Have known clients resolved once more: those whose answers changed, and those whose supplier failed.

        They come by the inbox as new ones do, a batch at a time: asking for 50,000 at once would outlast the lease.
        """
        for principal, client_id in self._changed.take():
            self._shim.ask_again(principal, client_id)
        if self._retry_at is None or self._clock() < self._retry_at:
            return
        self._retry_at = None
        # The resolver reports failures to the guard but no success, as it asks for thousands of clients.
        if not self._failed:  # nobody has since the last retry
            for name, _ in self._plugins.suppliers():
                self._guard.heal(name, "quota()")
            return
        self._failed = False
        self._retry_at = self._clock() + RETRY
        self._shim.ask_again_the_failed()

    # ---- events ----

    def _handle_guarded(self, event: Event) -> None:
        """Handle one event; whatever goes wrong with it, the events behind it are handled, too."""
        try:
            self._handle(event)
        except Exception as error:
            self._shim.count("Host", "", "EventErrors")
            self._broken_events.report(
                "The event %s can't be handled, and the host goes on without it", event.kind, exc_info=True
            )
            if event.kind in ("validate", "reconfigure"):
                self._shim.verdict(event.fields[0], f"the host failed at the change: {error!r}")
            if event.kind == "reconfigure":
                self._show_refused(refused=True)
        else:
            self._broken_events.healed()

    def _handle(self, event: Event) -> None:
        handlers: dict[str, Callable[[tuple[str, ...]], None]] = {
            "client-quota": self._on_client_quota,
            "cluster": self._on_cluster,
            "validate": self._on_validate,
            "reconfigure": self._on_reconfigure,
            "question": self._on_question,
            "clients-table": self._on_clients_table,
        }
        if handler := handlers.get(event.kind):  # "closing" only wakes the loop
            handler(event.fields)

    def _on_client_quota(self, fields: tuple[str, ...]) -> None:
        self._notifier.client_quota_changed(self._plugins, client_quota(fields))

    def _on_cluster(self, fields: tuple[str, ...]) -> None:
        self._look.kafka_tells()
        self._know(cluster(fields))

    def _know(self, now: Cluster) -> None:
        if self._exemptions.know(now):
            self._exempt()
            # A client that is exempt now may stand in the table with a quota.
            self._changed.add()
        self._notifier.cluster_changed(self._plugins, now)

    def _on_validate(self, fields: tuple[str, ...]) -> None:
        ticket, given = properties(fields)
        problem = None
        try:
            # The administrator hears that the change holds only when all of it is built. He waits 2 s at most; what
            # takes longer is staged by then, and his second attempt finds it.
            self._changes.stage(given)
        except (SettingsError, PluginError) as error:
            problem = str(error)
        self._shim.verdict(ticket, problem)

    def _on_reconfigure(self, fields: tuple[str, ...]) -> None:
        ticket, given = properties(fields)
        # Each change may come twice: a node that is broker and controller has two callbacks.
        if self._refused and given == self._refused[0]:
            self._shim.verdict(ticket, self._refused[1])
            return
        try:
            if given != self._in_force.given:
                # What is new is built while the old plugins still serve: if it fails, they go on.
                self._install(self._changes.take(given))
                self._shim.ready(self._in_force.live)
                self._log_notes(self._in_force.translation)
                log.info("reconfigured")
        except (SettingsError, PluginError) as error:
            # Kafka has applied its own part of the change and waits for nothing: the log and the gauge report it.
            log.error(
                "the new properties are refused and the old ones stay, until those that Kafka has stored are mended or "
                "removed by kafka-configs.sh: %s", error
            )  # fmt: skip
            self._refused = given, str(error)
            self._shim.verdict(ticket, str(error))
            self._show_refused(refused=True)
        else:
            self._refused = None
            self._shim.verdict(ticket, None)
            self._log_unknown(self._in_force.unknown)
            self._show_refused(refused=bool(self._in_force.unknown))

    def _on_question(self, fields: tuple[str, ...]) -> None:
        ticket, *words = fields
        self._questions.handle(ticket, words)

    def _on_clients_table(self, fields: tuple[str, ...]) -> None:
        self._client_table.answer(fields[0], self._settings.metrics_clients)

    def _on_stored(self, names: tuple[str, ...]) -> None:
        """Log misspelt names: while nothing else is stored Kafka doesn't say that they are there."""
        given = self._in_force.given
        self._log_unknown(self._changes.unknown(given, [name for name in names if name not in given]))

    # ---- settings ----

    @property
    def _changes(self) -> Workshop:
        assert self._workshop  # it is made before the first event is taken
        return self._workshop

    def _show_refused(self, *, refused: bool) -> None:
        self._shim.gauge("Host", "", "ConfigRefused", float(refused))

    def _log_unknown(self, unknown: tuple[Problem, ...]) -> None:
        """Log what Kafka has stored under a name that nobody reads, each name once."""
        for problem in unknown:
            if problem not in self._logged:
                self._logged.add(problem)
                log.error("Kafka has stored a property that has no effect; kafka-configs.sh removes it. %s", problem)

    def _log_notes(self, translation: Translation) -> None:
        """Log what Strimzi's own properties mean here, each sentence once."""
        for note in translation.notes:
            if note not in self._logged:
                self._logged.add(note)
                log.log(logging.WARNING if note.warns else logging.INFO, "%s", note.text)

    def _install(self, new_one: Configuration) -> None:
        """Put a configuration in the place of the one in force, and close the plugins that are not among its."""
        settings, plugins, old = new_one.settings, new_one.plugins, self._plugins
        self._in_force, self._plugins, self._settings = new_one, plugins, settings
        adopt(plugins, settings, new_one.sections, self._guard)
        new = plugins.without(old)
        for plugin in new:
            self._shim.plugin(plugin.context.name)
        # Kafka reported its client quotas to the old plugins; new ones must know them before they are asked.
        self._notifier.introduce(new)
        self._broker.refresh(settings)
        self._exemptions = Exemptions(settings, self._broker.properties(), self._broker.principals)
        if self._notifier.cluster:
            self._exemptions.know(self._notifier.cluster)
        # The fence learns the exempt clients before the settings: snapshots must pass it from the first request on.
        self._exempt()
        self._factor.forget()
        suppliers = {name: Supplier.of(supplier) for name, supplier in plugins.suppliers()}
        in_shadow = settings.shadow.suppliers
        self._resolver = Resolver(suppliers, self._exemptions, self._guard, settings.supplier_combine, in_shadow)
        self._shim.configure(self._roles.applied(settings), measured(settings, plugins))
        self._shadow.configure(settings)
        self._scheduler.set(plugins.tasks())
        # Last, when nothing asks the old plugins any more.
        close(old.without(plugins), self._guard)
        self._changed.add()

    def _exempt(self) -> None:
        exempt = self._exemptions
        self._shim.exempt(sorted(exempt.principals), sorted(exempt.client_ids), exempt.internal_client_ids)
        self._shim.spare(exempt.spared_topics)

    def _close(self) -> None:
        # Tasks and plugins end before the monitor that they read. Tasks close on their own threads, in 2 s together.
        self._scheduler.close()
        self._shadow.close()
        close(list(self._plugins), self._guard)
        if self._workshop:
            self._workshop.drop()
        if self._disks:
            self._disks.close()
        self._look.close()
        if self._exporter:
            self._exporter.close()
