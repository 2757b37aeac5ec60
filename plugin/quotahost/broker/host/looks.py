"""Asks the shim who uses what of this broker (``Shim.ask``), in the values in which everybody else speaks of it.

``quotahost top`` asks the same questions from another process, and reads the answers with ``parse``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import unquote

from quotahost.broker.host.dump import Ask, Row, of_this_version, quota_of, state_of, use_of
from quotahost.broker.host.messages import Gauge
from quotahost.model import Client, ClientUsage, QuotaType, VolumeUse
from quotahost.model.use import ClientUse, Look

_MARKS: Final = 10


def look(ask: Ask, most: int) -> Look:
    """What ``quotahost top`` shows of this broker, with at most so many scopes' use.

    Raises:
        ConnectionError: Java can't answer.
    """
    # One more tells whether there are more.
    dump = ask("uses", str(most + 1)) if most else {"state": ask("state"), "uses": []}
    return parse(dump, volumes_of(gauges(ask)), marks(ask, _MARKS)).first(most)


def parse(dump: Row, volumes: Sequence[VolumeUse] = (), marked: Sequence[tuple[Client, str]] = ()) -> Look:
    """A look from the answer to the question ``uses``, and what was asked besides.

    Raises:
        ValueError: the answer is that of another version.
    """
    with of_this_version():
        state = state_of(dump["state"])
        uses = [use_of(state, row) for row in dump["uses"]]
    return Look(
        state.where, state.state, state.factor, state.limit_factor, state.cause, state.fence, state.affected_topics,
        state.clients, state.clients_max, uses, left_out=False, volumes=volumes, marks=marked,
    )  # fmt: skip


def uses(ask: Ask, most: int) -> list[ClientUse]:
    """At most so many scopes that Kafka measures, those held back first, then the busiest of each type.

    A call takes some microseconds for each scope that was in use in the last two minutes, and no request waits.
    """
    return list(parse(ask("uses", str(most))).uses) if most else []


def usage(ask: Ask, most: int) -> list[ClientUsage]:
    """At most so many clients that have a quota of their own, busiest first."""
    answer = ask("usage", str(most))
    state, found = state_of(answer["state"]), []
    for row in answer["usage"]:
        quota = quota_of(state, row)
        if quota.rate is not None and not quota.exempt:
            delay = (quota.delay or 0.0) / 1000
            user = unquote(quota.user)
            found.append(ClientUsage(user, quota.client_id, quota.type, quota.rate, quota.limit, delay, quota.idle))
    return found


def marks(ask: Ask, most: int) -> list[tuple[Client, str]]:
    """At most so many clients that lately asked to write to an affected topic, with that topic."""
    return [(Client(principal, client_id), topic) for principal, client_id, topic in ask("marks", str(most))]


def gauges(ask: Ask) -> list[Gauge]:
    """All numbers of the shim as they are now."""
    return [Gauge(type, name, attribute, float(value)) for type, name, attribute, value in ask("gauges")]


def numbers_of(shown: Iterable[Gauge]) -> Mapping[str, Mapping[str, float]]:
    """By volume, what the host shows of it (``broker.disks.monitor``, ``broker.host.volume_limits``)."""
    numbers: dict[str, dict[str, float]] = defaultdict(dict)
    for each in shown:
        if each.type in ("Volume", "VolumeLimits"):
            numbers[each.name][each.attribute] = each.value
    return numbers


def volumes_of(shown: Iterable[Gauge]) -> list[VolumeUse]:
    """The volumes of which the host shows how full they are."""
    return [
        VolumeUse(name, found["Capacity"], found["Consumed"], *map(found.get, ("Soft", "Hard", "Factor")))
        for name, found in sorted(numbers_of(shown).items())
        if {"Capacity", "Consumed"} <= found.keys()  # the two types don't come and go at one moment
    ]


def explained(ask: Ask, client: Client) -> Row:
    """What Java says of a client, and what is measured of the scopes that suppliers in shadow would make.

    Raises:
        ValueError: the answer is that of another version.
    """
    answer: dict[str, Any] = ask("client", *client)
    with of_this_version():
        if any(row["shadow"] for row in answer["client"]["quotas"]):
            answer["would_be_rates"] = _would_be_rates(ask, answer["client"])
    return answer


def _would_be_rates(ask: Ask, client: Row) -> dict[str, float | None]:
    """By quota type, the rate that is measured of the scope in which a supplier in shadow would put the client."""
    # Only here: nobody else who looks needs the comparison, and it needs the settings, which take long to import.
    from quotahost.broker.host.comparison import compare
    from quotahost.broker.host.would_be import would_be

    rates = compare(ask).rates
    found: dict[str, float | None] = {}
    for row in client["quotas"]:
        kind = QuotaType(row["type"])
        if (would := would_be(row["shadow"], kind)) is not None:
            found[kind.value] = rates.get((kind, would.tags(client["principal"], client["client_id"])))
    return found
