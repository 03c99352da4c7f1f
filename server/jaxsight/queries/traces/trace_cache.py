"""The cache of answers, and the one place where traces are awaited and cancelled.

A question in flight is shared by all callers that ask it. A newer question about the same function
cancels the older one, whose answer would be stale. An answer is current only while the files that
it was made of have the versions that its tracer reported.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace

from jaxsight.files.texts import Texts
from jaxsight.queries.long_work import forget
from jaxsight.queries.memory import SessionMemory, Unit
from jaxsight.queries.traces.located_answer import Answer
from jaxsight.queries.traces.query import Question
from jaxsight.wire.messages.replies import Cancelled, Failed, Traced
from jaxsight.workers.request_queue import Haste, Priority
from jaxsight.workers.results import Died, Reason

_TRIES = 3
"""Traces of one question while the files that it imports change: then whoever asks gets the last
one, which is shown as stale, and not an endless wait for a file that changes all the time.
"""

Reply = Traced | Failed | Cancelled | Died


TracesQuestion = Callable[[Question, Haste], Awaitable[Reply]]
"""Traces the function of a question; the priority may rise while the request waits."""


class Superseded(Exception):
    """The question was cancelled because the current text asks a different one."""


@dataclass(slots=True)
class _Running:
    question: Question
    task: asyncio.Task[Answer]
    haste: Haste
    since: float
    """Seconds since the epoch."""


@dataclass(eq=False, slots=True)
class TraceCache:
    """The answers of all documents of a session."""

    _texts: Texts
    _memory: SessionMemory
    _running: dict[Unit, _Running] = field(default_factory=dict)
    _seconds: dict[str, float] = field(default_factory=dict)

    def cached(self, question: Question) -> Answer | None:
        """Return the answer to exactly this question if it is still current."""
        if (answer := self._stored(question)) is None:
            return None
        if answer.question.set.name != question.set.name:  # who calls it has another name by now
            answer = replace(answer, question=replace(answer.question, set=question.set))
            self._memory.answers.put(answer.stored_as, answer)
        self._keep(answer)
        return answer

    def adopt(self, question: Question, answer: Answer) -> None:
        """Take the answer to an equal question, about a function with inputs from elsewhere."""
        if answer.answers(question) and self.is_current(answer):
            adopted = replace(answer, question=question)
            self._memory.answers.put(adopted.stored_as, adopted)
            self._keep(adopted)

    def is_current(self, answer: Answer) -> bool:
        """Return whether the files that an answer was made of, besides its own, are unchanged."""
        return self._texts.are_current(answer.versions)

    def importers(self, path: str) -> set[str]:
        """Return the files with an answer that was made of another file."""
        real, changed = self._texts.real, self._texts.real(path)
        return {
            unit[0]
            for unit, answer in self._memory.latest.items()
            if unit[0] != path and any(real(made_of) == changed for made_of in answer.versions)
        }

    def retry(self) -> None:
        """Drop answers whose tracer died: a file that has changed on disk may be the cause."""
        for key, answer in self._memory.answers.items():
            if isinstance(answer.reply, Died):
                self._memory.answers.pop(key)

    def seconds(self, path: str) -> float:
        """Return the duration of the last trace for this file, in seconds; 0 before the first."""
        return self._seconds.get(path, 0.0)

    async def get(self, question: Question, trace: TracesQuestion, priority: Priority) -> Answer:
        """Return the answer; trace the function if the answer is not cached.

        If the question waits already, it becomes as urgent as `priority`.

        Raises:
            Superseded: a newer question about the same function arrived while this one ran.
        """
        if (answer := self.cached(question)) is not None:
            return answer
        killed = self._memory.killed.get(question.key)
        if killed is not None and priority is not Priority.PERSON and self.is_current(killed):
            return killed  # as what is not asked for again kills no further tracer
        answer = await self._traced(question, trace, priority)
        for _ in range(_TRIES - 1):
            if self.is_current(answer):
                break
            answer = await self._traced(question, trace, priority)
        return answer

    async def for_device(
        self, question: Question, trace: TracesQuestion, priority: Priority
    ) -> Answer:
        """Return the answer to a question about another device than the one that is shown.

        It is neither the latest answer about the function, nor cancelled by a newer question.
        """
        answer = self._stored(question)
        return answer if answer is not None else await self._asked(question, trace, Haste(priority))

    def _stored(self, question: Question) -> Answer | None:
        """Return the answer to exactly this question, for its device, if it is still current."""
        answers = self._memory.answers
        answer = answers.get(question.key_on_device) or answers.get(question.key)
        return answer if answer is not None and self.is_current(answer) else None

    async def _traced(
        self, question: Question, trace: TracesQuestion, priority: Priority
    ) -> Answer:
        """Return the answer of the trace of a question that runs, or of a new one."""
        unit = question.unit
        running = self._running.get(unit)
        if running is not None and (
            running.question.key_on_device != question.key_on_device or running.task.done()
        ):
            if not running.task.done() and running.question.asked > question.asked:
                raise Superseded(question.subject.name)
            running.task.cancel()
            running = None
        if running is None:
            haste = Haste(priority)
            task = asyncio.create_task(self._asked(question, trace, haste, is_shown=True))
            running = self._running[unit] = _Running(question, task, haste, time.time())
            task.add_done_callback(lambda done: forget(self._running, unit, done))
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
        if running is None or running.question.key_on_device != question.key_on_device:
            return None
        if running.task.done():
            return None
        return running.haste, running.since

    def drop(self, question: Question) -> None:
        """Drop the cached answer, so that the question is traced when it is next asked."""
        self._memory.answers.pop(question.key)
        self._memory.answers.pop(question.key_on_device)

    def cancel(self, path: str | None = None) -> None:
        """Cancel the running traces of a file, or of all files."""
        for unit, running in self._running.items():
            if path in (None, unit[0]):
                running.task.cancel()

    async def _asked(
        self, question: Question, trace: TracesQuestion, haste: Haste, *, is_shown: bool = False
    ) -> Answer:
        """Return the answer of a new trace, and cache it; one that is shown is the latest."""
        began = time.monotonic()
        reply = await trace(question, haste)
        if isinstance(reply, Cancelled):
            raise asyncio.CancelledError
        self._seconds[question.path] = time.monotonic() - began
        versions = {path: version for path, version in reply.files if path != question.path}
        answer = Answer(question, reply, versions)
        if not (isinstance(reply, Died) and reply.external):
            self._memory.answers.put(answer.stored_as, answer)
        elif reply.death.reason is Reason.CRASHED:
            self._memory.killed.put(question.key, answer)
        if is_shown:
            self._keep(answer)
        return answer

    def _keep(self, answer: Answer) -> None:
        unit = answer.question.unit
        self._memory.latest.put(unit, answer)
        if isinstance(answer.reply, Traced):
            self._memory.traced.put(unit, answer)
