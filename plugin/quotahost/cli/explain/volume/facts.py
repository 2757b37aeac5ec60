"""What a broker knows of its volumes, and of who writes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from quotahost.broker.host.dump import Ask, of_this_version, state_of
from quotahost.broker.host.looks import gauges, marks, numbers_of, usage
from quotahost.model import Client, ClientUsage, QuotaType, State

_CLIENTS = 10  # of the busiest, and of those that are marked


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


def ask_volumes(ask: Ask) -> BrokerVolumes:
    """Ask a broker.

    Raises:
        ValueError: its answers are those of another version.
    """
    with of_this_version():
        state = state_of(ask("state"))
        busiest = usage(ask, 2 * _CLIENTS)  # fetches are among them
        producers = [(Client(each.principal, each.client_id), each.rate) for each in busiest if _produces(each)]
        return BrokerVolumes(
            str(state.pid), state.node, state.state, state.factor, state.cause, state.log_dirs,
            numbers_of(gauges(ask)), producers[:_CLIENTS], marks(ask, _CLIENTS),
        )  # fmt: skip


def _produces(usage: ClientUsage) -> bool:
    return usage.quota_type is QuotaType.PRODUCE


def retention_of(answer: Any) -> dict[str, dict[str, str]]:
    """By topic what its properties of retention are, from the answer to the question ``retention``."""
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for topic, name, value in answer:
        found[topic][name] = value
    return dict(found)
