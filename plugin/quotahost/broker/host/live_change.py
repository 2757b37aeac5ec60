"""The host stages a change of properties, checks it, and puts it into force or refuses it; it ignores unknown names.

1. Kafka asks the host to validate a change. The host builds the plugins of the change beside the plugins in force
   (``stage``). The administrator waits 2 s at most; after a slow build, a second attempt finds the staged plugins.
2. Kafka applies the change. The host puts the staged plugins into force (``install``, of the loop), or builds them now.
   Kafka doesn't wait here, and nothing can be refused. So if a plugin can't be built, the host logs an error, sets the
   gauge ConfigRefused and keeps the old plugins. After any later failure nobody knows what is in force: the host ends.
3. If Kafka doesn't apply the change within STAGED_FOR, the host closes the staged plugins.

Kafka stores any name under our prefix and doesn't ask the callback. One such name must not block all other properties:
after the broker's start an unknown name is ignored, logged and shown by the gauge. In server.properties it is an error.
A property that isn't live keeps its value of the broker's start. The host refuses a request to change it; if Kafka has
stored another value all the same, the host ignores this value like an unknown name.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from pydantic import BaseModel

from quotahost.base.background import Clock
from quotahost.base.errors import QuotahostError
from quotahost.base.text import printable
from quotahost.broker.discovery import PluginError
from quotahost.broker.host.plugins import Builder, Guard, PluginSet, Sections, apart, close
from quotahost.broker.host.protocol import Shim
from quotahost.settings.broker import Settings, as_started, asked_properties, read_properties
from quotahost.settings.declaration import Problem, SettingsError, without
from quotahost.settings.strimzi import Note, Translation

log = logging.getLogger("quotahost.host")

STAGED_FOR: Final = 30.0  # seconds; Kafka applies a change within a second after the verdict, or never

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Configuration:
    """A set of properties, and the plugins that are built from it."""

    given: Mapping[str, str]  # the properties as Kafka has them
    settings: Settings  # the parsed properties
    translation: Translation  # how Strimzi's own names were translated
    sections: Sections  # the plugins' own properties
    asked: Sequence[str]  # the properties about whose change Kafka must ask the callback
    plugins: PluginSet  # all plugins; a plugin in force that can stay is the same object
    unknown: Sequence[Problem]  # ignored: unknown names, and properties that can't change while the broker runs


class LiveChange:
    """Builds configurations, stages at most one of them, and has it put into force when Kafka applies it."""

    in_force: Configuration  # set by the first :meth:`apply`

    def __init__(
        self, shim: Shim, builder: Builder, guard: Guard, clock: Clock, install: Callable[[Configuration], None],
        hide: Callable[[Settings], None], started: Mapping[str, str], *, strict: bool,
    ) -> None:  # fmt: skip
        """``install`` puts a configuration into force; ``hide`` keeps the secrets of settings out of the log.

        ``started`` and ``strict`` are arguments of ``without_unknown``.
        """
        self._shim, self._builder, self._guard = shim, builder, guard
        self._clock, self._install, self._hide = clock, install, hide
        self._started = started
        self._strict = strict  # until the first configuration is in force
        self._staged: tuple[float, Configuration] | None = None
        self._plugins = PluginSet(())  # the plugins in force
        self._refused: dict[str, str] | None = None  # the properties that Kafka applied last, if they can't be in force
        self._logged: set[Note | Problem] = set()

    # ---- staging ----

    def stage(self, given: Mapping[str, str]) -> Configuration:
        """Build the plugins for these properties, unless they are staged already. The plugins in force don't change.

        Raises PluginError or SettingsError, and closes the plugins that were built before the error.
        """
        if self._staged and self._staged[1].given == given:
            return self._staged[1]
        # Drop first, because a plugin may hold an exclusive resource, such as a port.
        self.drop()
        try:
            made = self._made(given)
        except PluginError as error:
            if error.__cause__ is not None:  # the refusal is one line without a stack trace
                log.warning("%s", error, exc_info=error.__cause__)
            raise
        self._staged = self._clock(), made
        return made

    def _made(self, given: Mapping[str, str]) -> Configuration:
        (settings, translation, sections), unknown = self._read(given)
        models = {name: type(section) for (_, name), (_, section) in sections.items() if isinstance(section, BaseModel)}
        asked = asked_properties(settings, models)
        self._hide(settings)  # a plugin or its library may log its login while it is built
        # Build last: if anything failed after it, the plugins would have to be closed.
        plugins = self._builder.build(settings, sections, self._plugins)
        return Configuration(dict(given), settings, translation, sections, asked, plugins, unknown)

    def _read(self, given: Mapping[str, str]) -> tuple[tuple[Settings, Translation, Sections], list[Problem]]:
        def read(known: Mapping[str, str]) -> tuple[Settings, Translation, Sections]:
            settings, translation = read_properties(known)
            return settings, translation, self._builder.validate(settings)

        return without_unknown(given, self._started, read, strict=self._strict)

    def apply(self, given: Mapping[str, str]) -> None:
        made = self.stage(given)
        # Keep it staged until it is in force, so that its plugins are closed if the host ends meanwhile.
        self._install(made)
        self._staged, self._plugins, self.in_force = None, made.plugins, made
        self._strict = False
        self._log_unknown(made.unknown)
        if made.unknown:
            self._shim.gauge("Host", "", "ConfigRefused", 1.0)
        # Log once what Strimzi's own properties mean here.
        for note in made.translation.notes:
            if note not in self._logged:
                self._logged.add(note)
                log.log(logging.WARNING if note.warns else logging.INFO, "%s", note.text)

    def expire(self) -> None:
        if self._staged and self._clock() - self._staged[0] > STAGED_FOR:
            self.drop()

    def drop(self) -> None:
        if self._staged:
            # Close tasks here, too: a staged task has no thread yet that could close it.
            close(reversed(apart(self._staged[1].plugins, self._plugins)), self._guard, tasks=True)
        self._staged = None

    # ---- Kafka's events ----

    def on_validate(self, fields: tuple[Any, ...]) -> None:
        ticket, given = fields
        problem = "the host failed at the change; the broker's log says why"  # for any other exception
        try:
            made, had = self.stage(given), self._refused or self.in_force.given
            # Refuse a change of a property that isn't live, unless Kafka has stored the same value before.
            fixed = [each for each in made.unknown if each.property in made.asked]
            if new := [each for each in fixed if given.get(each.property) != had.get(each.property)]:
                raise SettingsError(new)
            problem = ""
        except QuotahostError as error:
            problem = str(error)
        finally:
            self._shim.answer(ticket, problem)

    def on_reconfigure(self, fields: tuple[Any, ...]) -> None:
        """Put a change into force that Kafka has applied. If its plugins can't be built, the old ones stay in force."""
        (given,), had = fields, self.in_force.given
        # A change may come twice: a node that is both broker and controller has two callbacks.
        if given == self._refused:
            return
        refused = True
        try:
            if given != had:
                self.stage(given)
        except QuotahostError as error:
            log.error(
                "the new properties are rejected; the old ones stay in force. Fix or delete the stored ones with "
                "kafka-configs.sh: %s", error
            )  # fmt: skip
            self._refused = given
        else:
            self._refused = None
            if given != had:
                self.apply(given)
                self._shim.ready(self.in_force.asked, given)
                changed = sorted(name for name in given.keys() | had.keys() if given.get(name) != had.get(name))
                log.info("reconfigured: %s", printable(", ".join(changed)))
            refused = bool(self.in_force.unknown)
        finally:
            self._shim.gauge("Host", "", "ConfigRefused", float(refused))

    def on_stored(self, names: Iterable[str]) -> None:
        """Log the unknown names among the stored properties: if only such names are stored, Kafka sends no event."""
        given = self.in_force.given
        for name in names:
            # Only the name matters here, so the value is empty. If a known name refuses this value, ignore the error.
            with suppress(QuotahostError):
                if name not in given:
                    self._log_unknown(self._read({**given, name: ""})[1])

    def _log_unknown(self, unknown: Iterable[Problem]) -> None:
        for problem in unknown:
            if problem not in self._logged:
                self._logged.add(problem)
                log.error(
                    "a property has no effect; remove it with kafka-configs.sh, or from server.properties: %s", problem
                )


def without_unknown(
    given: Mapping[str, str], started: Mapping[str, str], read: Callable[[Mapping[str, str]], _T], *, strict: bool
) -> tuple[_T, list[Problem]]:
    """Call ``read`` without the properties that have no effect. Return its result and a problem for each of these.

    A property has no effect if its name is unknown, or if it isn't live and differs from the value with which the
    broker has ``started``. With ``strict`` an unknown name raises SettingsError.
    """
    known, unknown = as_started(given, started)
    while True:
        try:
            return read(known), unknown
        except SettingsError as error:
            nobodys = [problem for problem in error.problems if problem.unknown]
            if strict or not nobodys:
                raise
            unknown += nobodys
            # Each problem is about a name in `known`, so each turn removes some names, and the loop ends.
            known = without(known, nobodys)
