"""The requests to a project's tracers that wait, and those that run.

The most urgent request runs first, the oldest of several.
A request that waits may run past one that takes long, if it does not need the step that takes long.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from jaxsight.wire.messages.replies import Stage
from jaxsight.wire.messages.requests import AboutTrace, Request
from jaxsight.workers.pool import Tracer
from jaxsight.workers.results import Outcome

SLOW = 1.0
"""Seconds after which a statement that runs is reported, and other requests run past it."""
SLOW_TRACE = 5.0
"""Seconds after which other requests run past a trace: a large function takes long to trace, and a
second process that traces takes memory.
"""


@dataclass(eq=False, slots=True)
class Entry:
    """A request with its answer, and its current step if it runs."""

    message: Request[object]
    priority: int
    on_stage: Callable[[Stage], None] | None
    texts: Mapping[str, str] | None = None
    """The editor's texts by path, as they were when it was asked; `None` if it needs none."""
    answer: asyncio.Future[Outcome[object]] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )
    tracer: Tracer | None = None
    stage: str = ""
    chunk: str = ""
    """The id of the chunk that is executed."""
    detail: str = ""
    """The first line of that chunk."""
    since: float = 0.0
    """When the step began, as the event loop's time in seconds."""
    timer: asyncio.Timeout | None = None
    cancelled_at: float | None = None
    """Time of the event loop, in seconds."""

    def settle(self, outcome: Outcome[object]) -> None:
        """Give the answer, unless there is one."""
        if not self.answer.done():
            self.answer.set_result(outcome)

    def reach(self, reached: Stage) -> None:
        """Take note of the step that the tracer has reached."""
        self.stage, self.chunk, self.detail = reached.stage, reached.chunk, reached.detail
        self.since = asyncio.get_running_loop().time()

    def begin_again(self) -> None:
        """Forget the steps of a process that could not answer."""
        self.stage = self.chunk = self.detail = ""

    @property
    def words(self) -> str:
        """What it does now, and for how long if that is long."""
        elapsed = asyncio.get_running_loop().time() - self.since
        if not self.stage or elapsed < SLOW:
            return self.message.title
        return f"{self.message.title}: {self.detail or self.stage} ({elapsed:.0f} s)"

    @property
    def is_slow(self) -> bool:
        """Whether its current step takes so long that others should run past it."""
        elapsed = asyncio.get_running_loop().time() - self.since
        return bool(self.stage) and elapsed >= (SLOW if self.chunk else SLOW_TRACE)


class RequestQueue:
    """The requests that wait."""

    def __init__(self) -> None:
        self._entries: list[tuple[int, int, Entry]] = []
        self._order = itertools.count()

    def __bool__(self) -> bool:
        return bool(self._entries)

    def push(self, entry: Entry) -> None:
        """Add a request after those of the same priority."""
        heapq.heappush(self._entries, (entry.priority, next(self._order), entry))

    def pop(self) -> Entry:
        """Take the first request."""
        return heapq.heappop(self._entries)[2]

    def pop_past(self, slow: Entry, tracer: Tracer) -> Entry | None:
        """Take the first request that a second tracer can answer while `slow` runs."""
        for entry in (queued[2] for queued in sorted(self._entries)):
            if can_pass(entry.message, slow, tracer):
                self.remove(entry)
                return entry
        return None

    def remove(self, entry: Entry) -> bool:
        """Remove a request, and return whether it was waiting."""
        for queued in self._entries:
            if queued[2] is entry:
                self._entries.remove(queued)
                heapq.heapify(self._entries)
                return True
        return False

    def drain(self) -> Iterator[Entry]:
        """Take all requests."""
        while self._entries:
            yield self.pop()


def can_pass(message: Request[object], slow: Entry, tracer: Tracer) -> bool:
    """Return whether a second tracer can answer a request without the step that takes long.

    The statement that takes long is recognized by its text: other files may have it, too.
    """
    if isinstance(message, AboutTrace):
        return message.trace in tracer.traced
    slice, slow_slice = message.executes, slow.message.executes
    if slice is None or slow_slice is None:
        return False
    if not slow.chunk:
        return (slice.file, slice.function) != (slow_slice.file, slow_slice.function)
    texts = {chunk.text.strip() for chunk in slow_slice.chunks if chunk.id == slow.chunk}
    return texts.isdisjoint(chunk.text.strip() for chunk in slice.chunks)
