"""A broker reports these values: the cluster, log directories, load, the use of quotas, and how full its volumes are.

Public through :mod:`quotahost.model`, except near_limit, TopicUse and MeasuredVolume.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final, Self

from quotahost.model.quotas import Client, QuotaType
from quotahost.model.volumes import State


@dataclass(frozen=True, slots=True)
class Cluster:
    """The cluster in the latest metadata of this broker."""

    cluster_id: str  # "" while the id is unknown
    brokers: frozenset[int]  # the ids of the live brokers


@dataclass(frozen=True, slots=True)
class LogDir:
    """One log directory of a broker, from DescribeLogDirs (KIP-113, KIP-827)."""

    broker: int  # the broker's id
    path: str  # "" if the broker didn't answer
    capacity: int | None  # the size of the directory's file store in bytes; None if the broker doesn't report it
    usable: int | None  # the free bytes of the directory's file store; None if the broker doesn't report them
    error: str  # the name of Kafka's error for the directory; "" if there is no error


@dataclass(frozen=True, slots=True)
class Load:
    """Kafka's counters of a broker's own load at one moment; the idle times only grow.

    The idle share of an interval is the difference of two idle times, divided by the difference of ``at_ns``. If this
    Kafka doesn't report a value, the value is -1 or empty.
    """

    at_ns: int  # the moment, in ns of Java's monotonic clock
    handlers_idle_ns: int  # the time that request handlers have waited for requests, as the mean of all handlers
    network_idle_ns: Mapping[str, int]  # for each listener, the time that its network threads have been idle
    queued: int  # the number of requests that wait for a handler now


class LimitedBy(StrEnum):
    """The reasons why clients are held back; the strongest comes last."""

    NOTHING = "nothing"
    QUOTA = "quota"
    FLOOR = "floor"
    FACTOR = "factor"
    TOPIC_QUOTA = "topic quota"
    FENCE = "fence"


def near_limit(rate: float, limit: float) -> bool:
    """Whether the limit holds back a client of this rate: the rate swings around it, as Kafka measures in samples."""
    return rate >= 0.9 * limit


@dataclass(frozen=True, slots=True)
class ClientUse:
    """The use of one quota type by the clients of one scope: one client, or several clients that share the quota.

    The rate covers Kafka's quota windows, the delay the last 30 to 60 s. Rate and delay include the slowed clients of
    the scope (``factor.scope=topics``). ``bound`` is a topic quota if it turned a client back in the last 15 s. Rate,
    quota and limit are in the quota type's unit: bytes/s, percent of a thread, mutations/s.
    """

    quota_type: QuotaType
    user: str  # the principal's name; "" if several users share the quota
    client_id: str  # the client-id; "" if several client-ids share the quota
    #: The clients that share the quota: "client", "user", "client-id", "broker", "group NAME", "newcomers", "newcomers
    #: of the user", "unlimited", "exempt".
    scope: str
    rate: float  # the rate that Kafka measures now
    quota: float | None  # the rate before factor and floor; None is unlimited
    limit: float | None  # the limit that Kafka enforces now; None is unlimited
    delay_ms: float  # the mean delay of the responses that Kafka has delayed; 0 if there are none
    bound: LimitedBy  # the reason why the clients are held back now
    idle: float  # seconds since Kafka last asked for this scope's metric tags, for any quota type
    shadow: str = ""  # the rule in shadow that would hold the clients back, named as in the property ``shadow``
    address: str = ""  # the address of the client that wrote or read last; "" if the fence has not seen it

    @property
    def client(self) -> Client:
        """The client, if the scope is a single client."""
        return Client(self.user, self.client_id)

    @property
    def bound_by(self) -> str:
        """The reason why the clients are held back, or the rule in shadow that would do so: "shadow: factor"."""
        return f"shadow: {self.shadow}" if self.shadow and self.bound is LimitedBy.NOTHING else self.bound.value

    @property
    def share(self) -> float | None:
        """The rate as a share of the quota; None if the quota is unlimited or 0."""
        return self.rate / self.quota if self.quota else None

    @property
    def is_held_back(self) -> bool:
        """True if anything holds the clients back now, or if Kafka has delayed them lately."""
        return self.bound is not LimitedBy.NOTHING or self.delay_ms > 0


#: The prefix in the name of a VolumeUse that stands for a budget of storage; no volume's name begins with it.
BUDGET_PREFIX: Final = "budget "


@dataclass(frozen=True, slots=True)
class VolumeUse:
    """How full one volume of a broker is, or one budget of storage, shown as a volume."""

    name: str  # the volume's name on the broker; for a budget, BUDGET_PREFIX and the budget's name
    capacity: float  # bytes
    consumed: float  # bytes
    soft: float | None = None  # bytes consumed above which the factor may fall; None if the policy returns no limits
    hard: float | None = None  # bytes consumed at which the factor is 0; None if the policy returns no limits
    factor: float | None = None  # the policy's factor for the volume; None if there is no policy

    @property
    def budget(self) -> str:
        """The budget's name; "" for a volume."""
        return self.name.removeprefix(BUDGET_PREFIX) if self.name.startswith(BUDGET_PREFIX) else ""


