"""A budget of storage limits the bytes of some topics: this module finds its topics, sums its bytes, makes its volume.

1. An operator defines a :class:`Budget`: its topics, its bytes, and whether the bytes of leaders or of all replicas
   count. :class:`Topics` finds the budgets of a topic.
2. Each broker sums the bytes of its own replicas for each budget; :func:`by_service` adds the brokers' sums.
3. The host passes each budget to the policy as a volume (:func:`as_volume`). The resulting factor applies only to the
   clients that write to the budget's topics. Private.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

from quotahost.model.limits import Limit, LimitType, exact
from quotahost.model.volumes import Volume

#: Replaces the broker's id in the volume that stands for a budget; no broker has this id, because ids are numbers.
BUDGET: Final = "budget"
PREFIX_SIGN: Final = "*"
#: The prefix of Kafka's and quotahost's own topics. ``*`` alone doesn't match them: an operator raises a full budget
#: by a record in such a topic, which must not be refused.
_INTERNAL: Final = "__"


@dataclass(frozen=True, slots=True)
class Budget:
    """The bytes that some topics may take in the cluster."""

    name: str  # appears in errors, metrics and Kafka's metric tags
    #: Topic names, or prefixes that end with ``*``; ``*`` alone matches all topics that don't begin with ``__``.
    topics: tuple[str, ...]
    bytes: int  # the most bytes that the topics may take in the whole cluster, counted like ``retention.bytes``
    replicas: bool = False  # whether the bytes of all replicas count; otherwise only the bytes of leaders count


class Part(NamedTuple):
    """A budget's part on one broker: the bytes that count, and the topics with a replica there."""

    used: int
    topics: frozenset[str]


class Topics:
    """Finds the budgets of a topic, with one look-up for the name and one for each distinct length of a prefix."""

    def __init__(self, budgets: Iterable[Budget]) -> None:
        self._whole: dict[str, list[Budget]] = defaultdict(list)
        self._begins: dict[str, list[Budget]] = defaultdict(list)
        for budget in budgets:
            for pattern in dict.fromkeys(budget.topics):
                begins = pattern.endswith(PREFIX_SIGN)
                (self._begins if begins else self._whole)[pattern.removesuffix(PREFIX_SIGN)].append(budget)
        self._lengths = sorted({len(begin) for begin in self._begins})

    def budgets(self, topic: str) -> list[Budget]:
        """The budgets that the topic belongs to, without duplicates."""
        of = [*self._whole.get(topic, ())]
        for length in self._lengths:
            if length <= len(topic) and (length or not topic.startswith(_INTERNAL)):
                of += self._begins.get(topic[:length], ())
        return list({budget.name: budget for budget in of}.values())


def by_service(brokers: Iterable[tuple[Iterable[tuple[str, int]], bool]]) -> dict[str, list[int]]:
    """For each budget, the bytes on brokers in service, and the bytes that brokers out of service reported last.

    An entry has the bytes for each budget on a broker (or several brokers), and whether the broker is in service.
    """
    sums: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for parts, serves in brokers:
        for name, part in parts:
            sums[name][not serves] += part
    return sums


def as_volume(budget: Budget, used: int, topics: frozenset[str], soft_share: float) -> Volume:
    """A budget as a volume: ``soft_share`` (0.0 to 1.0) of its bytes is the soft limit, all its bytes the hard limit.

    ``topics`` are the budget's topics on this broker; clients can write to none of its other topics here.
    """
    soft = Limit(LimitType.CONSUMED_BYTES, int(budget.bytes * exact(soft_share)))
    return Volume(BUDGET, budget.name, budget.bytes, used, soft, Limit(LimitType.CONSUMED_BYTES, budget.bytes), topics)
