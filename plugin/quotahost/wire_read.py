"""The JSON of a snapshot as types, and from bytes to these types, with every refusal in words."""

from __future__ import annotations

import re
import reprlib
from datetime import datetime
from typing import Annotated, Final, Literal, NotRequired, get_args

from pydantic import ConfigDict, Field, PlainValidator, TypeAdapter, ValidationError, with_config
from pydantic_core import ErrorDetails
from typing_extensions import TypedDict  # pydantic's, which needs it before Python 3.12

from quotahost.snapshot import in_utc
from quotahost.volume import LimitType

MAX_BYTES: Final = 256 * 1024
MAX_VOLUMES: Final = 1024
MAX_NAME: Final = 1024  # characters
MAX_LONG: Final = 2**63 - 1  # the proposal's "long"

Reason = Literal["size", "json", "schema", "key", "version", "volumes", "limit"]
REASONS: Final[tuple[Reason, ...]] = get_args(Reason)
_LIMITS: Final = ("softLimit", "hardLimit")
_DATE_TIME: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.,][0-9]{1,9})?)?(Z|[+-][0-9]{2}:?[0-9]{2})"
)


class Refused(ValueError):
    """A record that is no snapshot; ``reason`` is one of REASONS, for a metric's label."""

    def __init__(self, reason: Reason, text: str) -> None:
        """``text`` says what is wrong, in one printable line."""
        super().__init__(text)
        self.reason: Reason = reason


def _time(value: object) -> datetime:
    # Not pydantic's datetime: it takes "1649336400" for seconds since 1970.
    if not isinstance(value, str) or _DATE_TIME.fullmatch(value) is None:
        raise ValueError("must be an ISO 8601 date-time with Z or an offset")
    return in_utc(datetime.fromisoformat(value))


Name = Annotated[str, Field(max_length=MAX_NAME)]
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
    snapshotAt: Annotated[datetime, PlainValidator(_time)]
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
    if len(value) > MAX_BYTES:
        raise Refused("size", f"the record has {len(value):,} bytes, more than {MAX_BYTES:,}")
    try:
        return _ADAPTER.validate_json(value)
    except ValidationError as error:
        details = error.errors(include_url=False)
    # A record of another version may differ in anything else too, so that is told first.
    first = next((d for d in details if d["loc"][:1] == ("schemaVersion",)), details[0])
    raise Refused(_reason(first), _text(first))


def _reason(details: ErrorDetails) -> Reason:
    where = details["loc"]
    if details["type"] == "json_invalid":
        return "json"
    if where[:1] == ("schemaVersion",):
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
