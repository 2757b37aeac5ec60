"""The types of a file's fields: names, addresses and rates, each with a parser whose error says what to write."""

from __future__ import annotations

import ipaddress
import math
import re
from typing import Annotated, Any, Final

from pydantic import BeforeValidator

from quotahost.declared.entities import DEFAULT, DEFAULT_NAME, Default
from quotahost.units.parse import MAX_COUNT, MAX_SIZE, UNLIMITED, parse_percent, parse_quantity

_HOST: Final = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_.])?")
_LEAVE_OUT: Final = "leave the key out, which leaves the next level's quota, or write a large rate such as 1000T"


def parse_name(value: object) -> str | Default:
    """A name, or Kafka's default; a name that looks like the default stands in a mapping, ``{name: <default>}``.

    Raises:
        ValueError: it is neither.
    """
    if isinstance(value, dict) and list(value) == ["name"]:
        value = value["name"]
    elif value == DEFAULT_NAME:
        return DEFAULT
    if not isinstance(value, str) or not value:
        raise ValueError(f"is no name; write one, or {DEFAULT_NAME}; Kafka has no quotas for the empty name")
    return value


def parse_address(value: object) -> str | Default:
    """An IP address, a host's name that brokers can resolve, or Kafka's default.

    Raises:
        ValueError: it is none of them.
    """
    name = parse_name(value)
    if name is DEFAULT or _HOST.fullmatch(str(name)):
        return name
    try:
        ipaddress.ip_address(str(name))
    except ValueError:
        raise ValueError(f"is no address; write one such as 10.0.0.7, a host's name, or {DEFAULT_NAME}") from None
    return name


def parse_whole(value: object, most: int = MAX_SIZE) -> float:
    """A whole number a second, above 0, with the units of sizes.

    Raises:
        ValueError: it is none; Kafka would refuse it.
    """
    number = _above_0(value, parse_quantity)
    if number != math.floor(number):
        raise ValueError("is no whole number, and Kafka takes no other here; round it")
    if number > most:
        raise ValueError(f"is above {most}, the most that Kafka takes; {_LEAVE_OUT}")
    return number


def _above_0(value: object, parse: Any) -> float:
    if value is None:
        raise ValueError("is empty; write a rate such as 10M, or leave the key out")
    if value == UNLIMITED:
        raise ValueError(f"can't be {UNLIMITED} in Kafka; {_LEAVE_OUT}")
    return float(parse(value))


def parse_cluster_rate(value: object) -> float:
    """A rate above 0, or ``unlimited``, which is infinity here.

    Raises:
        ValueError: it is neither.
    """
    return math.inf if value == UNLIMITED else _above_0(value, parse_quantity)


# None only where the key is left out: a key without a value is a mistake.
Name = Annotated[str | Default | None, BeforeValidator(parse_name)]
Address = Annotated[str | Default | None, BeforeValidator(parse_address)]
Whole = Annotated[float | None, BeforeValidator(parse_whole)]
Count = Annotated[float | None, BeforeValidator(lambda value: parse_whole(value, MAX_COUNT))]
Percent = Annotated[float | None, BeforeValidator(lambda value: _above_0(value, parse_percent))]
Rate = Annotated[float | None, BeforeValidator(lambda value: _above_0(value, parse_quantity))]
ClusterRate = Annotated[float | None, BeforeValidator(parse_cluster_rate)]
