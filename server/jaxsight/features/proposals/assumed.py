"""Functions without example inputs, shown with proposals that can be traced: *assumed inputs*.

Nobody asked for these traces, so they are made where nobody waits, those of the visible part of a
file first, and not for long. One that fails is silent. Nothing is shown with inputs that the text
does not tell: these are suggested at the `def`.
"""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING

from jaxsight.features.proposals.functions import worth_proposing
from jaxsight.queries.documents import Document
from jaxsight.queries.engine import Engine
from jaxsight.queries.proposals.proposals import show
from jaxsight.queries.traces.query import Question
from jaxsight.queries.traces.trace_cache import Superseded
from jaxsight.queries.traces.traces import named
from jaxsight.source.definitions import Function
from jaxsight.source.module import ModuleChunk, PlacedFunction
from jaxsight.wire.messages.replies import Traced
from jaxsight.workers.supervisor import Priority

if TYPE_CHECKING:
    from jaxsight.queries.proposals.trying import Tried

log = logging.getLogger(__name__)

BUDGET = 60.0
"""Seconds in which proposals of one text are tried, a choice: less leaves functions without."""
_NAMING = 1.0
"""Seconds that the first hints of a function wait for names of sizes: later, they change again."""


async def assume(engine: Engine, path: str, budget: float = BUDGET, only: str = "") -> None:
    """Try proposals of a document's functions that have no inputs, and show those that trace.

    A refresh is sent for each. With the setting `examplesAssumed` off, lenses offer them.
    With `only`, this is for the function that the user named, whether it is worth it or not, and
    whether its text proves the inputs or not.
    """
    document = engine.documents.get(path)
    if document is None:
        return
    settings = engine.projects.of(path).settings
    clock = asyncio.get_running_loop().time
    ends = clock() + budget
    rank = functools.partial(engine.attention.rank, path)
    unreached = engine.dry_runs.unreached(document)
    for name in unreached & document.proposed.keys():
        show(document, name, None)
    wanted = [*_failed(engine, document), *_without(engine, document)]
    wanted = [each for each in wanted if each.function.qualname not in unreached]
    if only:
        having = {subject.name for subject in engine.documents.subjects(document)}
        functions = document.module.functions
        wanted = [
            each for each in functions if each.function.qualname == only and only not in having
        ]
    for chunk, function in sorted(wanted, key=lambda each: rank(each.range)):
        if clock() > ends or engine.documents.get(path) is not document:
            return
        try:
            name = function.qualname
            outcome = await _outcome(engine, document, chunk, function)
            wants = settings.examples_assumed and name not in document.hidden
            is_good = outcome is not None and (outcome.is_shown or bool(only and outcome.computes))
            was_shown = name in document.proposed
            is_changed = _suggest(document, name, outcome)
            show(document, name, outcome if wants and is_good else None)
            if name in document.proposed and not await _traces(engine, document, name):
                show(document, name, None)
        except Superseded:
            return
        except Exception:
            log.exception("proposing inputs of %s of %s", function.qualname, path)
            return
        if is_good or was_shown or is_changed:
            engine.waiting.refresh(path)


def _suggest(document: Document, name: str, outcome: Tried | None) -> bool:
    """Keep inputs that can be traced, but that the text does not prove; return whether for new."""
    before = document.suggested.pop(name, "")
    if outcome is None or not outcome.computes or outcome.is_shown:
        return bool(before)
    document.suggested[name] = outcome.guess.title
    return document.suggested[name] != before


def is_worth_proposing(engine: Engine, document: Document) -> bool:
    """Return whether a document has functions that would be shown with proposed inputs."""
    return next(_without(engine, document), None) is not None


async def _outcome(
    engine: Engine, document: Document, chunk: ModuleChunk, function: Function
) -> Tried | None:
    """Return the best outcome for a function: that of a call of which some arguments are known.

    With other arguments than these, it would be another call.
    """
    calls = engine.dry_runs.partial(document.path, function.qualname)
    for partial in calls:
        outcome = await engine.proposals.outcome(document, chunk, function, partial)
        if outcome is not None and outcome.is_shown:
            return outcome
    if function.refused or calls:
        return None
    return await engine.proposals.outcome(document, chunk, function)


def _without(engine: Engine, document: Document) -> Iterator[PlacedFunction]:
    subjects = engine.documents.subjects(document)
    having = {subject.name for subject in subjects}
    for placed in document.module.functions:
        function = placed.function
        name = function.qualname
        is_nested = function.refused == "nested" and name not in having
        if is_nested and engine.dry_runs.partial(document.path, name):
            yield placed
    yield from worth_proposing(document, subjects)


def _failed(engine: Engine, document: Document) -> Iterator[PlacedFunction]:
    """Yield the functions whose proposed inputs could be traced before they were edited.

    Those of which a call is known by now are among them.
    """
    for subject in engine.documents.subjects(document):
        if not subject.is_proposed:
            continue
        is_plain = all(example_set.dry_call is None for example_set in subject.examples.sets)
        if is_plain and engine.dry_runs.partial(document.path, subject.name):
            yield subject.placed
            continue
        latest = engine.traces.latest(document, subject)
        if latest is not None and not isinstance(latest.reply, Traced) and not subject.broken:
            yield subject.placed


async def _traces(engine: Engine, document: Document, name: str) -> bool:
    """Return whether a function is traced with proposed inputs; names its sizes, if that is quick.

    Raises:
        Superseded: a newer question about the function arrived meanwhile.
    """
    subject = named(engine.documents.subjects(document), name)
    if subject is None or not subject.is_proposed:
        return True  # it has better inputs by now
    question = await engine.traces.question(document, subject)
    if not isinstance(question, Question):
        return False
    traced = engine.proposals.traced(engine.projects.of(document.path), question)
    if traced is not None:
        engine.traces.cache.adopt(question, traced)
    answer = await engine.traces.answer(question, Priority.BACKGROUND)
    if not isinstance(answer.reply, Traced):
        return False
    naming = asyncio.ensure_future(engine.sizes.explored(answer))
    done, _ = await asyncio.wait([naming], timeout=_NAMING)
    if not done:
        view = engine.traces.located(answer, document.module, question, subject)
        engine.waiting.go_on(naming, view)
    return True
