"""How a record is declared: once, as a frozen dataclass whose annotations say what its JSON is.

An annotation carries a field's JSON name and bounds, for pydantic, and the marks below where the JSON has another form
than the value, may be null, must not be missing, or is the record's key as well. What fields have in common lies in
:mod:`quotahost.records.fields`; :mod:`quotahost.records.codec` reads and writes by such declarations.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, TypeVar, get_type_hints

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, GetCoreSchemaHandler, ValidationInfo
from pydantic.alias_generators import to_camel
from pydantic_core import CoreSchema, core_schema

from quotahost.records.codec import Refused

VERSION: Final = 1

#: Up to here each whole number is a double of its own, and no other number lies nearer to that double.
MAX_EXACT: Final = 2**53 - 1

#: Of a record's dataclass: JSON names are camelCase, and no text is taken for a number.
RECORD: Final = ConfigDict(strict=True, alias_generator=to_camel)


def _whole(value: object) -> object:
    # By type(): a bool is no float, and an int, the usual case, is through at once.
    if type(value) is float and abs(value) <= MAX_EXACT and value.is_integer():
        return int(value)
    return value


#: A whole number, also as 5.0 or 5e0: for draft 7 of JSON Schema (6.1.1) an integer is any number without a fraction.
#: One with a point or an exponent is read as a double, so it is refused where doubles are no longer exact. The pipeline
#: has the same rule in SQL (:mod:`quotahost.pipeline.spark.whole_numbers`).
Whole = Annotated[int, BeforeValidator(_whole)]


@dataclass(frozen=True)
class As:
    """Annotates a field whose value has another form in JSON.

    Attributes:
        form: the type of the JSON.
        read: makes the value of JSON that fits the form; the second argument holds the fields read before.
        write: makes the JSON of the value.
    """

    form: Any
    read: Callable[[Any, ValidationInfo], Any]
    write: Callable[[Any], Any]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Called by pydantic when it makes an adapter."""
        return core_schema.with_info_after_validator_function(
            self.read,
            handler.generate_schema(self.form),
            serialization=core_schema.plain_serializer_function_ser_schema(self.write),
        )


@dataclass(frozen=True)
class NullIs:
    """Annotates a field that may be null in JSON: Spark writes a sum over nothing, or an empty list, so.

    Attributes:
        value: what stands for null.
    """

    value: Any

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Called by pydantic when it makes an adapter."""
        return core_schema.no_info_after_validator_function(
            lambda value: self.value if value is None else value, core_schema.nullable_schema(handler(source))
        )


def _is_key(name: str, info: ValidationInfo) -> str:
    # The context is the record's key, as Codec.decode was given it.
    if info.context != name.encode():
        named, key = reprlib.repr(name), reprlib.repr(info.context)
        raise Refused("key", f"the record names {named}, but its key is {key}")
    return name


IS_KEY: Final = AfterValidator(_is_key)  # annotates the id that is also the key of the record

_T = TypeVar("_T")
_NEEDED: Final = "needed"
Needed = Annotated[_T, _NEEDED]  # a field that JSON must have, although the dataclass has a default for it


class Record:
    """Base of the records: makes pydantic insist on the fields that are Needed."""

    __slots__ = ()  # else the records, whose classes have slots, would have a __dict__ as well

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Called by pydantic when it makes an adapter: take the default from the needed fields."""
        # The default serves Python's constructor only; pydantic would use it for JSON without the field as well.
        schema = handler.resolve_ref_schema(handler(source))
        hints = get_type_hints(cls, include_extras=True)
        for each in schema["schema"]["fields"]:
            if _NEEDED in getattr(hints[each["name"]], "__metadata__", ()):
                each["schema"] = each["schema"]["schema"]
        return schema


# By keyword only: a field with a default must not stand before those of the records that have none.
@dataclass(frozen=True, slots=True, kw_only=True)
class Versioned(Record):
    """Base of the records whose JSON must name its version, which is no part of their value."""

    version: Needed[Annotated[Whole, Field(ge=VERSION, le=VERSION)]] = field(default=VERSION, compare=False, repr=False)
