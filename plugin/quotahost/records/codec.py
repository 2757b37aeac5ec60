"""Encodes records as JSON and decodes them, by their declarations, and explains each refusal in words.

1. A module declares its record once, as a frozen dataclass. A field's annotation has its JSON name and bounds for
   pydantic. Marks of this module say that the JSON has another form than the value (:class:`As`), may be null
   (:class:`NullIs`), must not be missing (``Needed``), or is also the record's key (``IS_KEY``).
   :mod:`quotahost.records.fields` has the types that several records share.
2. A :class:`Codec` makes pydantic's adapter of the declaration. ``decode`` validates the JSON and builds the value in
   one pass. ``encode`` makes the JSON, and decodes it as a check before it returns it.
3. If a record is wrong, both raise :class:`Refused`, with a reason and a line of text.

All readers, on brokers and in the pipeline's driver, decode with a Codec, so they accept or refuse the same bytes. The
pipeline's SQL (:mod:`quotahost.pipeline.snapshots`) has the same rules and the same reasons.
"""

import json
import reprlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Generic, TypeVar, get_type_hints

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
)
from pydantic.alias_generators import to_camel
from pydantic_core import CoreSchema, ErrorDetails, core_schema
from typing_extensions import TypedDict  # pydantic needs this TypedDict before Python 3.12

from quotahost.base.errors import QuotahostError

_LIMITS: Final = ("softLimit", "hardLimit")
_VERSIONS: Final = (("schemaVersion",), ("version",), ("schema_version",))

_T = TypeVar("_T")


class Refused(QuotahostError, ValueError):
    """A reader refuses a record.

    ``reason`` is the label of its metric: ``size``, ``json``, ``schema``, ``key``, ``version``, ``volumes``,
    ``limit``, or a reader's own.
    """

    def __init__(self, reason: str, text: str) -> None:
        """``text`` says what is wrong, in one printable line."""
        super().__init__(text)
        self.reason = reason


# ---- how a record is declared ----------------------------------------------------------------------

VERSION: Final = 1

#: Up to this number, each whole number is a double of its own, and no other whole number is rounded to that double.
MAX_EXACT: Final = 2**53 - 1


def _whole(value: object) -> object:
    # type() takes no bool for a float, and is fast for an int, the usual case.
    if type(value) is float and abs(value) <= MAX_EXACT and value.is_integer():
        return int(value)
    return value


#: A whole number, also as 5.0 or 5e0: in draft 7 of JSON Schema (6.1.1) an integer is any number without a fraction. A
#: number with a point or an exponent is read as a double, so it is refused above MAX_EXACT. The pipeline has the same
#: rule in SQL (:mod:`quotahost.pipeline.snapshots`).
Whole = Annotated[int, BeforeValidator(_whole)]


@dataclass(frozen=True)
class As:
    """Annotates a field, or an item of a list, whose value has another form in JSON."""

    form: Any
    #: Makes the value from data of this form; the second argument has the fields that were read before.
    read: Callable[[Any, ValidationInfo], Any]
    write: Callable[[Any], Any]  # makes data of this form from the value

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        form = handler.generate_schema(self.form)
        write = core_schema.wrap_serializer_function_ser_schema(
            lambda value, as_json: as_json(self.write(value)), schema=form
        )
        return core_schema.with_info_after_validator_function(self.read, form, serialization=write)


def object_of(make: Callable[..., Any], **fields: Any) -> As:
    """Annotates a field whose JSON is an object with these attributes of the value, of these types."""
    form: Any = TypedDict(f"{make.__name__}Json", fields)  # type: ignore[misc]  # made at run time
    return As(form, lambda given, _: make(**given), lambda value: {name: getattr(value, name) for name in fields})


@dataclass(frozen=True)
class NullIs:
    """Annotates a field that may be null in JSON, which becomes ``value``: Spark's sum over no rows is null."""

    value: Any

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(
            lambda value: self.value if value is None else value, core_schema.nullable_schema(handler(source))
        )


def _is_key(name: str, info: ValidationInfo) -> str:
    # The context has the key that Codec.decode was given; while a record is encoded, there is no context.
    if info.context and info.context["key"] != name.encode():
        named, key = reprlib.repr(name), reprlib.repr(info.context["key"])
        raise Refused("key", f"the record names {named}, but its key is {key}")
    return name


IS_KEY: Final = AfterValidator(_is_key)  # annotates the id that is also the key of the record

_NEEDED: Final = "needed"
Needed = Annotated[_T, _NEEDED]  # a field that JSON must have, although the dataclass has a default for it


class Record:
    """Base of the records: JSON names are camelCase, a text is never a number, and a Needed field must be there."""

    __slots__ = ()  # otherwise the records would have a __dict__ in addition to their slots
    __pydantic_config__ = ConfigDict(strict=True, alias_generator=to_camel)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        # The default is only for Python's constructor; pydantic would also use it for JSON without the field.
        schema = handler.resolve_ref_schema(handler(source))
        hints = get_type_hints(cls, include_extras=True)
        for declared in schema["schema"]["fields"]:
            if _NEEDED in getattr(hints[declared["name"]], "__metadata__", ()):
                declared["schema"] = declared["schema"]["schema"]
        return schema


