"""Property types beside ``quotahost.units``: names, principals, choices, addresses, rates, topics, rules in shadow.

Each type is an annotation with its parser (from text to value; raises ``ValueError`` with a remedy) and the unit that
the documents and ``doctor`` show. The sections of plugins may use these types, too.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Annotated, Any, Final, Literal, TypeVar, get_args

from pydantic import BeforeValidator, Field, GetCoreSchemaHandler, StringConstraints
from pydantic_core import CoreSchema
from pydantic_core.core_schema import no_info_before_validator_function

from quotahost.base.text import nearest
from quotahost.model import QuotaType, Scope, State
from quotahost.units.parse import parse_count, parse_duration, parse_limit, parse_share
from quotahost.units.show import COUNT, DURATION, Unit, show_number

NAME: Final = re.compile(r"[A-Za-z0-9_-]+")  # a plugin's name
_TOPIC_NAME: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}")  # org.apache.kafka.common.internals.Topic
_USER: Final = "User:"
_T = TypeVar("_T")
_S = TypeVar("_S", bound=str)
_K = TypeVar("_K")


def split(value: object, separator: str) -> list[str]:
    """The trimmed parts of a list in one text; an empty text has no parts."""
    text = str(value).strip()
    return [part.strip() for part in text.split(separator)] if text else []


#: The factor source that is only for single quota types, and knows no disks.
LOAD: Final = "load"


def of_volumes(sources: Iterable[str]) -> str | None:
    """The factor source among these that watches the disks: the first one except LOAD."""
    return next((name for name in sources if name != LOAD), None)


def distinct(items: list[_T], least: str = "") -> tuple[_T, ...]:
    """The items. Raises ValueError if one is there twice, or if there is none and ``least`` names what is needed."""
    if least and not items:
        raise ValueError(f"is empty; name at least one {least}")
    twice = [item for item, times in Counter(items).items() if times > 1]
    if twice:
        raise ValueError(f"has {str(twice[0])!r} twice; remove one")
    return tuple(items)


def _listed(name: str, separator: str = ", ") -> Unit:
    return Unit(name, lambda values: separator.join(map(str, values)) or "none")


# ---- names and texts ----


def _name(value: object) -> str | None:
    text = str(value or "").strip()
    if text and not NAME.fullmatch(text):  # for example, a dot would end NAME in plugin.NAME.*
        allowed = "letters, digits, - and _, as `quotahost plugins` shows; only kafka-configs.sh takes brackets"
        raise ValueError(f"is not one entry point name; write {allowed}")
    return text or None


def _names(value: object, least: str = "") -> tuple[str, ...]:
    parts = split(value, ",")
    if "" in parts:
        raise ValueError("has an empty name; separate names by one comma each")
    return distinct([str(_name(part)) for part in parts], least)


Name = Annotated[str | None, BeforeValidator(_name), Unit("name", lambda name: str(name or "none"))]
_NAMES: Final = _listed("names, comma-separated")
Names = Annotated[tuple[str, ...], BeforeValidator(_names), _NAMES]
Suppliers = Annotated[
    tuple[str, ...], BeforeValidator(partial(_names, least="supplier, such as client-quotas")), _NAMES
]
Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


def _principals(value: object) -> tuple[str, ...]:
    # Strimzi's plugin accepts empty entries and a principal that is there twice, and so does this parser.
    return tuple(dict.fromkeys(_principal(part) for part in split(value, ";") if part))


def _principal(text: str) -> str:
    """The name in ``User:a``, which is Strimzi's form, or in ``a``."""
    name = text.removeprefix(_USER).strip()
    if ":" in name and not text.startswith(_USER):
        kind = text.partition(":")[0]
        raise ValueError(f"has a principal of type {kind!r}; write {_USER}{text} if this is a user's name")
    if not name:
        raise ValueError(f"has {_USER} without a name; write {_USER}name")
    if f",{_USER}" in name:  # the form of Kafka's own lists; here, the whole text would be one name
        raise ValueError("has a comma between two principals; separate them by ;")
    # In Kafka's ACLs User:* is everybody; here it would be a literal name, and exempt nobody.
    if name == "*":
        raise ValueError("has the wildcard *, but names are taken as they are; list each principal")
    return name


Principals = Annotated[tuple[str, ...], BeforeValidator(_principals), _listed("principals, `;`-separated", "; ")]


# ---- one of several words ----


