"""Translates the properties of Strimzi's quotas plugin into ours, so that its users change only the callback's class.

If a broker's file has at least one name of Strimzi's own, every property of Strimzi's that the file leaves out gets
Strimzi's default, unless the file sets our property for it. But a file whose limits have proposal 035's names
(``static.storage.hard``; Strimzi's plugin had them up to 0.2) follows the proposal, and its fallback is PAUSE.
``settings.broker.read_properties`` translates before anything is parsed. The notes explain in the broker's log, and in
``doctor``, what each name means here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from quotahost.settings.declaration import PREFIX, Problem
from quotahost.settings.strimzi.names import (
    ADMIN,
    AVAILABLE_BYTES,
    AVAILABLE_RATIO,
    CHECK_INTERVAL,
    CLIENT_ID_PREFIX,
    FALLBACK,
    OWN,
    PROPERTIES,
    VALIDITY,
    StrimziProperty,
    share,
)
from quotahost.text import printable

_HARD: Final = "static.storage.hard"
_LIMITS_OF_035: Final = ("static.storage.soft", _HARD)
_SOURCE: Final = "factor.source"
_LOG_DIRS: Final = "log-dirs"


@dataclass(frozen=True, slots=True)
class Note:
    """What a property of Strimzi's means here, in a sentence; ``warns`` if it does less than in Strimzi's plugin."""

    text: str
    warns: bool = False


@dataclass(slots=True)
class Translation:
    """A broker's properties without Strimzi's own names.

    Attributes:
        properties: full names and texts; of Strimzi's own only ``static.kafka.admin.*`` is left, a family of ours.
        problems: what is wrong with Strimzi's own, by the name and value that the operator wrote.
        notes: what each of them means here; no secrets.
        origins: for each property of ours that was made from one of Strimzi's, the full names of both: ours, Strimzi's.
    """

    properties: dict[str, str]
    problems: list[Problem] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    origins: dict[str, str] = field(default_factory=dict)


def translate(properties: Mapping[str, str]) -> Translation:
    """Read Strimzi's own names among a broker's properties as ours.

    It raises nothing: the problems that it finds are reported with those of all other properties.
    """
    given = {name.removeprefix(PREFIX): text for name, text in properties.items() if name.startswith(PREFIX)}
    own = [name for name in OWN if name in given]
    # The bare family name is no setting: the reader reports it as incomplete.
    if not own and not any(name.startswith(ADMIN) and name != ADMIN for name in given):
        return Translation(dict(properties))
    # The reader doesn't know these names, and would refuse them.
    replaced = {PREFIX + name for name in own}
    made = Translation({name: text for name, text in properties.items() if name not in replaced})
    _Translator(given, made).run()
    return made


class _Translator:
    """One reading of one file; names in here are without the common prefix."""

    def __init__(self, given: Mapping[str, str], made: Translation) -> None:
        self._given, self._made = given, made
        self._texts: dict[str, str] = {}  # values in our form by Strimzi's names; wrong values are absent

    def run(self) -> None:
        for theirs in PROPERTIES:
            if theirs.name in self._given:
                try:
                    self._texts[theirs.name] = theirs.read(self._given[theirs.name].strip())
                except ValueError as error:
                    self._problem(theirs, str(error))
        # In this order: which defaults apply depends on the factor source, and that on the limit.
        self._note_shared()
        limit = self._limit()
        has_source = self._factor_source(limit)
        # Only Strimzi's own limits, of 0.3 and later, come with Strimzi's defaults.
        by_035 = "" if limit else self._limit_of_035()
        self._interval(with_default=not by_035)
        self._fallback(has_source, by_035)
        self._put(VALIDITY)
        if has_source and not by_035:
            self._default(VALIDITY)
        self._note_client()

    # ---- property by property ----

    def _note_shared(self) -> None:
        scope = self._given.get("static.scope", "broker").strip()
        for theirs in PROPERTIES:
            if theirs.means and theirs.name in self._given:
                is_total = scope == "broker" or "rate" not in theirs.means
                each = "" if is_total else f", for each {scope} (static.scope)"
                self._note(f"{self._line(theirs)} is {theirs.means}{each}")

    def _limit(self) -> StrimziProperty | None:
        """The limit of Strimzi's that is set, right or wrong."""
        limits = [limit for limit in (AVAILABLE_BYTES, AVAILABLE_RATIO) if limit.name in self._given]
        # Strimzi's plugin refuses both, too.
        if len(limits) == 2:
            excluded = f"{PREFIX}{limits[0].name}, as in Strimzi's plugin"
            self._problem(limits[1], f"excludes {excluded}; keep one of them")
        elif limits:
            # Ours has three hard limits; whichever of the other two is set, only one of both can be meant.
            hard = {_HARD, AVAILABLE_BYTES.ours, AVAILABLE_RATIO.ours} - {limits[0].ours}
            others = [name for name in sorted(hard) if self._given.get(name, "none").strip() != "none"]
            for name in others:
                self._contradicts(limits[0], name)
            if not others:
                self._put(limits[0])
        return limits[0] if limits else None

    def _limit_of_035(self) -> str:
        """A limit by one of proposal 035's names, "" if there is none; up to 0.2 Strimzi's plugin had two of them."""
        names = (name for name in sorted(self._given) if name.startswith(_LIMITS_OF_035))
        return next((name for name in names if self._given[name].strip() not in ("", "none")), "")

    def _factor_source(self, limit: StrimziProperty | None) -> bool:
        """Set Strimzi's factor source where the file names none; return whether there is one."""
        own = self._given.get(_SOURCE)
        if self._texts.get(CHECK_INTERVAL.name) == "":  # an interval of 0 or less: off
            # An empty factor.source means none, so both properties say the same.
            if own is not None and own.strip():
                other = f"{PREFIX}{_SOURCE}={printable(own)}"
                self._problem(CHECK_INTERVAL, f"turns the protection of disks off, and {other} on; keep one")
            else:
                self._set(CHECK_INTERVAL, _SOURCE, "")
                why = f"{self._line(CHECK_INTERVAL)} read as no {_SOURCE}: disks are not protected"
                self._note(why, warns=bool(limit or self._limit_of_035()))
            return False
        if own is None and limit:
            self._set(limit, _SOURCE, _LOG_DIRS)
            asks = "asks all brokers for their log dirs, as there"
            self._note(f"{limit.name} is set: {_SOURCE}={_LOG_DIRS} {asks}")
        return bool(self._source())

    def _source(self) -> str:
        """The factor source by name; where a limit of ours is set, its default is ``local``."""
        return self._made.properties.get(PREFIX + _SOURCE, "local" if self._limit_of_035() else "").strip()

    def _interval(self, with_default: bool) -> None:
        source, text = self._source(), self._texts.get(CHECK_INTERVAL.name)
        # Set for another factor source, plugin.log-dirs.interval would be refused: that plugin isn't configured.
        if source == _LOG_DIRS:
            self._put(CHECK_INTERVAL)
            if with_default:
                self._default(CHECK_INTERVAL)
        elif text:
            why = f"{_SOURCE} is {source}" if source else f"there is no {_SOURCE}"
            self._note(f"{self._line(CHECK_INTERVAL)} is not used: {why}")

    def _fallback(self, has_source: bool, by_035: str) -> None:
        if FALLBACK.name in self._texts:
            between = share(self._given[FALLBACK.name].strip()) not in (0, 1)
            why = ": there is no factor in between here, and PAUSE is the safer" if between else ""
            self._put(FALLBACK, why, warns=between)
        if has_source and by_035:
            if FALLBACK.name not in self._texts and FALLBACK.ours not in self._given:
                self._note(f"{by_035} is a limit of proposal 035: {FALLBACK.ours}=PAUSE, as it says, unless you set it")
        elif has_source:
            # A file of theirs keeps the fallback that it had; the note says that it is the weaker one.
            self._default(FALLBACK, ", which is weaker than PAUSE, quotahost's own", warns=True)

    def _note_client(self) -> None:
        if CLIENT_ID_PREFIX.name in self._given:
            why = "the plugins' own clients are named quotahost-NODE"
            self._note(f"{CLIENT_ID_PREFIX.name} is not used: {why}")
        names = sorted(name.removeprefix(ADMIN) for name in self._given if name.startswith(ADMIN))
        if not names:
            return
        family = f"{ADMIN}* ({', '.join(map(printable, names))})"
        if "kafka.bootstrap.servers" in self._given:
            self._note(f"{family} is not used: kafka.bootstrap.servers is set")
        else:
            exception = f"{_LOG_DIRS} needs none, it asks as this broker itself"
            self._note(f"{family} is the Kafka client of plugins that need one; {exception}")

    # ---- how ----

    def _put(self, theirs: StrimziProperty, why: str = "", warns: bool = False) -> None:
        """Set our property to the value of Strimzi's; where the file sets ours too, both must mean the same."""
        text, own = self._texts.get(theirs.name), self._given.get(theirs.ours)
        if text is None:
            return
        if own is None:
            self._set(theirs, theirs.ours, text)
            self._note(f"{self._line(theirs)} read as {theirs.ours}={text}{why}", warns)
        elif _differ(theirs, own, text):
            self._contradicts(theirs, theirs.ours)
        else:
            self._note(f"{self._line(theirs)} means the same as {theirs.ours}={printable(own)}")

    def _default(self, theirs: StrimziProperty, why: str = "", warns: bool = False) -> None:
        """Set Strimzi's default where the file has neither name."""
        if theirs.name not in self._given and theirs.ours not in self._given:
            text = theirs.read(theirs.default)
            self._set(theirs, theirs.ours, text)
            origin = f"{theirs.name} is not set: its default, {theirs.default}"
            self._note(f"{origin}, read as {theirs.ours}={text}{why}", warns)

    def _set(self, theirs: StrimziProperty, ours: str, text: str) -> None:
        self._made.properties[PREFIX + ours] = text
        self._made.origins[PREFIX + ours] = PREFIX + theirs.name

    def _contradicts(self, theirs: StrimziProperty, ours: str) -> None:
        own = f"{PREFIX}{ours}={printable(self._given[ours])}"
        self._problem(theirs, f"contradicts {own}; keep one of them")

    def _problem(self, theirs: StrimziProperty, wrong: str) -> None:
        # The value may be shown: only the Admin client's properties carry secrets, and they never come here.
        self._made.problems.append(Problem(PREFIX + theirs.name, wrong, self._given[theirs.name]))

    def _note(self, text: str, warns: bool = False) -> None:
        self._made.notes.append(Note(text, warns))

    def _line(self, theirs: StrimziProperty) -> str:
        """The property as the operator wrote it."""
        return f"{theirs.name}={printable(self._given[theirs.name].strip())}"


def _differ(theirs: StrimziProperty, own: str, text: str) -> bool:
    """Whether two texts of ours mean different things; a wrong value of ours is reported as ours, by the reader."""
    try:
        # By their values: 10G and 10000000000 agree.
        return bool(theirs.parse(own) != theirs.parse(text))
    except ValueError:
        return False
