"""Waiting for slow work within a person's patience; a refresh follows when it is done."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

from jaxsight.events import Event, Refresh

T = TypeVar("T")


class Waiting:
    """Work that goes on after those who asked for it have stopped waiting."""

    def __init__(self, events: asyncio.Queue[Event]) -> None:
        self._events = events
        self._tasks: set[asyncio.Future[object]] = set()

    def refresh(self, path: str) -> None:
        """Tell the owner that there is something new about a file."""
        self._events.put_nowait(Refresh(path))

    async def within(
        self, work: Coroutine[None, None, T | None], patience: float | None, path: str
    ) -> T | None:
        """Return the result of `work` if it ends within `patience`; otherwise a refresh follows."""
        task = asyncio.ensure_future(work)
        done, _ = await asyncio.wait([task], timeout=patience)
        if done:
            return task.result()
        self.go_on(task, path)
        return None

    def go_on(self, task: asyncio.Future[Any], path: str) -> None:
        """Let work continue, and send a refresh when it is done."""
        self.hold(task)

        def refresh(done: asyncio.Future[object]) -> None:
            if not done.cancelled() and done.exception() is None:
                self.refresh(path)

        task.add_done_callback(refresh)

    def hold(self, task: asyncio.Future[Any]) -> None:
        """Keep a reference to work until it is done, and cancel it when the session ends."""
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def ready(
        self, tasks: Sequence[asyncio.Task[list[T]]], patience: float | None, path: str
    ) -> list[T]:
        """Return the results of tasks done within `patience`; the others follow with a refresh."""
        if not tasks:
            return []
        done, pending = await asyncio.wait(tasks, timeout=patience)

        def refresh(task: asyncio.Task[list[T]]) -> None:
            # Without results there is nothing to refresh.
            if not task.cancelled() and task.exception() is None and task.result():
                self.refresh(path)

        for task in pending:
            task.add_done_callback(refresh)
        return [result for task in tasks if task in done for result in task.result()]

    def cancel(self) -> None:
        """Cancel all work."""
        for task in self._tasks:
            task.cancel()
