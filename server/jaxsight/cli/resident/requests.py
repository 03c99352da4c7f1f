"""What a client asks of the server: a command line, and where it runs."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from dataclasses import dataclass

from jaxsight.cli.resident import place
from jaxsight.cli.resident.client import ACCEPTED

STOP = b"stop\n"
"""What ends a server, in place of a request."""

_PATIENCE = 5.0
"""Seconds to receive a request, which a client sends once it is accepted."""
_LONGEST = 1 << 22
"""Bytes of a request: Linux has 2 MiB for arguments and variables (`ARG_MAX`, execve(2))."""


class NoRequest(Exception):
    """What came is no request; the message says why."""


@dataclass(frozen=True, slots=True)
class ClientCommand:
    """A command of a client."""

    connection: socket.socket
    streams: tuple[int, ...]
    """The descriptors of its stdin, stdout and stderr."""
    arguments: list[str]
    folder: str
    variables: dict[str, str]
    size: tuple[int, int] | None
    """Columns and lines of its terminal, if it has one."""
    umask: int

    async def given_up(self) -> None:
        """Return when the client is gone, or does not want the command any more."""
        await asyncio.get_running_loop().sock_recv(self.connection, 1)

    def close(self) -> None:
        """Close the streams."""
        for descriptor in self.streams:
            os.close(descriptor)


def receive(connection: socket.socket) -> ClientCommand | None:
    """Accept a client, and return its command; `None` if the server shall end.

    Raises:
        NoRequest: there is none, as the client has not waited or is not ours.
    """
    streams: list[int] = []
    try:
        if not place.is_own_peer(connection):
            raise NoRequest("the client belongs to another user")
        connection.settimeout(_PATIENCE)
        connection.sendall(ACCEPTED)
        data = b""
        while not data.endswith(b"\n"):
            part, descriptors, _, _ = socket.recv_fds(connection, 1 << 16, 3)
            for descriptor in descriptors:
                os.set_inheritable(descriptor, False)
            streams += descriptors
            data += part
            if not part or len(data) > _LONGEST:
                raise NoRequest("its message has no end")
        if data == STOP:
            return None
        if len(streams) != 3:
            raise NoRequest("it passes no streams")
        connection.setblocking(False)
        return ClientCommand(connection, tuple(streams), **json.loads(data))
    except (NoRequest, OSError, TypeError, ValueError) as error:
        for descriptor in streams:
            os.close(descriptor)
        raise NoRequest(str(error)) from error
