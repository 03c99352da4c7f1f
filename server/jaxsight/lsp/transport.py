"""Bytes in and out: standard streams that nothing else can disturb, read and written off the event loop.

`print` anywhere in this process must not enter the protocol, a client that reads slowly must not stop the loop, and the end of
either stream must end the server, also while a read is under way: so the threads here are daemons.
"""

from __future__ import annotations

import asyncio
import json
import os
import queue
import select
import sys
import threading
from collections.abc import Callable
from typing import Any, Protocol

_CHUNK = 65536
_LAST_WORDS = 2.0
"""Seconds that the end waits for a client to read what was written."""


class ByteSource(Protocol):
    """What `Inbox` reads from; `asyncio.StreamReader` is one."""

    async def readline(self) -> bytes: ...

    async def readexactly(self, n: int) -> bytes: ...


class ByteSink(Protocol):
    """What answers are written to; `asyncio.StreamWriter` is one."""

    def write(self, data: bytes, /) -> None: ...

    def close(self) -> None: ...


class Inbox:
    """The incoming stream, whose first message can be looked at before it is read."""

    def __init__(self, source: ByteSource) -> None:
        self._source = source
        self._again: list[bytes] = []

    async def readline(self) -> bytes:
        """One line; empty at the end. What the message before set going begins first."""
        await asyncio.sleep(0)
        if self._again:
            return self._again.pop(0)
        return await self._source.readline()

    async def readexactly(self, n: int) -> bytes:
        """The body of a message; empty when the stream ends within."""
        if self._again:
            return self._again.pop(0)
        try:
            return await self._source.readexactly(n)
        except asyncio.IncompleteReadError:
            return b""

    async def peek(self) -> dict[str, Any]:
        """The first message as JSON has it, left in the stream; empty when there is none to make sense of."""
        read: list[bytes] = []
        length = 0
        while line := await self._source.readline():
            read.append(line)
            name, _, value = line.partition(b":")
            if name.strip().lower() == b"content-length" and value.strip().isdigit():
                length = int(value)
            if not line.strip() and length:
                read.append(await self.readexactly(length))
                break
        self._again = read
        try:
            message = json.loads(read[-1]) if length else {}
        except ValueError:
            message = {}
        return message if isinstance(message, dict) else {}


class Outbox:
    """Writes to a file descriptor, in order: at once what surely fits, the rest from a thread of its own."""

    def __init__(self, descriptor: int, failed: Callable[[], None]) -> None:
        """`failed` is called, maybe from the thread, when the other side is gone."""
        self._descriptor = descriptor
        self._failed = failed
        self._put = self._written = 0
        """How many messages the thread was given, and how many of them it has written."""
        self._waiting: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="jaxsight writer", daemon=True)
        self._thread.start()

    def write(self, data: bytes) -> None:
        """Have `data` written. To be called from one thread."""
        if self._put == self._written and self._fits(data):
            try:
                data = data[os.write(self._descriptor, data) :]
            except OSError:
                self._failed()
                return
            if not data:
                return
        self._put += 1
        self._waiting.put(data)

    def _fits(self, data: bytes) -> bool:
        """Whether writing would not block: a pipe that is ready takes so much (POSIX), and on Windows one cannot ask."""
        if sys.platform == "win32" or len(data) > select.PIPE_BUF:
            return False
        return bool(select.select((), (self._descriptor,), (), 0)[1])

    def close(self) -> None:
        """Write what is left, if the client reads it soon."""
        self._waiting.put(None)
        self._thread.join(_LAST_WORDS)

    def _run(self) -> None:
        try:
            while (data := self._waiting.get()) is not None:
                rest = memoryview(data)
                while rest:
                    rest = rest[os.write(self._descriptor, rest) :]
                self._written += 1
        except OSError:
            self._failed()


def claim_stdio() -> tuple[int, int]:
    """Take the standard streams for the protocol: descriptors to read from and to write to.

    What is left in their place: an empty standard input, and a standard output that goes where errors go.
    """
    incoming, outgoing = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return incoming, outgoing


def read_descriptor(descriptor: int, loop: asyncio.AbstractEventLoop) -> asyncio.StreamReader:
    """A stream of what comes from a file descriptor, of any kind, on any platform."""
    stream = asyncio.StreamReader(loop=loop)

    def tell(what: Callable[..., None], *arguments: bytes) -> None:
        try:
            loop.call_soon_threadsafe(what, *arguments)
        except RuntimeError:
            return  # the loop is closed: nobody listens any more

    def run() -> None:
        try:
            while chunk := os.read(descriptor, _CHUNK):
                tell(stream.feed_data, chunk)
        except OSError:
            pass  # a broken pipe is the end of the stream too
        tell(stream.feed_eof)

    threading.Thread(target=run, name="jaxsight reader", daemon=True).start()
    return stream
