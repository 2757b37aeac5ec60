"""Reading entry point names, principals and lists of them."""

from __future__ import annotations

import re
from typing import Final, TypeVar

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
