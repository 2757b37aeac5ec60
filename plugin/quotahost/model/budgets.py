"""Budgets of storage: which topics belong to which, how brokers' bytes add up, and a budget judged as a volume.

1. A :class:`Budget` names topics, and bytes of leaders or of all replicas.
2. Each broker sums the bytes of its own replicas by budget; :func:`in_cluster` adds these sums up.
3. The host has the policy judge a budget as if it were a volume (:func:`as_volume`). Its factor is for those alone who
   write to its topics.

Private; it imports nothing else of quotahost but volumes and limits.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from quotahost.model.limits import Limit, LimitType, exact
from quotahost.model.volumes import Volume

#: In place of a broker's id in the volume that stands for a budget; ids of brokers are numbers.
BUDGET: Final = "budget"
PREFIX_SIGN: Final = "*"
#: Kafka's own topics and quotahost's begin with this. ``*`` alone leaves them out: a budget that is used up is raised
#: by a record of one of them.
_INTERNAL: Final = "__"


@dataclass(frozen=True, slots=True)
class Budget:
    """How much some topics may take."""

    name: str  # it stands in errors, metrics and metric tags of Kafka's
    #: Names of topics, or their beginnings with ``*`` at the end; ``*`` alone is for all that don't begin with ``__``.
    topics: tuple[str, ...]
    bytes: int  # so much they may take in the whole cluster, counted as ``retention.bytes`` counts
    replicas: bool = False  # whether the bytes of all replicas count; else those of leaders


class Part(NamedTuple):
    """What a budget's topics take on one broker: the bytes that count, and the topics with a replica there."""

    used: int
    topics: frozenset[str]


class Topics:
    """Finds the budgets of a topic. With 1,000 budgets it takes as many look-ups as prefixes have lengths."""

    def __init__(self, budgets: Iterable[Budget]) -> None:
        self._whole: dict[str, list[Budget]] = defaultdict(list)
        self._begins: dict[str, list[Budget]] = defaultdict(list)
        for budget in budgets:
            for pattern in dict.fromkeys(budget.topics):
                begins = pattern.endswith(PREFIX_SIGN)
                (self._begins if begins else self._whole)[pattern.removesuffix(PREFIX_SIGN)].append(budget)
        self._lengths = sorted({len(begin) for begin in self._begins})

    def budgets(self, topic: str) -> list[Budget]:
        """Those that the topic belongs to, each once."""
        of = [*self._whole.get(topic, ())]
        for length in self._lengths:
            if length <= len(topic) and (length or not topic.startswith(_INTERNAL)):
                of += self._begins.get(topic[:length], ())
        return list({budget.name: budget for budget in of}.values())


def in_cluster(
    budgets: Mapping[str, Budget], brokers: Iterable[tuple[Iterable[tuple[str, int]], bool]]
) -> dict[str, tuple[int, int]]:
    """By budget the bytes used of it in the whole cluster, and those that no longer count.

    ``brokers`` tells of each, or of several together, the bytes that count there by budget, and whether it is in
    service. One out of service leads no partition: what it led has other leaders, whose bytes count, or nobody can
    write to it. So of leaders' bytes it has none, whatever it last said.
    """
    used, gone = dict.fromkeys(budgets, 0), dict.fromkeys(budgets, 0)
    for parts, serves in brokers:
        for name, part in parts:
            if name in used:
                counts = used if serves or budgets[name].replicas else gone
                counts[name] += part
    return {name: (used[name], gone[name]) for name in budgets}


def as_volume(budget: Budget, used: int, topics: frozenset[str], soft_share: float) -> Volume:
    """A budget as a volume, whose soft limit is this share (0.0 to 1.0) of its bytes, and its hard limit all of them.

    ``topics`` are those of this broker: it is asked to write to no others.
    """
    soft = Limit(LimitType.CONSUMED_BYTES, int(budget.bytes * exact(soft_share)))
    return Volume(BUDGET, budget.name, budget.bytes, used, soft, Limit(LimitType.CONSUMED_BYTES, budget.bytes), topics)
