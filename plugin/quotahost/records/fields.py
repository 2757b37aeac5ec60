"""What records' fields have in common (names, sizes, times, limits, volumes), and how old contents are (``ageMs``).

The pipeline's SQL reads the same fields: it takes the bounds and the grammar of times from here.

How old a record's contents are is one rule for every reader, on brokers and in the pipeline. The age of what a record
says is the time since Kafka wrote the record, and before that its *delay*: the time from the capture (when the disks
were read, the rates were measured, the pipeline computed) to the writing. Each part is measured by one clock, so no two
machines' wall clocks have to agree, and no clock that jumps makes a broker stale or fresh:

- the delay by its publisher's monotonic clock, which writes it into the record (``ageMs`` of a snapshot);
- the time since the writing, by a reader that saw the record arrive, by that reader's monotonic clock
  (``quotahost.kafka.latest_record``);
- the time since the writing, by a reader that comes later, by Kafka's clock alone: its present time less Kafka's
  timestamp of the record. The pipeline always reads so (its SQL twin is ``quotahost.pipeline.frames``).
"""

import math
import re
from datetime import UTC, datetime, timedelta
from typing import Annotated, Final, NotRequired

from pydantic import Field, PlainSerializer, PlainValidator, WithJsonSchema
from typing_extensions import TypedDict  # pydantic needs this one before Python 3.12

from quotahost.model import Limit, LimitType
from quotahost.model.limits import exact
from quotahost.model.volumes import MAX_TOPICS
from quotahost.records.codec import As, Refused, Whole

MAX_NAME: Final = 1024  # characters
MAX_LONG: Final = 2**63 - 1  # "long" in the proposal's schema: Java's
#: The date-time of RFC 3339 (section 5.6), as proposal 035's schema demands it: for Python and, in SQL, for Java. It
#: leaves out what one of the two can't read: years before 1000, offsets from 18 hours, ten digits of a fraction, and on
#: the last day of 9999 offsets below 0, by which the year is 10000 in UTC. The hour 24 is none of RFC 3339's; Python
#: 3.14 reads it. Its end is no ``$``, before which both allow a line break.
DATE_TIME: Final = (
    "^(?!9999-12-31T.*-)[1-9][0-9]{3}-[0-9]{2}-[0-9]{2}T([01][0-9]|2[0-3]):[0-9]{2}:[0-9]{2}([.][0-9]{1,9})?"
    # The end: no character follows, a dot or another. Python and Java don't share a sign for the very end of a text.
    "(Z|[+-](0[0-9]|1[0-7]):[0-5][0-9])(?![^.]|[.])"
)
_DATE_TIME: Final = re.compile(DATE_TIME)


# ---- names and numbers -----------------------------------------------------------------------------


Name = Annotated[str, Field(max_length=MAX_NAME)]
Long = Annotated[Whole, Field(ge=0, le=MAX_LONG)]
Number = Annotated[float, Field(allow_inf_nan=False)]  # Python's parser takes NaN and Infinity, which JSON lacks


_TOPIC: Final = "^[A-Za-z0-9._-]{1,249}"
#: A name of a topic, as Kafka allows it (its class ``internals.Topic``), for Java in SQL. Its end is that of DATE_TIME.
TOPIC: Final = _TOPIC + "(?![^.]|[.])"
Topic = Annotated[str, Field(pattern=_TOPIC + "$")]  # before which pydantic allows no line break
#: The topics of a volume or of a cluster; null, or a field left out, stands for all topics.
Topics = Annotated[
    frozenset[str] | None,
    As(
        Annotated[list[Topic], Field(max_length=MAX_TOPICS)] | None,
        lambda listed, _: None if listed is None else frozenset(listed),
        lambda topics: None if topics is None else sorted(topics),
    ),
]


# ---- times -----------------------------------------------------------------------------------------


