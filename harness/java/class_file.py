"""Reads from a compiled Java class what it extends and which methods it calls, without loading it.

A test looks through Kafka's jars for the classes that make network clients. ``javap`` would take a JVM for each class.
"""

import struct
from dataclasses import dataclass, field
from typing import Any, Final

# The Java Virtual Machine Specification, 4.4: the sizes of the constants that have one, by tag.
_SIZES: Final = {
    3: 4,
    4: 4,
    5: 8,
    6: 8,
    7: 2,
    8: 2,
    9: 4,
    10: 4,
    11: 4,
    12: 4,
    15: 3,
    16: 2,
    17: 4,
    18: 4,
    19: 2,
    20: 2,
}
_UTF8, _CLASS, _METHOD, _INTERFACE_METHOD, _NAME_AND_TYPE = 1, 7, 10, 11, 12
_WIDE: Final = (5, 6)  # long and double take two places


@dataclass(frozen=True)
class ClassFile:
    """A class, with names as in ``org/apache/kafka/clients/NetworkClient``.

    Attributes:
        name: its own name.
        parent: the class that it extends; "" for Object alone.
        calls: the methods and constructors that it names, as (class, method); a constructor is ``<init>``.
    """

    name: str
    parent: str
    calls: frozenset[tuple[str, str]] = field(repr=False)


def read_class(data: bytes) -> ClassFile:
    """The class in a ``.class`` file's content."""
    pool, at = _constants(data)

    def name(index: int) -> str:
        return str(pool[pool[index][1]][1]) if index else ""

    own, parent = struct.unpack_from(">HH", data, at + 2)  # after the access flags
    calls = {
        (name(value[0]), str(pool[pool[value[1]][1][0]][1]))
        for tag, value in pool.values()
        if tag in (_METHOD, _INTERFACE_METHOD)
    }
    return ClassFile(name(own), name(parent), frozenset(calls))


def _constants(data: bytes) -> tuple[dict[int, tuple[int, Any]], int]:
    """The constant pool by index, as tag and value, and where it ends."""
    (count,) = struct.unpack_from(">H", data, 8)
    pool: dict[int, tuple[int, Any]] = {}
    at, index = 10, 1
    while index < count:
        tag = data[at]
        if tag == _UTF8:
            (length,) = struct.unpack_from(">H", data, at + 1)
            # Java writes NUL and what lies beyond the BMP in its own way; no name that is asked for contains these.
            pool[index] = tag, data[at + 3 : at + 3 + length].decode(errors="replace")
            at += 3 + length
        else:
            if tag == _CLASS:
                pool[index] = tag, struct.unpack_from(">H", data, at + 1)[0]
            elif tag in (_METHOD, _INTERFACE_METHOD, _NAME_AND_TYPE):
                pool[index] = tag, struct.unpack_from(">HH", data, at + 1)
            at += 1 + _SIZES[tag]
        index += 2 if tag in _WIDE else 1
    return pool, at
