"""Which of several example sets is shown that the user did not write: one that can be traced."""

from __future__ import annotations

from jaxsight.queries.documents import Document, Subject
from jaxsight.queries.engine import Engine
from jaxsight.queries.traces.located_answer import Answer
from jaxsight.queries.traces.query import Question
from jaxsight.wire.messages.replies import Traced
from jaxsight.workers.supervisor import Priority

_MOST = 8
"""Example sets of a function that are tried."""


async def prefer_traced(engine: Engine, document: Document, subject: Subject) -> None:
    """Make the first set active that can be traced, else the one that gets furthest.

    The user's own sets, and their choice, stay.

    Raises:
        Superseded: a newer question about the function arrived meanwhile.
    """
    sets = subject.examples.sets
    path = document.path
    if len(sets) < 2 or subject.examples.are_written or engine.choices.is_chosen(path, subject):
        return
    reached: dict[str, int] = {}
    for example_set in sets[:_MOST]:
        question = await engine.traces.question(document, subject, example_set)
        if not isinstance(question, Question):
            continue
        answer = await engine.traces.answer(question, Priority.BACKGROUND)
        if isinstance(answer.reply, Traced):
            reached = {example_set.name: 0}
            break
        reached[example_set.name] = _reach(answer)
    best = max(reached, key=lambda name: reached[name], default=None)
    if best is not None and engine.choices.prefer_set(path, subject, best):
        engine.callers.touch(path)


def _reach(answer: Answer) -> int:
    """Return how many expressions a failed trace has seen."""
    return len(answer.observations)
