"""Read messages in the wire format of Protocol Buffers, without their schema.

XLA writes programs and profiles in it. Whoever reads them knows the numbers of their fields
(https://protobuf.dev/programming-guides/encoding).

This module uses only the standard library: compilers import it too.
"""

from __future__ import annotations

from collections.abc import Iterator

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
"""Wire types; 3 and 4 are groups, which nothing writes any more."""
LONGEST = 10
"""Bytes of the longest number: 64 bits, seven in each."""
_LENGTHS = {FIXED64: 8, FIXED32: 4}


def fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield the numbers and values of a message's fields.

    Raises:
        ValueError, IndexError: these bytes are not a message.
    """
    at = 0
    while at < len(message):
        key, at = varint(message, at)
        if key & 7 == VARINT:
            value, at = varint(message, at)
            yield key >> 3, value
            continue
        length, at = length_at(message, at, key & 7)
        yield key >> 3, message[at : at + length]
        at += length


def varint(message: bytes, at: int) -> tuple[int, int]:
    """Return the number at a position, and the position after it.

    Raises:
        IndexError: the message ends before the number does.
        ValueError: it has more than 64 bits.
    """
    value = shift = 0
    while True:
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift >= 7 * LONGEST:
            raise ValueError("a number has more than 64 bits")


def length_at(message: bytes, at: int, wire_type: int) -> tuple[int, int]:
    """Return the length of a field that is not a number, and where its bytes begin.

    Raises:
        ValueError, IndexError: these bytes are not a message.
    """
    if wire_type == BYTES:
        return varint(message, at)
    try:
        return _LENGTHS[wire_type], at
    except KeyError:
        raise ValueError(f"unknown wire type {wire_type}") from None


def number(value: int) -> bytes:
    """Return a number as it is written in a message."""
    parts = bytearray()
    while value >= 0x80:
        parts.append((value & 0x7F) | 0x80)
        value >>= 7
    return bytes([*parts, value])


def signed(value: int) -> int:
    """Return a number that was read as unsigned as an `int64` or `int32`."""
    return value - (1 << 64) if value >> 63 else value


def text(value: object, most: int = 1000) -> str:
    """Return a field's value as text, of at most `most` bytes; empty if it is a number."""
    return value[:most].decode("utf-8", "replace") if isinstance(value, bytes) else ""


def integer(value: object) -> int:
    """Return a field's value as a number; 0, the default of all fields, if it is none."""
    return value if isinstance(value, int) else 0


def varints(packed: bytes) -> Iterator[int]:
    """Yield the numbers of a repeated field that is packed."""
    at = 0
    while at < len(packed):
        value, at = varint(packed, at)
        yield value
