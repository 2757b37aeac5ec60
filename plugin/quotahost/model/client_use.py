"""Who uses what of one broker: one row for each scope that Kafka measures."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from quotahost.model.quotas import Client, QuotaType


class Bound(StrEnum):
    """By what clients are held back."""

    NOTHING = "nothing"
    QUOTA = "quota"
    FACTOR = "factor"
    FLOOR = "floor"
    FENCE = "fence"
    TOPIC_QUOTA = "topic quota"


@dataclass(frozen=True, slots=True)
class ClientUse:
    """What the clients of one scope use of one quota type: one client, or several that share the quota.

    What Kafka measures for those of the scope that are slowed (``factor.scope=topics``) counts with it. The rate is of
    Kafka's quota windows, the delay of the last 30 to 60 s; topic quotas bind whom they turned back in the last 15 s.

    Attributes:
        quota_type: the quota type; rate, quota and limit are in its unit: bytes/s, percent of a thread, mutations/s.
        user: the principal's name, "" if the scope is not that of one user.
        client_id: "" where the quota is shared by several client-ids.
        scope: who shares the quota, in words: "client", "user", "client-id", "broker", "group NAME", "newcomers",
            "newcomers of the user", "unlimited", "exempt".
        rate: what Kafka measures now.
        quota: the rate before factor and floor; None is unlimited.
        limit: what Kafka is given now; None is unlimited.
        delay_ms: by how many milliseconds Kafka has delayed responses, the mean of those it delayed; 0 if none.
        bound: by what the clients are held back now.
        idle: seconds since Kafka asked for this scope and type last; 0 for those that it doesn't know of.
        shadow: the rule in shadow that would hold the clients back, as the property ``shadow`` names it; "" for none.
        address: from where one of the clients wrote or read last; "" where quotahost's authorizer has not seen it.
    """

    quota_type: QuotaType
    user: str
    client_id: str
    scope: str
    rate: float
    quota: float | None
    limit: float | None
    delay_ms: float
    bound: Bound
    idle: float
    shadow: str = ""
    address: str = ""

    @property
    def client(self) -> Client:
        """The client, where the scope is one's."""
        return Client(self.user, self.client_id)

    @property
    def bound_by(self) -> str:
        """By what the clients are held back, or, if by nothing, by what they would be: "shadow: factor"."""
        return f"shadow: {self.shadow}" if self.shadow and self.bound is Bound.NOTHING else self.bound.value

    @property
    def share(self) -> float | None:
        """The rate as a share of the quota; None if that is unlimited or 0."""
        return self.rate / self.quota if self.quota else None

    @property
    def is_held_back(self) -> bool:
        """Whether anything holds the clients back, or has delayed them lately."""
        return self.bound is not Bound.NOTHING or self.delay_ms > 0
