"""Standard streams for the protocol alone, read and written off the event loop.

`print` anywhere in this process must not write into the protocol, a client that reads slowly must
not block the loop, and the end of either stream must end the server, even during a read: so the
threads are daemons.

Messages are JSON: read from bytes, checked, and written with their headers.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import queue
import re
import sys
import threading
from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

log = logging.getLogger(__name__)

LENGTH_LIMIT = 256 * 1024 * 1024
"""Bytes of the longest message that is accepted, a choice: far more than the texts that are read
(`printed.py`); without a limit, a wrong length would have the server wait and allocate forever."""

# The rest of a message whose length was too small may precede it.
_CONTENT_LENGTH = re.compile(rb"(?<![\w-])content-length[ \t]*:[ \t]*(\d{1,18})\s*$", re.IGNORECASE)

ANNOUNCE = "jaxsight/announce"
"""A notification before `initialize`, with what its parameters will say of folders and settings.

A client sends it as soon as it has started the server, which then starts tracers and imports its
own modules while the client still loads the library that it speaks the protocol with.
"""

_CHUNK = 65536
"""Bytes of one read or write: the capacity of a pipe on Linux, pipe(7)."""
_LAST_WORDS = 0.5
"""Seconds to wait at the end for a client to read the pending output; see `server._LAST_WORK`."""


class ByteSink(Protocol):
    """The stream that answers are written to, such as `asyncio.StreamWriter`."""

    def write(self, data: bytes, /) -> None: ...

    def close(self) -> None: ...


async def receive(source: asyncio.StreamReader) -> bytes | None:
    """Return the body of the next message, or `None` at the end of the stream.

    If headers are invalid (perhaps because the previous length was wrong), reading continues at
    the next valid ones.
    """
    await asyncio.sleep(0)  # tasks of the previous message start first
    length, line = 0, b"\n"
    while line:
        try:
            line = await source.readline()
        except ValueError:  # longer than the stream's buffer, which has been cleared
            line = b"\n"
        if (match := _CONTENT_LENGTH.search(line)) is not None:
            length = int(match[1])
            if length > LENGTH_LIMIT:
                log.warning("a message of %d bytes exceeds %d bytes", length, LENGTH_LIMIT)
                length = 0
        elif length and not line.strip():
            try:
                return await source.readexactly(length)
            except asyncio.IncompleteReadError:
                return None
    return None


async def introduction(source: asyncio.StreamReader, outbox: ByteSink) -> JsonObject | None:
    """Return the request `initialize`, or the announcement of it.

    Returns `None` if the stream ends or the client exits. Other requests are answered with an
    error, and other notifications are dropped.
    """
    while (body := await receive(source)) is not None:
        try:
            message = decode(body)
            match message:
                case {"method": "exit"}:
                    return None
                case {"method": "initialize", "id": _}:
                    return message
                case {"method": method} if method == ANNOUNCE:
                    return message
                case {"method": _, "id": id}:
                    raise MalformedMessage(
                        SERVER_NOT_INITIALIZED, "expected `initialize` first", id
                    )
        except MalformedMessage as error:
            outbox.write(frame(error.response))
    return None


class Outbox:
    """Writes to a file descriptor from a thread, in order."""

    def __init__(self, descriptor: int, failed: Callable[[], None]) -> None:
        """Start the thread, which calls `failed` when the other side is gone."""
        self._descriptor = descriptor
        self._failed = failed
        self._waiting: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="jaxsight writer", daemon=True)
        self._thread.start()

    def write(self, data: bytes) -> None:
        """Write `data`, after what was passed before."""
        self._waiting.put(data)

    def close(self) -> None:
        """Write the pending output, if the client reads it soon."""
        self._waiting.put(None)
        self._thread.join(_LAST_WORDS)

    def _run(self) -> None:
        try:
            while (data := self._waiting.get()) is not None:
                unwritten = memoryview(data)
                while unwritten:
                    unwritten = unwritten[os.write(self._descriptor, unwritten) :]
        except OSError:
            self._failed()


def claim_stdio() -> tuple[int, int]:
    """Reserve the standard streams for the protocol, and return descriptors to read and to write.

    Standard input becomes empty, and standard output is redirected to standard error.
    """
    incoming, outgoing = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return incoming, outgoing


def read_descriptor(descriptor: int, loop: asyncio.AbstractEventLoop) -> asyncio.StreamReader:
    """Return a stream that reads a file descriptor, of any kind, on any platform."""
    stream = asyncio.StreamReader(loop=loop)

    def call(method: Callable[..., None], *arguments: bytes) -> None:
        try:
            loop.call_soon_threadsafe(method, *arguments)
        except RuntimeError:
            return  # the loop is closed, so nobody reads the stream

    def run() -> None:
        try:
            while chunk := os.read(descriptor, _CHUNK):
                call(stream.feed_data, chunk)
        except OSError:
            pass  # a broken pipe is the end of the stream too
        call(stream.feed_eof)

    threading.Thread(target=run, name="jaxsight reader", daemon=True).start()
    return stream


# LSP 3.18, `ErrorCodes`
PARSE_ERROR = -32700
INVALID_REQUEST = -32600
INVALID_PARAMS = -32602
SERVER_NOT_INITIALIZED = -32002


JsonObject: TypeAlias = dict[str, Any]
"""A message, or a part of one, before it is checked, or as it is written."""


class MalformedMessage(Exception):
    """The input is not a message, or not valid in the current state; `response` is the answer."""

    def __init__(self, code: int, message: str, id: int | str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.id = id

    @property
    def response(self) -> JsonObject:
        """The answer, as JSON."""
        error = {"code": self.code, "message": str(self)}
        return {"jsonrpc": "2.0", "id": self.id, "error": error}


def decode(body: bytes) -> JsonObject:
    """Return a message as JSON: an answer, or a message with valid `jsonrpc`, `id` and `method`.

    Raises:
        Malformed: `body` is neither.
    """
    try:
        message = json.loads(body.decode())
    except ValueError as error:
        raise MalformedMessage(PARSE_ERROR, f"invalid JSON: {error}") from error
    except RecursionError as error:
        raise MalformedMessage(PARSE_ERROR, "invalid JSON: nested too deeply") from error
    if not isinstance(message, dict):
        kind = "a batch" if isinstance(message, list) else "no object"
        raise MalformedMessage(INVALID_REQUEST, f"expected a JSON object, got {kind}")
    if "method" not in message and ("result" in message or "error" in message):
        return message
    id = message.get("id")
    if isinstance(id, bool) or not isinstance(id, int | str | None):
        raise MalformedMessage(INVALID_REQUEST, "`id` must be an integer or a string")
    if id is None and "id" in message:
        raise MalformedMessage(INVALID_REQUEST, "`id` must not be null")
    if message.get("jsonrpc") != "2.0":
        raise MalformedMessage(INVALID_REQUEST, '`jsonrpc` must be "2.0"', id)
    if not isinstance(message.get("method"), str):
        raise MalformedMessage(INVALID_REQUEST, "`method` must be a string", id)
    return message


def frame(message: dict[str, object]) -> bytes:
    """Return a message with its headers."""
    body = json.dumps(message).encode()
    return b"Content-Length: %d\r\n\r\n" % len(body) + body
