"""The records of the budgets of storage, in the topic of the cluster-wide quotas: keys, values, and their bounds.

The key is ``budgets/NAME``; a null value removes the budget.
"""

import re
from dataclasses import dataclass
from typing import Annotated, Final, Literal

from pydantic import Field

from quotahost.model.budgets import Budget
from quotahost.records.by_name import LatestByName
from quotahost.records.codec import Codec, Refused, Versioned
from quotahost.records.fields import Long

#: The budgets of one cluster. A snapshot lists each budget with a replica on its broker, and the metrics show each.
MAX_BUDGETS: Final = 1000
MAX_PATTERNS: Final = 100  # topics and patterns of one budget
_MAX_BYTES: Final = 64 * 1024
_KEY: Final = b"budgets/"
#: Error texts and Kafka's metric tags contain a budget's name. The name's length bounds the budgets of a snapshot.
NAME: Final = re.compile(r"[A-Za-z0-9._*-]{1,64}")
BudgetName = Annotated[str, Field(pattern=f"^{NAME.pattern}$")]
#: A topic's name, or the beginning of names with a star at its end; a star alone: all that don't begin with ``__``.
TopicPattern = Annotated[str, Field(pattern="^([A-Za-z0-9._-]{1,249}|[A-Za-z0-9._-]{0,248}[*])$")]

Of = Literal["leaders", "replicas"]


@dataclass(frozen=True, slots=True)
class _Value(Versioned):
    """The JSON of a record's value."""

    #: Names of topics, or their beginnings with ``*`` at the end.
    topics: Annotated[tuple[TopicPattern, ...], Field(min_length=1, max_length=MAX_PATTERNS)]
    bytes: Long  # how many bytes these topics may take in the whole cluster
    of: Of = "leaders"  # which replicas' bytes count


CODEC: Final = Codec(_Value, _MAX_BYTES)


def is_key(key: bytes | None) -> bool:
    """Whether this is the key of a budget's record."""
    return key is not None and key.startswith(_KEY)


def key_of(name: str) -> bytes:
    """The key of a budget's record. Raises Refused (key) if no budget may have this name."""
    if NAME.fullmatch(name) is None:
        raise Refused("key", "the name of a budget has 1 to 64 letters, digits, dots, dashes, underscores or stars")
    return _KEY + name.encode()


def encode(budget: Budget) -> bytes:
    """The value of a budget's record; :func:`key_of` makes the key. Raises Refused if no reader would take it."""
    return CODEC.encode(_Value(budget.topics, budget.bytes, "replicas" if budget.replicas else "leaders"))


class LatestBudgets(LatestByName[str, Budget]):
    """Keeps each budget by its name."""

    most, most_octets = MAX_BUDGETS, MAX_BUDGETS * 72  # no key has more than 72 bytes

    def name_of(self, key: bytes | None) -> str | None:
        if key is None or not is_key(key):
            return None
        name = key.removeprefix(_KEY).decode("ascii", errors="replace")
        key_of(name)
        return name

    def decode(self, name: str, value: bytes) -> Budget:
        read = CODEC.decode(None, value)
        return Budget(name, read.topics, read.bytes, read.of == "replicas")
