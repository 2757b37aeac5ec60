"""The types of properties that are not sizes, rates or durations: names, choices, texts, ports."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Annotated, Any, Final, Literal, TypeVar

from pydantic import BeforeValidator

from quotahost.model import QuotaType, State
from quotahost.text import nearest
from quotahost.units.parse import parse_count
from quotahost.units.show import Unit

_NAME: Final = re.compile(r"[A-Za-z0-9_-]+")


_USER: Final = "User:"


_T = TypeVar("_T")


def parse_name(value: object) -> str | None:
    """An entry point name; nothing is None.

    Raises:
        ValueError: more than letters, digits, ``-`` and ``_`` (a dot would end NAME in plugin.NAME.*).
    """
    text = str(value or "").strip()
    if text and not _NAME.fullmatch(text):
        raise ValueError(
            "is not one entry point name; write letters, digits, - and _, as `quotahost plugins` shows"
        )
    return text or None


def parse_names(value: object) -> tuple[str, ...]:
    """Comma-separated entry point names, none of them twice.

    Raises:
        ValueError: an empty or ill-formed name, or the same name twice.
    """
    parts = split(value, ",")
    names = [name for name in map(parse_name, parts) if name]
    if len(names) != len(parts):
        raise ValueError("has an empty name; separate names by one comma each")
    return distinct(names)


def parse_some_names(value: object) -> tuple[str, ...]:
    """As :func:`parse_names`, at least one.

    Raises:
        ValueError: see parse_names, or no name.
    """
    names = parse_names(value)
    if not names:
        raise ValueError("is empty; name at least one supplier, such as client-quotas")
    return names


def parse_principals(value: object) -> tuple[str, ...]:
    """Principal names from ``User:a;User:CN=b,OU=c`` as Strimzi writes them; ``User:`` may be left out.

    Raises:
        ValueError: another principal type, an empty name, or a wildcard.
    """
    principals = [_principal(part) for part in split(value, ";") if part]
    return tuple(dict.fromkeys(principals))


def _principal(text: str) -> str:
    name = text.removeprefix(_USER).strip()
    if ":" in name and not text.startswith(_USER):
        kind = text.partition(":")[0]
        raise ValueError(f"has a principal of type {kind!r}; write {_USER}{text} if this is a user's name")
    if not name:
        raise ValueError(f"has {_USER} without a name; write {_USER}name")
    if name == "*":
        raise ValueError("has the wildcard *, but names are taken as they are; list each principal")
    return name


def split(value: object, separator: str) -> list[str]:
    """The trimmed parts of a list in one text; nothing has none."""
    if isinstance(value, list | tuple):
        return [str(part).strip() for part in value]
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


# TODO(merge) Reading entry point names, principals and lists of them.


def parse_quota_types(value: object) -> tuple[QuotaType, ...]:
    """Comma-separated quota types, at least one, none of them twice.

    Raises:
        ValueError: an unknown type, one twice, or none.
    """
    types = distinct([QuotaType(choose(part, QuotaType)) for part in split(value, ",")])
    if not types:
        raise ValueError("is empty; name at least one quota type, such as PRODUCE")
    return types


def choose(value: object, options: Iterable[str]) -> str:
    """The option of this name, whatever its case and with ``-`` for ``_``.

    Raises:
        ValueError: none of the options; it names them and the nearest.
    """
    known = [str(option) for option in options]
    folded = {option.lower().replace("-", "_"): option for option in known}
    text = str(value).strip().lower().replace("-", "_")
    if text in folded:
        return folded[text]
    like = nearest(text, folded)
    hint = f"; did you mean {folded[like]}?" if like else ""
    raise ValueError(f"{str(value).strip()!r} is none of {', '.join(known)}{hint or '; write one of these'}")


def parse_text(value: object) -> str:
    """Any text but the empty one.

    Raises:
        ValueError: it is empty.
    """
    text = str(value).strip()
    if not text:
        raise ValueError("is empty; write a value or remove the line")
    return text


def parse_port(value: object) -> int | None:
    """A TCP port; nothing is None.

    Raises:
        ValueError: not a whole number from 1 to 65535.
    """
    if value is None or not str(value).strip():
        return None
    port = parse_count(value)
    if port > 65535:
        raise ValueError("is no port; write a whole number from 1 to 65535")
    return port


def parse_second(value: object) -> str | None:
    """The entry point name of a factor source that stands in for ``cluster-volumes``; ``none`` is None.

    Raises:
        ValueError: it is no name, or ``cluster-volumes`` itself.
    """
    name = parse_name(value)
    if name == "cluster-volumes":
        raise ValueError("can't stand in for itself; write snapshots, another factor source, or none")
    return None if name == "none" else name


def _one_of(*options: str) -> BeforeValidator:
    return BeforeValidator(lambda value: choose(value, options))


def _listed(separator: str) -> Callable[[Any], str]:
    return lambda values: separator.join(map(str, values)) or "none"


_NAMES: Final = Unit("names, comma-separated", _listed(", "))


Name = Annotated[str | None, BeforeValidator(parse_name), Unit("name", lambda value: value or "none")]


SecondName = Annotated[
    str | None, BeforeValidator(parse_second), Unit("name, or `none`", lambda value: value or "none")
]


Names = Annotated[tuple[str, ...], BeforeValidator(parse_names), _NAMES]


SomeNames = Annotated[tuple[str, ...], BeforeValidator(parse_some_names), _NAMES]


Principals = Annotated[
    tuple[str, ...], BeforeValidator(parse_principals), Unit("principals, `;`-separated", _listed("; "))
]


QuotaTypes = Annotated[
    tuple[QuotaType, ...],
    BeforeValidator(parse_quota_types),
    Unit("quota types, comma-separated", _listed(", ")),
]


Action = Annotated[Literal[State.PAUSE, State.OPEN], _one_of("PAUSE", "OPEN"), Unit("PAUSE, OPEN", str)]


Combination = Annotated[
    Literal["first", "most-constraining"],
    _one_of("first", "most-constraining"),
    Unit("first, most-constraining", str),
]


Mode = Annotated[Literal["enforce", "shadow"], _one_of("enforce", "shadow"), Unit("enforce, shadow", str)]


Sharing = Annotated[
    Literal["client", "user", "client-id", "broker"],
    _one_of("client", "user", "client-id", "broker"),
    Unit("client, user, client-id, broker", str),
]


Text = Annotated[str, BeforeValidator(parse_text)]


Port = Annotated[
    int | None, BeforeValidator(parse_port), Unit("port", lambda v: "off" if v is None else str(v))
]
