"""From a record's declaration to its JSON and back, with every refusal in words.

1. A record is declared once, as a frozen dataclass. A field's annotation carries its JSON name and bounds for pydantic,
   and the marks of this module where the JSON has another form than the value (:class:`As`), may be null
   (:class:`NullIs`), must not be missing (``Needed``), or is the record's key as well (``IS_KEY``). What fields have in
   common lies in :mod:`quotahost.records.fields`.
2. A :class:`Codec` makes pydantic's adapter of the declaration. ``decode`` validates the JSON and builds the value in
   one pass; ``encode`` makes the JSON, and reads it back before it hands it on.

All readers, on brokers and in the pipeline's driver, decode with it. The pipeline's SQL
(:mod:`quotahost.pipeline.snapshots`) has the same rules and the same reasons.
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
from typing_extensions import TypedDict  # pydantic needs this one before Python 3.12

from quotahost.base.errors import QuotahostError

_LIMITS: Final = ("softLimit", "hardLimit")
_VERSIONS: Final = (("schemaVersion",), ("version",), ("schema_version",))

_T = TypeVar("_T")


class Refused(QuotahostError, ValueError):
    """A record that is not taken.

    ``reason`` is the label of the metric of it: ``size``, ``json``, ``schema``, ``key``, ``version``, ``volumes``,
    ``limit``, or a reader's own.
    """

    def __init__(self, reason: str, text: str) -> None:
        """``text`` says what is wrong, in one printable line."""
        super().__init__(text)
        self.reason = reason


# ---- how a record is declared ----------------------------------------------------------------------

VERSION: Final = 1

#: Up to here each whole number is a double of its own, and no other number lies nearer to that double.
MAX_EXACT: Final = 2**53 - 1


def _whole(value: object) -> object:
    # By type(): a bool is no float, and an int, the usual case, is through at once.
    if type(value) is float and abs(value) <= MAX_EXACT and value.is_integer():
        return int(value)
    return value


#: A whole number, also as 5.0 or 5e0: for draft 7 of JSON Schema (6.1.1) an integer is any number without a fraction.
#: One with a point or an exponent is read as a double, so it is refused where doubles are no longer exact. The pipeline
#: has the same rule in SQL (:mod:`quotahost.pipeline.snapshots`).
Whole = Annotated[int, BeforeValidator(_whole)]


@dataclass(frozen=True)
class As:
    """Annotates a field, or an item of a list, whose value has another form in JSON."""

    form: Any
    #: Makes the value of JSON that fits the form; its second argument holds the fields read before.
    read: Callable[[Any, ValidationInfo], Any]
    write: Callable[[Any], Any]  # makes of the value what fits the form

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        form = handler.generate_schema(self.form)
        write = core_schema.wrap_serializer_function_ser_schema(
            lambda value, as_json: as_json(self.write(value)), schema=form
        )
        return core_schema.with_info_after_validator_function(self.read, form, serialization=write)


def object_of(make: Callable[..., Any], **fields: Any) -> As:
    """Annotates a value of the model: JSON has an object with these attributes of it, of these types."""
    form: Any = TypedDict(f"{make.__name__}Json", fields)  # type: ignore[misc]  # made at run time
    return As(form, lambda given, _: make(**given), lambda value: {name: getattr(value, name) for name in fields})


@dataclass(frozen=True)
class NullIs:
    """Annotates a field that may be null in JSON, which ``value`` stands for: Spark writes a sum over nothing so."""

    value: Any

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(
            lambda value: self.value if value is None else value, core_schema.nullable_schema(handler(source))
        )


def _is_key(name: str, info: ValidationInfo) -> str:
    # The context has the key that Codec.decode was given; there is none while a record is written.
    if info.context and info.context["key"] != name.encode():
        named, key = reprlib.repr(name), reprlib.repr(info.context["key"])
        raise Refused("key", f"the record names {named}, but its key is {key}")
    return name


IS_KEY: Final = AfterValidator(_is_key)  # annotates the id that is also the key of the record

_NEEDED: Final = "needed"
Needed = Annotated[_T, _NEEDED]  # a field that JSON must have, although the dataclass has a default for it


class Record:
    """Base of the records: JSON names are camelCase, no text is taken for a number, what is Needed must be there."""

    __slots__ = ()  # else the records, whose classes have slots, would have a __dict__ as well
    __pydantic_config__ = ConfigDict(strict=True, alias_generator=to_camel)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        # The default serves Python's constructor only; pydantic would use it for JSON without the field as well.
        schema = handler.resolve_ref_schema(handler(source))
        hints = get_type_hints(cls, include_extras=True)
        for declared in schema["schema"]["fields"]:
            if _NEEDED in getattr(hints[declared["name"]], "__metadata__", ()):
                declared["schema"] = declared["schema"]["schema"]
        return schema


# By keyword only: a field with a default must not stand before those of the records that have none.
@dataclass(frozen=True, slots=True, kw_only=True)
class Versioned(Record):
    """Base of the records whose JSON must name its version, which is no part of their value."""

    version: Needed[Annotated[Whole, Field(ge=VERSION, le=VERSION)]] = field(default=VERSION, compare=False, repr=False)


# ---- how it is read and written --------------------------------------------------------------------

#: A megabyte may have 500,000 faults, and to list these takes seconds, in which all of Python waits, and 200 MB.
_MOST_FAULTS: Final = 10_000


class Codec(Generic[_T]):
    """Encodes and decodes the records that one dataclass, ``record``, declares."""

    def __init__(self, record: type[_T], most: int, smaller: Callable[[_T], _T] | None = None) -> None:
        """Make pydantic's adapter of the declaration.

        A record's value may have ``most`` bytes; ``smaller`` makes what is written instead of a record that has more.
        """
        self.record, self._most, self._smaller = record, most, smaller
        self._adapter = TypeAdapter(record)

    def schema(self) -> dict[str, Any]:
        """The JSON schema of the declaration, for programs that write or read such records (draft 2020-12)."""
        return self._adapter.json_schema()

    def decode(self, key: bytes | None, value: bytes) -> _T:
        """The value of a record of a topic. Unknown fields of its JSON are ignored.

        Raises Refused if the bytes are no such record; nothing else, whatever the bytes.
        """
        return self._decode(value, {"key": key})

    def _decode(self, value: bytes, context: dict[str, bytes | None] | None) -> _T:
        # Before the parse, which a stranger could make costly by a huge value.
        if len(value) > self._most:
            raise Refused("size", f"the record has {len(value):,} bytes, more than {self._most:,}")
        try:
            return self._adapter.validate_json(value, context=context)
        except ValidationError as error:
            reason, text = _first_fault(error)
        raise Refused(reason, text)

    def encode(self, record: _T) -> bytes:
        """A record's value as JSON.

        Left out are the id of its cluster while it is unknown (""), an unknown age, and a list of budgets where there
        are none. Raises Refused if no reader would take the record.
        """
        try:
            return self._encode(record)
        except Refused as refused:
            if refused.reason != "size" or self._smaller is None:
                raise
        return self._encode(self._smaller(record))

    def _encode(self, record: _T) -> bytes:
        # pydantic's warnings of values that don't fit are of no use: the decode below refuses these.
        fields: dict[str, Any] = self._adapter.dump_python(record, by_alias=True, warnings=False)
        for name, unknown in (("clusterId", ""), ("ageMs", None), ("budgets", None)):
            if name in fields and fields[name] == unknown:
                del fields[name]
        # Not pydantic's JSON: it writes NaN as null, and fails for a lone surrogate instead of refusing it below.
        value = json.dumps(fields, separators=(",", ":")).encode()
        # A record that readers refuse would silence its writer for them, so it isn't written.
        self._decode(value, None)
        return value


def _first_fault(error: ValidationError) -> tuple[str, str]:
    """The reason and the text of the fault that is reported."""
    if (count := error.error_count()) > _MOST_FAULTS:
        return "schema", f"the record has {count:,} faults"
    faults = error.errors(include_url=False)
    # A record of another version may differ in anything else, too.
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
    """The fault in one printable line: its place in the JSON, what is wrong, and the beginning of what stands there."""
    if details["type"] == "json_invalid":
        return details["msg"]
    where = ".".join(map(str, details["loc"])) or "the record"
    if refused := _refused(details):
        return f"{where}: {refused}"
    # Cut by reprlib, as a stranger may have written a megabyte there.
    given = "" if details["type"] == "missing" else f", not {reprlib.repr(details['input'])}"
    return f"{where}: {details['msg']}{given}"
