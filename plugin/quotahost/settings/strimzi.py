"""Reads the properties of Strimzi's quotas plugin, 0.3 and 0.4, as quotahost's; those of 0.2 are quotahost's already.

So a user of that plugin changes only the callback's class. Names in this file are without ``client.quota.callback.``.

1. ``PROPERTIES`` lists all names as ``StaticQuotaConfig`` of io.strimzi:kafka-quotas-plugin 0.3.1 defines them (Kafka's
   ConfigDef: INT, LONG, DOUBLE as Java parses them), and for each the property of ours. The document's table is made
   from this list.
2. A :class:`Translation` replaces Strimzi's names in a broker's file before the file is parsed. If the file has
   Strimzi's limits (BYTES, RATIO), Strimzi's default applies to each property that the file sets neither by Strimzi's
   name nor by ours. Any other file, such as one with proposal 035's limits, gets quotahost's defaults. If a file sets
   both Strimzi's name and ours for the same thing, the file is refused.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from quotahost.base.text import printable
from quotahost.model import State
from quotahost.settings.declaration import PREFIX, Problem
from quotahost.settings.types import of_volumes, split
from quotahost.units.parse import parse_duration

ADMIN: Final = "static.kafka.admin."
SAME: Final = "the same"
_SOURCE: Final = "factor.source"
_LOG_DIRS: Final = "log-dirs"
_HARD: Final = "static.storage.hard"
_HARD_LIMITS: Final = (_HARD, f"{_HARD}.min-free-bytes", f"{_HARD}.min-free-percent")


def _share(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:  # NaN fails the comparison
        raise ValueError("must be a number from 0 to 1, such as 0.05")
    return value


def _whole(text: str, unit: str, least: int, most: int) -> int:
    if not re.fullmatch("[+-]?[0-9]{1,99}", text) or not least <= int(text) <= most:
        raise ValueError(f"must be a whole number of {unit} from {least} to {most}, without a unit")
    return int(text)


def _read_interval(text: str) -> str:
    """The interval, "" for off: Strimzi's plugin looks at the disks only if the interval is above 0."""
    seconds = _whole(text, "seconds", -(2**31), 2**31 - 1)
    return f"{seconds}s" if seconds > 0 else ""


def _read_validity(text: str) -> str:
    # Our own property also takes 30s, which Java's Duration.parse refuses.
    if not text.upper().startswith("P"):
        raise ValueError("must be an ISO 8601 duration, such as PT5M")
    parse_duration(text)
    return text


@dataclass(frozen=True, slots=True)
class StrimziProperty:
    """One property of Strimzi's plugin."""

    name: str  # Strimzi's name; a name that ends in ``*`` stands for a family
    default: str  # Strimzi's default
    ours: str  # our property that is set instead, ``SAME`` if ours has the same name, "" if it is not used
    doc: str  # the meaning here, for the document and the log
    read: Callable[[str], str] = str  # from Strimzi's text to ours; raises a ValueError with a remedy

    @property
    def is_own(self) -> bool:
        """Whether only Strimzi's plugin has this name, so that it must be replaced."""
        return self.ours != SAME


