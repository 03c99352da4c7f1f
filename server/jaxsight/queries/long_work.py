"""Long work beside the event loop: in a thread of its own, or on the loop in short steps.

Python switches between threads every few milliseconds, so the loop continues while the thread
computes. Work in a thread shares no mutable state: it takes immutable data and returns a new value.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import itertools
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator
from queue import PriorityQueue
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from jaxsight.events import Event, Progress

if TYPE_CHECKING:
    from jaxsight.source.module import Module

F = TypeVar("F", bound=tuple[str, ...])
K = TypeVar("K")
R = TypeVar("R", bound="HasTask")
T = TypeVar("T")

_STEP = 0.01
"""Seconds of processor time of one turn of the event loop after which further steps wait, a choice:
a fifth of the 50 ms that a turn may take, as a step that has begun must also end."""


class JobQueue:
    """Threads that run one job after another, beginning with those that a person waits for."""

    def __init__(self, threads: int = 1) -> None:
        """Limit the number of threads; with one thread, jobs never overlap."""
        self._most = threads
        self._jobs = PriorityQueue[tuple[int, int, Callable[[], None] | None]]()
        self._numbers = itertools.count(1)
        self._threads: list[threading.Thread] = []

    async def run(self, work: Callable[[], T], *, waiting: bool = False) -> T:
        """Return the result of `work`, run in a thread.

        The job is not started if the awaiting task is cancelled before its turn.

        Args:
            waiting: a person waits for it, so it runs before all jobs that nobody waits for.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()

        def tell(set_result: Callable[[], None]) -> None:
            if not future.done():
                set_result()

        def job() -> None:
            if future.cancelled():
                return
            try:
                outcome = functools.partial(future.set_result, work())
            except Exception as error:  # noqa: BLE001  # raised where the job is awaited
                outcome = functools.partial(future.set_exception, error)
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(tell, outcome)

        number = next(self._numbers)
        self._jobs.put((0, -number, job) if waiting else (1, number, job))
        if len(self._threads) < self._most:
            thread = threading.Thread(target=self._run, name="jaxsight analysis", daemon=True)
            self._threads.append(thread)
            thread.start()
        return await future

    async def judge(self, module: Module, work: Callable[[], T]) -> T:
        """Return the result of `work`, which analyses how chunks affect each other.

        Results are memoized in the bindings, which modules share. Therefore this thread does all
        such work for large modules, and the event loop all of it for small ones.
        """
        return work() if not module.is_large else await self.run(work, waiting=True)

    def close(self) -> None:
        """Start no further job; the threads end after their current jobs."""
        self._most = 0
        for _ in self._threads:
            self._jobs.put((-1, next(self._numbers), None))

    def _run(self) -> None:
        while (job := self._jobs.get()[2]) is not None:
            job()


class Turns:
    """Yields to the event loop between the steps of long work, shared by all who do such work.

    What a person waits for comes first: messages of the client that have arrived, then steps for
    what is on screen, then all others in the order of their arrival.
    """

    def __init__(self) -> None:
        self._began: float | None = None
        self._attended = 0
        """For how many ends of iterations the client's messages count as being read."""
        self._waited_for: deque[asyncio.Future[None]] = deque()
        self._waiting: deque[asyncio.Future[None]] = deque()

    def attend(self) -> None:
        """Let all steps that nobody waits for wait for later iterations of the loop.

        Each message of the client calls it, so that those behind it are read first.
        """
        self._attended = 2  # also what comes after `_ended` in this iteration waits

    async def breathe(self, *, waiting: bool = False) -> None:
        """Return at once while this iteration of the loop is short, otherwise in a later one.

        Await it before each step.

        Args:
            waiting: a person waits for it, so it comes before all that nobody waits for.
        """
        now = time.thread_time()
        loop = asyncio.get_running_loop()
        if self._began is None:
            self._began = now
            if not self._waited_for and not self._waiting:
                loop.call_soon(self._ended)
        is_held = not waiting and (self._attended > 0 or bool(self._waited_for))
        if is_held or now - self._began >= _STEP:
            waiter: asyncio.Future[None] = loop.create_future()
            (self._waited_for if waiting else self._waiting).append(waiter)
            await waiter

    def _ended(self) -> None:
        """Begin a new iteration of the loop and resume one of the waiting tasks."""
        self._began = None
        self._attended = max(self._attended - 1, 0)
        for line in (self._waited_for, *([] if self._attended else [self._waiting])):
            while line:
                waiter = line.popleft()
                if not waiter.done():
                    waiter.set_result(None)
                    break
            else:
                continue
            break
        if self._waited_for or self._waiting:
            asyncio.get_running_loop().call_soon(self._ended)


