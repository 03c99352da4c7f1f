"""A tracer of its own for candidates, so that they neither delay nor end what a person waits for.

It starts for the first candidate and ends when there was none for a while. It runs user code on
random inputs within the limits of a tracer, and nothing of it is shown.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from jaxsight.lru import Recent
from jaxsight.projects.projects import Project
from jaxsight.queries.documents import Document
from jaxsight.queries.located_answer import Answer
from jaxsight.queries.query import Question
from jaxsight.targets.target import Target
from jaxsight.wire.messages.tracing import (
    Compare,
    Compared,
    Failed,
    Lower,
    Lowered,
    Outline,
    Outlined,
    Request,
    Traced,
)
from jaxsight.workers.limits import Limits
from jaxsight.workers.results import Died, Outcome
from jaxsight.workers.supervisor import Tracers

log = logging.getLogger(__name__)

IDLE = 30.0
"""Seconds without a candidate after which the process ends."""
_KEPT = 8
"""Number of traces that are kept; a tracer keeps twice as many."""


@dataclass(eq=False, slots=True)
class Workshop:
    """The tracer for candidates of one project."""

    project: Project
    documents: Mapping[str, Document]
    _tracers: Tracers | None = None
    _answers: Recent[str, Answer] = field(default_factory=lambda: Recent(_KEPT))
    _ending: asyncio.Task[None] | None = None

    async def trace(self, question: Question) -> Answer | None:
        """Return the answer to a question; `None` if there is no tracer, or if it died."""
        question = replace(question, key=f"{question.key} to be fixed")
        if (known := self._answers.get(question.key)) is not None:
            return known
        tracers = self._started()
        if tracers is None:
            return None
        for path, document in self.documents.items():
            tracers.overlay(path, None if path == question.path else document.module.text)
        reply = await self._request(tracers, question.request(tracers.next_id()))
        if not isinstance(reply, Traced | Failed):
            return None
        answer = Answer(question, reply)
        self._answers.put(question.key, answer)
        return answer

    async def outline(self, answer: Answer) -> Outlined | None:
        """Return a traced program as plain data; `None` if it is gone."""
        tracers = self._started()
        if tracers is None or not isinstance(answer.reply, Traced):
            return None
        reply = await self._request(tracers, Outline(tracers.next_id(), answer.reply.id))
        if isinstance(reply, Outlined):
            return reply
        self._gone(answer)
        return None

    async def lower(self, answer: Answer, target: Target) -> Lowered | Failed | Died | None:
        """Return a traced program as StableHLO, or the error; `None` if it is gone."""
        tracers = self._started()
        if tracers is None or not isinstance(answer.reply, Traced):
            return None
        request = Lower(tracers.next_id(), answer.reply.id, target.platform, target.capability)
        reply = await self._request(tracers, request)
        if isinstance(reply, Lowered | Died):
            return reply
        self._gone(answer)
        return None

    async def compare(self, before: Answer, after: Answer) -> Compared | Died | None:
        """Compare two traced functions by running them; `None` if that is not possible.

        Returns a `Died` if running them ended the tracer.
        """
        tracers = self._started()
        match before.reply, after.reply:
            case (Traced(id=one), Traced(id=other)) if tracers is not None:
                reply = await self._request(tracers, Compare(tracers.next_id(), one, other))
                if isinstance(reply, Compared | Died):
                    return reply
                log.info("two functions could not be compared: %s", reply)
                self._gone(before)
                self._gone(after)
        return None

    async def compare_with_values(self, before: Answer, after: Answer) -> Compared | Died | None:
        """Compare a function with an original that cannot be traced and is called with values."""
        tracers = self._started()
        if tracers is None or not isinstance(after.reply, Traced):
            return None
        run = before.question.request(tracers.next_id())
        request = Compare(tracers.next_id(), 0, after.reply.id, run)
        reply = await self._request(tracers, request)
        if isinstance(reply, Compared | Died):
            return reply
        log.info("two functions could not be compared: %s", reply)
        self._gone(after)
        return None

    async def aclose(self) -> None:
        """End the process."""
        if self._ending is not None:
            self._ending.cancel()
            self._ending = None
        self._answers.clear()
        tracers, self._tracers = self._tracers, None
        if tracers is not None:
            await tracers.aclose()

    def rest(self) -> None:
        """End the process after a while, unless another candidate comes."""
        if self._ending is not None:
            self._ending.cancel()
        self._ending = asyncio.create_task(self._end_later())

    async def _end_later(self) -> None:
        await asyncio.sleep(IDLE)
        self._ending = None  # it cannot be cancelled any more
        await self.aclose()

    async def _request(self, tracers: Tracers, request: Request) -> Outcome:
        reply = await tracers.request(request)
        if isinstance(reply, Died):
            self._answers.clear()  # its traces are gone
        return reply

    def _gone(self, answer: Answer) -> None:
        self._answers.pop(answer.question.key)

    def _started(self) -> Tracers | None:
        if self._ending is not None:
            self._ending.cancel()
            self._ending = None
        project = self.project
        if self._tracers is None and project.interpreter is not None and not project.untrusted:
            timeouts = project.settings.timeouts
            self._tracers = Tracers(
                project.interpreter.path,
                project.root,
                limits=Limits(
                    execute=timeouts.execute,
                    inputs=timeouts.inputs,
                    trace=timeouts.trace,
                    memory=project.settings.memory_limit,
                ),
                spare=False,
                variables={"JAX_PLATFORMS": "cpu"},
            )
        return self._tracers