BYTES: Final = StrimziProperty(
    "static.storage.per.volume.limit.min.available.bytes", "none", f"{_HARD}.min-free-bytes",
    "At this limit producers are slowed to `floor.bytes`. If `factor.source` isn't set, it becomes `log-dirs`.",
    lambda text: str(_whole(text, "bytes", 0, 2**63 - 1)),
)  # fmt: skip
RATIO: Final = StrimziProperty(
    "static.storage.per.volume.limit.min.available.ratio", "none", f"{_HARD}.min-free-percent",
    "The same as a share of the capacity. Both together are an error.",
    lambda text: f"{Decimal(repr(abs(_share(text)))):f}",  # without an exponent, which our shares don't take
)  # fmt: skip
INTERVAL: Final = StrimziProperty(
    "static.storage.check-interval", "60", "plugin.log-dirs.interval",
    "Whole seconds. 0 or less means no `factor.source`. 1 is one second; with 1, Strimzi's plugin protects nothing.",
    _read_interval,
)  # fmt: skip
FALLBACK: Final = StrimziProperty(
    "static.throttle.factor.fallback", "1.0", "fallback.action",
    "1 is OPEN, which is weaker than PAUSE, quotahost's default; 0 is PAUSE, and so is anything between.",
    # Our fallback knows no factor between 0 and 1, so anything below 1 is read as PAUSE, which is safer.
    lambda text: State.OPEN if _share(text) == 1 else State.PAUSE,
)  # fmt: skip
VALIDITY: Final = StrimziProperty(
    "static.throttle.factor.validity.duration", "PT5M", "validity",
    "ISO 8601, above zero. It is the lease of the host as well.", _read_validity,
)  # fmt: skip
ADMIN_CLIENT: Final = StrimziProperty(
    f"{ADMIN}*", "", SAME,
    "The Java client's names, handed to plugins that need a Kafka client, in librdkafka's names, keystores as PEM; "
    "`kafka.*` wins. `log-dirs` needs none: it connects as this broker. All values are secrets.",
)  # fmt: skip
_TOGETHER: Final = "For all clients of a broker together, or as `static.scope` says."
PROPERTIES: Final = (
    StrimziProperty("static.produce", "unlimited", SAME, _TOGETHER),
    StrimziProperty("static.fetch", "unlimited", SAME, _TOGETHER),
    StrimziProperty("static.request", "unlimited", SAME, f"{_TOGETHER} In percent of one thread's time."),
    StrimziProperty(
        "static.excluded.principal.name.list", "none", SAME, "Exempt whichever supplier answers, client quotas too."
    ),
    BYTES, RATIO, INTERVAL, FALLBACK, VALIDITY, ADMIN_CLIENT,
    StrimziProperty(
        "static.kafka.clientIdPrefix", "__strimzi", "", "Not used: quotahost's clients are named `quotahost-NODE`."
    ),
)  # fmt: skip
OWN: Final = tuple(theirs.name for theirs in PROPERTIES if theirs.is_own)
SYNONYMS: Final = (*OWN, f"{ADMIN}bootstrap.servers")  # to suggest for a misspelt name


# ---- the translation of one file ----


@dataclass(frozen=True, slots=True)
class Note:
    """A sentence on what Strimzi's property means here; ``warns`` if it does less than in Strimzi's plugin."""

    text: str
    warns: bool = False


