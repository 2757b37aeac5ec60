"""A broker's answers about its volumes: the lines of ``org.quotahost.host.VolumeState``, as values."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from quotahost.host.messages import plain
from quotahost.model import Client, State


@dataclass(frozen=True, slots=True)
class BrokerVolumes:
    """What the broker knows.

    Attributes:
        pid: the process id of the broker, "" if it is on another machine.
        node: its node id, "" if it isn't known.
        state: the state in force on it.
        factor: the factor in force.
        cause: why that is below 1, "" if it isn't.
        directories: its log directories.
        numbers: by volume, the attributes of its MBeans Volume and VolumeLimits; without a monitor of disks none.
        clients: those that produce most, with their bytes/s; only clients that have a quota of their own.
        marks: the clients that lately asked to write to an affected topic, with that topic (``factor.scope=topics``).
    """

    pid: str
    node: str
    state: State
    factor: float
    cause: str
    directories: Sequence[str]
    numbers: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    clients: Sequence[tuple[Client, float]] = ()
    marks: Sequence[tuple[Client, str]] = ()


def parse(lines: Iterable[str]) -> BrokerVolumes:
    """The broker's answer to the question ``volumes``.

    Raises:
        ValueError: these are not the lines of this version's VolumeState.
    """
    # Principals and client-ids may hold anything, so the fields are divided before they are unescaped.
    rows = [[plain(part) for part in line.split("\t")] for line in lines]
    ((pid, node),) = (row[1:] for row in rows if row[0] == "broker")
    facts: dict[str, list[list[str]]] = defaultdict(list)
    for _, kind, *fields in (row for row in rows if row[0] == "volumes"):
        facts[kind].append(fields)
    state = {name: value for name, value in facts["state"]}  # noqa: C416
    numbers: dict[str, dict[str, float]] = defaultdict(dict)
    for volume, attribute, value in facts["gauge"]:
        numbers[volume][attribute] = float(value)
    clients = [(Client(user, client_id), float(rate)) for user, client_id, rate in facts["client"]]
    marks = [(Client(user, client_id), topic) for user, client_id, topic in facts["mark"]]
    try:
        return BrokerVolumes(
            pid, node, State(state["state"]), float(state["factor"]), state["cause"],
            [path for (path,) in facts["dir"]], dict(numbers), clients, marks,
        )  # fmt: skip
    except KeyError as missing:
        raise ValueError(f"{missing} is missing") from None


def parse_retention(lines: Iterable[str]) -> tuple[dict[str, dict[str, str]], str]:
    """By topic what its properties of retention are, and why they are unknown, "" if they are known."""
    rows = [[plain(part) for part in line.split("\t")][1:] for line in lines if line.startswith("retention\t")]
    # The first line of a Reply is empty, or says what went wrong.
    problem = rows[0][0] if rows and rows[0] else "the broker gave no answer"
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for topic, name, value in (row for row in rows[1:] if len(row) == 3):
        found[topic][name] = value
    return dict(found), problem
