"""Which hover is shown at a position: that of a function, of a helper, or of an expression."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from jaxsight.features import caveats, inputs
from jaxsight.features.hover.text import (
    expression_hover,
    function_hover,
    helper_hover,
    unasked_hover,
    with_wait,
)
from jaxsight.features.kernels.table import explanation, expression_words, shares_of
from jaxsight.features.measuring.timing import LastTimes, expression_times, kernel_rows, last_times
from jaxsight.features.model import Hover
from jaxsight.features.setup.unshown import PROPOSES, is_without_inputs, untraced
from jaxsight.features.shardings import chosen_layouts, traced_layouts
from jaxsight.figures import collectives, host_transfers, program_notes
from jaxsight.figures.program_notes import distribution_lines
from jaxsight.figures.rows import by_module
from jaxsight.figures.summary import (
    estimated_time,
    how,
    kernel_figure,
    launch_figure,
    long_compile,
    temporary_memory,
)
from jaxsight.queries.documents import Document, Subject, subject_at
from jaxsight.queries.engine import Engine
from jaxsight.queries.programs.located_figures import Compilation, LocatedFigures, Refused
from jaxsight.queries.traces.located_answer import View
from jaxsight.queries.traces.query import Question, Unasked
from jaxsight.queries.traces.tracer_requests import Waits
from jaxsight.source.module import ModuleChunk, PlacedFunction
from jaxsight.source.relocate import expressions_at
from jaxsight.source.text import Position, Range
from jaxsight.targets.target import Target
from jaxsight.text import units
from jaxsight.text.markdown import escaped, markdown_table, prose
from jaxsight.wire.kernel_graph import Graph
from jaxsight.wire.messages.compiling import Compiled
from jaxsight.workers.request_queue import Priority

PATIENCE = 1.5
"""Seconds to wait for a new trace if there is a stale answer, a choice: later, nobody looks."""
COMPILE_PATIENCE = 0.3
"""Seconds that a hover waits for a function's first compile, as long as VS Code waits to show one
(`editor.hover.delay`): most small functions take less, a refresh follows for others. The first
compiler of a session is not waited for."""
_AFTER_HOVER = 0.005
"""Seconds after which a compile that a hover does not wait for begins: the answer goes first."""


async def hover(engine: Engine, path: str, position: Position) -> Hover | None:
    """Return the hover of the function with example inputs, or expression, at a position."""
    opened = engine.documents.get(path)
    text = opened.text if opened is not None else ""
    engine.attention.point(path, position)
    document = await engine.documents.read(path)
    if document is None or document.text != text:
        return None  # the position is in an older text
    subject = subject_at(engine.documents.subjects(document), position)
    found = await _hover_in(engine, document, subject, position)
    if found is None or not found.stale or subject is None:
        return found
    question = await engine.traces.question(document, subject)
    held = engine.traces.waits(question) if isinstance(question, Question) else None
    return found if held is None else replace(found, markdown=with_wait(found.markdown, held))


async def _hover_in(
    engine: Engine, document: Document, subject: Subject | None, position: Position
) -> Hover | None:
    """Return the hover at a position, which `subject` contains if it is not `None`."""
    if subject is not None and position in subject.name_range:
        is_nested = subject.function.refused == "nested" and subject.examples.source != "program"
        if is_nested and (nested := await _helper_hover(engine, document, subject.placed)):
            return nested
        view = await engine.traces.view(document, subject, PATIENCE)
        if isinstance(view, Unasked):
            return unasked_hover(subject, view)
        words = await _target_words(engine, document, view)
        return function_hover(subject, view, words, caveats.markdown(view.caveats))
    helper = document.module.function_at(position)
    if helper is not None and position in helper.name_range:
        as_called = await _helper_hover(engine, document, helper)
        reason = untraced(engine, document, *helper) if as_called is None else ""
        if not reason:
            return as_called
        name = escaped(helper.function.qualname.rpartition(".")[2])
        more = f"; {PROPOSES}" if is_without_inputs(reason) else ""
        return Hover(helper.name_range, f"**{name}** is not traced: {prose(reason)}{more}")
    if (chunk := document.module.chunk_at(position)) is None:
        return None
    places = expressions_at(chunk, position)
    if not places and chunk.broken is None:
        return None
    return await _first_hover(
        engine,
        document,
        chunk,
        position,
        places,
        lambda view: _observed(engine, view, places or view.enclosing(position)),
    )


async def _helper_hover(
    engine: Engine, document: Document, function: PlacedFunction
) -> Hover | None:
    """Return the hover of a function without example inputs, from a trace that calls it."""
    name = function.name_range
    return await _first_hover(
        engine,
        document,
        function.chunk,
        name.start,
        [name],
        lambda view: helper_hover(function, view),
    )


async def _first_hover(
    engine: Engine,
    document: Document,
    chunk: ModuleChunk,
    position: Position,
    places: Sequence[Range],
    hover_of: Callable[[View], Hover | None],
) -> Hover | None:
    """Return the first current hover of traces that may reach a chunk, else the first stale one.

    Args:
        engine: the engine.
        document: the document.
        chunk: where the cursor is.
        position: the cursor.
        places: where it is said that a trace takes long; the function's name without any.
        hover_of: returns the hover by one trace.
    """
    module = document.module
    stale: Hover | None = None
    for subject in _by_closeness(engine, document, position):
        if document.module is not module:
            break  # The position is in an older text.
        if not await engine.traces.may_reach(document, subject, chunk):
            continue
        views = await _views(engine, document, subject)
        if isinstance(views, Waits):
            return stale or unasked_hover(subject, views, next(iter(places), subject.name_range))
        for view in views:
            hover = hover_of(view)
            if hover is not None and not hover.stale:
                return hover
            stale = stale or hover
    program = await engine.traces.program(document)
    own = hover_of(program) if program is not None else None
    return own if own is not None and not own.stale else stale or own


async def _views(engine: Engine, document: Document, subject: Subject) -> list[View] | Waits:
    """Return the views of a subject within a hover's patience, or what takes longer.

    If the newest trace failed, the last successful one is among them.
    """
    view = await engine.traces.view(document, subject, PATIENCE)
    if isinstance(view, Unasked):
        return view if isinstance(view, Waits) else []
    await engine.traces.placed(view)
    last = engine.traces.last_traced(view)
    return [view] if last is None else [view, last]


def _observed(engine: Engine, view: View, places: Sequence[Range]) -> Hover | None:
    """Return the hover of the first place at which a value was observed."""
    for place in places:
        observation = view.observed.get(place)
        if observation is None or not observation.values:
            continue
        layouts, compiled = traced_layouts(view.values(observation)), ""
        kernels = engine.programs.kernels(view)
        if kernels is not None and kernels.view.stale == view.stale:
            times = last_times(engine, view, kernels.target, kernels)
            matched = times.matched if times is not None else None
            took = expression_times(matched, kernels.holding(place)) if matched is not None else ""
            compiled = " · ".join(filter(None, (expression_words(kernels, place), took)))
            if view.compiled_as != "inside":  # alone, it may be partitioned differently
                layouts = layouts or chosen_layouts(kernels, place, view.values(observation))
        source = view.module.slice_text(place)
        return expression_hover(source, place, observation, view, compiled, layouts)
    return None


async def _target_words(engine: Engine, document: Document, view: View) -> str:
    """Return Markdown about the function on each target, as far as known after a moment."""
    path = view.answer.question.path
    if not view.is_traced or view.stale:
        return ""
    targets = engine.choices.targets(path)
    programs = engine.programs
    asks = engine.projects.of(path).settings.kernels == "compiled"
    is_compiled = any(programs.is_compiled(view, target) for target in targets)
    if view.compiled_as and asks and not is_compiled:
        others = [v for v in await engine.traces.cached_views(document) if not v.compiled_as]
        others += await engine.traces.programs_in(document)
        around = [own for each in others if (own := programs.kernels(each)) is not None]
        shares = shares_of(around, view.subject_range)
        return "\n\n".join(prose(words) for words in (*shares, inputs.not_compiled(view)))
    have_started = programs.have_started
    was_compiled = programs.was_compiled(view)
    follows = was_compiled and not is_compiled
    delay = _AFTER_HOVER if follows else 0

    async def asked(target: Target, *, complete: bool) -> Compilation | None:
        if delay:
            await asyncio.sleep(delay)
        result_of = programs.with_temporaries if complete else programs.result
        return await result_of(view, target, urgency=Priority.PERSON)

    kernels, complete = (
        [asyncio.ensure_future(asked(target, complete=is_complete)) for target in targets]
        for is_complete in (False, True)
    )
    # After an edit only the jaxpr is awaited: kernels follow in the hints.
    if not follows:
        waits = have_started and not was_compiled
        await asyncio.wait(complete, timeout=COMPILE_PATIENCE if waits else 0)
    results: list[Compilation] = []
    waiting: list[str] = []
    for target, *tasks in zip(targets, complete, kernels, strict=True):
        best = next((task for task in tasks if task.done()), None)
        if best is None:
            waiting.append(target.name)
        elif (result := best.result()) is not None:
            results.append(result)
        for task in tasks:
            if not task.done():
                engine.waiting.go_on(task, view)
    measured = ((each.target, last_times(engine, view, each.target, each)) for each in results)
    times = {target.name: known for target, known in measured if known is not None}
    words = target_rows(view, results, times)
    if waiting:
        words += f"\n\n*compiling for {', '.join(waiting)}…*"
    return words.strip()


def _by_closeness(engine: Engine, document: Document, position: Position) -> Iterator[Subject]:
    """Yield the subject that contains the cursor first, then the others.

    The traces of other subjects may have observed a helper's expressions.
    """
    subjects = engine.documents.subjects(document)
    if (own := subject_at(subjects, position)) is not None:
        yield own
    others = (subject for subject in subjects if subject is not own)
    yield from sorted(others, key=lambda subject: subject.is_proposed)


# The rows of a hover about targets.


_MODULES = 12
"""Modules or functions that kernels are summed by, a choice: about half of a hover."""
_DEAREST = 5
"""Measured kernels that are listed, a choice: the tooltip and the panel have all."""
_COLLECTIVES = 12
"""Collectives that a table has, likewise; the document of kernels has all."""


def target_rows(view: View, results: Sequence[Compilation], times: Mapping[str, LastTimes]) -> str:
    """Return a Markdown table with a row for each target, for a hover.

    Programs for several devices follow: their mesh, memory and collectives.

    Args:
        view: the function.
        results: its programs.
        times: what it took, by the names of the targets on which it was measured.
    """
    names = ["target", "kernels", "launches", "read", "written", "temporaries", "time", "compiled"]
    if times:
        names.insert(-1, "measured")
    rows, troubles = list[Sequence[str]](), []
    for result in results:
        match result:
            case LocatedFigures(compiled=compiled):
                graph, long = compiled.graph, long_compile(compiled)
                scope = " per device" if compiled.devices > 1 else ""
                time = estimated_time(graph, result.target) or "–"
                amounts = [*_traffic(graph), f"{temporary_memory(compiled)}{scope}"]
                if view.has_unknown_sizes:  # its numbers only stand for them
                    amounts, time = ["–"] * 3, "–"
                took = times.get(result.target.name)
                measured = [took.figure if took is not None else "–"] if times else []
                counts = kernel_figure(graph), launch_figure(graph)
                made = ", ".join(filter(None, (how(compiled), long)))
                name = _name(compiled, result.target)
                rows.append((name, *counts, *amounts, time, *measured, made))
            case Refused(trouble=trouble):
                why = explanation(trouble, result.target)
                troubles.append(f"**{escaped(result.target.name)}**: {prose(why)}")
    parts = [markdown_table(names, *rows)] if rows else []
    for name, shown in times.items():
        lines = [*shown.facts]
        if (matched := shown.matched) is not None:
            lines += kernel_rows(matched, _DEAREST)
        parts.append(_listed(f"**{escaped(name)}** measured:", map(prose, lines)))
    known = [result for result in results if isinstance(result, LocatedFigures)]
    for kernels in known[:1]:  # how the first one was made, and of what
        parts += map(prose, program_notes.notable_lines(kernels))
        modules = [*map(escaped, by_module(kernels, view.subject.name, _MODULES))]
        if modules and not view.has_unknown_sizes:
            title = f"**{escaped(kernels.target.name)}** by module:"
            parts.append(_listed(title, modules))
    for kernels in known:
        if kernels.compiled.devices > 1:
            title = f"**{escaped(_name(kernels.compiled, kernels.target))}**"
            facts = map(prose, distribution_lines(kernels))
            parts += (_listed(title, facts), *_collectives(kernels))
    for kernels in known:
        if transfers := [*map(prose, host_transfers.lines(kernels))]:
            name = escaped(_name(kernels.compiled, kernels.target))
            parts.append(_listed(f"**{name}**: between host and device", transfers))
    return "\n\n".join([*parts, *troubles])


def _listed(title: str, facts: Iterable[str]) -> str:
    return "\n".join([title, "", *(f"* {fact}" for fact in facts)])


def _collectives(kernels: LocatedFigures) -> Iterator[str]:
    """Yield a table of the collectives of a program for several devices."""
    if rows := collectives.rows(kernels):
        head = ("collective", "bytes", "", "time", "line")
        yield markdown_table(head, *rows[:_COLLECTIVES])
    if len(rows) > _COLLECTIVES:
        yield f"and {len(rows) - _COLLECTIVES} more"


def _name(compiled: Compiled, target: Target) -> str:
    """Return the target's name, with the number of devices if the name does not have it."""
    if compiled.devices in (1, target.devices):
        return target.name
    return f"{compiled.devices} × {target.name}"


def _traffic(graph: Graph) -> tuple[str, str]:
    """Return the bytes that kernels read and write in one run; `–` if values decide which run."""
    if graph.branches:
        return "–", "–"
    sign = "" if graph.trips_known else "≥ "
    read = sum(kernel.runs * kernel.bytes_in for kernel in graph.kernels)
    written = sum(kernel.runs * kernel.bytes_out for kernel in graph.kernels)
    return f"{sign}{units.size(read)}", f"{sign}{units.size(written)}"
