"""*Extract repro* and *Reduce repro*: the code actions, and where they are offered."""

from __future__ import annotations

from collections.abc import Iterator

from jaxsight.features.findings import failures
from jaxsight.features.model import Action
from jaxsight.queries.documents import Subject
from jaxsight.queries.engine import Engine
from jaxsight.queries.traces.located_answer import View
from jaxsight.rules.finding import Finding
from jaxsight.source.text import Range
from jaxsight.wire.messages.replies import Failed

EXTRACT = "jaxsight.extractRepro"
REDUCE = "jaxsight.reduceRepro"
KIND = "refactor.rewrite.jaxsight.repro"


def of_function(
    engine: Engine,
    path: str,
    subject: Subject,
    range: Range,
    view: View | None,
    is_extracted: bool,
) -> Iterator[Action]:
    """Yield the actions on a function's name, and in its body if something is wrong with it.

    Args:
        engine: the engine.
        path: the file.
        subject: a function with example inputs.
        range: where actions are wanted.
        view: the last answer about the function, if it is known.
        is_extracted: whether a repro of the function was extracted.
    """
    if subject.broken or subject.function.refused:
        return
    name = subject.name
    is_on_name = range.touches(subject.name_range)
    reply = view.answer.reply if view is not None else None
    of_inputs = isinstance(reply, Failed) and reply.failure.stage == "inputs"
    error: Finding | None = None
    if view is not None and not view.is_traced and not of_inputs:
        error = next(failures.reported(view), None)
    if error is not None and (is_on_name or range.touches(error.range)):
        yield _action(path, subject, error)
    else:
        refused = engine.programs.refusal(view) if view is not None else None
        has_crashed = refused is not None and refused.trouble.kind == "death"  # of the compiler
        if is_on_name or has_crashed:
            yield _action(path, subject)
    if is_on_name and is_extracted:
        yield Action(f"Reduce repro of {name}", KIND, command=REDUCE, arguments=(path, name))


def _action(path: str, subject: Subject, finding: Finding | None = None) -> Action:
    title = f"Extract repro of {subject.name}"
    return Action(title, KIND, command=EXTRACT, arguments=(path, subject.name), finding=finding)
