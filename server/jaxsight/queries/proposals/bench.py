"""Where proposals are traced: in the project's own tracer, or in a process of their own.

The project's tracer has imported what a file needs. It is used, behind all other requests, while
nobody has written inputs for functions of the file: then nobody waits for their shapes. After a
proposal that ended it, or took long, the others are traced in a process of their own.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from jaxsight.lru import Recent
from jaxsight.projects.project import Project
from jaxsight.queries.traces import tracer_requests
from jaxsight.queries.traces.located_answer import Answer
from jaxsight.queries.traces.query import Question
from jaxsight.wire.messages.replies import Failed, Outlined, Traced
from jaxsight.workers.results import Died
from jaxsight.workers.supervisor import Priority

_KEPT = 64  # traces, one for most functions of a file, and more than `functions.MOST` of them


class Bench(Protocol):
    """A tracer for proposals of one project."""

    @property
    def project(self) -> Project: ...

    async def trace(self, question: Question) -> Answer | None:
        """Return the answer to a question; `None` if there is no tracer, or if it died."""

    async def outline(self, answer: Answer) -> Outlined | None:
        """Return a traced program as plain data; `None` if it is gone."""


@dataclass(eq=False, slots=True)
class ProjectBench:
    """The project's tracer; it keeps the traces, which may be shown."""

    project: Project
    has_died: bool = False
    traced: Recent[str, Answer] = field(default_factory=lambda: Recent(_KEPT))
    """Traces by the key of their question, with its device."""

    async def trace(self, question: Question) -> Answer | None:
        reply = await self.project.ask(question.trace, priority=Priority.BACKGROUND)
        if not isinstance(reply, Traced | Failed):
            self.has_died |= isinstance(reply, Died)
            return None
        answer = Answer(question, reply, dict(reply.files))
        if isinstance(reply, Traced):
            self.traced.put(question.key_on_device, answer)
        return answer

    async def outline(self, answer: Answer) -> Outlined | None:
        return await tracer_requests.outline(self.project, answer)
