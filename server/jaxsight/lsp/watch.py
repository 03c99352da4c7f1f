"""A watchdog for the event loop: it measures the processor time of each turn, and says what ran
when one is too long.

A turn is what the loop does between two waits. Its processor time is that of the loop's thread
alone, so a busy machine and other threads do not count. While nothing happens nothing is measured
and nobody wakes up.
"""

from __future__ import annotations

import asyncio
import logging
import selectors
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import FrameType

log = logging.getLogger(__name__)

LIMIT = 0.05
"""Seconds of processor time that a turn may take."""
_QUIET = 30.0
"""Seconds between two log lines."""
_START = 5.0
"""Seconds that a server takes to start, at most."""
_AWAKE = 20
"""Looks without a turn between them after which the thread that looks goes to sleep."""
_FRAMES_SHOWN = 4


@dataclass(frozen=True, slots=True)
class Turn:
    """A long turn: its seconds of processor time, and what was seen running in it, the innermost
    function first.
    """

    seconds: float
    where: tuple[str, ...] = ()


class Watch:
    """Measures the turns of one event loop, which `loop` makes, and passes on the long ones."""

    def __init__(self, slow: Callable[[Turn], None], limit: float = LIMIT) -> None:
        """`slow` is called in the loop's thread, with each turn that took longer than `limit`
        seconds.
        """
        self._slow = slow
        self._limit = limit
        self._lookout = _Lookout(limit)

    def loop(self) -> asyncio.AbstractEventLoop:
        """A new event loop, watched where that can be: loops of Windows cannot be."""
        if sys.platform == "win32":
            return asyncio.new_event_loop()
        return asyncio.SelectorEventLoop(_Selector(self._lookout.begin, self._end))

    def _end(self) -> None:
        turn = self._lookout.end()
        if turn is not None:
            self._slow(turn)


class _Selector(selectors.DefaultSelector):
    """The waits of a loop, with what is to be done before and after each."""

    def __init__(self, begin: Callable[[], None], end: Callable[[], None]) -> None:
        super().__init__()
        self._begin = begin
        self._end = end

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self._end()
        try:
            return super().select(timeout)
        finally:
            self._begin()


class _Lookout:
    """The turn that is under way, and a thread that looks into it when it lasts."""

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._began: float | None = None
        self._number = 0
        self._where: tuple[str, ...] = ()
        self._looked_at = 0
        self._asleep = True
        self._wake = threading.Event()
        self._thread: int | None = None

    def begin(self) -> None:
        """A turn begins."""
        self._number += 1
        self._began = time.thread_time()
        if self._asleep:
            self._asleep = False
            self._begin_looking()

    def end(self) -> Turn | None:
        """The turn is over; it is given back if it was long."""
        began, self._began = self._began, None
        if began is None:
            return None
        seconds = time.thread_time() - began
        if seconds <= self._limit:
            return None
        return Turn(seconds, self._where if self._looked_at == self._number else ())

    def _begin_looking(self) -> None:
        if self._thread is None:
            self._thread = threading.get_ident()
            threading.Thread(target=self._look, name="jaxsight watch", daemon=True).start()
        self._wake.set()

    def _look(self) -> None:
        while True:
            self._wake.wait()
            self._wake.clear()
            idle = 0
            while idle < _AWAKE:
                number, running = self._number, self._began is not None
                time.sleep(self._limit)
                if number != self._number:
                    idle = 0
                elif running and self._began is not None:
                    if self._looked_at != number and self._thread is not None:
                        self._where = tuple(_names(sys._current_frames().get(self._thread)))
                        self._looked_at = number
                else:
                    idle += 1
            self._asleep = True


def _names(frame: FrameType | None) -> Iterator[str]:
    """Our own functions that a thread is in, the innermost first."""
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if isinstance(module, str) and module.startswith("jaxsight."):
            yield f"{module.removeprefix('jaxsight.')}.{frame.f_code.co_name}"
        frame = frame.f_back


class SlowTurns:
    """Logs long turns, now and then."""

    def __init__(self, start: float = _START) -> None:
        """Turns of the first `start` seconds are not logged: modules are imported in them."""
        self._silent_until = time.monotonic() + start
        self._said = False
        self._unsaid = 0

    def __call__(self, turn: Turn) -> None:
        """Log a turn, unless another was logged a moment ago."""
        now = time.monotonic()
        if now < self._silent_until:
            self._unsaid += self._said
            return
        self._silent_until = now + _QUIET
        where = " < ".join(turn.where[:_FRAMES_SHOWN]) or "an unknown function"
        more = f" ({self._unsaid} more since the last report)" if self._unsaid else ""
        log.warning("the event loop was busy for %.0f ms in %s%s", turn.seconds * 1000, where, more)
        self._said, self._unsaid = True, 0