class Translation:
    """A broker's properties, with our names in place of Strimzi's own."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        """Read one file. ``problems`` has its errors, which the caller reports with all others."""
        own = {PREFIX + name for name in OWN}
        #: The properties by full name, without Strimzi's own, which their reader would refuse as unknown.
        #: ``static.kafka.admin.*`` stays, because it is a family of ours, too.
        self.properties = {name: text for name, text in properties.items() if name not in own}
        self.problems: list[Problem] = []  # problems of Strimzi's own properties, with names and values as written
        self.notes: list[Note] = []  # the meanings of Strimzi's properties here; no secrets
        self.origins: dict[str, str] = {}  # properties of ours and the Strimzi ones that they came from, by full names
        self._given = {name.removeprefix(PREFIX): text for name, text in properties.items() if name.startswith(PREFIX)}
        self._texts: dict[str, str] = {}  # values in our form by Strimzi's names; wrong values are absent
        if own & properties.keys() or any(name.startswith(ADMIN) for name in self._given):
            self._translate()

    def _translate(self) -> None:
        for theirs in PROPERTIES:
            if theirs.name in self._given:
                try:
                    self._texts[theirs.name] = theirs.read(self._given[theirs.name].strip())
                except ValueError as error:
                    self._problem(theirs, str(error))
                if theirs.ours in ("", SAME):
                    self.notes.append(Note(f"{self._line(theirs)}: {theirs.doc}"))
        if names := sorted(name.removeprefix(ADMIN) for name in self._given if name.startswith(ADMIN)):
            is_used = "kafka.bootstrap.servers" not in self._given
            means = ADMIN_CLIENT.doc if is_used else "Not used: kafka.bootstrap.servers is set."
            self.notes.append(Note(f"{ADMIN_CLIENT.name} ({', '.join(map(printable, names))}): {means}"))
        limits = [limit for limit in (BYTES, RATIO) if limit.name in self._given]
        if len(limits) == 2:  # Strimzi's plugin refuses both, too
            self._problem(RATIO, f"excludes {PREFIX}{BYTES.name}, as in Strimzi's plugin; keep one of them")
        elif limits:
            self._put(limits[0])
        source = self._factor_source(limits)
        default = bool(limits and source)
        # With another factor source, plugin.log-dirs.interval would be refused, because that plugin isn't configured.
        if source == _LOG_DIRS:
            self._put(INTERVAL, default=default)
        elif self._texts.get(INTERVAL.name):
            self.notes.append(Note(f"{self._line(INTERVAL)} is not used: {_SOURCE} is not {_LOG_DIRS}"))
        is_exact = FALLBACK.name in self._texts and _share(self._given[FALLBACK.name].strip()) in (0, 1)
        self._put(FALLBACK, default=default, warns=not is_exact)
        self._put(VALIDITY, default=default)

    def _factor_source(self, limits: Sequence[StrimziProperty]) -> str:
        """The factor source for disks that the file names or implies, "" for none."""
        given = self._given.get(_SOURCE)
        if self._texts.get(INTERVAL.name) == "":  # an interval of 0 or less: off
            # An empty factor.source means none, so both properties say the same.
            if given and given.strip():
                self._problem(INTERVAL, f"turns the protection of disks off, and {self._ours(_SOURCE)} on; keep one")
            note = f"{self._line(INTERVAL)} read as no {_SOURCE}: disks are not protected"
            self._set(INTERVAL, _SOURCE, "", note, warns=True)
        elif limits and given is None:
            note = f"{limits[0].name} is set: {_SOURCE}={_LOG_DIRS} asks all brokers, as Strimzi's plugin does"
            self._set(limits[0], _SOURCE, _LOG_DIRS, note)
        return of_volumes(split(self.properties.get(PREFIX + _SOURCE, ""), ",")) or ""

    def _put(self, theirs: StrimziProperty, *, default: bool = False, warns: bool = False) -> None:
        """Set our property to the value of Strimzi's, or to Strimzi's ``default`` if the file has neither.

        If the file has Strimzi's property and one of ours for the same thing, that is a problem.
        """
        # Each of our three properties for the hard limit contradicts Strimzi's limit.
        same = _HARD_LIMITS if theirs.ours in _HARD_LIMITS else (theirs.ours,)
        # If the value of our limit is none, it is no limit.
        beside = [name for name in same if self._given.get(name, "none").strip() != "none"]
        why = f" ({theirs.doc})" if warns else ""
        if theirs.name in self._given:
            for name in beside:
                self._problem(theirs, f"sets the same as {self._ours(name)}; keep one of them")
            if theirs.name in self._texts and not beside:
                text = self._texts[theirs.name]
                self._set(theirs, theirs.ours, text, f"{self._line(theirs)} read as {theirs.ours}={text}{why}", warns)
        elif default and theirs.ours not in self._given:
            text = theirs.read(theirs.default)
            note = f"{theirs.name} is not set: its default, {theirs.default}, read as {theirs.ours}={text}{why}"
            self._set(theirs, theirs.ours, text, note, warns)

    def _set(self, theirs: StrimziProperty, ours: str, text: str, note: str, warns: bool = False) -> None:
        self.properties[PREFIX + ours] = text
        self.origins[PREFIX + ours] = PREFIX + theirs.name
        self.notes.append(Note(note, warns))

    def _problem(self, theirs: StrimziProperty, wrong: str) -> None:
        # The value may be shown: only the Admin client's properties have secrets, and these never come here.
        self.problems.append(Problem(PREFIX + theirs.name, wrong, self._given[theirs.name]))

    def _ours(self, name: str) -> str:
        return f"{PREFIX}{name}={printable(self._given[name])}"

    def _line(self, theirs: StrimziProperty) -> str:
        return f"{theirs.name}={printable(self._given[theirs.name].strip())}"
