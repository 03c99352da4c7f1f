"""Decode the messages that a process writes to its pipe, in order, without blocking the loop."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from jaxsight.wire.frames import FrameReader, Message, WireError, decode

_LONG = 64 * 1024
"""Bytes of a message from which it is decoded in a thread, a choice: starting a thread costs more
than decoding shorter ones."""


class MessageDecoder:
    """Turns the data of a pipe into messages.

    A long message is decoded in a thread, and later ones wait for it.
    """

    def __init__(
        self,
        on_message: Callable[[Message], None],
        on_error: Callable[[WireError], None],
        on_idle: Callable[[], None],
    ) -> None:
        """Decode nothing yet.

        Args:
            on_message: called with each message.
            on_error: called when the data is not a message.
            on_idle: called when the last message that a thread decoded has been handled.
        """
        self._on_message = on_message
        self._on_error = on_error
        self._on_idle = on_idle
        self._reader = FrameReader()
        self._bodies: deque[bytearray] = deque()
        self._decoding: asyncio.Future[Message] | None = None

    @property
    def is_busy(self) -> bool:
        """Whether a thread decodes a message, so that more messages will follow."""
        return self._decoding is not None

    def feed(self, data: bytes) -> None:
        """Handle the next data of the pipe."""
        try:
            while bodies := self._reader.bodies(data):
                data = b""
                self._bodies.extend(bodies)
                self._decode()
        except WireError as error:
            self._on_error(error)

    def _decode(self) -> None:
        while self._bodies and self._decoding is None:
            body = self._bodies.popleft()
            if len(body) <= _LONG:
                self._on_message(decode(body))
                continue
            self._decoding = asyncio.ensure_future(asyncio.to_thread(decode, body))
            self._decoding.add_done_callback(self._finish)

    def _finish(self, decoding: asyncio.Future[Message]) -> None:
        """Handle the message that a thread decoded, and those that waited for it."""
        self._decoding = None
        if decoding.cancelled():
            return
        try:
            self._on_message(decoding.result())
            self._decode()
        except WireError as error:
            self._on_error(error)
        if self._decoding is None:
            self._on_idle()
