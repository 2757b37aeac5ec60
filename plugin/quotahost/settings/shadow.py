"""Which rules are in shadow: quotahost computes and shows what they would do, and doesn't enforce them (ADR 22).

The property ``shadow`` names single rules, ``mode=shadow`` means all of them. From here the host learns what it leaves
to the other rules (``host.new_clients``), and Java what it measures instead of enforcing it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Annotated, Final

from pydantic import BeforeValidator

from quotahost.settings.types import choose, distinct, split
from quotahost.units.show import Unit

SUPPLIER: Final = "supplier."
_TOPIC: Final = "topic."
_FORM: Final = "write factor, topics, topic.NAME or supplier.NAME, separated by commas"


@dataclass(frozen=True, slots=True)
class Shadow:
    """Rules that are not enforced.

    Attributes:
        everything: all rules (``mode=shadow``).
        factor: the factor, with the fence and what else a PAUSE refuses.
        all_topics: the thresholds of all topics.
        topics: the topics whose thresholds are in shadow while those of others are not.
        suppliers: the suppliers whose answers don't count; those behind them in the chain answer instead.
    """

    everything: bool = False
    factor: bool = False
    all_topics: bool = False
    topics: frozenset[str] = field(default=frozenset())
    suppliers: frozenset[str] = field(default=frozenset())

    def names(self) -> list[str]:
        """The rules as an operator writes them, in an order that doesn't depend on his."""
        return [
            *(["factor"] if self.factor else []),
            *(["topics"] if self.all_topics else []),
            *(_TOPIC + topic for topic in sorted(self.topics)),
            *(SUPPLIER + name for name in sorted(self.suppliers)),
        ]


#: ``mode=shadow``.
EVERYTHING: Final = Shadow(everything=True, factor=True, all_topics=True)


def _shadow(value: object) -> Shadow:
    rules = distinct(split(value, ","))
    topics, suppliers = _named(rules, _TOPIC), _named(rules, SUPPLIER)
    plain = {_plain(rule) for rule in rules if not rule.startswith((_TOPIC, SUPPLIER))}
    return Shadow(False, "factor" in plain, "topics" in plain, frozenset(topics), frozenset(suppliers))


def _named(rules: Collection[str], kind: str) -> list[str]:
    names = [rule.removeprefix(kind) for rule in rules if rule.startswith(kind)]
    if "" in names:
        raise ValueError(f"has {kind} without a name; {_FORM}")
    return names


def _plain(rule: str) -> str:
    if not rule:
        raise ValueError(f"has an empty entry; {_FORM}")
    return choose(rule, ("factor", "topics", f"{_TOPIC}NAME", f"{SUPPLIER}NAME"))


Shadowed = Annotated[
    Shadow,
    BeforeValidator(_shadow),
    Unit("rules, comma-separated: factor, topics, topic.NAME, supplier.NAME", lambda v: ", ".join(v.names()) or "none"),
]
