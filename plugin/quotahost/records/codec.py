"""From a record's bytes to its value and back, with every refusal in words.

Each record is declared once, as a frozen dataclass: a field's annotation carries its JSON name and bounds
(:mod:`quotahost.records.declaration`). From that declaration pydantic makes an adapter, which :func:`read` and
:func:`write` use. All readers, on brokers and in the pipeline's driver, decode through :func:`read`, so that they take
or refuse the same bytes. The pipeline's SQL refuses for the same reasons, which are :data:`REASONS`.

``read`` validates the JSON and builds the value in one pass of pydantic's: 20,000 snapshots of three volumes take
0.59 s of one core. Typed dictionaries that Python then copies to the value, field by field, took 0.57 s and needed
every field declared three times.
"""

from __future__ import annotations

import json
import reprlib
from typing import Any, Final, Literal, TypeVar, get_args

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from quotahost.errors import QuotahostError

Reason = Literal["size", "json", "schema", "key", "version", "volumes", "limit"]
REASONS: Final[tuple[Reason, ...]] = get_args(Reason)

# Faults that no form can express, in the order in which they are reported: as the pipeline's SQL looks for them.
_RULES: Final[tuple[Reason, ...]] = ("key", "size", "schema", "volumes", "limit")
_LIMITS: Final = ("softLimit", "hardLimit")
_VERSIONS: Final = ("schemaVersion", "version", "schema_version")

_T = TypeVar("_T")


class Refused(QuotahostError, ValueError):
    """A record that no reader takes; ``reason`` is one of REASONS, the label of the metric that counts it."""

    def __init__(self, reason: Reason, text: str) -> None:
        """``text`` says what is wrong, in one printable line."""
        super().__init__(text)
        self.reason: Reason = reason


def read(adapter: TypeAdapter[_T], key: bytes | None, value: bytes, most: int) -> _T:
    """The value of a record of a topic. Unknown fields of its JSON are ignored.

    Args:
        adapter: made of the record's dataclass.
        key: the record's key; it must be the id that the record names, in UTF-8.
        value: the record's value, JSON in UTF-8.
        most: how many bytes the value may have.

    Raises:
        Refused: the bytes are no such record. Nothing else is raised, whatever the bytes.
    """
    if len(value) > most:
        raise Refused("size", f"the record has {len(value):,} bytes, more than {most:,}")
    try:
        return adapter.validate_json(value, context=key)
    except ValidationError as error:
        first = min(error.errors(include_url=False), key=_rank)  # the first of several that are alike
    raise Refused(_reason(first), _text(first))


def write(adapter: TypeAdapter[Any], key: str, record: Any, most: int, **instead: Any) -> bytes:
    """A record's value as JSON. The id of its cluster is left out while it is unknown ("").

    Args:
        adapter: made of the record's dataclass.
        key: the id that the record names; the record's key is its UTF-8.
        record: the record.
        most: how many bytes the value may have.
        instead: fields by their JSON names that are written otherwise than the declaration says.

    Raises:
        Refused: no reader would take the record: a name is too long or no valid Unicode, a number is out of range,
            or the like.
    """
    fields: dict[str, Any] = adapter.dump_python(record, by_alias=True, warnings=False) | instead
    if fields["clusterId"] == "":
        del fields["clusterId"]
    value = json.dumps(fields, separators=(",", ":")).encode()
    read(adapter, key.encode(errors="replace"), value, most)
    return value


def _rank(details: ErrorDetails) -> int:
    """A record of another version may differ in anything else too, so that its version is the fault to report."""
    if _is_version(details):
        return 0
    refused = _refused(details)
    return 2 + _RULES.index(refused.reason) if refused else 1


def _refused(details: ErrorDetails) -> Refused | None:
    error = details.get("ctx", {}).get("error")
    return error if isinstance(error, Refused) else None


def _is_version(details: ErrorDetails) -> bool:
    return details["loc"][:1] in [(name,) for name in _VERSIONS]


def _reason(details: ErrorDetails) -> Reason:
    where = details["loc"]
    if refused := _refused(details):
        return refused.reason
    if details["type"] == "json_invalid":
        return "json"
    if _is_version(details):
        return "version"
    if where == ("volumes",) and details["type"] == "too_long":
        return "volumes"
    return "limit" if len(where) > 1 and where[-2] in _LIMITS else "schema"


def _text(details: ErrorDetails) -> str:
    """The fault in one printable line: its place in the JSON, what is wrong, and the beginning of what stands there."""
    if details["type"] == "json_invalid":
        return details["msg"]
    where = ".".join(map(str, details["loc"])) or "the record"
    if refused := _refused(details):
        return f"{where}: {refused}"
    given = "" if details["type"] == "missing" else f", not {reprlib.repr(details['input'])}"
    return f"{where}: {details['msg']}{given}"
