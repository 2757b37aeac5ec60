"""The types of properties that are not sizes, rates or durations: names, principals, choices, texts, ports.

Each type is an annotation that carries its parser (text in, value out, ``ValueError`` with a remedy) and the unit that
the README and ``doctor`` show. Sizes, rates and durations are in ``quotahost.units``. Plugins' own sections may use
these types too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import partial
from typing import Annotated, Any, Final, Literal, TypeVar, get_args

from pydantic import AfterValidator, BeforeValidator, GetCoreSchemaHandler
from pydantic_core import CoreSchema
from pydantic_core.core_schema import no_info_before_validator_function

from quotahost.model import QuotaType, State
from quotahost.text import nearest
from quotahost.units.parse import parse_count, parse_share
from quotahost.units.show import COUNT, Unit

_NAME: Final = re.compile(r"[A-Za-z0-9_-]+")
_USER: Final = "User:"
_T = TypeVar("_T")
_S = TypeVar("_S", bound=str)


def split(value: object, separator: str) -> list[str]:
    """The trimmed parts of a list in one text; an empty text has none."""
    text = str(value).strip()
    return [part.strip() for part in text.split(separator)] if text else []


def distinct(items: list[_T]) -> tuple[_T, ...]:
    """The items.

    Raises:
        ValueError: one is there twice.
    """
    twice = [item for item in items if items.count(item) > 1]
    if twice:
        raise ValueError(f"has {str(twice[0])!r} twice; remove one")
    return tuple(items)


def _listed(separator: str) -> Callable[[Any], str]:
    return lambda values: separator.join(map(str, values)) or "none"


def _name(value: object) -> str | None:
    text = str(value or "").strip()
    if text and not _NAME.fullmatch(text):  # a dot, for one, would end NAME in plugin.NAME.*
        raise ValueError("is not one entry point name; write letters, digits, - and _, as `quotahost plugins` shows")
    return text or None


def _names(value: object) -> tuple[str, ...]:
    parts = split(value, ",")
    names = [name for name in map(_name, parts) if name]
    if len(names) != len(parts):
        raise ValueError("has an empty name; separate names by one comma each")
    return distinct(names)


def _some(names: tuple[str, ...]) -> tuple[str, ...]:
    if not names:
        raise ValueError("is empty; name at least one supplier, such as client-quotas")
    return names


def _or_none(value: object) -> str:
    return str(value or "none")


Name = Annotated[str | None, BeforeValidator(_name), Unit("name", _or_none)]
Names = Annotated[tuple[str, ...], BeforeValidator(_names), Unit("names, comma-separated", _listed(", "))]
SomeNames = Annotated[Names, AfterValidator(_some)]


def _part(value: object) -> float:
    part = parse_share(value)
    if part is None:
        raise ValueError("must be from 0 to 1; write 0.1, 10%, or 0 for none of it")
    return part


# 0 to 1, written 0.1 or 10%.
Part = Annotated[float, BeforeValidator(_part), Unit("share, 0.0 to 1.0", lambda part: f"{part:g}")]


def _principals(value: object) -> tuple[str, ...]:
    # Strimzi's plugin takes a principal that is there twice, and empty entries; so does this.
    # A dict, unlike a set, keeps the operator's order.
    return tuple(dict.fromkeys(_principal(part) for part in split(value, ";") if part))


def _principal(text: str) -> str:
    """The name in ``User:a``, as Strimzi writes it, or in ``a``."""
    name = text.removeprefix(_USER).strip()
    if ":" in name and not text.startswith(_USER):
        kind = text.partition(":")[0]
        raise ValueError(f"has a principal of type {kind!r}; write {_USER}{text} if this is a user's name")
    if not name:
        raise ValueError(f"has {_USER} without a name; write {_USER}name")
    # In Kafka's ACLs User:* is everybody; taken literally here it would exempt nobody.
    if name == "*":
        raise ValueError("has the wildcard *, but names are taken as they are; list each principal")
    return name


Principals = Annotated[tuple[str, ...], BeforeValidator(_principals), Unit("principals, `;`-separated", _listed("; "))]


def choose(value: object, options: Iterable[_S]) -> _S:
    """The option of this name, whatever its case and with ``-`` for ``_``.

    Raises:
        ValueError: none of the options; it names them and the nearest.
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
    """Makes a ``Literal`` take its options as :func:`choose` does, where pydantic's own is case-sensitive."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        options = get_args(source)
        return no_info_before_validator_function(partial(choose, options=options), handler(source))


def _quota_types(value: object) -> tuple[QuotaType, ...]:
    types = distinct([choose(part, QuotaType) for part in split(value, ",")])
    if not types:
        raise ValueError("is empty; name at least one quota type, such as PRODUCE")
    return types


ONE_OF: Final = _OneOf()
Action = Annotated[Literal[State.PAUSE, State.OPEN], ONE_OF]
Combination = Annotated[Literal["first", "most-constraining"], ONE_OF]
FencedBrokers = Annotated[Literal["last-known", "unknown"], ONE_OF]
Creation = Annotated[Literal["refuse", "allow"], ONE_OF]
FactorScope = Annotated[Literal["cluster", "topics"], ONE_OF]
Mode = Annotated[Literal["enforce", "shadow"], ONE_OF]
Sharing = Annotated[Literal["client", "user", "client-id", "broker"], ONE_OF]
QuotaTypes = Annotated[
    tuple[QuotaType, ...], BeforeValidator(_quota_types), Unit("quota types, comma-separated", _listed(", "))
]


def _text(value: object) -> str:
    text = str(value).strip()
    if not text:
        raise ValueError("is empty; write a value or remove the line")
    return text


def _port(value: object) -> int | None:
    if value is None or not str(value).strip():
        return None
    port = parse_count(value)
    if port > 65535:
        raise ValueError("is no port; write a whole number from 1 to 65535")
    return port


def _few(value: object) -> int:
    """A whole number from 0 to 10,000."""
    few = 0 if str(value).strip() == "0" else parse_count(value)
    if few > _FEW:
        raise ValueError(f"must be a whole number from 0 (none) to {_FEW:,}")
    return few


_FEW: Final = 10_000
Few = Annotated[int, BeforeValidator(_few), COUNT]
Text = Annotated[str, BeforeValidator(_text)]
Port = Annotated[int | None, BeforeValidator(_port), Unit("port", lambda v: "off" if v is None else str(v))]
