"""This module tells ``top``, ``explain``, JMX and plugins who uses what, a client's quotas, volumes and retentions.

Plugins ask through ``Context.broker`` (``broker.HostBroker``), ``quotahost top`` and ``explain`` through the admin
socket, and Prometheus through ``exporter``. All of them get Java's raw dump (``Shim.ask``), interpreted by ``dump``. If
Java needs an answer from the host, it sends an event (``answer_question``).
"""

import json
import math
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from quotahost.broker.host.dump import Ask, BrokerState, Row, of_this_version, quota_of, whose
from quotahost.broker.host.messages import Gauge, gauges, numbers_of, would_be
from quotahost.model import Client, QuotaType, VolumeUse
from quotahost.model.use import BUDGET_PREFIX, ClientUse, Look
from quotahost.units.show import show_factor

if TYPE_CHECKING:  # `explain` imports this module, and the shim's imports (settings) take long
    from quotahost.broker.host.protocol import Shim

#: Returns a budget's largest topics on this broker (``disks.budgets.BudgetSizes.largest``).
Largest: TypeAlias = Callable[[str], Sequence[Sequence[Any]]]
_MARKS: Final = 10
_BUDGETS: Final = 3  # the most budgets that a cause names
#: The topic properties that decide which data a broker deletes, and when.
RETENTION: Final = frozenset({
    "retention.ms", "retention.bytes", "cleanup.policy", "remote.storage.enable", "local.retention.ms",
    "local.retention.bytes",
})  # fmt: skip


def look(ask: Ask, most: int) -> Look:
    """This broker's status for ``quotahost top``. Raises ConnectionError if Java can't answer."""
    # Ask for one more, to know whether some are left out.
    dump = ask("uses", str(most + 1)) if most else {"state": ask("state"), "uses": []}
    shown = gauges(ask)
    return parse(dump, [*volumes_of(shown), *budgets_of(shown)], marks(ask, _MARKS)).first(most)


def parse(dump: Row, volumes: Sequence[VolumeUse] = (), marked: Sequence[tuple[Client, str]] = ()) -> Look:
    """The broker's status from Java's answer to ``uses``. Raises ValueError if another version of quotahost made it."""
    with of_this_version():
        state = BrokerState.of(dump["state"])
        uses = [use_of(state, row) for row in dump["uses"]]
    shadow = " (in shadow)" if state.factor_in_shadow else ""
    causes = [f"{state.told_cause}{shadow}"] if state.told_cause else []
    for types, factor, cause in state.slowed_types:
        causes.append(f"{', '.join(types)} x{show_factor(factor)}{shadow}: {cause}")
    # A budget slows its writers, or turns them back at factor 0, whatever the factor of the volumes is.
    slow = sorted((at, use.budget) for use in volumes if use.budget and (at := use.factor) is not None and at < 1)
    causes += [f"budget {name} x{show_factor(factor)}{shadow} for its writers" for factor, name in slow[:_BUDGETS]]
    return Look(
        state.where, state.state, state.factor, state.limit_factor, "; ".join(causes), state.fence,
        state.affected_topics, state.clients, state.clients_max, uses, left_out=False, volumes=volumes, marks=marked,
    )  # fmt: skip


# ---- who uses what ---------------------------------------------------------------------------------------------


def use_of(state: BrokerState, row: Row) -> ClientUse:
    """A row of the dump as a ClientUse. Raises ValueError if another version of quotahost made the row."""
    quota = quota_of(state, row)
    would_hold = state.would_hold.get((quota.type.value, quota.user, quota.client_id), "")
    return ClientUse(
        quota.type, *whose(quota.user, quota.client_id), quota.rate or 0.0, quota.base, quota.limit,
        quota.delay or 0.0, quota.bound, quota.idle, would_hold, row.get("address") or "",
    )  # fmt: skip


def uses(ask: Ask, most: int) -> list[ClientUse]:
    """At most ``most`` scopes with a rate or held back. Scopes held back come first, then the busiest of each type.

    A call takes some microseconds for each scope that was in use in the last two minutes.
    """
    return [use for use in parse(ask("uses", str(most))).uses if use.rate or use.is_held_back] if most else []


def usage(ask: Ask, most: int) -> list[ClientUse]:
    """At most ``most`` clients that have a quota of their own, busiest first."""
    answer = ask("usage", str(most))
    state = BrokerState.of(answer["state"])
    return [use_of(state, row) for row in answer["usage"] if row["rate"] is not None and not row["exempt"]]


