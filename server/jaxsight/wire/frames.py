"""Messages as frames on a pipe, between the server and its child processes.

A frame is the length of its body in 4 bytes, big-endian, and the body: JSON in UTF-8 (lone
surrogates, which Python strings may contain, are encoded as they are).
The body is `{"type": class name, field: value, …}` of a message of `wire.messages`.
Inside a message, a dataclass is the list of its fields' values in order, a tuple is a list, and if
a field may hold one of several dataclasses, the list begins with the class's name.

Records of files that one process keeps for the next have the same form.

This module runs in the user's Python too, so it uses the standard library alone.
It must never wait: it converts bytes to messages and back, and raises `WireError` for everything
else.
A stream that raised it must not be read further.
"""

from __future__ import annotations

import json
import os
import struct
import types
from collections.abc import Callable, Iterable, Iterator
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from functools import cache
from operator import attrgetter
from typing import (
    Any,
    BinaryIO,
    Literal,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from jaxsight.timeline import mark
from jaxsight.wire.messages.compiling import Compile, Folding, FromCompiler
from jaxsight.wire.messages.replies import FromTracer
from jaxsight.wire.messages.requests import Request, ToTracer

READ_AT_ONCE = 1 << 16
"""Bytes that a pipe holds on Linux (pipe(7)), so that a read returns no more."""
BROKEN_PROTOCOL = 3
"""The exit code of a tracer or compiler that received invalid data; Python itself has 0 to 2."""
FRAME_LIMIT = 64 * 1024 * 1024
"""Limit of the body in bytes, an error on either side: both keep it in memory, with its text."""
PROGRAM_LIMIT = 384 * 1024 * 1024
"""The same for a program to compile, which comes from a process of ours."""
CAPTURED_LIMIT = 40 * 1024 * 1024
"""Bytes of arrays that a function of a file may capture, which are part of its program and traced
and sent after each edit: 53 MiB of a frame in base64."""
PROGRAM_CAPTURED_LIMIT = 256 * 1024 * 1024
"""The same for a live function, which is compiled when asked, a choice: 342 MiB in base64. With
128 MiB it took 3.6 s and 2 GiB of memory to compile for an H100 (JAX 0.12.0.1)."""

HEADER = struct.Struct(">I")

Message = ToTracer | FromTracer | Compile | FromCompiler | Folding
"""Messages between processes, and records of caches."""

_MESSAGES: dict[str, type] = {kind.__name__: kind for kind in get_args(Message)}

# Bound now: user code that replaces these functions must not break the tracer's connection.
_write = os.write
_dump = json.JSONEncoder(ensure_ascii=False, check_circular=False, separators=(",", ":")).encode
_load = json.JSONDecoder().decode

T = TypeVar("T")

Pack = Callable[[Any], object]
Unpack = Callable[[object], Any]


class WireError(Exception):
    """Received data is not a message of the protocol, or a message cannot be encoded."""


def encode(message: Message | Request[object]) -> bytes:
    """Return the frame of a message.

    Raises:
        WireError: the message is too large, or holds values that JSON cannot represent.
    """
    kind: type = type(message)
    try:
        names, packs, _, _ = _plan(kind)
        body: dict[str, object] = {"type": kind.__name__}
        for name, pack in zip(names, packs, strict=True):
            value = getattr(message, name)
            body[name] = value if pack is None else pack(value)
        data = _dump(body).encode("utf-8", "surrogatepass")
    except (TypeError, ValueError, AttributeError, RecursionError) as error:
        raise WireError(f"{kind.__name__} cannot be sent: {error}") from error
    limit = PROGRAM_LIMIT if kind is Compile else FRAME_LIMIT
    if len(data) > limit:
        raise WireError(f"{kind.__name__} of {len(data)} bytes exceeds the limit of {limit}")
    return HEADER.pack(len(data)) + data


def decode(body: bytes | bytearray | memoryview) -> Message:
    """Return the message with this body.

    Raises:
        WireError: `body` is not a message.
    """
    try:
        value = _load(str(body, "utf-8", "surrogatepass"))
        if type(value) is not dict:
            raise WireError("a message is a JSON object")
        tag = value.pop("type", None)
        kind = _MESSAGES.get(tag) if isinstance(tag, str) else None
        if kind is None:
            raise WireError(f"no message has the type {tag!r}")
        names, _, unpacks, required = _plan(kind)
        values = {}
        for name, unpack in zip(names, unpacks, strict=True):
            if name in value:
                values[name] = unpack(value.pop(name))
        if value or not required.issubset(values):
            raise WireError(f"{tag} has other fields than this version knows")
        message: Message = kind(**values)
        return message
    except (ValueError, RecursionError) as error:
        raise WireError(f"not a message: {error}") from error


def dump(record: object) -> bytes:
    """Return a dataclass as JSON, without its fields of the type `object`.

    Raises:
        WireError: it holds values that JSON cannot represent.
    """
    try:
        kind: Any = type(record)
        return _dump(_record(kind)[0](record)).encode("utf-8", "surrogatepass")
    except (TypeError, ValueError, AttributeError, RecursionError) as error:
        raise WireError(f"{type(record).__name__} cannot be stored: {error}") from error


def load(kind: type[T], data: bytes) -> T:
    """Return the dataclass that `dump` returned as JSON.

    Raises:
        WireError: the JSON is that of something else.
    """
    try:
        own: Any = kind
        record = _record(own)[1](_load(str(data, "utf-8", "surrogatepass")))
    except (ValueError, RecursionError) as error:
        raise WireError(f"not a {kind.__name__}: {error}") from error
    return cast("T", record)


def write(out: int | BinaryIO, message: Message) -> None:
    """Write a message's whole frame to a blocking descriptor, or to a binary file and flush it."""
    frame = memoryview(encode(message))
    if not isinstance(out, int):
        out.write(frame)
        out.flush()
        return
    mark("sent", message)  # now, as the other side may read it before this goes on
    while frame:
        frame = frame[_write(out, frame) :]


class FrameReader:
    """Collects bytes and returns the messages that are complete."""

    def __init__(self, limit: int = FRAME_LIMIT) -> None:
        """Return a reader of frames whose body has at most `limit` bytes."""
        self._buffer = bytearray()
        self._limit = limit

    def feed(self, data: bytes) -> Iterator[Message]:
        """Yield the messages that `data` completes.

        Raises:
            WireError: a frame is not a valid message; those before it have been yielded.
        """
        return map(decode, self.bodies(data))

    def bodies(self, data: bytes) -> Iterator[bytearray]:
        """Yield the bodies of the frames that `data` completes, for `decode`.

        Raises:
            WireError: a frame is too large; those before it have been yielded.
        """
        self._buffer += data
        start = 0
        try:
            while (body := self._body(start)) is not None:
                start += HEADER.size + len(body)
                yield body
        finally:
            del self._buffer[:start]

    def _body(self, start: int) -> bytearray | None:
        """Return the body of the frame at `start`, or `None` if it is incomplete."""
        if len(self._buffer) - start < HEADER.size:
            return None
        (length,) = HEADER.unpack_from(self._buffer, start)
        if length > self._limit:
            raise WireError(f"a frame of {length} bytes exceeds the limit of {self._limit}")
        start += HEADER.size
        return self._buffer[start : start + length] if len(self._buffer) >= start + length else None


Plan = tuple[tuple[str, ...], tuple[Pack | None, ...], tuple[Unpack, ...], frozenset[str]]


@cache
def _plan(kind: type) -> Plan:
    """Return field names, functions to pack (`None`: as is) and unpack them, and required names."""
    if not is_dataclass(kind):
        raise WireError(f"{kind.__name__} is not a message")
    hints = get_type_hints(kind)
    all_fields: tuple[Field[object], ...] = fields(kind)
    names = tuple(member.name for member in all_fields)
    codecs = [_codec(hints[name]) for name in names]
    required = frozenset(
        member.name
        for member in all_fields
        if member.default is MISSING and member.default_factory is MISSING
    )
    return names, tuple(c[0] for c in codecs), tuple(c[1] for c in codecs), required


@cache
def _codec(hint: Any) -> tuple[Pack | None, Unpack]:
    """Return functions that convert a value of this type to JSON data, and back with checks.

    The first is `None` if the value is JSON data already.
    """
    if hint in (int, str, bool, float):
        return None, _scalar(hint)
    if hasattr(hint, "__dataclass_fields__"):
        return _record(hint)
    if hint is object:
        return _left_out, _left_out
    if isinstance(hint, type) and issubclass(hint, Enum):
        return attrgetter("value"), hint
    origin, args = get_origin(hint), get_args(hint)
    if origin is Literal:
        return None, _word(args)
    if origin is tuple:
        return _sequence(args[0]) if args[1:] == (...,) else _pair(args)
    if origin in (Union, types.UnionType):
        return _choice(args)
    raise TypeError(f"the wire has no form for {hint!r}")


def _left_out(value: object) -> None:
    """Stand for a value that only the process knows that made it."""


def _scalar(kind: type) -> Unpack:
    def unpack(value: object) -> object:
        if type(value) is kind:
            return value
        if kind is float and type(value) is int:
            return float(value)
        raise ValueError(f"expected {kind.__name__}, not {type(value).__name__}")

    return unpack


def _word(words: tuple[object, ...]) -> Unpack:
    def unpack(value: object) -> object:
        if value not in words:
            raise ValueError(f"expected one of {words}, not {value!r}")
        return value

    return unpack


@cache
def _record(kind: Any) -> tuple[Callable[[Any], Iterable[object]], Unpack]:
    """Return the codec of a nested dataclass, as a list.

    The codecs of its fields are found at the first use, since types may contain themselves. Several
    threads decode at once: they may find them twice, but see only all of them.
    """
    hints, names = get_type_hints(kind), tuple(member.name for member in fields(kind))
    expected = tuple(hints[name] for name in names)
    if all(hint in (int, str, bool) for hint in expected) and len(names) > 1:

        def unpack_flat(value: object) -> object:
            # There are thousands of spans: one comparison checks all fields of a span.
            if type(value) is not list or tuple(map(type, value)) != expected:
                raise ValueError(f"not the fields of {kind.__name__}")
            return kind(*value)

        return attrgetter(*names), unpack_flat

    has_keywords = len(kind.__match_args__) < len(names)
    members: tuple[list[tuple[int, Pack]], tuple[Unpack, ...]] | None = None

    def codecs() -> tuple[list[tuple[int, Pack]], tuple[Unpack, ...]]:
        nonlocal members
        _, packs, unpacks, _ = _plan(kind)
        members = [(at, one) for at, one in enumerate(packs) if one is not None], unpacks
        return members

    def pack(value: object) -> list[object]:
        row: list[object] = [getattr(value, name) for name in names]
        for at, pack_one in (members or codecs())[0]:
            row[at] = pack_one(row[at])
        return row

    def unpack(value: object) -> object:
        if type(value) is not list or len(value) != len(names):
            raise ValueError(f"not the fields of {kind.__name__}")
        for at, unpack_one in enumerate((members or codecs())[1]):
            value[at] = unpack_one(value[at])
        return kind(**dict(zip(names, value, strict=True))) if has_keywords else kind(*value)

    return pack, unpack


def _sequence(hint: object) -> tuple[Pack | None, Unpack]:
    pack_one, unpack_one = _codec(hint)

    def pack(value: Iterable[object]) -> list[object]:
        return list(map(pack_one, value))  # type: ignore[arg-type]

    def unpack(value: object) -> tuple[object, ...]:
        if type(value) is not list:
            raise ValueError("expected a list")
        return tuple(map(unpack_one, value))

    return (None if pack_one is None else pack), unpack


def _pair(hints: tuple[object, ...]) -> tuple[Pack | None, Unpack]:
    packs, unpacks = zip(*map(_codec, hints), strict=True)

    def pack(value: Iterable[object]) -> list[object]:
        return [
            part if pack_one is None else pack_one(part)
            for pack_one, part in zip(packs, value, strict=True)
        ]

    def unpack(value: object) -> tuple[object, ...]:
        if type(value) is not list or len(value) != len(unpacks):
            raise ValueError(f"expected a list of {len(unpacks)}")
        return tuple([unpack_one(part) for unpack_one, part in zip(unpacks, value, strict=True)])

    return (pack if any(packs) else None), unpack


def _choice(options: tuple[Any, ...]) -> tuple[Pack, Unpack]:
    """Return the codec of `X | None`, or of several dataclasses, distinguished by class name."""
    kinds = tuple(option for option in options if option is not types.NoneType)
    optional = len(kinds) < len(options)
    pack_some, unpack_some = _codec(kinds[0]) if len(kinds) == 1 else _tagged(kinds)

    def pack(value: object) -> object:
        if value is None and optional:
            return None
        return value if pack_some is None else pack_some(value)

    def unpack(value: object) -> object:
        return None if value is None and optional else unpack_some(value)

    return pack, unpack


def _tagged(kinds: tuple[type, ...]) -> tuple[Pack, Unpack]:
    by_name = {kind.__name__: kind for kind in kinds}

    def pack(value: object) -> list[object]:
        name = type(value).__name__
        if by_name.get(name) is not type(value):
            raise TypeError(f"{name} is none of {', '.join(by_name)}")
        return [name, *_record(by_name[name])[0](value)]

    def unpack(value: object) -> object:
        if type(value) is not list or not value or value[0] not in by_name:
            raise ValueError(f"expected one of {', '.join(by_name)}")
        unpack_one = _record(by_name[value[0]])[1]
        return unpack_one(value[1:])

    return pack, unpack
