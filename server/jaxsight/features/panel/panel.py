"""The data of a panel about one function.

It has the kernel graph on the target, the current place of each equation, and the program of the
saved file, all in one piece, so that data drawn together is consistent. The texts (jaxpr, HLO…) are
documents of their own.
"""

from __future__ import annotations

import asyncio

from jaxsight.features.measuring.shown import ShownTimes, shown_times
from jaxsight.features.model import Panel
from jaxsight.features.named_function import compiled_function
from jaxsight.features.proposals.assumptions import header
from jaxsight.figures.panel import PanelTimes
from jaxsight.queries.documents import subject_at
from jaxsight.queries.engine import Engine
from jaxsight.queries.programs.located_figures import Compilation, LocatedFigures, Refused
from jaxsight.queries.traces.located_answer import View
from jaxsight.queries.traces.traces import named
from jaxsight.source.text import Position
from jaxsight.wire.messages.compiling import Compiled
from jaxsight.workers.compilation.queue import Urgency


async def panel(engine: Engine, path: str, where: Position | str) -> Panel | None:
    """Return the panel's data for the function at a position or with a name.

    Returns `None` if there is no function with example inputs.
    """
    document = await engine.documents.read(path)
    if document is None:
        return None
    subjects = engine.documents.subjects(document)
    subject = named(subjects, where) if isinstance(where, str) else subject_at(subjects, where)
    if subject is None or (chosen := engine.choices.set_of(document, subject)) is None:
        return None
    sets = tuple(example_set.name for example_set in subject.examples.sets)
    try:
        view, result = await compiled_function(engine, path, subject.id)
    except LookupError as error:
        target = engine.choices.target(path).name
        return Panel(
            path, subject.name, subject.range, chosen.name, sets, target, trouble=str(error)
        )
    if not result.is_complete:
        completing = engine.programs.result(
            view, result.target, complete=True, urgency=Urgency.ASKED
        )
        engine.waiting.go_on(asyncio.ensure_future(completing), view)
    return panel_about(engine, view, result, engine.programs.before(view))


def panel_about(
    engine: Engine, view: View, result: Compilation, before: Compiled | None = None
) -> Panel:
    """Return the panel's data for a compiled function.

    Args:
        engine: the engine.
        view: the function.
        result: what it was compiled to.
        before: the program that it is compared with.
    """
    figures = result if isinstance(result, LocatedFigures) else None
    times = shown_times(engine, view, result.target, figures)
    return Panel(
        view.answer.question.path,
        view.subject.name,
        view.subject_range,
        view.answer.question.set.name,
        tuple(each.name for each in view.subject.examples.sets),
        result.target.name,
        view.stale,
        figures,
        before if figures is not None else None,
        _times(times, figures.graph.kernel_count) if figures and times else None,
        result.trouble.message if isinstance(result, Refused) else "",
        view.caveats,
        header(view.answer.question, view.size_names) if view.assumed else "",
        result.target.is_own,
    )


def _times(times: ShownTimes, kernels: int) -> PanelTimes:
    """Return a measurement as a panel shows it, beside a number of kernels."""
    known, matched = times.measurement.times, times.matched
    rows = map(matched.by_kernel.get, range(kernels)) if matched is not None else ()
    others = [row for row in matched.rows if row.index is None] if matched is not None else []
    return PanelTimes(
        times.headline,
        times.stale,
        known.wall.median,
        known.device_seconds if known.device_seconds >= 0 else None,
        sum(row.seconds for row in others),
        tuple(row.seconds if row is not None else None for row in rows),
        tuple(times.facts),
    )