# kw_only, because otherwise this field with a default could not stand before the records' fields without one.
@dataclass(frozen=True, slots=True, kw_only=True)
class Versioned(Record):
    """Base of the records whose JSON must name its version; the version is no part of the value."""

    version: Needed[Annotated[Whole, Field(ge=VERSION, le=VERSION)]] = field(default=VERSION, compare=False, repr=False)


# ---- how a record is read and written --------------------------------------------------------------

#: A megabyte may have 500,000 faults. To list them would take 200 MB, and seconds in which all of Python waits.
_MOST_FAULTS: Final = 10_000


class Codec(Generic[_T]):
    """Encodes and decodes the records that one dataclass, ``record``, declares."""

    def __init__(self, record: type[_T], most: int, smaller: Callable[[_T], _T] | None = None) -> None:
        """Make pydantic's adapter of the declaration.

        A record's value may have ``most`` bytes; ``smaller`` makes a smaller record to write instead of a larger one.
        """
        self.record, self._most, self._smaller = record, most, smaller
        self._adapter = TypeAdapter(record)

    def schema(self) -> dict[str, Any]:
        """The JSON schema of the declaration, for programs that write or read such records (draft 2020-12)."""
        return self._adapter.json_schema()

    def decode(self, key: bytes | None, value: bytes) -> _T:
        """Decode a record of a topic. Unknown fields of its JSON are ignored.

        Raises Refused, and no other exception, if the bytes are no such record.
        """
        return self._decode(value, {"key": key})

    def _decode(self, value: bytes, context: dict[str, bytes | None] | None) -> _T:
        # The check comes before the parse, which another client could make costly with a huge value.
        if len(value) > self._most:
            raise Refused("size", f"the record has {len(value):,} bytes, more than {self._most:,}")
        try:
            return self._adapter.validate_json(value, context=context)
        except ValidationError as error:
            reason, text = _first_fault(error)
        raise Refused(reason, text)

    def encode(self, record: _T) -> bytes:
        """A record's value as JSON.

        The JSON has no clusterId while the id is unknown (""), no ageMs if the age is unknown, and no budgets if there
        are none. Raises Refused if no reader would take the record.
        """
        try:
            return self._encode(record)
        except Refused as refused:
            if refused.reason != "size" or self._smaller is None:
                raise
        return self._encode(self._smaller(record))

    def _encode(self, record: _T) -> bytes:
        # pydantic's warnings of wrong values are not needed: the decode below refuses these values.
        fields: dict[str, Any] = self._adapter.dump_python(record, by_alias=True, warnings=False)
        for name, unknown in (("clusterId", ""), ("ageMs", None), ("budgets", None)):
            if name in fields and fields[name] == unknown:
                del fields[name]
        # json.dumps, because pydantic writes NaN as null and fails for a lone surrogate; the decode below refuses both.
        value = json.dumps(fields, separators=(",", ":")).encode()
        # A record that readers refuse isn't written, because to them its writer would be silent.
        self._decode(value, None)
        return value


def _first_fault(error: ValidationError) -> tuple[str, str]:
    """The reason and the text of the fault that is reported."""
    if (count := error.error_count()) > _MOST_FAULTS:
        return "schema", f"the record has {count:,} faults"
    faults = error.errors(include_url=False)
    # A wrong version comes first, because a record of another version may differ in anything else, too.
    first = next((details for details in faults if details["loc"][:1] in _VERSIONS), faults[0])
    return _reason(first), _text(first)


def _reason(details: ErrorDetails) -> str:
    where = details["loc"]
    if where[:1] in _VERSIONS:
        return "version"
    if refused := _refused(details):
        return refused.reason
    if details["type"] == "json_invalid":
        return "json"
    if where == ("volumes",) and details["type"] == "too_long":
        return "volumes"
    return "limit" if len(where) > 1 and where[-2] in _LIMITS else "schema"


def _refused(details: ErrorDetails) -> Refused | None:
    error = details.get("ctx", {}).get("error")
    return error if isinstance(error, Refused) else None


def _text(details: ErrorDetails) -> str:
    """The fault in one printable line: its place in the JSON, what is wrong, and the beginning of the wrong value."""
    if details["type"] == "json_invalid":
        return details["msg"]
    where = ".".join(map(str, details["loc"])) or "the record"
    if refused := _refused(details):
        return f"{where}: {refused}"
    # reprlib cuts the value, because another client may have written a megabyte there.
    given = "" if details["type"] == "missing" else f", not {reprlib.repr(details['input'])}"
    return f"{where}: {details['msg']}{given}"
