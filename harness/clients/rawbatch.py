"""Makes a record batch as bytes (Kafka's message format, magic 2).

``harness.clients.raw`` sends such batches: their size is known to the byte, so a test can predict the charge.
"""

import struct
import time
from typing import Final


def record_batch(value_size: int) -> bytes:
    """A batch with one record, whose value is so many zeros and which has no key."""
    value = bytes(value_size)
    record = b"\0\0\0" + _varint(-1) + _varint(value_size) + value + _varint(0)
    record = _varint(len(record)) + record
    moment = time.time_ns() // 1_000_000
    checked = struct.pack(">hiqqqhii", 0, 0, moment, moment, -1, -1, -1, 1) + record
    rest = struct.pack(">ibI", -1, 2, _crc32c(checked)) + checked
    return struct.pack(">qi", 0, len(rest)) + rest


def _varint(number: int) -> bytes:
    rest = (number << 1) ^ (number >> 63)
    data = bytearray()
    while rest > 0x7F:
        data.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([*data, rest])


def _crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


def _entry(crc: int) -> int:
    for _ in range(8):
        crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc


_TABLE: Final = [_entry(n) for n in range(256)]
