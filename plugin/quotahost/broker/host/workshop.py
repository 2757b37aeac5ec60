"""Builds what new properties need, before the properties are in force.

Kafka has an administrator's change validated by the broker that he asks, stores it, and then every node applies it.
To validate a change here is to build its plugins: they are *staged* until Kafka applies the same properties, and closed
if it doesn't. From here a ``Configuration`` goes to the loop, which puts it in force.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, TypeVar

from quotahost.broker.discovery.entry_points import PluginError
from quotahost.broker.host.guard import Guard
from quotahost.broker.host.plugins.builder import Builder
from quotahost.broker.host.plugins.plugin_set import PluginSet, Sections, close
from quotahost.settings.broker import Settings, read_properties
from quotahost.settings.declaration import Problem, SettingsError
from quotahost.settings.strimzi import Translation

STAGED_FOR: Final = 30.0  # seconds; Kafka applies a change within a second of the verdict, or never

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Configuration:
    """Properties of which everything is built.

    Attributes:
        given: the properties as Kafka has them.
        settings: what they mean.
        translation: what became of Strimzi's own names.
        sections: the plugins' own properties.
        live: the properties whose change takes effect without a restart.
        plugins: all of them; those that can stay are the ones in force.
        unknown: names that nobody here reads; they are ignored.
    """

    given: Mapping[str, str]
    settings: Settings
    translation: Translation
    sections: Sections
    live: Sequence[str]
    plugins: PluginSet
    unknown: tuple[Problem, ...]


class Workshop:
    """Builds configurations for the plugins in force, and keeps at most one that is not in force yet."""

    def __init__(self, builder: Builder, guard: Guard, clock: Callable[[], float], *, strict: bool) -> None:
        """``strict`` until the broker has started: an unknown name in its own file must not go unnoticed."""
        self._builder, self._guard, self._clock = builder, guard, clock
        self.strict = strict
        self._staged: tuple[float, Configuration] | None = None
        self._in_force = PluginSet(())

    def stage(self, given: Mapping[str, str], read: tuple[Settings, Translation] | None = None) -> Configuration:
        """Build what these properties need, unless it is staged already. Nothing in force is touched.

        Args:
            given: the properties as Kafka has them.
            read: what the caller has read in them already.

        Raises:
            PluginError, SettingsError: they can't be used. What was built for them is closed.
        """
        if self._staged and self._staged[1].given == given:
            return self._staged[1]
        # First, because a plugin may hold something of which there is one, such as a port.
        self.drop()
        made = self._build(given, read)
        self._staged = self._clock(), made
        return made

    def take(self, given: Mapping[str, str]) -> Configuration:
        """The same, for the caller to put in force.

        Raises:
            PluginError, SettingsError: as of :meth:`stage`.
        """
        made = self.stage(given)
        self._staged, self._in_force = None, made.plugins
        return made

    def expire(self) -> None:
        """Close what has been staged for so long that Kafka will not apply it."""
        if self._staged and self._clock() - self._staged[0] > STAGED_FOR:
            self.drop()

    def drop(self) -> None:
        """Close what is staged."""
        if self._staged:
            # Tasks too, since a staged one has never run.
            close(reversed(self._staged[1].plugins.without(self._in_force)), self._guard, tasks=True)
        self._staged = None

    def _build(self, given: Mapping[str, str], read: tuple[Settings, Translation] | None) -> Configuration:
        unknown: list[Problem] = []
        if self.strict:
            settings, translation, sections = self._validated(given, read)
        else:
            settings, translation, sections = without_unknown(given, self._validated, unknown)
        live = self._builder.live(settings, sections)
        # Last, because what is built has to be closed if anything fails after it.
        plugins = self._builder.build(settings, sections, self._in_force)
        return Configuration(dict(given), settings, translation, sections, live, plugins, tuple(unknown))

    def _validated(
        self, known: Mapping[str, str], read: tuple[Settings, Translation] | None = None
    ) -> tuple[Settings, Translation, Sections]:
        settings, translation = read or read_properties(known)
        return settings, translation, self._builder.validate(settings)

    def unknown(self, given: Mapping[str, str], names: Iterable[str]) -> tuple[Problem, ...]:
        """What is wrong with those of the names that nobody here reads, beside the properties in force."""
        found: list[Problem] = []
        for name in names:
            # Of a name that is known the empty value may be wrong, which is none of its own.
            with suppress(SettingsError, PluginError):
                without_unknown({**given, name: ""}, self._validated, found)
        return tuple(found)


def without_unknown(given: Mapping[str, str], read: Callable[[Mapping[str, str]], _T], unknown: list[Problem]) -> _T:
    """What ``read`` makes of the properties without the names that it calls unknown, which ``unknown`` gets.

    Kafka stores any name under our prefix without asking. One such name must not cost all other properties.

    Raises:
        SettingsError: a property with a known name is wrong.
    """
    known = dict(given)
    while True:
        try:
            return read(known)
        except SettingsError as error:
            nobodys = [problem for problem in error.problems if problem.unknown]
            if not nobodys:
                raise
            unknown += nobodys
            # A problem is about names in `known`, as these were read: so each turn leaves fewer.
            known = {name: text for name, text in known.items() if not any(p.names(name) for p in nobodys)}
