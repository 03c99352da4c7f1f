"""The process of a tracer or compiler, as the server sees it: it exchanges messages, and dies once.

On POSIX, a guardian is between them (see `guardian`): it kills all processes that the tracer
started, monitors their memory, and exits soon after the server.
No function waits for the tracer; the owner awaits `ready`, `receive` and `death`, which always
arrives.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import cast

from jaxsight.timeline import mark
from jaxsight.wire.frames import FrameReader, Message, WireError, decode, encode
from jaxsight.wire.messages.replies import VERSION, Hello
from jaxsight.wire.messages.requests import Request
from jaxsight.workers.confinement import start as confinement
from jaxsight.workers.limits import Limits
from jaxsight.workers.output import Locate, OutputMeter
from jaxsight.workers.own_python import guarded
from jaxsight.workers.results import Death, Reason
from jaxsight.workers.watchdog.watched import Control

_LONG = 64 * 1024
"""Bytes of a message from which it is decoded in a thread, a choice: starting a thread costs more
than decoding shorter ones."""

log = logging.getLogger(__name__)

KILLED = 9  # SIGKILL, which Windows has no name for

CONTINUE_PAUSE = 1.0
"""Seconds between signals that continue a guardian whose tracer is still starting: a stopped one
(SIGSTOP) would never answer, and a signal costs nothing."""

EXIT_GRACE = 1.0
"""Seconds from the closing of the protocol's pipe to the report of the exit, which the guardian
writes at once; past them, the process is killed."""

END_GRACE = 12.0
"""Seconds to wait until killed processes have exited: more than the guardian's `SWEEP_LIMIT`, so
that it gives up on stuck ones earlier."""


class TracerProcess(asyncio.SubprocessProtocol):
    """A tracer or compiler, from its spawn to its death."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        environment: Mapping[str, str],
        folder: str,
        limits: Limits,
        locate: Locate,
        on_output: Callable[[TracerProcess, str], None],
        first: bytes = b"",
        confined_for: str = "",
        version: int = VERSION,
    ) -> None:
        """Spawn `command` in `folder`, and return at once; errors become the process's death.

        The process reads `first` before all messages, of this `version` of the protocol. It is
        confined if `confined_for` names the project or environment with which it shares what lasts.
        """
        loop = asyncio.get_running_loop()
        self.ready: asyncio.Future[Hello | None] = loop.create_future()
        """The handshake; `None` if the tracer died before it."""
        self.death: asyncio.Future[Death] = loop.create_future()
        self.output = OutputMeter(limits.output, locate)
        self.resident = 0
        """Its memory in bytes when it last became idle."""
        self.pid = 0
        self.file = ""
        """The file of its current request."""
        self._limits, self._version = limits, version
        self._on_output = on_output
        self._received: asyncio.Queue[bytearray | None] = asyncio.Queue()
        """Messages after the handshake; `None` at the end."""
        self._reader = FrameReader()
        self._killed_for: Death | None = None
        self._exit: tuple[int, int] | None = None
        self._transport: asyncio.SubprocessTransport | None = None
        self._control: asyncio.Transport | None = None
        self._is_guardian_gone = False
        self._is_guardian_disconnected = False
        self._ended = asyncio.Event()
        self._timers: list[asyncio.TimerHandle] = []
        self._launch = loop.create_task(
            self._spawn(command, environment, folder, first, confined_for)
        )

    @property
    def alive(self) -> bool:
        """Whether it is neither dead nor being killed."""
        return not self.death.done() and self._killed_for is None

    def send(self, message: Message | Request[object]) -> None:
        """Queue a message for the tracer; a dead tracer does not get it.

        Raises:
            WireError: the message cannot be encoded.
        """
        frame = encode(message)
        if self._transport is not None and self.alive:
            pipe = cast(asyncio.WriteTransport | None, self._transport.get_pipe_transport(0))
            if pipe is not None and not pipe.is_closing():
                mark("asked", message)  # before the process may mark that it has the message
                pipe.write(frame)

    async def receive(self) -> Message | None:
        """Return the next message after the handshake, or `None` if the tracer is dead."""
        while (body := await self._received.get()) is not None:
            with self._ending_for_wire_errors():
                is_long = len(body) > _LONG
                message = await asyncio.to_thread(decode, body) if is_long else decode(body)
                mark("decoded", message)
                return message
        # Put it back for the next caller.
        self._received.put_nowait(None)
        return None

    def busy(self) -> None:
        """Start frequent checks of memory and processes, as a request begins."""
        self._continue()
        self._send_command(f"busy {self._limits.memory} {self._limits.processes}")

    def idle(self) -> None:
        """End frequent checks, as a request ended; `resident` will be updated."""
        self._send_command("idle")

    def kill(self, death: Death) -> None:
        """End the process and all that it started, and record the reason.

        Its death follows within milliseconds.
        """
        if not self.alive:
            return
        self._killed_for = death
        if self._control is not None:
            self._send_command("kill")
            self._continue()
        elif self._transport is not None:
            self._transport.kill()
        self._after(EXIT_GRACE, self._kill_directly)

    async def aclose(self) -> None:
        """Kill it and wait until all its processes have exited."""
        self.kill(Death(Reason.STOPPED))
        await asyncio.wait([self._launch])
        try:
            async with asyncio.timeout(END_GRACE):
                await self._ended.wait()
        except TimeoutError:
            log.warning("tracer %d does not exit", self.pid)
            self._close()

    async def _spawn(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        folder: str,
        first: bytes,
        confined_for: str,
    ) -> None:
        loop = asyncio.get_running_loop()
        if confined_for:
            environment = await asyncio.to_thread(confinement.variables, environment, confined_for)
        mark("tracer spawned")
        own_end, its_end = socket.socketpair() if os.name == "posix" else (None, None)
        try:
            passed = () if its_end is None else (its_end.fileno(),)
            if passed:
                command = guarded(*passed, command, confined=bool(confined_for))
            # In a process group of its own in our session: if it is stopped when we exit, even
            # before it has run anything, the kernel hangs it up and continues it (POSIX).
            transport, _ = await loop.subprocess_exec(
                lambda: self,
                *command,
                env=environment,
                cwd=folder,
                process_group=0 if passed else None,
                pass_fds=passed,
            )
        except OSError as error:
            if own_end is not None:
                own_end.close()
            self._die(Death(Reason.EXITED, code=127, last_words=str(error)))
            self._ended.set()
            return
        finally:
            if its_end is not None:
                # The guardian has its own: with this one open, we would not see it close.
                its_end.close()
        self._transport = transport
        if first:
            cast(asyncio.WriteTransport, transport.get_pipe_transport(0)).write(first)
        if own_end is not None:
            own_end.setblocking(False)
            line = Control(own_end, self._handle_guardian_line, self._guardian_disconnected)
            control, _ = await loop.create_connection(lambda: line, sock=own_end)
            self._control = control
            self._send_command(f"busy {self._limits.memory} {self._limits.processes}")
        if self._killed_for is not None:
            self._send_command("kill")
            if self._control is None:
                transport.kill()
        self._after(self._limits.start, self._start_expired)
        self._keep_starting()

    def _keep_starting(self) -> None:
        if not self.ready.done():
            self._continue()
            self._after(CONTINUE_PAUSE, self._keep_starting)

    def _continue(self) -> None:
        """Continue the guardian if it was stopped; it continues its children."""
        if self._transport is not None and os.name == "posix":
            with contextlib.suppress(ProcessLookupError):
                self._transport.send_signal(signal.SIGCONT)

    def _start_expired(self) -> None:
        if not self.ready.done():
            self.kill(Death(Reason.TIMEOUT, limit=self._limits.start))

    def _kill_directly(self) -> None:
        """Kill the process if the guardian did not: the guardian may be stopped or dead."""
        if not self.death.done():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                if self.pid and os.name == "posix":
                    os.killpg(self.pid, signal.SIGKILL)
            if self._transport is not None:
                with contextlib.suppress(ProcessLookupError):
                    self._transport.kill()

    def _send_command(self, line: str) -> None:
        if self._control is not None and not self._control.is_closing():
            self._control.write(line.encode() + b"\n")

    def _after(self, seconds: float, action: Callable[[], None]) -> None:
        loop = asyncio.get_running_loop()
        # Drop timers that have fired: they would pile up.
        self._timers = [timer for timer in self._timers if timer.when() > loop.time()]
        self._timers.append(loop.call_later(seconds, action))

    def _handle_guardian_line(self, line: bytes) -> None:
        """Handle a line that the guardian wrote."""
        match line.split():
            case [b"started", pid]:
                self.pid = int(pid)
            case [b"rss", count]:
                self.resident = int(count)
            case [b"memory", used, limit]:
                self._blame(Death(Reason.MEMORY, used=int(used), limit=int(limit)))
            case [b"processes", count, limit]:
                self._blame(Death(Reason.PROCESSES, used=int(count), limit=int(limit)))
            case [b"error", *_]:
                text = line.removeprefix(b"error ").decode("utf-8", "replace")
                self._blame(Death(Reason.EXITED, code=127, last_words=text))
            case [b"exit", code, number]:
                self._exit = int(code), int(number)
                # Its last output is still in the pipes: let the loop read them first.
                asyncio.get_running_loop().call_soon(
                    asyncio.get_running_loop().call_soon, self._exited
                )

    def _blame(self, death: Death) -> None:
        if self._killed_for is None:
            self._killed_for = death

    def pipe_data_received(self, fd: int, data: bytes | str) -> None:
        """Handle the tracer's data: messages on descriptor 1, output on 2."""
        assert isinstance(data, bytes)
        if fd == 2:
            if text := self.output.feed(data):
                self._on_output(self, text)
            return
        # Ignore what a process writes while it is being killed.
        if self.alive:
            with self._ending_for_wire_errors():
                for body in self._reader.bodies(data):
                    if self.ready.done():
                        self._received.put_nowait(body)
                    else:
                        self._greet(decode(body))

    @contextlib.contextmanager
    def _ending_for_wire_errors(self) -> Iterator[None]:
        try:
            yield
        except WireError as error:
            log.warning("tracer %d broke the protocol: %s", self.pid, error)
            self.kill(Death(Reason.PROTOCOL, last_words=str(error)))

    def _greet(self, message: Message) -> None:
        """Handle the first message, which must be a handshake."""
        mark("decoded", message)
        if not isinstance(message, Hello):
            self.kill(Death(Reason.PROTOCOL, last_words="its first message is not a handshake"))
        elif message.version != self._version:
            versions = f"it uses version {message.version} of the protocol, not {self._version}"
            self.kill(Death(Reason.PROTOCOL, last_words=versions))
        else:
            self.ready.set_result(message)
            self.idle()

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        """Handle the closing of a pipe; if it is the protocol's, the process must exit soon."""
        if fd == 1:
            self._continue()
            self._after(EXIT_GRACE, lambda: self.kill(Death(Reason.PROTOCOL)))

    def process_exited(self) -> None:
        """Handle the exit of the child process.

        On POSIX this is the guardian, which exits after all processes below it; on Windows the
        tracer.
        """
        self._is_guardian_gone = True
        if self._control is None or self._exit is not None or self._is_guardian_disconnected:
            self._conclude()
        else:  # the loop may notice the exit before it has read the last lines
            self._after(EXIT_GRACE, self._conclude)

    def _guardian_disconnected(self) -> None:
        """Handle the end of the guardian's connection, after its last line."""
        self._is_guardian_disconnected = True
        if self._is_guardian_gone:
            self._conclude()

    def _conclude(self) -> None:
        if not self.death.done() and self._exit is None:
            code = self._transport.get_returncode() if self._transport is not None else None
            if self._control is None and code is not None:
                # asyncio reports a signal as a negative code.
                self._exit = max(code, 0), max(-code, 0)
            elif self.pid:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(self.pid, signal.SIGKILL)
        self._exited()
        self._close()

    def _exited(self) -> None:
        code, number = self._exit or (0, KILLED)
        death = self._killed_for or Death(
            Reason.CRASHED if number else Reason.EXITED, code=code, signal=number
        )
        self._die(replace(death, last_words=death.last_words or self.output.last_words))

    def _die(self, death: Death) -> None:
        if self.death.done():
            return
        self.death.set_result(death)
        if not self.ready.done():
            self.ready.set_result(None)
        self._received.put_nowait(None)

    def _close(self) -> None:
        for timer in self._timers:
            timer.cancel()
        if self._control is not None:
            self._control.close()
        if self._transport is not None:
            self._transport.close()
        self._ended.set()
