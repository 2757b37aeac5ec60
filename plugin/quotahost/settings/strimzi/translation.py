"""The properties of Strimzi's quotas plugin read as ours: a broker's file for it needs only another class.

Names, types and defaults are those of ``StaticQuotaConfig`` in io.strimzi:kafka-quotas-plugin 0.3.1. As soon as a
file has a name of Strimzi's own, what it leaves out has Strimzi's default, unless ours for it is given.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from quotahost.settings.declaration import PREFIX, Problem
from quotahost.settings.strimzi.names import (
    ADMIN,
    AVAILABLE_BYTES,
    AVAILABLE_RATIO,
    CHECK_INTERVAL,
    CLIENT_ID_PREFIX,
    DEFAULTS,
    FALLBACK,
    READERS,
    SHARED,
    VALIDITY,
    is_theirs,
)
from quotahost.settings.types import choose
from quotahost.text import printable
from quotahost.units.parse import parse_duration, parse_share, parse_size

_HARD: Final = "static.storage.hard"
_SOURCE: Final = "factor.source"
_INTERVAL: Final = "plugin.log-dirs.interval"
_ACTION: Final = "fallback.action"
_LOG_DIRS: Final = "log-dirs"
_OURS: Final = {
    AVAILABLE_BYTES: f"{_HARD}.min-free-bytes",
    AVAILABLE_RATIO: f"{_HARD}.min-free-percent",
    CHECK_INTERVAL: _INTERVAL,
    FALLBACK: _ACTION,
    VALIDITY: "validity",
}
_PARSERS: Final[dict[str, Callable[[str], object]]] = {
    _OURS[AVAILABLE_BYTES]: parse_size,
    _OURS[AVAILABLE_RATIO]: parse_share,
    _INTERVAL: parse_duration,
    _ACTION: lambda text: choose(text, ("PAUSE", "OPEN")),
    _OURS[VALIDITY]: parse_duration,
}


@dataclass(frozen=True, slots=True)
class Note:
    """What a property of Strimzi's means here, in a sentence; ``warns`` where it is not, or less than, it was."""

    text: str
    warns: bool = False


@dataclass(slots=True)
class Translation:
    """A broker's properties without Strimzi's own names.

    Attributes:
        properties: full names and texts; of Strimzi's own only ``static.kafka.admin.*`` is left, a family of ours.
        problems: what is wrong with Strimzi's own, by the name and value that the operator wrote.
        notes: what each of them means here; no secrets.
        origins: the full names of ours that were made of one of theirs, and its full name.
    """

    properties: dict[str, str]
    problems: list[Problem] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    origins: dict[str, str] = field(default_factory=dict)


def translate(properties: Mapping[str, str]) -> Translation:
    """Read Strimzi's own names among a broker's properties as ours; raises nothing."""
    given = {name.removeprefix(PREFIX): text for name, text in properties.items() if name.startswith(PREFIX)}
    if not any(map(is_theirs, given)):
        return Translation(dict(properties))
    kept = {name: text for name, text in properties.items() if not _is_replaced(name)}
    return _Translator(given, Translation(kept)).run()


def _is_replaced(full: str) -> bool:
    name = full.removeprefix(PREFIX)
    return full.startswith(PREFIX) and is_theirs(name) and not name.startswith(ADMIN)


