"""Which of several example sets is shown that the user did not write: one that can be traced."""

from __future__ import annotations

from jaxsight.features.inputs import ReachedPlaces
from jaxsight.features.proposals.assumed import runs_a_program
from jaxsight.queries.documents import Document, Subject
from jaxsight.queries.engine import Engine
from jaxsight.queries.traces.located_answer import Answer
from jaxsight.queries.traces.query import Question
from jaxsight.wire.messages.replies import Failed, Traced
from jaxsight.workers.supervisor import Priority

_MOST = 8
"""Example sets of a function that are tried until one traces: a choice, each costs a trace."""


async def prefer_traced(engine: Engine, document: Document, subject: Subject) -> bool:
    """Make the first set active that can be traced, else the one that gets furthest.

    The user's own sets, and their choice, stay. If no set gets anywhere, a call is known whose
    unknown arguments can be assumed, or the function is a part of another one whose trace shows it,
    they are rejected, so that the function has others or none; returns whether they are.

    Raises:
        Superseded: a newer question about the function arrived meanwhile.
    """
    sets, path = subject.examples.sets[:_MOST], document.path
    is_own = subject.examples.are_written or engine.choices.is_chosen(path, subject)
    if is_own or subject.is_proposed or subject.broken:
        return False
    reached: dict[str, int] = {}
    for example_set in sets:
        question = await engine.traces.question(document, subject, example_set)
        if not isinstance(question, Question):
            return False
        answer = await engine.traces.answer(question, Priority.BACKGROUND)
        if not isinstance(answer.reply, Traced | Failed):
            return False
        if isinstance(answer.reply, Traced):
            reached = {example_set.name: -1}
            break
        reached[example_set.name] = _reach(answer, answer.reply, subject)
    best = max(reached, key=lambda name: reached[name], default=None)
    is_traced = any(reach < 0 for reach in reached.values())
    # What a dry run shows of a training loop is known; nothing is assumed of it.
    has_partial = not runs_a_program(subject.chunk, subject.function) and bool(
        engine.dry_runs.partial(path, subject.name)
    )
    has_others = has_partial or await _is_shown_by_another(engine, document, subject)
    if best is not None and not is_traced and (reached[best] == 0 or has_others):
        meaning = await engine.proposals.meaning(document, subject.chunk, subject.function)
        _, before = document.rejected.get(subject.id, ("", frozenset()))
        failed = frozenset(each.outside for each in sets if each.outside is not None)
        document.rejected = {**document.rejected, subject.id: (meaning, before | failed)}
        return True
    if best is not None:
        engine.choices.prefer_set(path, subject, best)
    return False


async def reconsider(engine: Engine, document: Document) -> None:
    """Take up rejected sets of functions that have changed since."""
    if not document.rejected:
        return
    module = document.module
    functions = dict(zip(module.ids, module.functions, strict=True))
    kept = {
        name: (meaning, sets)
        for name, (meaning, sets) in document.rejected.items()
        if name in functions
        and await engine.proposals.meaning(document, *functions[name]) == meaning
    }
    if kept != document.rejected:
        document.rejected = kept


async def _is_shown_by_another(engine: Engine, document: Document, subject: Subject) -> bool:
    """Return whether the trace of another function shows one that is a part of it."""
    if not any(s.outside and s.outside.compiled == "inside" for s in subject.examples.sets):
        return False
    views = await engine.traces.known_views(document)
    others = [view for view in views if view.is_traced and view.subject.id != subject.id]
    return bool(ReachedPlaces(others).by(subject.placed))


def _reach(answer: Answer, failed: Failed, subject: Subject) -> int:
    """Return how many expressions of a function a failed trace has seen."""
    first, last = subject.function.body_start.line, subject.function.range.end.line
    own = subject.chunk.id
    chunks = {own, *(reused.executed for reused in failed.reused if reused.asked == own)}
    return sum(
        observation.span.chunk in chunks and first < observation.span.line <= last + 1
        for observation in answer.observations
    )
