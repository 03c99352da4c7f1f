"""Waiting for slow work within a person's patience; a refresh follows when it is done."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

from jaxsight.events import Event, Refresh
from jaxsight.queries.memory import Unit
from jaxsight.queries.traces.located_answer import View

T = TypeVar("T")


class Waiting:
    """Work that goes on after those who asked for it have stopped waiting.

    Work about a function ends when there is work about a newer text of it: on a busy machine,
    compiles of each text would wait for all earlier ones.
    """

    def __init__(self, events: asyncio.Queue[Event]) -> None:
        self._events = events
        self._tasks: set[asyncio.Future[object]] = set()
        self._newest: dict[Unit, tuple[str, set[asyncio.Future[object]]]] = {}
        """By function: the key of the newest question that there is work about, and that work."""

    def refresh(self, path: str) -> None:
        """Tell the owner that there is something new about a file."""
        self._events.put_nowait(Refresh(path))

    async def within(
        self, work: Coroutine[None, None, T | None], patience: float | None, view: View
    ) -> T | None:
        """Return the result of `work` about a function if it ends within `patience`.

        Otherwise a refresh follows.
        """
        task = asyncio.ensure_future(work)
        try:
            done, _ = await asyncio.wait([task], timeout=patience)
        except asyncio.CancelledError:
            self.go_on(task, view)
            raise
        if done:
            return task.result()
        self.go_on(task, view)
        return None

    def go_on(self, task: asyncio.Future[Any], view: View) -> None:
        """Let work about a function continue, and send a refresh when it is done."""
        self.hold(task, view)

        def refresh(done: asyncio.Future[object]) -> None:
            if not done.cancelled() and done.exception() is None:
                self.refresh(view.answer.question.path)

        task.add_done_callback(refresh)

    def hold(self, task: asyncio.Future[Any], view: View | None = None) -> None:
        """Keep a reference to work until it is done, and cancel it when the session ends.

        Args:
            task: the work.
            view: the function that it is about, if it is about one.
        """
        if task.done():
            return
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        if view is None:
            return
        question = view.answer.question
        key, tasks = self._newest.get(question.unit, ("", set()))
        if key != question.key:
            for outdated in tasks:
                outdated.cancel()
            tasks = set()
            self._newest[question.unit] = question.key, tasks
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    def close(self, path: str) -> None:
        """Cancel the work about a file that was closed."""
        for unit in [unit for unit in self._newest if unit[0] == path]:
            for task in list(self._newest.pop(unit)[1]):
                task.cancel()

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
