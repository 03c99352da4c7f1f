"""Ask tracers: trace a function, write it as source, and ask about an earlier trace.

A tracer keeps few traces, and may die: what asks about a trace that is gone gets `None`, and has to
trace again.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Protocol, TypeVar

from jaxsight.projects.project import Project
from jaxsight.queries.long_work import progress
from jaxsight.queries.traces.located_answer import Answer
from jaxsight.queries.traces.query import Question, Unasked
from jaxsight.source.module import Module
from jaxsight.targets.target import Target
from jaxsight.wire.messages.replies import (
    Cancelled,
    Failed,
    Listing,
    Lowered,
    MissingModules,
    Outlined,
    Traced,
)
from jaxsight.wire.messages.requests import (
    NEW,
    FindModules,
    Lower,
    Outline,
    Request,
    Show,
    Sourcerize,
    TransformedSource,
)
from jaxsight.workers.request_queue import CurrentStep, Haste, Priority
from jaxsight.workers.results import HOW_TO_RUN_AGAIN, Died, Outcome

# What a question waits for, since when, and how to stop that: shown for whatever takes long.

_LONG_STATEMENT = 1.0
_LONG = 10.0
"""Seconds after which something is waited for long, a choice: starts, imports and traces take a
while on a busy machine; other statements do not."""
_IMPORT = re.compile(r"(from|import)\s")


@dataclass(frozen=True, slots=True)
class Waits(Unasked):
    """What a function waits for that is not traced yet: `reason` says what, and since when."""

    how: str = ""
    """How to stop that, as an instruction; empty if it is jaxsight's own start."""
    step: CurrentStep | None = None

    def is_long(self, waited: float) -> bool:
        """Return whether that takes so long that it is said, after some seconds of waiting."""
        if self.step is None:
            return waited >= _LONG
        is_quick = self.step.statement and not _IMPORT.match(self.step.statement)
        return self.step.seconds >= (_LONG_STATEMENT if is_quick else _LONG)


def waits(project: Project, path: str, haste: Haste, since: float) -> Waits:
    """Return what a request about a file waits for.

    Args:
        project: the project of the file.
        path: the file.
        haste: the priority of the request, which identifies it.
        since: when it was asked, in seconds since the epoch.
    """
    if (step := project.step(haste)) is None:
        return Waits(f"waiting for {project.starts or 'the tracer'}, begun at {_clock(since)}")
    where = f" of {PurePath(step.file).name}" if step.file and step.file != path else ""
    limit = step.stage if step.stage in ("execute", "inputs") else "trace"
    statement = step.statement.replace("`", "'")  # it stands in backticks
    what = {
        "execute": f"`{statement}`" if statement else f"the module of `{step.title}`",
        "inputs": f"the example inputs of `{step.title}`",
        "trace": f"the trace of `{step.title}`",
    }[limit]
    ends = f"it ends after {getattr(project.settings.timeouts, limit):g} s (`timeouts.{limit}`)"
    began = _clock(time.time() - step.seconds)
    return Waits(
        f"waiting for {what}{where}, begun at {began}", f"{HOW_TO_RUN_AGAIN}; {ends}", step
    )


def _clock(seconds: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(seconds))


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
    return reply.missing if isinstance(reply, MissingModules) else ()


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
) -> Outcome[Listing]:
    """Write the function of a question as source."""
    request = Sourcerize(NEW, question.trace, options)
    return await _executed(project, question, request, Haste(Priority.PERSON))


async def _executed(
    project: Project, question: Question, request: Request[R], haste: Haste
) -> Outcome[R]:
    """Send a request that executes a question's slice, and show its progress if it takes long."""
    key = f"{question.path}:{question.subject.name}:{question.key}"
    began = time.time()

    def detail(seconds: float) -> str:
        return waits(project, question.path, haste, began).reason

    title = f"Tracing {question.subject.name}"
    async with progress(project.events, key, title, detail, LONG):
        return await project.ask(request, priority=haste)


async def _about(
    client: AnswersRequests,
    answer: Answer,
    request: Callable[[int], Request[R]],
    priority: Priority = Priority.BACKGROUND,
) -> Outcome[R] | None:
    """Return the answer to a request about a trace by its id; `None` if there is no trace."""
    if not isinstance(answer.reply, Traced):
        return None
    return await client.ask(request(answer.reply.id), priority=priority)


async def show(
    client: AnswersRequests, answer: Answer, name: str, platform: str = ""
) -> Listing | Failed | Died | None:
    """Return a text of a traced function by its name in `Show`, or the error.

    `None` says that the trace is gone.
    """
    reply = await _about(client, answer, lambda id: Show(NEW, id, name, platform), Priority.PERSON)
    is_gone = isinstance(reply, Failed) and reply.failure.stage not in ("view", "lower")
    return None if is_gone or isinstance(reply, Cancelled) else reply


async def lower(
    client: AnswersRequests,
    answer: Answer,
    target: Target,
    *,
    urgency: Priority = Priority.BACKGROUND,
) -> Lowered | Failed | Died | None:
    """Return a traced function as StableHLO, or the error; `None` if the trace is gone."""
    platform, capability = target.platform, target.capability
    reply = await _about(client, answer, lambda id: Lower(NEW, id, platform, capability), urgency)
    is_gone = isinstance(reply, Failed) and reply.failure.stage != "lower"
    return None if is_gone or isinstance(reply, Cancelled) else reply


async def outline(client: AnswersRequests, answer: Answer) -> Outlined | None:
    """Return a traced program as plain data; `None` if the trace is gone."""
    reply = await _about(client, answer, lambda id: Outline(NEW, id))
    return reply if isinstance(reply, Outlined) else None