def date_time(value: object) -> datetime:
    """The time of an RFC 3339 date-time, in UTC. Raises ValueError if it is none, or there is no such day or time."""
    # Not pydantic's datetime: it takes "1649336400" for seconds since 1970.
    if not isinstance(value, str) or _DATE_TIME.match(value) is None:
        raise ValueError("must be an RFC 3339 date-time such as 2026-01-02T03:04:05Z")
    return datetime.fromisoformat(value).astimezone(UTC)


def time_json(time: datetime, precision: str = "milliseconds") -> str:
    """As text in UTC; ``precision`` is ``timespec`` of ``datetime.isoformat``."""
    return time.astimezone(UTC).isoformat(timespec=precision).replace("+00:00", "Z")


Time = Annotated[
    datetime,
    PlainValidator(date_time),
    PlainSerializer(lambda time: time_json(time, "auto")),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]
Millis = Annotated[Time, PlainSerializer(time_json)]


# ---- limits and volumes ----------------------------------------------------------------------------


class LimitJson(TypedDict):
    """A limit; without fields it is none (proposal 035's schema requires the object itself)."""

    type: NotRequired[LimitType]
    level: NotRequired[Long]


def _limit(fields: LimitJson, _: object) -> Limit | None:
    if not fields:
        return None
    if "type" not in fields or "level" not in fields:
        raise Refused("limit", f"a limit needs a type and a level, but one has only its {next(iter(fields))}")
    try:
        return Limit(fields["type"], fields["level"])
    except ValueError as error:
        raise Refused("limit", str(error)) from None


def exact_for(given: Limit, capacity: int) -> Limit:
    """The limit as the schema can express it for one volume, of this capacity in bytes: reached at the same byte.

    A percentage that isn't whole becomes the bytes that it means for that volume, so that every reader finds the factor
    that the volume's own broker finds.
    """
    if rounded(given) == given:
        return given
    return Limit(LimitType.MIN_FREE_BYTES, capacity - given.consumed_at(capacity))


def rounded(given: Limit) -> Limit:
    """The limit as the schema can express it: a percentage in whole numbers, upwards, so that more is kept free."""
    if given.type is LimitType.MIN_FREE_PERCENTAGE:
        return Limit(given.type, math.ceil(exact(given.level)))
    return given


#: ``{}`` is none. A volume's limits are made :func:`exact_for` it before they are written.
OwnLimit = Annotated[
    Limit | None,
    As(
        LimitJson,
        _limit,
        lambda given: {} if given is None else {"type": given.type, "level": int(rounded(given).level)},
    ),
]


class VolumeJson(TypedDict):
    """A volume's name, sizes in bytes, and its own limits."""

    name: Annotated[Name, Field(alias="volumeName")]
    capacity: Long
    consumed: Long
    soft: NotRequired[Annotated[OwnLimit, Field(alias="softLimit")]]
    hard: NotRequired[Annotated[OwnLimit, Field(alias="hardLimit")]]


# ---- age -------------------------------------------------------------------------------------------

#: No delay is longer, in ms: what a stranger writes into a record must not leave the range of any clock.
MAX_DELAY_MS: Final = 86_400_000
#: A run is a time of launch, in ms. One that is later than so many ms from now is forged: it would stay the newest
#: whatever is published. Kafka refuses a record's timestamp likewise (message.timestamp.after.max.ms).
MAX_AHEAD_MS: Final = 3_600_000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
MS: Final = timedelta(milliseconds=1)


def delay_ms(stated_ms: int | None, captured_at: datetime, written_ms: int | None, validity_ms: int) -> int:
    """How long before it was written the contents of a record were captured, in ms; never negative.

    A record that states its delay is believed. Otherwise it is Kafka's timestamp less the record's own time. As these
    may be of two clocks, it is at most half of the reader's ``validity``: a publisher's clock that is wrong makes its
    records look older, but never stale.
    """
    if stated_ms is not None:
        return min(max(0, stated_ms), MAX_DELAY_MS)
    if written_ms is None:
        return 0
    return min(max(0, written_ms - (captured_at - _EPOCH) // MS), validity_ms // 2, MAX_DELAY_MS)
