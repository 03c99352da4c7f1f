"""The resident server: `jaxsight server --socket`, which the first command starts.

It runs one command at a time, on the main thread, in an event loop that goes on between commands.
A command's standard streams are those of its client, and so are the working folder and the
variables of a terminal. When the client is interrupted or gone, the command is cancelled.

A client asks for a command line, and says where it runs.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import socket
import sys
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path

from jaxsight.cli.execution import THIS_PROCESS
from jaxsight.cli.output.printing import Printer
from jaxsight.cli.resident import endpoint
from jaxsight.cli.resident.client import ACCEPTED, listening_socket
from jaxsight.cli.resident.session_pool import SessionPool, own_code
from jaxsight.text.units import count

log = logging.getLogger(__name__)

_LAST_CLIENTS = 0.1
"""Seconds for those that connected just before the socket was removed, which take milliseconds."""
_ENDING = 20.0
"""Seconds to wait for a server that was told to end: its processes have 12 (`END_GRACE`)."""

_FAILED = 1


class ResidentServer:
    """Serves the commands of one environment until nobody has asked for a while."""

    def __init__(self, listener: socket.socket, idle: float, app: Callable[..., object]) -> None:
        """Serve a socket; `app` runs a command line and exits."""
        self._listener = listener
        self._idle = idle
        self._app = app
        self._code = own_code()
        self._runner = asyncio.Runner()
        self._clients: asyncio.Queue[socket.socket] = asyncio.Queue()
        self._is_unlinked = False
        self._until_ended: socket.socket | None = None
        """The connection of whoever ended this server, and waits until it is closed."""
        self._request: ClientCommand | None = None
        """The command that runs."""

    def serve(self) -> None:
        """Run commands; return when the server is to end."""
        sessions = SessionPool(self._idle)
        THIS_PROCESS.run, THIS_PROCESS.sessions = self._run_coroutine, sessions
        with self._runner:
            accepting = self._runner.get_loop().create_task(self._accept())
            while (client := self._runner.run(self._next(self._idle))) and self._serve(client):
                pass
            self._unlink()
            while (late := self._runner.run(self._next(_LAST_CLIENTS))) is not None:
                self._serve(late)
            accepting.cancel()
            self._runner.run(sessions.aclose())

    def _unlink(self) -> None:
        """Remove the socket's name, once: afterwards it is that of another server."""
        if not self._is_unlinked:
            self._is_unlinked = True
            Path(self._listener.getsockname()).unlink(missing_ok=True)

    async def _accept(self) -> None:
        """Let all clients wait for their turn."""
        loop = asyncio.get_running_loop()
        self._listener.setblocking(False)
        while True:
            client, _ = await loop.sock_accept(self._listener)
            self._clients.put_nowait(client)

    async def _next(self, patience: float) -> socket.socket | None:
        """Return the next client, if there is one in time."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(patience):
                return await self._clients.get()
        return None

    def _serve(self, client: socket.socket) -> bool:
        """Run the command of a client; return whether the server may go on."""
        with client:
            if own_code() != self._code:
                self._unlink()  # before the client looks for another server
                return False
            try:
                request = receive(client)
            except NoRequest as error:
                log.info("a client is ignored: %s", error)
                return True
            if request is None:
                self._until_ended = client.dup()
                return False
            self._request = request
            try:
                os.chdir(request.folder)
                status = self._status(request)
            except OSError as error:
                log.warning("%s: %s", request.folder, error)
            else:
                with contextlib.suppress(OSError):  # the client is gone
                    client.send(bytes([status & 0xFF]))
            finally:
                self._request = None
                request.close()
                os.chdir(os.sep)
        return True

    def _status(self, request: ClientCommand) -> int:
        """Run a command in this process; return its exit status."""
        endpoint.take_variables(request.variables)
        if request.size is not None:
            for name, number in zip(("COLUMNS", "LINES"), request.size, strict=True):
                os.environ.setdefault(name, str(number))
        os.umask(request.umask)
        with _streams(request.streams):
            try:
                self._app(request.arguments, prog_name="jaxsight")
            except SystemExit as ended:
                return ended.code if isinstance(ended.code, int) else _FAILED
            except Exception as error:  # noqa: BLE001 - the server goes on
                sys.excepthook(type(error), error, error.__traceback__)
            finally:
                logging.getLogger().handlers.clear()  # it wrote to the command's stderr
        return _FAILED

    def _run_coroutine(self, command: Coroutine[object, None, int]) -> int:
        """Run the coroutine of a command, until it is done or its client gives up.

        Raises:
            KeyboardInterrupt: the client gave up.
        """

        async def watched() -> int:
            task = asyncio.ensure_future(command)
            assert self._request is not None
            given_up = asyncio.ensure_future(self._request.abandoned())
            given_up.add_done_callback(lambda _: task.cancel())
            try:
                return await task
            finally:
                given_up.cancel()

        try:
            return self._runner.run(watched())
        except asyncio.CancelledError:
            raise KeyboardInterrupt from None


@contextlib.contextmanager
def _streams(descriptors: Sequence[int]) -> Iterator[None]:
    """Use a client's standard streams, with the encoding that they have in its environment."""
    before = sys.stdin, sys.stdout, sys.stderr
    binary = [
        os.fdopen(number, mode, closefd=False)
        for number, mode in zip(descriptors, ("rb", "wb", "wb"), strict=True)
    ]
    encoding, errors = sys.stdout.encoding, sys.stdout.errors
    sys.stdin, sys.stdout, sys.stderr = own = [
        TextIOWrapper(stream, encoding, errors, line_buffering=line_buffering)
        for stream, line_buffering in zip(
            binary, (False, os.isatty(descriptors[1]), True), strict=True
        )
    ]
    try:
        yield
    finally:
        sys.stdin, sys.stdout, sys.stderr = before
        for stream in own:
            with contextlib.suppress(OSError):  # nobody reads it any more
                stream.close()


def stop() -> int:
    """End the user's servers; return the exit status."""
    folder, ended = endpoint.folder(), 0
    for socket_path in folder.glob(f"*{endpoint.ENDING}") if folder is not None else ():
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as client:
            client.settimeout(_ENDING)
            client.connect(str(socket_path))
            if client.recv(len(ACCEPTED)) == ACCEPTED:
                client.send(STOP)
                client.recv(1)  # until the server has closed it
                ended += 1
    Printer().print(f"ended {count(ended, 'server')}")
    return 0


def serve(idle: float, descriptor: int | None) -> int:
    """Serve commands on a new socket, or on that of a descriptor; return the exit status."""
    if descriptor is not None:
        listener = socket.socket(fileno=descriptor)
        listener.set_inheritable(False)
    else:
        path = endpoint.socket_path()
        own = listening_socket(path) if path is not None else None
        if own is None:
            reason = "another one serves" if path is not None else "no folder for a socket of"
            Printer(stderr=True).labelled("error", "bold red", f"{reason} this environment")
            return 2
        listener = own
        Printer(stderr=True).print(f"jaxsight serves commands on {path}")
    from jaxsight.cli.app import app

    with listener, contextlib.suppress(KeyboardInterrupt):
        ResidentServer(listener, idle, app).serve()
    return 0


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

    async def abandoned(self) -> None:
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
        if not endpoint.is_own_peer(connection):
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
