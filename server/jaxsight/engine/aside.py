"""Work that takes long, beside the event loop: in a thread of its own, or on the loop in short
steps.

Python switches between threads every few milliseconds, so the loop goes on while the thread
computes. What is done there must share nothing that changes: it is given immutable data and gives a
new value back.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from jaxsight.engine.module import Module

T = TypeVar("T")

_STEP = 0.01
"""Seconds of processor time after which a turn of the loop is long enough."""


class Aside:
    """Threads that do one job after another, those that a person waits for first."""

    def __init__(self, threads: int = 1) -> None:
        """Have at most so many threads: with one, jobs never overlap."""
        self._most = threads
        self._idle = 0
        self._jobs: deque[Callable[[], None]] = deque()
        self._there = threading.Condition()
        self._threads: list[threading.Thread] = []
        self._closed = False

    async def run(self, work: Callable[[], T], *, waiting: bool = False) -> T:
        """What `work` returns. It is not begun when whoever awaits it is cancelled before.

        Args:
            waiting: a person waits for it, so it comes before all jobs that nobody waits for.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()

        def tell(set_result: Callable[[Any], None], result: object) -> None:
            if not future.done():
                set_result(result)

        def job() -> None:
            if future.cancelled():
                return
            outcome: tuple[Callable[[Any], None], object]
            try:
                outcome = future.set_result, work()
            except Exception as error:  # noqa: BLE001  # whoever waits gets it
                outcome = future.set_exception, error
            try:
                loop.call_soon_threadsafe(tell, *outcome)
            except RuntimeError:
                return  # the loop is closed: nobody listens any more

        with self._there:
            if waiting:
                self._jobs.appendleft(job)
            else:
                self._jobs.append(job)
            if len(self._jobs) > self._idle and len(self._threads) < self._most:
                thread = threading.Thread(target=self._run, name="jaxsight analysis", daemon=True)
                self._threads.append(thread)
                thread.start()
            self._there.notify()
        return await future

    async def judge(self, module: Module, work: Callable[[], T]) -> T:
        """What `work` returns, which looks into what chunks do together.

        That is remembered with the chunks' bindings, which modules share, so for large modules all
        of it is done here, and for small ones nothing.
        """
        if not module.is_large:
            return work()
        return await self.run(work, waiting=True)

    def close(self) -> None:
        """Begin no further job; the threads end after those that are under way."""
        with self._there:
            self._closed = True
            self._jobs.clear()
            self._there.notify_all()

    def _run(self) -> None:
        while True:
            with self._there:
                while not self._jobs and not self._closed:
                    self._idle += 1
                    self._there.wait()
                    self._idle -= 1
                if self._closed:
                    return
                job = self._jobs.popleft()
            job()


class Turns:
    """Lets the event loop turn between the steps of long work, whoever does it."""

    def __init__(self) -> None:
        self._began: float | None = None
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def breathe(self) -> None:
        """Return at once while this turn is short, else in a later one.

        To be awaited before each step.
        """
        now = time.thread_time()
        loop = asyncio.get_running_loop()
        if self._began is None:
            self._began = now
            if not self._waiting:
                loop.call_soon(self._ended)
        if now - self._began >= _STEP:
            waiter: asyncio.Future[None] = loop.create_future()
            self._waiting.append(waiter)
            await waiter

    def _ended(self) -> None:
        """A turn is over: one of those that wait goes on in the next."""
        self._began = None
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
                break
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._ended)
