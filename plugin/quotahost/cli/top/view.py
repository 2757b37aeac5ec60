"""What one look finds: the state that all clients share, and a row for each scope and quota type."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from quotahost.host.messages import plain
from quotahost.model import State
from quotahost.model.client_use import ClientUse


@dataclass(frozen=True, slots=True)
class Look:
    """One look at a broker.

    Attributes:
        where: whom the rows are of: "broker 1 (pid 42)".
        state: the state in force.
        factor: the factor in force, 1 without a factor source.
        limit_factor: what limits are multiplied by at the moment, on their way to the factor.
        cause: why the factor is below 1, "" if it isn't.
        fence: "open", "closed", or "none".
        affected: how many topics the factor is for; -1 if it is for all clients.
        clients, clients_max: the places of the table that are taken, and all.
        uses: who uses what; those who are held back come first.
    """

    where: str
    state: State
    factor: float
    limit_factor: float
    cause: str
    fence: str
    affected: int
    clients: int
    clients_max: int
    uses: Sequence[ClientUse]


def parse(lines: Iterable[str]) -> Look:
    """A broker's answer to the question ``watch`` of ``org.quotahost.explain.Explain``.

    Raises:
        ValueError: these are not the lines of this version.
    """
    rows = [[plain(field) for field in line.split("\t")] for line in lines]
    ((pid, node),) = (row[1:] for row in rows if row[0] == "broker")
    state = {row[1]: row[2] for row in rows if row[0] == "state"}
    try:
        return Look(
            f"broker {node or 'of unknown id'} (pid {pid})",
            State(state["state"]),
            float(state["factor"]),
            float(state["limit-factor"]),
            state["cause"],
            _fence(state),
            int(state["affected-topics"]),
            int(state["clients"]),
            int(state["clients-max"]),
            [ClientUse.of(row[1:]) for row in rows if row[0] == "uses"],
        )
    except KeyError as missing:
        raise ValueError(f"{missing} is missing") from None


def _fence(state: Mapping[str, str]) -> str:
    if state["fence-installed"] != "true":
        return "none"
    return "closed" if state["fence-closed"] == "true" else "open"
