"""What one look at a broker finds: the state that all clients share, and who uses what."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Self

from quotahost.model.client_use import ClientUse
from quotahost.model.quotas import Client
from quotahost.model.volume_use import VolumeUse
from quotahost.model.volumes import State


@dataclass(frozen=True, slots=True)
class Look:
    """One look at a broker, or at all brokers of a cluster.

    Attributes:
        where: whom the rows are of: "broker 1 (pid 42)".
        state: the state in force.
        factor: the factor in force, 1 without a factor source.
        limit_factor: what limits are multiplied by at the moment, on their way to the factor.
        cause: why the factor is below 1, "" if it isn't.
        fence: "open", "closed", or "none".
        affected: how many topics the factor is for; -1 if it is for all clients.
        clients, clients_max: the places of the table that are taken, and all.
        uses: who uses what; those who are held back come first, then the busiest.
        left_out: whether there were more of them than the look has room for.
        volumes: how full the broker's volumes are; none where nobody watches them, or that was not asked.
        marks: clients that lately asked to write to an affected topic, with that topic; not all of them.
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
    left_out: bool
    volumes: Sequence[VolumeUse] = field(default=(), kw_only=True)
    marks: Sequence[tuple[Client, str]] = field(default=(), kw_only=True)

    def first(self, most: int) -> Self:
        """The same look with so many uses at most; who wants none has none left out."""
        return replace(self, uses=self.uses[:most], left_out=self.left_out or 0 < most < len(self.uses))
