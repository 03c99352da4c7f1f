"""The connection with the server: a thread that reads messages, and the current request.

The thread never runs user code, which so cannot block it: a cancellation takes effect at once, and
when the server exits, so does this process, whatever is running.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
from collections.abc import Callable
from queue import SimpleQueue

from jaxsight.timeline import mark
from jaxsight.wire import frames as wire
from jaxsight.wire.messages.replies import FromTracer
from jaxsight.wire.messages.requests import Cancel, Overlay, Request

logger = logging.getLogger(__name__)


class Connection:
    """Both ends of the pipes to the server; only the main thread writes."""

    def __init__(self, incoming: int, outgoing: int) -> None:
        self.requests: SimpleQueue[Request[object] | Overlay] = SimpleQueue()
        self._incoming = incoming
        self._outgoing = outgoing
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._running: int | None = None
        self._stop: Callable[[], None] | None = None
        self._dropped: set[int] = set()
        threading.Thread(target=self._read, name="jaxsight-reader", daemon=True).start()
        # Not available on Windows.
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._leave_to_parent)

    def send(self, message: FromTracer) -> None:
        """Write a message, from the main thread.

        A process that user code forked must not write, and exits here.
        """
        if os.getpid() != self._process:
            # As Python documents for a forked child: `atexit` functions are the parent's.
            os._exit(0)
        wire.write(self._outgoing, message)

    def tell(self, message: FromTracer) -> None:
        """Write a message from user code; other threads and processes of it write none."""
        in_main = threading.current_thread() is threading.main_thread()
        if in_main and os.getpid() == self._process:
            self.send(message)

    def start(self, request: int) -> bool:
        """Start a request, and return false if it was cancelled before."""
        with self._lock:
            if request in self._dropped:
                self._dropped.discard(request)
                return False
            self._running = request
            return True

    def on_cancel(self, stop: Callable[[], None]) -> None:
        """Set the function that cancels the current request.

        The reading thread calls it, or this method does if the request has been cancelled already.
        """
        with self._lock:
            self._stop = stop
            # Under the lock, so that it stops no later request.
            if self._running in self._dropped:
                stop()

    def finish(self) -> None:
        """End a request; cancelling it later has no effect."""
        with self._lock:
            self._running = self._stop = None
            # These requests have ended: nothing else would remove them.
            if self.requests.empty():
                self._dropped.clear()

    def _read(self) -> None:
        frames = wire.FrameReader()
        try:
            while data := os.read(self._incoming, wire.READ_AT_ONCE):
                for message in frames.feed(data):
                    self._take(message)
        except (wire.WireError, OSError):
            logger.exception("cannot read the server's messages")
            # `sys.exit` would end this thread only.
            os._exit(wire.BROKEN_PROTOCOL)
        os._exit(0)

    def _take(self, message: wire.Message) -> None:
        match message:
            case Cancel(id=request):
                with self._lock:
                    if request == self._running and self._stop is not None:
                        self._stop()
                    else:
                        self._dropped.add(request)
            case Request() | Overlay():
                mark("received", message)
                self.requests.put(message)
            case _:
                logger.error("unexpected message from the server: %s", type(message).__name__)

    def _leave_to_parent(self) -> None:
        # Else the server would not see the pipes close while the child lives.
        for descriptor in (self._incoming, self._outgoing):
            with contextlib.suppress(OSError):  # already closed by user code
                os.close(descriptor)