class _Translator:
    """One reading of one file; names in here are without the common prefix."""

    def __init__(self, given: Mapping[str, str], made: Translation) -> None:
        self._given, self._made = given, made

    def run(self) -> Translation:
        self._shared()
        is_on = self._switch(self._limit())
        self._interval()
        self._fallback(is_on)
        self._validity(is_on)
        self._client()
        return self._made

    # ---- property by property ----

    def _shared(self) -> None:
        scope = self._given.get("static.scope", "broker").strip()
        for name, meaning in SHARED.items():
            if name in self._given:
                each = (
                    "" if scope == "broker" or "rate" not in meaning else f", for each {scope} (static.scope)"
                )
                self._note(f"{name}={self._told(name)} is {meaning}{each}")

    def _limit(self) -> bool:
        """Whether one of their two limits is set, right or wrong."""
        names = [name for name in (AVAILABLE_BYTES, AVAILABLE_RATIO) if name in self._given]
        if len(names) == 2:
            self._problem(names[1], f"excludes {PREFIX}{names[0]}, as in Strimzi's plugin; keep one of them")
            return True
        for name in names:
            hard = [_HARD, _OURS[AVAILABLE_BYTES], _OURS[AVAILABLE_RATIO]]
            hard = [
                own for own in hard if own != _OURS[name] and self._given.get(own, "none").strip() != "none"
            ]
            for own in hard:
                self._contradicts(name, own)
            text = self._read(name)
            if text is not None and not hard:
                self._put(name, text)
        return bool(names)

    def _switch(self, has_limit: bool) -> bool:
        """Let the factor source be theirs where it isn't named; whether there is one."""
        own = self._given.get(_SOURCE)
        if CHECK_INTERVAL in self._given and self._read(CHECK_INTERVAL, quiet=True) == "":
            if own is not None and own.strip():
                self._problem(
                    CHECK_INTERVAL,
                    f"turns the protection of disks off, and {PREFIX}{_SOURCE}={printable(own)} on; keep one",
                )
            else:
                self._set(CHECK_INTERVAL, _SOURCE, "")
                self._note(
                    f"{CHECK_INTERVAL}={self._told(CHECK_INTERVAL)} read as no {_SOURCE}: disks are not protected",
                    warns=has_limit,
                )
            return False
        if own is None and has_limit:
            limit = next(name for name in (AVAILABLE_BYTES, AVAILABLE_RATIO) if name in self._given)
            self._set(limit, _SOURCE, _LOG_DIRS)
            self._note(f"{limit} is set: {_SOURCE}={_LOG_DIRS} asks all brokers for their log dirs, as there")
        return bool(self._source())

    def _source(self) -> str:
        """The factor source by name; ours is ``local`` where a limit of ours is set (settings.py)."""
        limits = [n for n, text in self._given.items() if n.startswith(("static.storage.soft", _HARD))]
        return self._made.properties.get(PREFIX + _SOURCE, "local" if limits else "").strip()

    def _interval(self) -> None:
        source, text = self._source(), self._read(CHECK_INTERVAL)
        if source == _LOG_DIRS and CHECK_INTERVAL not in self._given:
            self._default(CHECK_INTERVAL)
        elif source == _LOG_DIRS and text:
            self._put(CHECK_INTERVAL, text)
        elif text:
            why = f"{_SOURCE} is {source}" if source else f"there is no {_SOURCE}"
            self._note(f"{CHECK_INTERVAL}={self._told(CHECK_INTERVAL)} is not used: {why}")

    def _fallback(self, is_on: bool) -> None:
        text = self._read(FALLBACK)
        if text is not None:
            between = float(self._given[FALLBACK].strip().rstrip("dDfF")) not in (0.0, 1.0)
            why = ": there is no factor in between here, and PAUSE is the safer" if between else ""
            self._put(FALLBACK, text, why, warns=between)
        elif FALLBACK not in self._given and is_on:
            self._default(FALLBACK, ", which is weaker than PAUSE, quotahost's own", warns=True)

    def _validity(self, is_on: bool) -> None:
        text = self._read(VALIDITY)
        if text is not None:
            self._put(VALIDITY, text)
        elif VALIDITY not in self._given and is_on:
            self._default(VALIDITY)

    def _client(self) -> None:
        if CLIENT_ID_PREFIX in self._given:
            self._note(f"{CLIENT_ID_PREFIX} is not used: the plugins' own clients are named quotahost-NODE")
        names = sorted(name.removeprefix(ADMIN) for name in self._given if name.startswith(ADMIN))
        if not names:
            return
        told = f"{ADMIN}* ({', '.join(map(printable, names))})"
        if "kafka.bootstrap.servers" in self._given:
            self._note(f"{told} is not used: kafka.bootstrap.servers is set")
        else:
            who = f"{_LOG_DIRS} needs none, it asks as this broker itself"
            self._note(f"{told} is the Kafka client of plugins that need one; {who}")

    # ---- how ----

    def _read(self, name: str, quiet: bool = False) -> str | None:
        """Their text in our form; None if it isn't there or is wrong, which is told unless ``quiet``."""
        if name not in self._given:
            return None
        try:
            return READERS[name](self._given[name].strip())
        except ValueError as wrong:
            if not quiet:
                self._problem(name, str(wrong))
            return None

    def _put(self, name: str, text: str, why: str = "", warns: bool = False) -> None:
        """Theirs as ours; where ours is given too, both must mean the same."""
        ours = _OURS[name]
        own = self._given.get(ours)
        if own is None:
            self._set(name, ours, text)
            self._note(f"{name}={self._told(name)} read as {ours}={text}{why}", warns)
        elif _differ(ours, own, text):
            self._contradicts(name, ours)
        else:
            self._note(f"{name}={self._told(name)} says what {ours}={printable(own)} says")

    def _default(self, name: str, why: str = "", warns: bool = False) -> None:
        ours = _OURS[name]
        if ours not in self._given:
            text = READERS[name](DEFAULTS[name])
            self._set(name, ours, text)
            self._note(f"{name} is not set: its default, {DEFAULTS[name]}, read as {ours}={text}{why}", warns)

    def _set(self, name: str, ours: str, text: str) -> None:
        self._made.properties[PREFIX + ours] = text
        self._made.origins[PREFIX + ours] = PREFIX + name

    def _contradicts(self, name: str, ours: str) -> None:
        own = printable(self._given[ours])
        self._problem(name, f"contradicts {PREFIX}{ours}={own}; keep one of them")

    def _problem(self, name: str, wrong: str) -> None:
        self._made.problems.append(Problem(PREFIX + name, wrong, self._given[name]))

    def _note(self, text: str, warns: bool = False) -> None:
        self._made.notes.append(Note(text, warns))

    def _told(self, name: str) -> str:
        return printable(self._given[name].strip())


def _differ(ours: str, own: str, text: str) -> bool:
    """Whether they mean different things; a wrong value of ours is told as such elsewhere."""
    try:
        return _PARSERS[ours](own) != _PARSERS[ours](text)
    except ValueError:
        return False
