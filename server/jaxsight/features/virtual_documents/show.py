"""Which virtual document is shown: of the program, of its kernels, of source, or of a view."""

from __future__ import annotations

import contextlib
from dataclasses import replace

from jaxsight.features.caveats import marked
from jaxsight.features.findings import failures
from jaxsight.features.inputs import header
from jaxsight.features.measuring.timing import LastTimes, last_times, seconds_words
from jaxsight.features.model import CompiledKind, Linked, VirtualText
from jaxsight.features.named_function import compiled_function, question_of, traced_function
from jaxsight.features.virtual_documents.sourcerized import (
    document,
    is_program_file,
    source,
    source_of_file,
)
from jaxsight.figures import host_transfers, program_notes, rows
from jaxsight.figures.collectives import SIGN, collective_text
from jaxsight.figures.program_notes import memory_lines
from jaxsight.figures.rows import sentence
from jaxsight.hlo.metadata import lines_of_equations, without_metadata
from jaxsight.queries.engine import Engine
from jaxsight.queries.programs.located_figures import Compilation, LocatedFigures, Refused
from jaxsight.queries.traces import tracer_requests
from jaxsight.queries.traces.located_answer import View
from jaxsight.text import units
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
            return compiled_document(engine, *compiled, what)
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
    if not isinstance(shown, replies.Listing):
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
    from jaxsight.features.profiles import as_text, report

    opened = engine.profiles.opened
    if opened is None or engine.profiles.path != path:
        raise LookupError(f"the profile {path} is not open; open it again")
    return VirtualText(f"{FUNCTION}.profile", as_text(report(opened.profile, opened.sources)))


# Virtual documents of a compiled function: its kernels, and its optimized HLO.


def compiled_document(
    engine: Engine, view: View, result: Compilation, kind: CompiledKind
) -> VirtualText:
    """Return a text of a compiled function.

    Raises:
        LookupError: it could not be lowered or compiled; the message says why.
    """
    title = f"{view.subject.name}.{kind}"
    if isinstance(result, Refused):
        raise LookupError(result.trouble.message)  # noqa: TRY004
    match kind:
        case "hlo-metadata":
            return _hlo(result, f"{view.subject.name}.metadata.hlo")
        case "hlo":
            shown = _hlo(result, title)
            return replace(shown, text=without_metadata(shown.text))
        case "kernels":
            return _listed(result, title, last_times(engine, view, result.target, result))


def _listed(kernels: LocatedFigures, title: str, times: LastTimes | None) -> VirtualText:
    """Return the list of kernels, each line linked to the kernel's equations.

    Successive kernels of one function or module have a comment with their figures before them.

    Args:
        kernels: of the function.
        title: of the document.
        times: what the function took, if the user had it measured.
    """
    matched = times.matched if times is not None else None
    view = kernels.view
    lines = [f"{view.subject.name}: {kernels.headline}", kernels.origin, *kernels.target.facts]
    lines += [times.headline, *times.facts] if times is not None else []
    lines += [*memory_lines(kernels), *program_notes.compile_lines(kernels), ""]
    links: list[Linked] = []
    sections = rows.runs(kernels)
    for section in sections:
        if len(sections) > 1:
            name = rows.group_title(section, view.subject.name)
            lines.append(f"# {' · '.join([name, *rows.group_words(section)])}")
        for index in section.kernels:
            kernel = kernels.graph.kernels[index]
            indent = "  " * (len(kernel.loops) + (len(sections) > 1))
            paths = kernel.equations or kernel.feeds
            links += [Linked(len(lines), path, kernels.place(path)) for path in paths]
            row = matched.by_kernel.get(index) if matched is not None else None
            took = ""
            if row is not None:
                time = seconds_words(row.seconds, row.estimate_seconds)
                took = f"; measured {time}, {units.percent(row.share)}"
            lines.append(f"{indent}{sentence(kernels, index)}{took}")
    if kernels.graph.host_transfers:
        lines += ["", "# transfers between host and device"]
    for transfer in kernels.graph.host_transfers:
        paths = host_transfers.paths(kernels, transfer)
        links += [Linked(len(lines), path, kernels.place(path)) for path in paths]
        lines.append("  " * len(transfer.loops) + host_transfers.sentence(kernels, transfer))
    text = "\n".join(lines) + "\n"
    return VirtualText(title, text, tuple(links), view.stale, caveats=view.caveats)


def _hlo(kernels: LocatedFigures, title: str) -> VirtualText:
    """Return the optimized HLO, each line linked to its equation.

    Comments mark collectives, and transfers between host and device.

    Links are read from the metadata, so it is removed afterwards.
    """
    lines = kernels.compiled.hlo.split("\n")
    links = [
        Linked(number, path, kernels.place(path))
        for number, path in lines_of_equations(kernels.compiled.hlo).items()
    ]
    for kernel in kernels.graph.collectives:
        if kernel.instruction < len(lines):
            lines[kernel.instruction] += f"  // {SIGN} {collective_text(kernel)}"
    for transfer in kernels.graph.host_transfers:
        if transfer.instruction < len(lines):
            mark = f"{host_transfers.SIGN} {host_transfers.text(transfer)}"
            lines[transfer.instruction] += f"  // {mark}"
    view, text = kernels.view, "\n".join(lines)
    return VirtualText(title, text, tuple(links), view.stale, caveats=view.caveats)