@dataclass(frozen=True, slots=True)
class TopicUse:
    """The bytes of a volume that one topic, or several topics together, take."""

    name: str  # the topic, with a note if Kafka is deleting it; a name in brackets is no topic
    used: int  # bytes on the disk
    written: float  # appended bytes/s


@dataclass(frozen=True, slots=True)
class MeasuredVolume:
    """The growth of a volume between two looks, and the topics that fill it."""

    name: str
    capacity: int  # bytes
    consumed: int  # bytes at the second look
    directories: Sequence[str]  # the volume's log directories
    seconds: float  # the time between the looks
    growth: float  # the change of the consumption in bytes/s, by all files
    topics: Sequence[TopicUse]  # the largest topics, then the fastest growing; the last entry may sum up the rest
    unread: Sequence[str] = ()  # the directories that could not be listed, each with the reason

    def until(self, consumed: float | None) -> float | None:
        """Seconds until this consumption (bytes) at this growth; None if that is never, or if ``consumed`` is None."""
        if consumed is None:
            return None
        left = consumed - self.consumed
        return 0.0 if left <= 0 else left / self.growth if self.growth > 0 else None


@dataclass(frozen=True, slots=True)
class Look:
    """The status of one broker, or of all brokers of a cluster, at one moment."""

    where: str  # the broker or brokers: "broker 1 (pid 42)"
    state: State  # the state in force
    factor: float  # the factor in force; 1 if there is no factor source
    limit_factor: float  # the number that multiplies produce quotas now; the tap moves it towards the factor
    cause: str  # the cause of a factor below 1, and the factors of single quota types with their causes; "" for neither
    fence: str  # "open", "closed", or "none"
    affected: int  # the number of topics whose writers the factor is for; -1 if the factor is for all clients
    clients: int  # the used places of the table
    clients_max: int  # all places of the table
    uses: Sequence[ClientUse]  # the use of each scope; scopes that are held back come first, then the busiest
    left_out: bool  # True if ``uses`` has no room for all scopes
    #: How full the broker's volumes and the cluster's budgets of storage are; empty if no plugin watches them, or if
    #: the look does not include them.
    volumes: Sequence[VolumeUse] = field(default=(), kw_only=True)
    #: Some of the clients that lately asked to write to an affected topic, each with the topic.
    marks: Sequence[tuple[Client, str]] = field(default=(), kw_only=True)

    def first(self, most: int) -> Self:
        """The same look with at most ``most`` uses. If ``most`` is 0, the caller wants no uses and none is left out."""
        return replace(self, uses=self.uses[:most], left_out=self.left_out or 0 < most < len(self.uses))
