"""The JSON of a snapshot as types, and from bytes to such types, with every refusal in words."""

from __future__ import annotations

import re
import reprlib
from datetime import datetime
from typing import Annotated, Final, Literal, NotRequired, TypeVar, get_args

from pydantic import ConfigDict, Field, PlainValidator, TypeAdapter, ValidationError, with_config
from pydantic_core import ErrorDetails
from typing_extensions import TypedDict  # pydantic's, which needs it before Python 3.12

from quotahost.snapshot import in_utc
from quotahost.volume import Limit, LimitType

MAX_BYTES: Final = 256 * 1024
MAX_VOLUMES: Final = 1024
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


class Refused(ValueError):
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


class VolumeJson(TypedDict):
    """A volume; its own limits override the broker's."""

    volumeName: Name
    capacity: Long
    consumed: Long
    softLimit: NotRequired[LimitJson]
    hardLimit: NotRequired[LimitJson]


@with_config(ConfigDict(strict=True))
class SnapshotJson(TypedDict):
    """A record's value."""

    schemaVersion: NotRequired[Annotated[int, Field(ge=1, le=1)]]
    brokerId: Name
    clusterId: NotRequired[Name]
    snapshotAt: Time
    hardLimit: LimitJson
    softLimit: LimitJson
    volumes: Annotated[list[VolumeJson], Field(max_length=MAX_VOLUMES)]
    offlineLogDirs: NotRequired[Annotated[list[Name], Field(max_length=MAX_VOLUMES)]]


_ADAPTER: Final = TypeAdapter(SnapshotJson)


def read(value: bytes) -> SnapshotJson:
    """The fields of a record's value that are known.

    Raises:
        Refused: size, json, version, schema, volumes (too many) or limit.
    """
    return checked(_ADAPTER, value, MAX_BYTES)


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
