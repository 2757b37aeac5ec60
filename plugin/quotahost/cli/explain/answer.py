"""A broker's answer about one client: its state, and the quotas of the client. ``wording`` makes sentences of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from quotahost.broker.host.dump import BrokerState, QuotaState, Row, of_this_version, quota_of, state_facts
from quotahost.model import Client

__all__ = ["Answer", "QuotaState", "parse"]


@dataclass(frozen=True, slots=True)
class Answer(BrokerState):
    """What a broker says of a client.

    Attributes:
        client: the client.
        fence_passes: whether its requests pass the fence while that is closed.
        is_marked: whether it has lately asked to write to an affected topic.
        quotas: one for each quota type.
        would_be_rates: by quota type, what is measured of the scope in which a supplier in shadow would put the client;
            None if that can't be told.
    """

    client: Client = field(default_factory=lambda: Client("", ""))
    fence_passes: bool = False
    is_marked: bool = False
    quotas: tuple[QuotaState, ...] = ()
    would_be_rates: Mapping[str, float | None] = field(default_factory=dict)


def parse(dump: Row, client: Client) -> Answer:
    """The answer to the question ``client``, as :func:`quotahost.broker.host.looks.explained` has it.

    Raises:
        ValueError: it is that of another version.
    """
    with of_this_version():
        facts, of_client = state_facts(dump["state"]), dump["client"]
        quotas = tuple(quota_of(BrokerState(**facts), row, of_client) for row in of_client["quotas"])
        return Answer(
            **facts, client=client, fence_passes=bool(of_client["passes"]),
            is_marked=of_client["mark"] is not None, quotas=quotas, would_be_rates=dump.get("would_be_rates", {}),
        )  # fmt: skip
