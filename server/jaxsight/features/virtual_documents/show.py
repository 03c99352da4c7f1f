"""Which virtual document is shown: of the program, of its kernels, of source, or of a view."""

from __future__ import annotations

import contextlib
from dataclasses import replace

from jaxsight.features.caveats import marked
from jaxsight.features.findings import failures
from jaxsight.features.inputs import header
from jaxsight.features.model import VirtualText
from jaxsight.features.named_function import compiled_function, question_of, traced_function
from jaxsight.features.virtual_documents import kernels
from jaxsight.features.virtual_documents.sourcerized import (
    document,
    is_program_file,
    source,
    source_of_file,
)
from jaxsight.queries.engine import Engine
from jaxsight.queries.traces import tracer_requests
from jaxsight.wire.messages import replies
from jaxsight.wire.messages.replies import Failed
from jaxsight.wire.messages.requests import GRAPH, STABLEHLO, UNOPTIMIZED, TransformedSource


async def show(
    engine: Engine,
    path: str,
    function: str,
    what: str | TransformedSource,
    program: str | None = None,
) -> VirtualText:
    """Return a virtual document: a function's program, source, or view by an interpreter.

    Args:
        engine: the engine.
        path: an open document.
        function: the qualified name of a function with example inputs; any name for a program file,
            of which there is source only.
        what: `jaxpr`, `graph`, `stablehlo`, `hlo`, `hlo-metadata`, `hlo-unoptimized` or `kernels`,
            options for its source, or the name of a jaxpr interpreter in the user's environment;
            `profile` for the report of the open profile, which is at `path`.
        program: the text of a program file that is open in an editor.

    Raises:
        LookupError: there is no such function with example inputs, it cannot be traced, the
            interpreter fails, or no source could be verified (`NotSourcerized`); the message
            says which.
    """
    if what == "profile":
        return _profile(engine, path)
    if isinstance(what, TransformedSource) and is_program_file(path):
        return await source_of_file(engine, path, what, program)
    shown = await current(engine, path, function, what)
    assumed = ""
    with contextlib.suppress(LookupError):  # of an older text, if it cannot be traced now
        question = await question_of(engine, path, function)
        if question.set.assumed:
            assumed = header(question, engine.size_names(question))
    comment = "//" if what in (STABLEHLO, UNOPTIMIZED, GRAPH, "hlo", "hlo-metadata") else "#"
    return marked(shown, comment, assumed)


async def current(
    engine: Engine, path: str, function: str, what: str | TransformedSource
) -> VirtualText:
    """Return the document itself, without the line that marks it as stale."""
    match what:
        case TransformedSource():
            view = await traced_function(engine, path, function)
            return await source(engine, view, with_settings(engine, path, what))
        case "hlo" | "hlo-metadata" | "kernels":
            compiled = await compiled_function(engine, path, function, complete=what == "kernels")
            return kernels.document(engine, *compiled, what)
        case _:
            return await _text(engine, path, function, what)


async def _text(engine: Engine, path: str, function: str, name: str) -> VirtualText:
    """Return a text that the tracer writes: a program, or the view by an interpreter `name`."""
    view = await traced_function(engine, path, function)
    target = engine.choices.target(path)
    platform = target.platform if name in (STABLEHLO, UNOPTIMIZED) else ""
    shown = await tracer_requests.show(engine.projects.of(path), view.answer, name, platform)
    if shown is None:
        engine.traces.cache.drop(view.answer.question)
        return await _text(engine, path, function, name)
    if not isinstance(shown, replies.Shown):
        if platform and isinstance(shown, Failed):
            words = f"lowered for {target.short}: {shown.failure.message}"
        else:
            words = f"shown with interpreter {name}: {failures.of_interpreter(shown)}"
        raise LookupError(f"{function} cannot be {words}")  # noqa: TRY004
    return document(view, f"{function}.{name}", shown)


def with_settings(engine: Engine, path: str, options: TransformedSource) -> TransformedSource:
    """Return options for source, completed from the settings of a file's project."""
    settings = engine.projects.of(path).settings.sourcerize
    return replace(options, derivatives=options.derivatives or settings.derivatives)


FUNCTION = "report"
"""The place of a function's name in the URI of a profile, which is of none."""


def _profile(engine: Engine, path: str) -> VirtualText:
    """Return the report of the profile that was opened."""
    from jaxsight.features.profiles.report import as_text, report

    opened = engine.profiles.opened
    if opened is None or engine.profiles.path != path:
        raise LookupError(f"the profile {path} is not open; open it again")
    return VirtualText(f"{FUNCTION}.profile", as_text(report(opened.profile, opened.sources)))
