"""The cache of answers, and the one place where traces are awaited and cancelled.

A question in flight is shared by all callers that ask it. A newer question about the same function
cancels the older one, whose answer would be stale. An answer is valid only while the project files
that it was computed with are unchanged.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from jaxsight.queries.documents import Document
from jaxsight.queries.memory import Memory, Unit
from jaxsight.queries.traces.located_answer import Answer
from jaxsight.queries.traces.query import Question
from jaxsight.wire.messages.replies import Cancelled, Failed, Traced
from jaxsight.workers.request_queue import Haste, Priority
from jaxsight.workers.results import Died, Reason

Reply = Traced | Failed | Cancelled | Died


class Tracing(Protocol):
    """Traces the function of a question."""

    async def __call__(self, question: Question, haste: Haste) -> Reply:
        """Return the reply; the priority may rise while the request waits."""
        ...


class Superseded(Exception):
    """The question was cancelled because the current text asks a different one."""


@dataclass(slots=True)
class _Running:
    question: Question
    task: asyncio.Task[Answer]
    haste: Haste
    since: float
    """Seconds since the epoch."""


class TraceCache:
    """The answers of all documents of a session."""

    def __init__(
        self,
        documents: Mapping[str, Document],
        memory: Memory,
        on_answer: Callable[[str], None],
    ) -> None:
        """Cache nothing yet; `on_answer` is called when a function of a file has another answer."""
        self._documents = documents
        self._memory = memory
        self._on_answer = on_answer
        self._running: dict[Unit, _Running] = {}
        self._seconds: dict[str, float] = {}

    def known(self, question: Question) -> Answer | None:
        """Return the answer to exactly this question if it is still valid."""
        answer = self._memory.answers.get(question.key)
        if answer is None or any(
            self._version(path) != version for path, version in answer.versions.items()
        ):
            return None
        self._keep(answer)
        return answer

    def latest(self, path: str, function: str, set_name: str) -> Answer | None:
        """Return the last answer about this function, for whatever text it had then."""
        return self._memory.latest.get((path, function, set_name))

    def traced(self, path: str, function: str, set_name: str) -> Answer | None:
        """Return the last answer about this function that is a trace, not an error."""
        return self._memory.traced.get((path, function, set_name))

    def seconds(self, path: str) -> float:
        """Return the duration of the last trace for this file, in seconds; 0 before the first."""
        return self._seconds.get(path, 0.0)

    async def get(self, question: Question, trace: Tracing, priority: Priority) -> Answer:
        """Return the answer; trace the function if the answer is not cached.

        If the question waits already, it becomes as urgent as `priority`.

        Raises:
            Superseded: a newer question about the same function arrived while this one ran.
        """
        if (answer := self.known(question)) is not None:
            return answer
        killed = self._memory.killed.get(question.key)
        if killed is not None and priority is not Priority.PERSON:
            return killed  # as what is not asked for again kills no further tracer
        unit = question.unit
        running = self._running.get(unit)
        if running is not None and (running.question.key != question.key or running.task.done()):
            running.task.cancel()
            running = None
        if running is None:
            haste = Haste(priority)
            task = asyncio.create_task(self._run(question, trace, haste))
            running = self._running[unit] = _Running(question, task, haste, time.time())
            task.add_done_callback(lambda done: self._ended(unit, done))
        running.haste.rise(priority)
        try:
            return await asyncio.shield(running.task)
        except asyncio.CancelledError:
            if running.task.cancelled():
                raise Superseded(question.subject.name) from None
            raise

    def waits_since(self, question: Question) -> tuple[Haste, float] | None:
        """Return the priority of a question that is being answered, and since when, as a time."""
        running = self._running.get(question.unit)
        if running is None or running.question.key != question.key or running.task.done():
            return None
        return running.haste, running.since

    def drop(self, question: Question) -> None:
        """Drop the cached answer, so that the question is traced when it is next asked."""
        self._memory.answers.pop(question.key)

    def cancel(self, path: str) -> None:
        """Cancel the running traces of this file."""
        for unit, running in list(self._running.items()):
            if unit[0] == path:
                running.task.cancel()

    def cancel_all(self) -> None:
        """Cancel all running traces: their answers would be outdated."""
        for running in self._running.values():
            running.task.cancel()

    async def _run(self, question: Question, trace: Tracing, haste: Haste) -> Answer:
        began = time.monotonic()
        reply = await trace(question, haste)
        if isinstance(reply, Cancelled):
            raise asyncio.CancelledError
        self._seconds[question.path] = time.monotonic() - began
        modules = reply.modules if isinstance(reply, Traced | Failed) else ()
        answer = Answer(question, reply, {path: self._version(path) for path in modules})
        if not (isinstance(reply, Died) and reply.external):
            self._memory.answers.put(question.key, answer)
        elif reply.death.reason is Reason.CRASHED:
            self._memory.killed.put(question.key, answer)
        self._keep(answer)
        return answer

    def _keep(self, answer: Answer) -> None:
        unit = answer.question.unit
        if self._memory.latest.get(unit) is not answer:
            self._on_answer(answer.question.path)
        self._memory.latest.put(unit, answer)
        if isinstance(answer.reply, Traced):
            self._memory.traced.put(unit, answer)

    def _ended(self, unit: Unit, task: asyncio.Task[Answer]) -> None:
        if not task.cancelled():
            task.exception()  # retrieved, so that asyncio does not log it; callers get it too
        running = self._running.get(unit)
        if running is not None and running.task is task:
            del self._running[unit]

    def _version(self, path: str) -> str:
        if (document := self._documents.get(path)) is not None:
            return f"open {hash(document.text)}"
        try:
            status = Path(path).stat()
        except OSError:
            return "gone"
        return f"{status.st_mtime_ns} {status.st_size}"
