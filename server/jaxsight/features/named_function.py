"""A function that the user named: its view, and its compiled program."""

from __future__ import annotations

from jaxsight.features.findings import failures
from jaxsight.queries.engine import Engine
from jaxsight.queries.programs.located_figures import Compilation
from jaxsight.queries.traces.located_answer import View
from jaxsight.queries.traces.query import Question, Unasked
from jaxsight.targets.target import parse
from jaxsight.workers.request_queue import Priority


async def view_of(engine: Engine, path: str, function: str) -> View:
    """Return the answer about one function.

    Raises:
        LookupError: no such function, no example inputs, or not traceable; the message says which.
    """
    await engine.documents.read(path)
    document, subject = engine.documents.find(path, function)
    view = await engine.traces.view(document, subject, None)
    if isinstance(view, Unasked):
        raise LookupError(f"{function} is not traced: {view.reason}")  # noqa: TRY004
    return view


async def question_of(engine: Engine, path: str, function: str) -> Question:
    """Return the question about one function, without asking it.

    Raises:
        LookupError: no such function, no example inputs, or not traceable; the message says which.
    """
    await engine.documents.read(path)
    document, subject = engine.documents.find(path, function)
    question = await engine.traces.question(document, subject)
    if isinstance(question, Unasked):
        raise LookupError(f"{function} is not traced: {question.reason}")  # noqa: TRY004
    return question


async def traced_function(engine: Engine, path: str, function: str) -> View:
    """Return the trace of one function.

    Raises:
        LookupError: no such function, or it cannot be traced; the message says why.
    """
    return _traced(await view_of(engine, path, function), function)


def _traced(view: View, function: str) -> View:
    """Return the view.

    Raises:
        LookupError: it is no trace; the message says why.
    """
    if not view.is_traced:
        words = failures.summary(view)
        raise LookupError(f"{function} cannot be traced: {words}")
    return view


async def compiled_function(
    engine: Engine,
    path: str,
    function: str,
    target: str | None = None,
    *,
    complete: bool = False,
) -> tuple[View, Compilation]:
    """Return a function compiled for a target, by default the first.

    Args:
        engine: the engine.
        path: an open document.
        function: the function's qualified name.
        target: the target's name.
        complete: whether the compile must be complete, which takes longer.

    Raises:
        LookupError: no such function or target, or it is not traced; the message says which.
    """
    for _ in range(2):  # a tracer may have ended meanwhile
        view = await traced_function(engine, path, function)
        chosen = parse(target) if target else None
        if chosen is not None:
            view = _traced(await engine.traces.for_target(view, chosen), function)
        result = await engine.programs.result(
            view, chosen, complete=complete, urgency=Priority.PERSON
        )
        if result is not None:
            return view, result
    raise LookupError(f"{function} cannot be lowered: the tracer ended twice")


async def name_sizes(engine: Engine, view: View) -> None:
    """Trace a function with other sizes to name those of its types, if the settings do."""
    if engine.projects.of(view.answer.question.path).settings.inlay_hints.size_names:
        await engine.sizes.explored(view.answer)
        engine.traces.name_sizes(view)