class HasTask(Protocol):
    """Work that a task does."""

    @property
    def task(self) -> asyncio.Task[object]: ...


def forget(running: dict[K, R], key: K, task: asyncio.Task[object]) -> None:
    """Drop work whose task has ended, unless other work runs under its key now."""
    if not task.cancelled():
        task.exception()  # retrieved, so that asyncio does not log it; callers get it too
    if (current := running.get(key)) is not None and current.task is task:
        del running[key]


async def end(tasks: Iterable[asyncio.Future[Any]]) -> None:
    """Cancel tasks, and wait for their ends."""
    tasks = list(tasks)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


class SharedWork(Generic[F, T]):
    """Work in the background about files, whose results all callers with an equal key share.

    A key begins with the file.
    """

    def __init__(self) -> None:
        self._running: dict[F, asyncio.Task[T]] = {}

    async def get(self, key: F, work: Callable[[], Coroutine[None, None, T]]) -> T | None:
        """Return the result of work; `None` if that is cancelled.

        It begins unless it is running, and goes on if the caller is cancelled.
        """
        if (task := self._running.get(key)) is None or task.cancelling():
            task = self._running[key] = asyncio.create_task(work())
            task.add_done_callback(functools.partial(self._ended, key))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.cancelled():
                return None
            raise

    async def aclose(self) -> None:
        """Cancel all that runs, and wait for its end."""
        await end(self._running.values())

    def _ended(self, key: F, task: asyncio.Task[T]) -> None:
        if self._running.get(key) is task:
            del self._running[key]
        if not task.cancelled():
            task.exception()  # retrieved, so that asyncio does not log it; callers get it too

    def cancel(self, path: str | None = None) -> None:
        """Cancel what runs for a file, or for all files."""
        self.cancel_if(lambda key: path in (None, key[0]))

    def cancel_if(self, is_over: Callable[[F], bool]) -> None:
        """Cancel what runs with some keys."""
        for key, task in self._running.items():
            if is_over(key):
                task.cancel()


@contextlib.asynccontextmanager
async def progress(
    events: asyncio.Queue[Event], key: str, title: str, detail: Callable[[float], str], long: float
) -> AsyncIterator[None]:
    """Show the progress of the body in an editor, every second, once it takes long.

    Args:
        events: those of the session.
        key: identifies the work.
        title: what is being done.
        detail: returns how far it is after some seconds.
        long: the seconds after which progress is shown.
    """
    shown = ""

    async def tick() -> None:
        nonlocal shown
        began = time.monotonic()
        await asyncio.sleep(long)
        while True:
            if (now := detail(time.monotonic() - began)) != shown:
                shown = now
                events.put_nowait(Progress(key, title, now))
            await asyncio.sleep(1.0)

    ticking = asyncio.create_task(tick())
    try:
        yield
    finally:
        ticking.cancel()
        if shown:
            events.put_nowait(Progress(key, title, done=True))


class RunningTasks:
    """The tasks of callers that are at work, which are cancelled when the session ends."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[object]] = set()

    @contextlib.contextmanager
    def current(self) -> Iterator[None]:
        """Count the current task as being at work."""
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            yield
        finally:
            self._tasks.discard(task)

    async def aclose(self) -> None:
        """Cancel all of them, and wait for their ends."""
        await end(self._tasks)
