"""The data of a panel about one function.

It has the kernel graph on the target, the current place of each equation, and the program of the
saved file, all in one piece, so that data drawn together is consistent. The texts (jaxpr, HLO…) are
documents of their own.
"""

from __future__ import annotations

import ast
import asyncio
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from jaxsight.features.distributed import chosen_shardings
from jaxsight.features.distributed.collectives import described
from jaxsight.features.distributed.layout import layout
from jaxsight.features.kernels import compile_time
from jaxsight.features.kernels.launches import undecided
from jaxsight.features.kernels.summary import change, memory_lines, meshes
from jaxsight.features.measuring.shown import ShownTimes, shown_times
from jaxsight.features.model import Panel
from jaxsight.features.named_function import compiled_function
from jaxsight.features.proposals.assumptions import figures, header
from jaxsight.figures.drawn import DividedResult, Drawn, PanelEquation, PanelTimes
from jaxsight.figures.groups import GroupedSource, grouped
from jaxsight.figures.summary import headline, origin
from jaxsight.queries.documents import subject_at
from jaxsight.queries.engine import Engine
from jaxsight.queries.programs.compile_result import CompileResult
from jaxsight.queries.programs.kernels import Kernels
from jaxsight.queries.traces.located_answer import View
from jaxsight.queries.traces.traces import named
from jaxsight.source.statements import tree_of
from jaxsight.source.text import Position, Range
from jaxsight.targets.roofline import estimate
from jaxsight.text.layout import cut
from jaxsight.wire.meshes import Chosen
from jaxsight.wire.messages.compiling import Compiled
from jaxsight.workers.compilation.compilers import Trouble
from jaxsight.workers.compilation.queue import Urgency

_LONGEST = 200
"""Characters of a user's expression, a choice: the panel cuts a line; a whole loop may be one."""


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
    engine: Engine, view: View, result: CompileResult, before: Compiled | None = None
) -> Panel:
    """Return the panel's data for a compiled function.

    Args:
        engine: the engine.
        view: the function.
        result: what it was compiled to.
        before: the program that it is compared with.
    """
    contents = drawn(view, result, before)
    if isinstance(contents, Drawn):
        times = shown_times(engine, view, result.target, Kernels.of(view, result))
        measured = _times(times, len(contents.reasons)) if times is not None else None
        contents = replace(contents, measured=measured)
    return Panel(
        view.answer.question.path,
        view.subject.name,
        view.subject_range,
        view.answer.question.set.name,
        tuple(each.name for each in view.subject.examples.sets),
        result.target.name,
        view.stale,
        None if isinstance(contents, str) else contents,
        contents if isinstance(contents, str) else "",
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


def drawn(view: View, result: CompileResult, before: Compiled | None) -> Drawn[Range] | str:
    """Return the graph with its places, or why there is none."""
    kernels = Kernels.of(view, result)
    if kernels is None:
        assert isinstance(result.outcome, Trouble)
        return result.outcome.message
    compiled, graph = kernels.compiled, kernels.graph
    if before is not None and before.target != compiled.target:
        before = None
    divided = _divided(kernels)
    groups, group_of = grouped(
        graph.kernels,
        GroupedSource(
            kernels.equations,
            kernels.lowered.calls,
            partial(_tree, view.answer.texts),
            view.range_of,
            view.module.slice_text,
        ),
    )
    inputs = kernels.lowered.parameters
    return Drawn(
        compiled,
        f"{headline(compiled, kernels.target)}{figures(view)}",
        "; ".join((origin(compiled, kernels.target), *kernels.target.facts)),
        tuple(kernels.reason(kernel) for kernel in graph.kernels),
        tuple(estimate(kernel, kernels.target) for kernel in graph.kernels),
        tuple(
            PanelEquation(
                path,
                equation.primitive,
                equation.outputs,
                cut(text, _LONGEST),
                kernels.place(path),
                divided.get(path),
                equation.scope,
                equation.backward,
            )
            for path, equation in kernels.equations.items()
            for text in [kernels.places.text(path)]
        ),
        tuple(
            tuple(described(kernels, index))
            for index, kernel in enumerate(graph.kernels)
            if kernel.collective is not None
        ),
        meshes(kernels),
        before if before is not compiled else None,
        (*memory_lines(kernels), *undecided(kernels), *compile_time.notable_lines(kernels)),
        change(before, compiled) if before is not None else "",
        groups,
        group_of,
        inputs if len(inputs) == len(graph.parameters) else (),
    )


def _tree(texts: Mapping[str, tuple[str, str]], chunk: str) -> ast.Module | None:
    """Return the syntax tree of a traced chunk."""
    try:
        return tree_of(texts[chunk][1]) if chunk in texts else None
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _divided(kernels: Kernels) -> dict[str, DividedResult]:
    """Return how the results of equations are divided, of those with a single known result."""
    results: dict[str, list[Chosen]] = {}
    for chosen in kernels.compiled.shardings:
        results.setdefault(chosen.equation, []).append(chosen)
    divided: dict[str, DividedResult] = {}
    for path, known in results.items():
        if len(known) == 1:
            mesh = chosen_shardings.mesh_of(kernels, known[0])
            grid = layout(mesh, known[0].spec) if mesh is not None else None
            divided[path] = DividedResult(
                chosen_shardings.sharded_type(known[0]),
                chosen_shardings.local_type(known[0], mesh) if mesh is not None else "",
                grid.cells if grid is not None else (),
            )
    return divided
