"""What a broker tells of one client: the lines of ``org.quotahost.explain.Explain``, as values."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from quotahost.host.messages import plain
from quotahost.model import Client, QuotaType, State

_FIELDS: Final = 14


@dataclass(frozen=True, slots=True)
class Held:
    """What the table holds for the client and one quota type; rates in the type's unit a second.

    Attributes:
        user: the user of Kafka's metric tags, sanitized; they say who shares the quota.
        client_id: the client-id of the tags.
        base: the quota's rate; None is unlimited.
        limit: what Kafka is handed; None is unlimited.
        supplier: who gave it, or why it is exempt; of a newcomer the supplier that failed; "" for nobody.
        others: what the other suppliers would have given, where all are asked (supplier.combine).
        stand_in: what the factor acts on in the place of an unlimited rate; None if it needs nothing.
        is_stand_in_measured: it was measured when the factor fell; else it is the newcomers' rate.
        floored: the limit is the floor, the factor would have taken it lower.
        failed: a supplier has failed for this client of late.
        rate: what Kafka measures for all who share the quota; None if it measures nothing.
        delay: by how much Kafka has delayed them of late, in ms; None if it hasn't.
    """

    type: QuotaType
    user: str
    client_id: str
    base: float | None
    limit: float | None
    newcomer: bool
    supplier: str
    exempt: bool
    stand_in: float | None
    is_stand_in_measured: bool
    floored: bool
    failed: bool
    rate: float | None
    delay: float | None
    others: tuple[tuple[str, float | None], ...] = ()


@dataclass(frozen=True, slots=True)
class Told:
    """A broker's whole answer.

    Attributes:
        factor: what the host aims at; ``limit_factor`` is what limits are multiplied by now.
        factored: the quota types on which it acts.
        fence_passes: whether the client goes on while the fence is closed.
        topics_threshold: bytes/s that the broker is expected to take in; 0 without topic quotas.
        topics_rate: bytes/s that it does take in.
        topics_over: the topics that producers are turned back from now.
        source: the factor source that answers, where one stands in for another; "" where none does.
    """

    pid: str
    node: str
    client: Client
    shadow: bool
    state: State
    factor: float
    limit_factor: float
    cause: str
    factored: frozenset[str]
    fence_installed: bool
    fence_closed: bool
    fence_passes: bool
    topics_threshold: float
    topics_rate: float
    topics_over: tuple[str, ...]
    source: str
    table_full: bool
    held: tuple[Held, ...]


def escaped(text: str) -> str:
    """As an argument that survives every locale: printable ASCII, all else in Java's ``\\uXXXX``."""
    units = memoryview(text.encode("utf-16-be", "surrogatepass")).cast("B")
    codes = (units[at] << 8 | units[at + 1] for at in range(0, len(units), 2))
    return "".join(chr(c) if 0x20 <= c <= 0x7E and c != 0x5C else f"\\u{c:04x}" for c in codes)


def parse(lines: Iterable[str], client: Client) -> Told:
    """The answer out of its lines.

    Raises:
        ValueError, KeyError: these are not the lines of this version's Explain.
    """
    rows = [[plain(field) for field in line.split("\t")] for line in lines]
    ((pid, node),) = (row[1:] for row in rows if row[0] == "broker")
    told = {row[1]: row[2] for row in rows if row[0] == "state"}
    return Told(
        pid=pid,
        node=node,
        client=client,
        shadow=told["mode"] == "shadow",
        state=State(told["state"]),
        factor=float(told["factor"]),
        limit_factor=float(told["limit-factor"]),
        cause=told["cause"],
        factored=frozenset(told["factor-types"].split(",")),
        fence_installed=told["fence-installed"] == "true",
        fence_closed=told["fence-closed"] == "true",
        fence_passes=told["fence-passes"] == "true",
        topics_threshold=float(told["topics-threshold"]),
        topics_rate=float(told["topics-rate"]),
        topics_over=tuple(filter(None, told["topics-over"].split(","))),
        source=told["source"],
        table_full=int(told["clients"]) >= int(told["clients-max"]),
        held=tuple(_held(row[1:]) for row in rows if row[0] == "quota"),
    )


def _held(row: list[str]) -> Held:
    if len(row) < _FIELDS:
        raise ValueError(f"{len(row)} fields where {_FIELDS} are needed")
    supplier, *others = row[6].split("\t")
    return Held(
        type=QuotaType(row[0]),
        user=row[1],
        client_id=row[2],
        base=_number(row[3]),
        limit=_number(row[4]),
        newcomer=row[5] == "newcomer",
        supplier=supplier,
        exempt=row[7] == "true",
        stand_in=_number(row[8]),
        is_stand_in_measured=row[10] == "measured",
        floored=row[9] == "true",
        failed=row[11] == "true",
        rate=_number(row[12]),
        delay=_number(row[13]),
        others=tuple((name, _number(rate)) for name, _, rate in (each.partition("=") for each in others)),
    )


def _number(text: str) -> float | None:
    value = math.nan if text == "null" else float(text)
    return value if math.isfinite(value) else None
