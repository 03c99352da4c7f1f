"""The control connection between the server and a guardian: a socket with lines both ways."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable


class Control(asyncio.Protocol):
    """The server's end of the connection.

    `on_line` gets each line that the guardian wrote; `on_close` is called after the last one.
    """

    def __init__(
        self,
        connection: socket.socket,
        on_line: Callable[[bytes], None],
        on_close: Callable[[], None],
    ) -> None:
        self._on_line = on_line
        self._on_close = on_close
        self._incomplete = b""
        # If the server writes to a guardian that has exited, asyncio closes the connection
        # without reading the guardian's last lines.
        self._unread = connection.dup()

    def data_received(self, data: bytes) -> None:
        *lines, self._incomplete = (self._incomplete + data).split(b"\n")
        for line in lines:
            self._on_line(line)

    def connection_lost(self, exc: Exception | None) -> None:
        # An error means that the connection has ended, or that there is nothing to read now.
        with self._unread, contextlib.suppress(OSError):
            self._unread.setblocking(False)
            while data := self._unread.recv(4096):
                self.data_received(data)
        self._on_close()