def marks(ask: Ask, most: int) -> list[tuple[Client, str]]:
    """At most ``most`` clients that recently asked to write to an affected topic, each with that topic."""
    return [(Client(principal, client_id), topic) for principal, client_id, topic in ask("marks", str(most))]


def columns(use: ClientUse) -> list[str | float]:
    """The columns of a row in JMX's table (``org.quotahost.metrics.ClientTable``); NaN is unlimited."""
    numbers = (use.rate, use.quota, use.limit, use.share, use.delay_ms)
    shown = (math.nan if number is None else float(number) for number in numbers)
    return [use.user, use.client_id, use.scope, use.quota_type, *shown, use.bound_by]


# ---- one client ------------------------------------------------------------------------------------------------


def explained(ask: Ask, client: Client, largest: Largest) -> Row:
    """Java's answer about a client, with its would-be rates and budget. Raises ValueError if of another version."""
    answer: dict[str, Any] = ask("client", *client)
    with of_this_version():
        if any(row["shadow"] for row in answer["client"]["quotas"]):
            answer["would_be_rates"] = _would_be_rates(ask, answer["client"])
        if name := (answer["client"]["mark"] or {}).get("budget"):
            budget = next((use for use in budgets_of(gauges(ask)) if use.budget == name), VolumeUse(name, 0, 0))
            answer["budget"] = {"used": budget.consumed, "bytes": budget.capacity, "largest": largest(name)}
    return answer


def _would_be_rates(ask: Ask, client: Row) -> dict[str, float | None]:
    """The measured rate of the scope in which a supplier in shadow would put the client, by quota type."""
    # Imported here, because shadow imports the settings, which take long, and no other answer needs it.
    from quotahost.broker.host.shadow import compare

    measured = compare(ask).rates
    rates: dict[str, float | None] = {}
    for row in client["quotas"]:
        kind = QuotaType(row["type"])
        if (would := would_be(row["shadow"], kind)) is not None:
            rates[kind.value] = measured.get((kind, would.tags(client["principal"], client["client_id"])))
    return rates


# ---- numbers and volumes ---------------------------------------------------------------------------------------


def volumes_of(shown: Iterable[Gauge]) -> list[VolumeUse]:
    return [
        VolumeUse(name, numbers["Capacity"], numbers["Consumed"], *map(numbers.get, ("Soft", "Hard", "Factor")))
        for name, numbers in sorted(numbers_of(shown).items())
        if {"Capacity", "Consumed"} <= numbers.keys()  # Volume and VolumeLimits don't appear at the same moment
    ]


def budgets_of(shown: Iterable[Gauge]) -> list[VolumeUse]:
    """The budgets of storage, each as a volume (``VolumeUse.budget``), by smallest factor, then the fullest first."""
    uses = [
        VolumeUse(BUDGET_PREFIX + name, numbers["Bytes"], numbers["Used"], None, numbers["Bytes"], numbers["Factor"])
        for name, numbers in sorted(numbers_of(shown, "Budget").items())
        if {"Bytes", "Used", "Factor"} <= numbers.keys()
    ]
    return sorted(uses, key=lambda use: (use.factor, -use.consumed / max(use.capacity, 1)))


# ---- Java's questions ------------------------------------------------------------------------------------------

#: A few threads that never end: JPype 1.7.1 leaks 7 KB for each thread that has called Java.
_THREADS: Final = ThreadPoolExecutor(8, "quotahost-question")


def answer_question(shim: "Shim", ticket: str, words: Sequence[str], largest: Largest = lambda name: ()) -> None:
    """Answer a question like ``retention a,b``. The ticket goes back with the answer, or with an error as JSON.

    A pool thread answers, so that the host thread isn't blocked: the cluster may take ten seconds to answer, and a
    table of 50,000 clients takes long.
    """

    def answer() -> object:
        try:
            match words:
                # (topic, name, value) of each property; a topic that doesn't exist has none.
                case ["retention", topics]:
                    rows = shim.configs("TOPIC", topics.split(",")) if topics else []
                    return json.dumps([(row.owner, row.name, row.value) for row in rows if row.name in RETENTION])
                case ["budget", name]:
                    return json.dumps(largest(name))
                # Java asks only when a JMX client reads the table, and shows an empty table for an error.
                case _:  # "clients-table" and the maximum number of rows
                    return list(map(columns, uses(shim.ask, int(words[1]))))
        # Any exception, because it may come from Java, and Java must get it as the answer.
        except Exception as failure:
            return json.dumps({"error": str(failure)})

    _THREADS.submit(lambda: shim.answer(ticket, answer()))
