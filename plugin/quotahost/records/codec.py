"""The JSON of a snapshot as types, and from bytes to such types, with every refusal in words."""

from __future__ import annotations

import math
import re
import reprlib
from datetime import UTC, datetime
from typing import Annotated, Any, Final, Literal, NotRequired, TypeVar, get_args

from pydantic import Field, PlainValidator, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails
from typing_extensions import TypedDict  # pydantic's, which needs it before Python 3.12

from quotahost.errors import QuotahostError
from quotahost.model import Limit, LimitType
from quotahost.model.volumes import exact

# TODO(merge) One broker's snapshot as JSON, as the other brokers and whoever else reads the topic see it.
#
#   The form is ``schemas/snapshot.json``, the JSON schema of proposal 035 word for word. It allows more
#   fields;
#   quotahost's own are ``schemaVersion`` (1), ``clusterId`` (left out while it is unknown),
#   ``offlineLogDirs``, and
#   ``softLimit`` and ``hardLimit`` of a volume, which override the broker's (the proposal's note 2).
#   Unknown fields are
#   ignored. The limit ``{}`` is none.
#

# TODO(merge) One broker's volumes at one time, as a frozen value.

MAX_NAME: Final = 1024  # characters


MAX_LONG: Final = 2**63 - 1  # the proposal's "long"


Reason = Literal["size", "json", "schema", "key", "version", "volumes", "limit"]


REASONS: Final[tuple[Reason, ...]] = get_args(Reason)


_LIMITS: Final = ("softLimit", "hardLimit")


_VERSIONS: Final = ("schemaVersion", "version")


_T = TypeVar("_T")


_DATE_TIME: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.,][0-9]{1,9})?)?(Z|[+-][0-9]{2}:?[0-9]{2})"
)


class Refused(QuotahostError, ValueError):
    """A record that can't be taken; ``reason`` is one of REASONS, for a metric's label."""

    def __init__(self, reason: Reason, text: str) -> None:
        """``text`` says what is wrong, in one printable line."""
        super().__init__(text)
        self.reason: Reason = reason


def date_time(value: object) -> datetime:
    """The time of an ISO 8601 text, in UTC.

    Raises:
        ValueError: it is none, or has no offset.
    """
    # Not pydantic's datetime: it takes "1649336400" for seconds since 1970.
    if not isinstance(value, str) or _DATE_TIME.fullmatch(value) is None:
        raise ValueError("must be an ISO 8601 date-time with Z or an offset")
    return in_utc(datetime.fromisoformat(value))


Name = Annotated[str, Field(max_length=MAX_NAME)]


Time = Annotated[datetime, PlainValidator(date_time)]


Long = Annotated[int, Field(ge=0, le=MAX_LONG)]


class LimitJson(TypedDict):
    """A limit; without fields it is none."""

    type: NotRequired[LimitType]
    level: NotRequired[Long]


def checked(adapter: TypeAdapter[_T], value: bytes, most: int) -> _T:
    """A record's value as this type; ``most`` bytes are allowed.

    Raises:
        Refused: see read.
    """
    if len(value) > most:
        raise Refused("size", f"the record has {len(value):,} bytes, more than {most:,}")
    try:
        return adapter.validate_json(value)
    except ValidationError as error:
        details = error.errors(include_url=False)
    # A record of another version may differ in anything else too, so that is told first.
    first = next((d for d in details if _is_version(d)), details[0])
    raise Refused(_reason(first), _text(first))


def limit(told: LimitJson) -> Limit | None:
    """The limit; None if nothing is told.

    Raises:
        Refused: limit.
    """
    if not told:
        return None
    if "type" not in told or "level" not in told:
        raise Refused("limit", f"a limit needs a type and a level, but one has only its {next(iter(told))}")
    try:
        return Limit(told["type"], told["level"])
    except ValueError as error:
        raise Refused("limit", str(error)) from None


def _is_version(details: ErrorDetails) -> bool:
    return details["loc"][:1] in [(name,) for name in _VERSIONS]


def _reason(details: ErrorDetails) -> Reason:
    where = details["loc"]
    if details["type"] == "json_invalid":
        return "json"
    if _is_version(details):
        return "version"
    if where == ("volumes",) and details["type"] == "too_long":
        return "volumes"
    return "limit" if len(where) > 1 and where[-2] in _LIMITS else "schema"


def _text(details: ErrorDetails) -> str:
    if details["type"] == "json_invalid":
        return details["msg"]
    where = ".".join(map(str, details["loc"])) or "the record"
    given = "" if details["type"] == "missing" else f", not {reprlib.repr(details['input'])}"
    return f"{where}: {details['msg']}{given}"


def rounded(given: Limit) -> Limit:
    """The limit as it is written: a percentage in whole numbers, upwards, so that more is kept free."""
    if given.type is LimitType.MIN_FREE_PERCENTAGE:
        return Limit(given.type, math.ceil(exact(given.level)))
    return given


def limit_json(given: Limit | None) -> dict[str, Any]:
    """As it is written; ``{}`` is none."""
    return {} if given is None else {"type": given.type, "level": rounded(given).level}


def in_utc(time: datetime) -> datetime:
    """The same time in UTC.

    Raises:
        ValueError: it is before the year 1 or after 9999 there.
    """
    try:
        return time.astimezone(UTC)
    except OverflowError:
        raise ValueError(f"{time} is out of range") from None
