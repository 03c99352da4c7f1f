"""The compiler's loop: it compiles programs in order until the server closes the pipe.

XLA runs in the main thread and cannot be interrupted; a compile that is cancelled ends where XLA
asks (`jaxsight.compiler.compat.schedule`), or with the process.
"""

from __future__ import annotations

import ctypes
import logging
import os
import platform
import queue
import sys
import threading
from functools import partial
from pathlib import Path

from jaxsight.compiler import stand_ins
from jaxsight.timeline import mark
from jaxsight.wire import frames as wire
from jaxsight.wire.messages.compiling import COMPILER_VERSION, Compile, NotCompiled
from jaxsight.wire.messages.replies import Hello
from jaxsight.wire.messages.requests import Cancel

# Give memory back to the system while a compiler is idle.
#
# XLA and LLVM free what a compile used, 110 MiB for a transformer, but glibc keeps it: only
# `malloc_trim` returns free pages from inside the heap.
# It takes up to 20 ms, and the next compile takes longer, as it has to fault the pages in again
# (8 ms for a small function): it is done only after a pause, and only if memory has grown.

IDLE = 10.0
"""Seconds after the last message: compiles between edits are not slowed down."""

GROWTH = 32 * 2**20
"""Bytes by which resident memory must exceed that after the previous release, a choice: less pays
the costs above for little, more keeps what small programs used."""


class IdleMemory:
    """The memory of a process that is idle from time to time."""

    def __init__(self) -> None:
        """Release nothing yet; nothing ever if this process has another C library than glibc."""
        is_linux = sys.platform == "linux"
        self._trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if is_linux else None
        self._after = 0

    def release(self) -> None:
        """Release free memory, if memory has grown since the previous release."""
        if self._trim is not None and _resident() > self._after + GROWTH:
            self._trim(0)
            self._after = _resident()


def _resident() -> int:
    """Return the resident memory of this process in bytes (Linux)."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition("VmRSS:")[2].split(maxsplit=1)[0]) * 1024


log = logging.getLogger(__name__)


def serve(incoming: int, outgoing: int) -> None:
    """Send the handshake, then answer requests; never return."""
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr)
    problem, jaxlib = "", ""
    try:
        from jaxsight.compiler.answer import answer
        from jaxsight.compiler.compat import xla
    except BaseException as error:  # noqa: BLE001 - an unsupported jaxlib may raise anything
        problem = f"{sys.executable} cannot compile: {type(error).__name__}: {error}"
    else:
        jaxlib = xla.JAXLIB
    python, own = platform.python_version(), sys.executable
    hello = Hello(COMPILER_VERSION, python, own, jaxlib=jaxlib, problem=problem, pid=os.getpid())
    wire.write(outgoing, hello)
    inbox, memory = _Inbox(), IdleMemory()
    threading.Thread(target=inbox.read, args=(incoming,), daemon=True, name="reader").start()
    while True:
        try:
            request = inbox.requests.get(timeout=IDLE)
        except queue.Empty:
            memory.release()
            request = inbox.requests.get()
        mark("received", request)
        refusal = NotCompiled(request.id, "target", problem)
        is_cancelled = partial(inbox.cancelled.__contains__, request.id)
        try:
            wire.write(outgoing, refusal if problem else answer(request, is_cancelled))
        except OSError:
            _end(wire.BROKEN_PROTOCOL)


class _Inbox:
    """The server's messages, which a thread reads: a cancellation arrives during a compile."""

    def __init__(self) -> None:
        self.requests: queue.SimpleQueue[Compile] = queue.SimpleQueue()
        self.cancelled: set[int] = set()
        """The ids of requests whose answers are not needed any more."""

    def read(self, incoming: int) -> None:
        """Read messages until the server closes the pipe, then exit, even during a compile.

        Over ssh, nobody else ends this process.
        """
        frames = wire.FrameReader(wire.PROGRAM_LIMIT)
        try:
            while data := os.read(incoming, wire.READ_AT_ONCE):
                for message in frames.feed(data):
                    match message:
                        case Compile():
                            self.requests.put(message)
                        case Cancel(id=id):
                            self.cancelled.add(id)
                        case _:
                            log.error("a compiler was sent %s", type(message).__name__)
        except (wire.WireError, OSError):
            log.exception("cannot read the server's messages")
            _end(wire.BROKEN_PROTOCOL)
        _end(0)


def _end(status: int) -> None:
    """Exit at once, regardless of other threads, and remove temporary files."""
    stand_ins.remove()
    os._exit(status)