def choose(value: object, options: Iterable[_S]) -> _S:
    """The option with this name, in any case of letters, and with ``-`` or ``_``.

    Raises ValueError if there is no such option; the error names all options and the nearest one.
    """
    # Operators meet both spellings: Kafka's type is CONTROLLER_MUTATION, our properties say controller-mutation.
    folded = {option.lower().replace("-", "_"): option for option in options}
    given = str(value).strip()
    text = given.lower().replace("-", "_")
    if text in folded:
        return folded[text]
    like = nearest(text, folded)
    hint = f"did you mean {folded[like]}?" if like else "write one of these"
    raise ValueError(f"{given!r} is none of {', '.join(folded.values())}; {hint}")


class _OneOf:
    """Makes a ``Literal`` accept its options as :func:`choose` does; pydantic itself is case-sensitive."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return no_info_before_validator_function(partial(choose, options=get_args(source)), handler(source))


def _quota_types(value: object) -> tuple[QuotaType, ...]:
    return distinct([choose(part, QuotaType) for part in split(value, ",")], "quota type, such as PRODUCE")


ONE_OF: Final = _OneOf()
Action = Annotated[Literal[State.PAUSE, State.OPEN], ONE_OF]
Sharing = Annotated[Literal["client", "user", "client-id", "broker"], ONE_OF]
SCOPES: Final = {"client": Scope.CLIENT, "user": Scope.USER, "client-id": Scope.CLIENT_ID, "broker": Scope.BROKER}
QuotaTypes = Annotated[tuple[QuotaType, ...], BeforeValidator(_quota_types), _listed("quota types, comma-separated")]


# ---- numbers ----


def _validity(value: object) -> timedelta:
    # The host renews its lease every 0.1 s.
    if (validity := parse_duration(value)) < timedelta(seconds=1):
        raise ValueError("must be at least 1s")
    return validity


def _endpoint(value: object) -> tuple[str, int] | None:
    if value is None or (text := str(value).strip().lower()) in ("", "off"):
        return None
    # Loopback by default, because the endpoint serves everyone who can connect. An IPv6 address contains colons.
    address, _, port_text = text.rpartition(":") if ":" in text else ("127.0.0.1", "", text)
    try:
        port = parse_count(port_text)
    except ValueError:
        port = 0
    if not address or not 1 <= port <= 65535:
        raise ValueError("is no port; write a whole number from 1 to 65535, or ADDRESS:PORT such as 0.0.0.0:9404")
    return address.strip("[]"), port


Validity = Annotated[timedelta, BeforeValidator(_validity), DURATION]
Part = Annotated[float, BeforeValidator(parse_share), Unit("share, 0.0 to 1.0", lambda part: f"{part:g}")]
Few = Annotated[int, Field(ge=0, le=10_000), COUNT]
Endpoint = Annotated[
    tuple[str, int] | None,
    BeforeValidator(_endpoint),
    Unit("port, or address:port", lambda pair: "off" if pair is None else f"{pair[0]}:{pair[1]}"),
]


# ---- rates by name ----

_FORM: Final = r"write NAME:RATE, such as clientA:4M, with a comma between entries, and \: and \, in a name"
#: Possessive quantifiers keep the time linear, even with many blanks. But Python 3.11.2 (Debian 12) errs with ``()++``.
_ENTRY: Final = re.compile(r"\s*+((?:\\.|[^\\:,\s]|\s++(?!:))+)\s*+:([^:,]*+)(?:,|$)", re.DOTALL)


def unescaped(name: str) -> str:
    return re.sub(r"\\(.)", r"\1", name, flags=re.DOTALL)


def parse_keyed_rates(value: object, key_of: Callable[[str], _K]) -> dict[_K, float | None]:
    r"""Rates in KIP-13's form, ``clientA:4M,clientB:10M``; ``key_of`` makes the key of a name with its backslashes.

    ``unlimited`` is None. The character after a backslash is literal: ``\:``, ``\,`` and ``\\`` are part of a name, and
    so is a blank after a backslash at the name's ends. Quotation marks around the whole list, as in KIP-13, are
    dropped. Raises ValueError if an entry is ill-formed, or if a name is there twice.
    """
    text = str(value).strip()
    if len(text) > 1 and text[0] == text[-1] == '"':
        text = text[1:-1].strip()
    rates: dict[_K, float | None] = {}
    at = 0
    while at < len(text):
        entry = _ENTRY.match(text, at)
        if entry is None:
            raise ValueError(f"has {text[at:]!r:.200}, which begins with no name and rate; {_FORM}")
        key, name, at = key_of(entry[1]), unescaped(entry[1]), entry.end()
        if key in rates:
            raise ValueError(f"has {name!r} twice; remove one of its entries")
        try:
            rates[key] = parse_limit(entry[2])
        except ValueError as wrong:
            raise ValueError(f"has {name!r}, whose rate {wrong}") from None
    return rates


parse_rates = partial(parse_keyed_rates, key_of=unescaped)
Rates = Annotated[dict[str, float | None], BeforeValidator(parse_rates)]


# ---- topics ----

Threshold = tuple[str, float]


def _topic(name: str) -> str:
    if not _TOPIC_NAME.fullmatch(name):
        raise ValueError(f"has the entry {name!r}, which is no topic's name; write letters, digits, ., _ and -")
    return name


def _topics(value: object) -> tuple[str, ...]:
    return tuple(dict.fromkeys(map(_topic, split(value, ","))))


def _thresholds(value: object) -> tuple[Threshold, ...]:
    rates = parse_rates(value)
    if None in rates.values():
        raise ValueError("has a topic with the rate unlimited; write bytes/s, such as 50M")
    return tuple((_topic(name), rate) for name, rate in rates.items() if rate is not None)


def _show_thresholds(thresholds: tuple[Threshold, ...]) -> str:
    return ", ".join(f"{topic}: {show_number(rate)} bytes/s" for topic, rate in thresholds) or "none"


#: The prefix is short enough that quotahost's longest topic name fits Kafka's 249 characters.
TopicPrefix = Annotated[Text, Field(pattern="^[a-zA-Z0-9._-]{1,200}$")]
Topics = Annotated[tuple[str, ...], BeforeValidator(_topics), _listed("topics, comma-separated")]
Thresholds = Annotated[
    tuple[Threshold, ...], BeforeValidator(_thresholds), Unit("TOPIC:bytes/s, comma-separated", _show_thresholds)
]


# ---- rules in shadow: computed and shown, not enforced (ADR 22) ----

SUPPLIER: Final = "supplier."
_TOPIC: Final = "topic."
_RULES: Final = ("all", "factor", "topics", f"{_TOPIC}NAME", f"{SUPPLIER}NAME")


@dataclass(frozen=True, slots=True)
class Shadow:
    """Rules that are not enforced: others decide, and the host compares Kafka's rates with what a rule would allow."""

    everything: bool = False  # all rules
    factor: bool = False  # the factor, with the fence and what else a PAUSE refuses
    all_topics: bool = False  # the thresholds of all topics
    topics: frozenset[str] = frozenset()  # single topics whose thresholds are in shadow
    suppliers: frozenset[str] = frozenset()  # suppliers whose answers are not in force: the next suppliers answer

    def names(self) -> list[str]:
        plain = {"all": self.everything, "factor": self.factor, "topics": self.all_topics}
        names = [name for name, is_in_shadow in plain.items() if is_in_shadow]
        names += [_TOPIC + topic for topic in sorted(self.topics)]
        return names + [SUPPLIER + supplier for supplier in sorted(self.suppliers)]


#: ``shadow=all``.
EVERYTHING: Final = Shadow(everything=True, factor=True, all_topics=True)


def _shadow(value: object) -> Shadow:
    rules: dict[str, set[str]] = {"": set(), _TOPIC: set(), SUPPLIER: set()}  # by their kind
    for rule in distinct(split(value, ",")):
        kind = next((kind for kind in (_TOPIC, SUPPLIER) if rule.startswith(kind)), "")
        if rule == kind:
            problem = f"{kind} without a name" if kind else "an empty entry"
            raise ValueError(f"has {problem}; write {', '.join(_RULES)}, separated by commas")
        rules[kind].add(rule.removeprefix(kind) if kind else choose(rule, _RULES))
    plain, topics, suppliers = rules.values()
    if "all" in plain:
        return EVERYTHING
    return Shadow(False, "factor" in plain, "topics" in plain, frozenset(topics), frozenset(suppliers))


Shadowed = Annotated[
    Shadow,
    BeforeValidator(_shadow),
    Unit(
        f"rules, comma-separated: {', '.join(_RULES)}",
        lambda shadow: "all" if shadow.everything else ", ".join(shadow.names()) or "none",
    ),
]
