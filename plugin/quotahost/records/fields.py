"""The types of fields that records share (names, sizes, times, limits, volumes), and the age of a record's contents.

The pipeline's SQL reads the same fields, and takes the bounds and the grammar of times from this module.

All readers, on brokers and in the pipeline, compute the age of a record's contents by one rule. The age is the *delay*
from the capture (the disks were read, the rates were measured, the pipeline computed) to the writing, plus the time
since Kafka wrote the record. One clock measures each part, so the wall clocks of two machines don't have to agree, and
no clock that jumps makes a broker stale or fresh:

- The publisher's monotonic clock measures the delay; the publisher writes it into the record (``ageMs``, in snapshots).
- If a reader saw the record arrive, the reader's monotonic clock measures the time since the writing
  (``quotahost.kafka.latest_record``).
- If a reader starts later, Kafka's clock alone measures the time since the writing: the present time minus Kafka's
  timestamp of the record. The pipeline always reads this way (in SQL: ``quotahost.pipeline.frames``).
"""

import math
import re
from datetime import UTC, datetime, timedelta
from typing import Annotated, Final, NotRequired

from pydantic import Field, PlainSerializer, PlainValidator, WithJsonSchema
from typing_extensions import TypedDict  # pydantic needs this TypedDict before Python 3.12

from quotahost.model import Limit, LimitType
from quotahost.model.limits import exact
from quotahost.model.volumes import MAX_TOPICS
from quotahost.records.codec import As, Refused, Whole

MAX_NAME: Final = 1024  # characters
MAX_LONG: Final = 2**63 - 1  # Java's long, which is "long" in the proposal's schema
#: The date-time of RFC 3339 (section 5.6) that proposal 035's schema demands: for Python and, in SQL, for Java. The
#: pattern excludes what one of the two can't read: years before 1000, offsets of 18 hours or more, fractions of ten
#: digits or more, and negative offsets on the last day of 9999, which is in the year 10000 in UTC. It excludes the hour
#: 24, which RFC 3339 doesn't have and Python 3.14 reads. It doesn't end with ``$``: both allow a line break before it.
DATE_TIME: Final = (
    "^(?!9999-12-31T.*-)[1-9][0-9]{3}-[0-9]{2}-[0-9]{2}T([01][0-9]|2[0-3]):[0-9]{2}:[0-9]{2}([.][0-9]{1,9})?"
    # The end: neither a dot nor another character follows. Python and Java have no common sign for the end of a text.
    "(Z|[+-](0[0-9]|1[0-7]):[0-5][0-9])(?![^.]|[.])"
)
_DATE_TIME: Final = re.compile(DATE_TIME)


# ---- names and numbers -----------------------------------------------------------------------------


Name = Annotated[str, Field(max_length=MAX_NAME)]
Long = Annotated[Whole, Field(ge=0, le=MAX_LONG)]
Number = Annotated[float, Field(allow_inf_nan=False)]  # JSON has no NaN and no Infinity, but Python's parser takes them


_TOPIC: Final = "^[A-Za-z0-9._-]{1,249}"
#: A topic's name as Kafka allows it (Kafka's class ``internals.Topic``), for Java in SQL. It ends like DATE_TIME.
TOPIC: Final = _TOPIC + "(?![^.]|[.])"
Topic = Annotated[str, Field(pattern=_TOPIC + "$")]  # pydantic allows no line break before $
#: The topics of a volume or of a cluster; null, or an absent field, means all topics.
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
    """The time of an RFC 3339 date-time, in UTC. Raises ValueError for another form, or a day that doesn't exist."""
    # pydantic's datetime isn't used, because it takes "1649336400" for seconds since 1970.
    if not isinstance(value, str) or _DATE_TIME.match(value) is None:
        raise ValueError("must be an RFC 3339 date-time such as 2026-01-02T03:04:05Z")
    return datetime.fromisoformat(value).astimezone(UTC)


def time_json(time: datetime, precision: str = "milliseconds") -> str:
    """A time as text in UTC; ``precision`` is the ``timespec`` of ``datetime.isoformat``."""
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
    """A limit. An object without fields means no limit, because proposal 035's schema requires the object."""

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
    """The limit in the schema's form for one volume of this capacity in bytes; both are reached at the same byte.

    A percentage that isn't whole becomes that volume's number of bytes, so that every reader computes the same factor
    as the volume's own broker.
    """
    if rounded(given) == given:
        return given
    return Limit(LimitType.MIN_FREE_BYTES, capacity - given.consumed_at(capacity))


def rounded(given: Limit) -> Limit:
    """The limit in the schema's form: a percentage is rounded up to a whole number, so that more space stays free."""
    if given.type is LimitType.MIN_FREE_PERCENTAGE:
        return Limit(given.type, math.ceil(exact(given.level)))
    return given


#: ``{}`` means no limit. A volume's limits go through :func:`exact_for` before they are written.
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

#: The longest delay, in ms: a delay that another client writes into a record must not leave the range of any clock.
MAX_DELAY_MS: Final = 86_400_000
#: A run is a time of launch, in ms. A run that lies further than this in the future is forged, and would stay the
#: latest for good. Kafka limits a record's timestamp in the same way (message.timestamp.after.max.ms).
MAX_AHEAD_MS: Final = 3_600_000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
MS: Final = timedelta(milliseconds=1)


def delay_ms(stated_ms: int | None, captured_at: datetime, written_ms: int | None, validity_ms: int) -> int:
    """The time from the capture of a record's contents to the writing of the record, in ms; never negative.

    If the record states its delay, that is used. Otherwise the delay is Kafka's timestamp minus the record's own time.
    These may come from two clocks, so the delay is at most half of the reader's ``validity``: a publisher's wrong clock
    makes its records look older, but never stale.
    """
    if stated_ms is not None:
        return min(max(0, stated_ms), MAX_DELAY_MS)
    if written_ms is None:
        return 0
    return min(max(0, written_ms - (captured_at - _EPOCH) // MS), validity_ms // 2, MAX_DELAY_MS)
