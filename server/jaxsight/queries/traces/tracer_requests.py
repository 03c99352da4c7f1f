"""Ask tracers: trace a function, write it as source, and ask about an earlier trace.

A tracer keeps few traces, and may die: what asks about a trace that is gone gets `None`, and has to
trace again.
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Protocol, TypeVar

from jaxsight.events import Progress
from jaxsight.projects.project import Project
from jaxsight.queries.traces.located_answer import Answer
from jaxsight.queries.traces.query import Question
from jaxsight.queries.traces.waits import waits
from jaxsight.source.module import Module
from jaxsight.targets.target import Target
from jaxsight.wire.messages.replies import (
    Failed,
    FoundModules,
    Lowered,
    LoweredChange,
    Outlined,
    Shown,
    Stage,
    Traced,
)
from jaxsight.wire.messages.requests import (
    NEW,
    FindModules,
    Lower,
    LowerChanged,
    Outline,
    Request,
    Show,
    Sourcerize,
    TransformedSource,
)
from jaxsight.workers.compilation.queue import Urgency
from jaxsight.workers.request_queue import Haste, Priority
from jaxsight.workers.results import Died, Outcome

LONG = 1.0
"""Seconds of a trace after which progress is shown, a choice: for shorter ones it would flicker."""

R = TypeVar("R")


async def missing_modules(project: Project, path: str, module: Module) -> tuple[str, ...]:
    """Return the modules that a file imports at its top level and that cannot be found.

    Imports in a `try` are not looked at: the file can do without them.
    """
    imported = dict.fromkeys(
        package
        for chunk in module.chunks
        if chunk.broken is None and chunk.text.startswith(("import ", "from "))
        for package in chunk.name_effects.packages
        if package != "."
    )
    if not imported or project.held_back:
        return ()
    root = Path(project.root)
    folders = tuple(map(str, (Path(path).parent, root, root / "src")))
    reply = await project.ask(FindModules(NEW, folders, tuple(imported)))
    return reply.missing if isinstance(reply, FoundModules) else ()


class AnswersRequests(Protocol):
    """What answers requests: the tracers of a project, or those of a sandbox."""

    async def ask(
        self, request: Request[R], *, priority: Priority = Priority.BACKGROUND
    ) -> Outcome[R]:
        """Send a request, and return the answer."""


async def trace(project: Project, question: Question, haste: Haste) -> Outcome[Traced]:
    """Trace the function of a question."""
    return await _executed(project, question, question.trace, haste)


async def sourcerize(
    project: Project, question: Question, options: TransformedSource
) -> Outcome[Shown]:
    """Write the function of a question as source."""
    request = Sourcerize(NEW, question.trace, options)
    return await _executed(project, question, request, Haste(Priority.PERSON))


async def _executed(
    project: Project, question: Question, request: Request[R], haste: Haste
) -> Outcome[R]:
    """Send a request that executes a question's slice, and show its progress if it takes long."""
    progress = _Progress(project, question, haste)
    try:
        return await project.ask(
            request,
            priority=haste,
            on_stage=progress.stage,
        )
    finally:
        progress.end()


async def show(
    client: AnswersRequests, answer: Answer, name: str, platform: str = ""
) -> Shown | Failed | Died | None:
    """Return a text of a traced function by its name in `Show`, or the error.

    `None` says that the trace is gone.
    """
    if not isinstance(answer.reply, Traced):
        return None
    reply = await client.ask(Show(NEW, answer.reply.id, name, platform), priority=Priority.PERSON)
    match reply:
        case Shown() | Died():
            return reply
        case Failed() if reply.failure.stage in ("view", "lower"):
            return reply
        case _:
            return None


_PRIORITIES = {
    Urgency.ASKED: Priority.PERSON,
    Urgency.SEEN: Priority.SCREEN,
    Urgency.UNSEEN: Priority.BACKGROUND,
}


async def lower(
    client: AnswersRequests, answer: Answer, target: Target, *, urgency: Urgency = Urgency.UNSEEN
) -> Lowered | Failed | Died | None:
    """Return a traced function as StableHLO, or the error; `None` if the trace is gone."""
    if not isinstance(answer.reply, Traced):
        return None
    request = Lower(NEW, answer.reply.id, target.platform, target.capability)
    reply = await client.ask(request, priority=_PRIORITIES[urgency])
    match reply:
        case Lowered() | Died():
            return reply
        case Failed() if reply.failure.stage == "lower":
            return reply
        case _:
            return None


async def lower_changed(
    client: AnswersRequests, answer: Answer, target: Target, change: str, at: int
) -> LoweredChange | None:
    """Return a traced function with a change as StableHLO; `None` if there is none."""
    if not isinstance(answer.reply, Traced):
        return None
    id, platform, capability = answer.reply.id, target.platform, target.capability
    reply = await client.ask(LowerChanged(NEW, id, platform, capability, change, at))
    return reply if isinstance(reply, LoweredChange) else None


async def outline(client: AnswersRequests, answer: Answer) -> Outlined | None:
    """Return a traced program as plain data; `None` if the trace is gone."""
    if not isinstance(answer.reply, Traced):
        return None
    reply = await client.ask(Outline(NEW, answer.reply.id))
    return reply if isinstance(reply, Outlined) else None


class _Progress:
    """Shows the progress of a trace that takes long: its step, or what it waits for."""

    def __init__(self, project: Project, question: Question, haste: Haste) -> None:
        self._project = project
        self._path = question.path
        self._haste = haste
        self._key = f"{question.path}:{question.subject.name}:{question.key}"
        self._title = f"Tracing {question.subject.name}"
        self._detail = ""
        self._since = time.time()
        self._timer = asyncio.get_running_loop().call_later(LONG, self._look)

    def stage(self, stage: Stage) -> None:
        if self._detail:
            self._show()

    def end(self) -> None:
        self._timer.cancel()
        if self._detail:
            self._project.events.put_nowait(Progress(self._key, self._title, done=True))

    def _look(self) -> None:
        self._show()
        self._timer = asyncio.get_running_loop().call_later(LONG, self._look)

    def _show(self) -> None:
        detail = waits(self._project, self._path, self._haste, self._since).reason
        if detail != self._detail:
            self._detail = detail
            self._project.events.put_nowait(Progress(self._key, self._title, detail))
