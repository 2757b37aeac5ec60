"""What a broker tells of itself and of its cluster: brokers, log directories, who uses what, how full its volumes are.

Public, by :mod:`quotahost.model`, but for Load, TopicUse and MeasuredVolume.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final, Self

from quotahost.model.quotas import Client, QuotaType
from quotahost.model.volumes import State


@dataclass(frozen=True, slots=True)
class Cluster:
    """The cluster as this broker last described it."""

    cluster_id: str  # "" while it is unknown
    brokers: frozenset[int]  # ids of those that are alive


@dataclass(frozen=True, slots=True)
class LogDir:
    """One log directory of a broker, as DescribeLogDirs answers it (KIP-113, KIP-827)."""

    broker: int  # its id
    path: str  # "" if the broker didn't answer
    capacity: int | None  # bytes of its file store; None if the broker doesn't report it
    usable: int | None  # free bytes of its file store; None likewise
    error: str  # Kafka's name of what is wrong with the directory; "" for nothing


@dataclass(frozen=True, slots=True)
class Load:
    """What Kafka measures of a broker's own load, as counters that only grow, as of one moment.

    The idle share of an interval is the difference of a counter, divided by the difference of ``at_ns``. What this
    Kafka doesn't tell is -1, or empty.
    """

    at_ns: int  # the moment, in ns of Java's monotonic clock
    handlers_idle_ns: int  # for how long the request handlers have waited for requests, in the mean of them
    network_idle_ns: Mapping[str, int]  # by listener, for how long its network threads have waited for the network
    queued: int  # how many requests wait for a handler now


class LimitedBy(StrEnum):
    """What holds clients back."""

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
    Rate, quota and limit are in the quota type's unit: bytes/s, percent of a thread, mutations/s.
    """

    quota_type: QuotaType
    user: str  # the principal's name, "" if the scope is not that of one user
    client_id: str  # "" where the quota is shared by several client-ids
    #: Who shares the quota, in words: "client", "user", "client-id", "broker", "group NAME", "newcomers", "newcomers of
    #: the user", "unlimited", "exempt".
    scope: str
    rate: float  # what Kafka measures now
    quota: float | None  # the rate before factor and floor; None is unlimited
    limit: float | None  # what Kafka is given now; None is unlimited
    delay_ms: float  # by how much Kafka has delayed responses, the mean of those it delayed; 0 if none
    bound: LimitedBy  # by what the clients are held back now
    idle: float  # seconds since Kafka asked for this scope and type last; 0 for those that it doesn't know of
    shadow: str = ""  # the rule in shadow that would hold the clients back, as the property ``shadow`` names it
    address: str = ""  # from where one of the clients wrote or read last; "" where the fence has not seen it

    @property
    def client(self) -> Client:
        """The client, where the scope is one's."""
        return Client(self.user, self.client_id)

    @property
    def bound_by(self) -> str:
        """By what the clients are held back, or, if by nothing, by what they would be: "shadow: factor"."""
        return f"shadow: {self.shadow}" if self.shadow and self.bound is LimitedBy.NOTHING else self.bound.value

    @property
    def share(self) -> float | None:
        """The rate as a share of the quota; None if that is unlimited or 0."""
        return self.rate / self.quota if self.quota else None

    @property
    def is_held_back(self) -> bool:
        """Whether anything holds the clients back, or has delayed them lately."""
        return self.bound is not LimitedBy.NOTHING or self.delay_ms > 0


#: Begins the name of a VolumeUse that stands for a budget of storage; volumes are named by devices and paths.
BUDGET_PREFIX: Final = "budget "


@dataclass(frozen=True, slots=True)
class VolumeUse:
    """How full one volume of a broker is, or a budget of storage: as if it were a volume of so many bytes."""

    name: str  # on that broker; of a budget BUDGET_PREFIX and its name
    capacity: float  # bytes
    consumed: float  # bytes
    soft: float | None = None  # bytes consumed above which the policy may lower the factor; None if it tells no limits
    hard: float | None = None  # bytes consumed at which the factor is 0, likewise
    factor: float | None = None  # what the policy makes of the volume; None without a policy

    @property
    def budget(self) -> str:
        """The budget's name; "" if it is a volume."""
        return self.name.removeprefix(BUDGET_PREFIX) if self.name.startswith(BUDGET_PREFIX) else ""


@dataclass(frozen=True, slots=True)
class TopicUse:
    """What a topic, or several together, takes of a volume."""

    name: str  # with a note where it is being deleted; what is no topic stands in brackets
    used: int  # bytes on the disk
    written: float  # bytes/s that were appended


@dataclass(frozen=True, slots=True)
class MeasuredVolume:
    """A volume that was looked at twice, and what fills it."""

    name: str
    capacity: int  # bytes
    consumed: int  # bytes at the second look
    directories: Sequence[str]  # its log directories
    seconds: float  # between the looks
    growth: float  # bytes/s by which its consumption changed, of whatever files
    topics: Sequence[TopicUse]  # those that take most, then others that grow most; the last may be the sum of the rest
    unread: Sequence[str] = ()  # what could not be listed, and why

    def until(self, consumed: float | None) -> float | None:
        """Seconds until so many bytes are used at this growth; None if that is never, or the bytes aren't known."""
        if consumed is None:
            return None
        left = consumed - self.consumed
        return 0.0 if left <= 0 else left / self.growth if self.growth > 0 else None


@dataclass(frozen=True, slots=True)
class Look:
    """One look at a broker, or at all brokers of a cluster."""

    where: str  # which broker, or brokers, the rows are of: "broker 1 (pid 42)"
    state: State  # the state in force
    factor: float  # the factor in force, 1 without a factor source
    limit_factor: float  # what limits are multiplied by at the moment; both taps move it towards the factor
    cause: str  # why the factor is below 1, and the factors of single quota types with their causes; "" for neither
    fence: str  # "open", "closed", or "none"
    affected: int  # how many topics the factor is for; -1 if it is for all clients
    clients: int  # the places of the table that are taken
    clients_max: int  # all places of the table
    uses: Sequence[ClientUse]  # who uses what; those who are held back come first, then the busiest
    left_out: bool  # whether there were more of them than the look has room for
    #: How full the broker's volumes and the cluster's budgets of storage are; none where nobody watches them, or that
    #: was not asked.
    volumes: Sequence[VolumeUse] = field(default=(), kw_only=True)
    #: Clients that lately asked to write to an affected topic, with that topic; not all of them.
    marks: Sequence[tuple[Client, str]] = field(default=(), kw_only=True)

    def first(self, most: int) -> Self:
        """The same look with at most ``most`` uses. With 0 none are asked for, so none count as left out."""
        return replace(self, uses=self.uses[:most], left_out=self.left_out or 0 < most < len(self.uses))
