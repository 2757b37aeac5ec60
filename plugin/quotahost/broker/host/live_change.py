"""A change of properties: staged, checked, in force or refused; names stored without effect are left out and logged.

1. To validate a change is to build all of its plugins, beside those in force (``LiveChange.stage``). The administrator
   waits 2 s at most for the verdict, and a second attempt finds what took longer.
2. When Kafka applies the change, what is staged, or is built now, takes the place of what is in force (``install``, of
   the loop). Kafka waits for nothing and refuses nothing here, so a failure to build is an error of the log and the
   gauge ConfigRefused, and the old plugins go on. After any later failure nobody knows what is in force: the host ends.
3. What is staged and not applied within STAGED_FOR is closed.

Kafka stores any name under our prefix without asking. One such name must not cost all other properties: from the
broker's start on an unknown name is ignored, logged and shown by the gauge. In the broker's own file it is an error.
A property that isn't live stays as the broker has started with it. A request to change it is refused; where Kafka has
stored it all the same, it counts as an unknown name.
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

STAGED_FOR: Final = 30.0  # seconds; Kafka applies a change within a second of the verdict, or never

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Configuration:
    """Properties of which everything is built."""

    given: Mapping[str, str]  # the properties as Kafka has them
    settings: Settings  # what they mean
    translation: Translation  # what became of Strimzi's own names
    sections: Sections  # the plugins' own properties
    asked: Sequence[str]  # the properties about whose change Kafka has to ask
    plugins: PluginSet  # all of them; those that can stay are the ones in force
    unknown: Sequence[Problem]  # names that nobody here reads, or reads again; they are ignored


class LiveChange:
    """Builds configurations, keeps at most one that is not in force yet, and has them put in force."""

    in_force: Configuration  # from the first :meth:`apply` on

    def __init__(
        self, shim: Shim, builder: Builder, guard: Guard, clock: Clock, install: Callable[[Configuration], None],
        hide: Callable[[Settings], None], started: Mapping[str, str], *, strict: bool,
    ) -> None:  # fmt: skip
        """``install`` puts a configuration in force; ``hide`` keeps its secrets out of the log from now on.

        ``started`` and ``strict`` are those of ``without_unknown``.
        """
        self._shim, self._builder, self._guard = shim, builder, guard
        self._clock, self._install, self._hide = clock, install, hide
        self._started = started
        self._strict = strict  # until the first is in force
        self._staged: tuple[float, Configuration] | None = None
        self._plugins = PluginSet(())  # those in force
        self._refused: dict[str, str] | None = None  # what Kafka applied last, if that was refused
        self._logged: set[Note | Problem] = set()

    # ---- staging ----

    def stage(self, given: Mapping[str, str]) -> Configuration:
        """Build what these properties need, unless it is staged already; nothing in force is touched.

        Raises PluginError or SettingsError; what was built for them is closed then.
        """
        if self._staged and self._staged[1].given == given:
            return self._staged[1]
        # First, because a plugin may hold something of which there is one, such as a port.
        self.drop()
        try:
            made = self._made(given)
        except PluginError as error:
            if error.__cause__ is not None:  # the refusal has one line, which says why and not where
                log.warning("%s", error, exc_info=error.__cause__)
            raise
        self._staged = self._clock(), made
        return made

    def _made(self, given: Mapping[str, str]) -> Configuration:
        (settings, translation, sections), unknown = self._read(given)
        models = {name: type(section) for (_, name), section in sections.items() if isinstance(section, BaseModel)}
        asked = asked_properties(settings, models)
        self._hide(settings)  # a plugin, or a library of its, may log its login while it is built
        # Last, because what is built has to be closed if anything fails after it.
        plugins = self._builder.build(settings, sections, self._plugins)
        return Configuration(dict(given), settings, translation, sections, asked, plugins, unknown)

    def _read(self, given: Mapping[str, str]) -> tuple[tuple[Settings, Translation, Sections], list[Problem]]:
        def read(known: Mapping[str, str]) -> tuple[Settings, Translation, Sections]:
            settings, translation = read_properties(known)
            return settings, translation, self._builder.validate(settings)

        return without_unknown(given, self._started, read, strict=self._strict)

    def apply(self, given: Mapping[str, str]) -> None:
        made = self.stage(given)
        # It stays staged until it is in force, so that what was built is closed if the host ends meanwhile.
        self._install(made)
        self._staged, self._plugins, self.in_force = None, made.plugins, made
        self._strict = False
        self._log_unknown(made.unknown)
        if made.unknown:
            self._shim.gauge("Host", "", "ConfigRefused", 1.0)
        # What Strimzi's own properties mean here, each sentence once.
        for note in made.translation.notes:
            if note not in self._logged:
                self._logged.add(note)
                log.log(logging.WARNING if note.warns else logging.INFO, "%s", note.text)

    def expire(self) -> None:
        if self._staged and self._clock() - self._staged[0] > STAGED_FOR:
            self.drop()

    def drop(self) -> None:
        if self._staged:
            # Tasks too, since a staged one has never run.
            close(reversed(apart(self._staged[1].plugins, self._plugins)), self._guard, tasks=True)
        self._staged = None

    # ---- Kafka's events ----

    def on_validate(self, fields: tuple[Any, ...]) -> None:
        ticket, given = fields
        problem = "the host failed at the change; the broker's log says why"  # whatever was raised
        try:
            made, had = self.stage(given), self._refused or self.in_force.given
            # What can't change is refused; where it is stored already, the request is not to blame.
            fixed = [each for each in made.unknown if each.property in made.asked]
            if new := [each for each in fixed if given.get(each.property) != had.get(each.property)]:
                raise SettingsError(new)
            problem = ""
        except QuotahostError as error:
            problem = str(error)
        finally:
            self._shim.answer(ticket, problem)

    def on_reconfigure(self, fields: tuple[Any, ...]) -> None:
        """Put a change in force that Kafka has applied; if what it names can't be built, all stays as it was."""
        (given,), had = fields, self.in_force.given
        # Each change may come twice: a node that is broker and controller has two callbacks.
        if given == self._refused:
            return
        refused = True
        try:
            if given != had:
                self.stage(given)
        except QuotahostError as error:
            log.error(
                "the new properties are rejected; the old ones stay in force. Fix or delete the stored ones by "
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
        """Log names without effect among those that Kafka has stored: of these alone it sends no event."""
        given = self.in_force.given
        for name in names:
            # Of a name that is known the empty value may be wrong, which is none of its own.
            with suppress(QuotahostError):
                if name not in given:
                    self._log_unknown(self._read({**given, name: ""})[1])

    def _log_unknown(self, unknown: Iterable[Problem]) -> None:
        for problem in unknown:
            if problem not in self._logged:
                self._logged.add(problem)
                log.error(
                    "a property has no effect; remove it by kafka-configs.sh, or from server.properties: %s", problem
                )


def without_unknown(
    given: Mapping[str, str], started: Mapping[str, str], read: Callable[[Mapping[str, str]], _T], *, strict: bool
) -> tuple[_T, list[Problem]]:
    """What ``read`` makes of the properties without those that have no effect, and a problem for each of these.

    They are unknown names, and what isn't live and differs from what the broker has ``started`` with. With ``strict``
    an unknown name is a SettingsError.
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
            # A problem is about names in `known`, as these were read: so each turn leaves fewer.
            known = without(known, nobodys)
