"""The budgets of storage: one record for each in the compacted topic of the cluster-wide quotas.

The key is ``budgets/NAME``; a null value removes the budget. :class:`LatestBudgets` is the rule by which all readers
take or refuse the same bytes, within the same bounds.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field, with_config

from quotahost.model.budgets import Budget
from quotahost.records.codec import RECORD, Codec, Refused, Versioned
from quotahost.records.fields import Long

#: Of one cluster; every snapshot names each with a replica on its broker, and metrics show each.
MAX_BUDGETS: Final = 1000
MAX_PATTERNS: Final = 100  # of one budget
_MAX_BYTES: Final = 64 * 1024
_KEY: Final = b"budgets/"
#: The name stands in error texts and in metric tags of Kafka's. Its length bounds what budgets take of a snapshot.
NAME: Final = re.compile(r"[A-Za-z0-9._*-]{1,64}")
BudgetName = Annotated[str, Field(pattern=f"^{NAME.pattern}$")]
#: A topic, or the beginning of topics with a star at its end; the star alone is every topic.
PATTERN: Final = re.compile(r"[A-Za-z0-9._-]{1,249}|[A-Za-z0-9._-]{0,248}[*]")

Of = Literal["leaders", "replicas"]


def _pattern(text: str) -> str:
    if PATTERN.fullmatch(text) is None:
        raise ValueError("must be the name of a topic, or the begin of names with a * at its end")
    return text


_Pattern = Annotated[str, AfterValidator(_pattern)]


@with_config(RECORD)
@dataclass(frozen=True, slots=True)
class _Value(Versioned):
    """The JSON of a record's value.

    Attributes:
        topics: names of topics, or their beginnings with ``*`` at the end.
        bytes: so much they may take in the whole cluster.
        of: whose bytes count.
    """

    topics: Annotated[tuple[_Pattern, ...], Field(min_length=1, max_length=MAX_PATTERNS)]
    bytes: Long
    of: Of = "leaders"


CODEC: Final = Codec(_Value, _MAX_BYTES, lambda value: "")


def is_key(key: bytes | None) -> bool:
    """Whether a record of the topic is a budget's."""
    return key is not None and key.startswith(_KEY)


def key_of(name: str) -> bytes:
    """The key of a budget's record. Raises Refused (key) if no budget may have this name."""
    if NAME.fullmatch(name) is None:
        raise Refused("key", "the name of a budget has 1 to 64 letters, digits, dots, dashes, underscores or stars")
    return _KEY + name.encode()


def encode(budget: Budget) -> bytes:
    """The value of a budget's record; its key is :func:`key_of` its name. Raises Refused if no reader would take it."""
    key_of(budget.name)
    return CODEC.encode(_Value(budget.topics, budget.bytes, "replicas" if budget.replicas else "leaders"))


class LatestBudgets:
    """Each budget's latest good record, in the order in which a reader takes them."""

    def __init__(self, before: Mapping[str, Budget] | None = None) -> None:
        """None yet; of one whose record is refused, what was there ``before`` stays, until a reader empties that."""
        self.by_name: dict[str, Budget] = {}
        self.before = before or {}

    def take(self, key: bytes | None, value: bytes | None) -> None:
        """Take a record; None for its value removes the budget. A record that is no budget's changes nothing.

        Raises Refused if no reader takes it. What was taken of this budget before stays.
        """
        if key is None or not is_key(key):
            return
        name = key.removeprefix(_KEY).decode("ascii", errors="replace")
        key_of(name)
        if value is None:
            self.by_name.pop(name, None)
            return
        try:
            read = CODEC.decode(key, value)
            budget = Budget(name, read.topics, read.bytes, read.of == "replicas")
        except Refused:
            if name not in self.by_name and name in self.before:
                self._keep(self.before[name])
            raise
        self._keep(budget)

    def _keep(self, budget: Budget) -> None:
        if budget.name not in self.by_name and len(self.by_name) >= MAX_BUDGETS:
            raise Refused("size", f"more than {MAX_BUDGETS:,} budgets")
        self.by_name[budget.name] = budget
