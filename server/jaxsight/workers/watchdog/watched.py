"""A process below the watchdog, followed from an event loop, and the connection to its guardian.

The connection is a socket with lines both ways.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from jaxsight.workers.own_python import guarded

_MOST_ERRORS = 1 << 16
"""Bytes of standard error that are kept, a choice: the last ones, with the error."""

_LONGEST_LINE = 1 << 24
"""Bytes; longer lines are no events, of which those with a whole repro are the longest."""


@dataclass(slots=True)
class Ending:
    """How a process ended, as its guardian says line by line.

    Attributes:
        pid: its process, once it has started.
        code: its exit status; negative for a signal. If the guardian is killed, that is SIGKILL.
        exceeded: the limit that it was killed for, `memory` or `processes`; empty if none.
        problem: why it could not be started.
    """

    pid: int = 0
    code: int = -9
    exceeded: str = ""
    problem: str = ""
    is_over: bool = False

    def take(self, line: bytes) -> None:
        """Handle a line of the guardian."""
        match line.decode(errors="replace").split():
            case ["started", pid]:
                self.pid = int(pid)
            case ["error", *words]:
                self.problem = " ".join(words)
            case [("memory" | "processes") as limit, *_]:
                self.exceeded = limit
            case ["exit", code, number]:
                self.code, self.is_over = int(code) or -int(number), True


class WatchedProcess:
    """A running process: `ended` returns when it and all that it started are gone."""

    def __init__(self, process: asyncio.subprocess.Process, control: asyncio.StreamReader) -> None:
        self._process = process
        self._control = control
        self._ending = Ending()
        self._errors = b""
        self._is_interrupted = False

    @property
    def errors(self) -> str:
        """The end of what it wrote to standard error."""
        return self._errors.decode(errors="replace")

    def interrupt(self) -> None:
        """Interrupt the process as Ctrl-C does, once it has started; it may go on."""
        self._is_interrupted = True
        if self._ending.pid and not self._ending.is_over:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._ending.pid, signal.SIGINT)

    async def ended(self, on_line: Callable[[str], None] = lambda line: None) -> Ending:
        """Return how the process ended.

        Args:
            on_line: called with each line of its standard output.

        Raises:
            OSError: it could not be started.
        """
        reading = (self._read_output(on_line), self._read_errors(), self._read_watchdog())
        await asyncio.gather(*reading)
        await self._process.wait()
        if self._ending.problem:
            raise OSError(self._ending.problem)
        return self._ending

    async def _read_watchdog(self) -> None:
        async for line in self._control:
            had_started = self._ending.pid != 0
            self._ending.take(line)
            # The interrupt came before the process had started.
            if self._is_interrupted and not had_started:
                self.interrupt()

    async def _read_output(self, on_line: Callable[[str], object]) -> None:
        stdout = self._process.stdout
        while stdout is not None:
            try:
                line = await stdout.readline()
            except ValueError:  # too long; the stream has dropped it
                continue
            if not line:
                return
            on_line(line.decode(errors="replace"))

    async def _read_errors(self) -> None:
        stderr = self._process.stderr
        while stderr is not None and (data := await stderr.read(_MOST_ERRORS)):
            self._errors = (self._errors + data)[-_MOST_ERRORS:]


@asynccontextmanager
async def watched(
    command: Sequence[str],
    *,
    environment: Mapping[str, str] | None,
    folder: str | Path | None,
    limits: tuple[int, int] | None = None,
    output: tuple[int | None, int | None] = (asyncio.subprocess.PIPE, asyncio.subprocess.PIPE),
) -> AsyncIterator[WatchedProcess]:
    """Start a process; it and all that it started are killed at the end of the context.

    Args:
        environment: its variables; by default those of this process.
        folder: its working folder; by default that of this process.
        output: where its standard output and its standard error go, as `subprocess` has it: to the
            `WatchedProcess`, to a descriptor, or to those of this process.
        limits: bytes that it may use, and how many processes it may start, together with all that
            it started.

    Raises:
        OSError: no process can be started, or not on this system.
    """
    if os.name != "posix":
        raise OSError("needs Linux or macOS")
    own_end, its_end = socket.socketpair()
    with contextlib.ExitStack() as stack:
        stack.callback(own_end.close)
        with its_end:
            process = await asyncio.create_subprocess_exec(
                *guarded(its_end.fileno(), command),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output[0],
                stderr=output[1],
                env=environment,
                cwd=folder,
                pass_fds=[its_end.fileno()],
                start_new_session=True,
                limit=_LONGEST_LINE,
            )
        control, writer = await asyncio.open_connection(sock=own_end)
        # From here on, `writer` closes the socket.
        stack.pop_all()
    try:
        if limits is not None:
            writer.write(b"busy %d %d\n" % limits)
        yield WatchedProcess(process, control)
    finally:
        writer.close()  # the watchdog kills everything and exits
        # Shielded, so that it is reaped also where the caller is cancelled.
        await asyncio.shield(process.communicate())


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
