"""The sandbox: a tracer of its own, for candidates of fixes and for other processes of a job.

So they neither delay nor end what a person waits for. It starts for the first one and ends when
there was none for a while. It runs user code, of candidates on random inputs, within the limits of
a tracer, and nothing of it is shown.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from jaxsight.files.texts import Version
from jaxsight.lru import Recent
from jaxsight.projects.project import Project
from jaxsight.queries.traces import tracer_requests
from jaxsight.queries.traces.located_answer import Answer
from jaxsight.queries.traces.query import Question
from jaxsight.targets.target import Target
from jaxsight.wire.messages.replies import Compared, Failed, Lowered, Outlined, Traced
from jaxsight.wire.messages.requests import NEW, Compare, Request
from jaxsight.workers.results import Died, Outcome, unavailable
from jaxsight.workers.supervisor import Priority, Tracers

log = logging.getLogger(__name__)

IDLE = 30.0
"""Seconds without a candidate after which the process ends, a choice: it holds 180 MiB."""
_KEPT = 8
"""Traces that are kept: half of those of a tracer, whose other half are candidates."""

R = TypeVar("R")


@dataclass(eq=False, slots=True)
class Sandbox:
    """A tracer of one project."""

    project: Project
    hash_seed: str = ""
    """Python's (`PYTHONHASHSEED`); empty for any."""
    _tracers: Tracers | None = None
    _answers: Recent[str, Answer] = field(default_factory=lambda: Recent(_KEPT))
    _ending: asyncio.Task[None] | None = None

    async def ask(
        self, request: Request[R], *, priority: Priority = Priority.BACKGROUND
    ) -> Outcome[R]:
        """Send a request to the sandbox's tracer, and return the answer."""
        if (tracers := self._started()) is None:
            return unavailable(request, self.project.problem)
        reply = await self.project.sources.collect(
            tracers.ask(request, priority=priority, texts=self.project.texts.open)
        )
        if isinstance(reply, Died):
            self._answers.clear()  # its traces are gone
        return reply

    async def trace(self, question: Question) -> Answer | None:
        """Return the answer to a question; `None` if there is no tracer, or if it died."""
        question = replace(question, key=f"{question.key} to be fixed")
        stored_as = question.key_on_device
        cached = self._answers.get(stored_as)
        if cached is not None and self.is_current(cached.versions):
            return cached
        reply = await self.ask(question.trace)
        if not isinstance(reply, Traced | Failed):
            return None
        answer = Answer(question, reply, dict(reply.files))
        self._answers.put(stored_as, answer)
        return answer

    def is_current(self, versions: Mapping[str, Version]) -> bool:
        """Return whether files have these versions."""
        return self.project.texts.are_current(versions)

    async def outline(self, answer: Answer) -> Outlined | None:
        """Return a traced program as plain data; `None` if it is gone."""
        if (outlined := await tracer_requests.outline(self, answer)) is None:
            self._forget(answer)
        return outlined

    async def lower(self, answer: Answer, target: Target) -> Lowered | Failed | Died | None:
        """Return a traced program as StableHLO, or the error; `None` if it is gone."""
        lowered = await tracer_requests.lower(self, answer, target)
        if lowered is None or isinstance(lowered, Failed):
            self._forget(answer)
            return None
        return lowered

    async def compare(self, before: Answer, after: Answer) -> Compared | Died | None:
        """Compare two functions by running them; `None` if that is not possible.

        An original that cannot be traced is called with values. Returns a `Died` if running them
        ended the tracer.
        """
        if not isinstance(after.reply, Traced):
            return None
        request, answers = Compare(NEW, 0, after.reply.id, before.question.trace), [after]
        if isinstance(before.reply, Traced):
            request, answers = Compare(NEW, before.reply.id, after.reply.id), [before, after]
        reply = await self.ask(request)
        if isinstance(reply, Compared | Died):
            return reply
        log.info("two functions could not be compared: %s", reply)
        for answer in answers:
            self._forget(answer)
        return None

    async def aclose(self) -> None:
        """End the process."""
        self._stay()
        self._answers.clear()
        tracers, self._tracers = self._tracers, None
        if tracers is not None:
            await tracers.aclose()

    def rest(self) -> None:
        """End the process after a while, unless another candidate comes."""
        self._stay()
        self._ending = asyncio.create_task(self._end_later())

    def _stay(self) -> None:
        """Do not end the process after a while."""
        if self._ending is not None:
            self._ending.cancel()
            self._ending = None

    async def _end_later(self) -> None:
        await asyncio.sleep(IDLE)
        self._ending = None  # it cannot be cancelled any more
        await self.aclose()

    def _forget(self, answer: Answer) -> None:
        self._answers.pop(answer.question.key_on_device)

    def _started(self) -> Tracers | None:
        self._stay()
        project = self.project
        if project.held_back:
            return None
        if self._tracers is None and project.interpreter is not None:
            seed = {"PYTHONHASHSEED": self.hash_seed} if self.hash_seed else {}
            self._tracers = project.other_tracers({"JAX_PLATFORMS": "cpu", **seed})
        return self._tracers


class Sandboxes:
    """The sandboxes of each project, by the root of the project and the hash seed."""

    def __init__(self) -> None:
        self._open: dict[tuple[str, str], Sandbox] = {}
        self._closing: set[asyncio.Task[None]] = set()

    def of(self, project: Project, *, hash_seed: str = "") -> Sandbox:
        """Return the sandbox of a project; that of an earlier one with the same root ends."""
        sandbox = self._open.get((project.root, hash_seed))
        if sandbox is None or sandbox.project is not project:
            if sandbox is not None:
                closing = asyncio.create_task(sandbox.aclose())
                self._closing.add(closing)
                closing.add_done_callback(self._closing.discard)
            sandbox = self._open[project.root, hash_seed] = Sandbox(project, hash_seed)
        return sandbox

    async def aclose(self) -> None:
        """End all processes."""
        ending = (sandbox.aclose() for sandbox in self._open.values())
        await asyncio.gather(*ending, *self._closing)
        self._open.clear()


# Where proposals are traced: in the project's own tracer, or in a process of their own.
#
# The project's tracer has imported what a file needs. It is used, behind all other requests, while
# nobody has written inputs for functions of the file: then nobody waits for their shapes. After a
# proposal that ended it, or took long, the others are traced in a process of their own.

_KEPT_OF_PROJECT = 64
"""Traces, one for most functions of a file, and more than `functions.MOST` of them."""


@dataclass(eq=False, slots=True)
class ProjectBench:
    """The project's tracer; it keeps the traces, which may be shown."""

    project: Project
    has_died: bool = False
    traced: Recent[str, Answer] = field(default_factory=lambda: Recent(_KEPT_OF_PROJECT))
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


Bench = ProjectBench | Sandbox
"""A tracer for proposals of one project."""
