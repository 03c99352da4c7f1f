"""A watchdog for the event loop: it reports functions that block the loop for too long.

A turn is the time between two waits of the loop.
Only the processor time of the loop's thread is measured, so a busy machine and other threads do not
count.
While the loop is idle, nothing is measured and no thread wakes up.
"""

from __future__ import annotations

import asyncio
import selectors
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import FrameType

LIMIT = 0.05
"""Seconds of processor time that a turn may take: more is a long task (W3C, Long Tasks API)."""
_AWAKE = 20
"""Samples without a turn, after which the sampling thread goes to sleep: one second, so that
keystrokes do not wake it each time."""


@dataclass(frozen=True, slots=True)
class Turn:
    """A long turn: its seconds of processor time, and its stack of functions, innermost first."""

    seconds: float
    where: tuple[str, ...] = ()


class LoopWatch:
    """Measures the turns of the event loop that `loop` creates, and reports long ones."""

    def __init__(self, slow: Callable[[Turn], None], limit: float = LIMIT) -> None:
        """Set the callback: `slow` gets each turn over `limit` seconds, in the loop's thread."""
        self._slow = slow
        self._limit = limit
        self._began: float | None = None
        self._number = 0
        self._where: tuple[str, ...] = ()
        self._looked_at = 0
        self._asleep = True
        self._wake = threading.Event()
        self._thread: int | None = None
        """The loop's thread, whose stack another one samples if a turn takes long."""

    def loop(self) -> asyncio.AbstractEventLoop:
        """Return a new event loop, which is watched except on Windows."""
        if sys.platform == "win32":
            return asyncio.new_event_loop()
        return asyncio.SelectorEventLoop(_Selector(self._begin, self._end))

    def _begin(self) -> None:
        """Start measuring a turn."""
        self._number += 1
        self._began = time.thread_time()
        if self._asleep:
            self._asleep = False
            if self._thread is None:
                self._thread = threading.get_ident()
                threading.Thread(target=self._look, name="jaxsight watch", daemon=True).start()
            self._wake.set()

    def _end(self) -> None:
        """Stop measuring, and report the turn if it was long."""
        began, self._began = self._began, None
        seconds = time.thread_time() - began if began is not None else 0.0
        if seconds > self._limit:
            self._slow(Turn(seconds, self._where if self._looked_at == self._number else ()))

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


class _Selector(selectors.DefaultSelector):
    """A selector with callbacks before and after each wait."""

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


def _names(frame: FrameType | None) -> Iterator[str]:
    """Yield the functions of this package on a thread's stack, innermost first."""
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if isinstance(module, str) and module.startswith("jaxsight."):
            yield f"{module.removeprefix('jaxsight.')}.{frame.f_code.co_name}"
        frame = frame.f_back
