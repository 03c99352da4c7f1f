"""The rows of a hover about targets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from jaxsight.features.kernels.uncompiled import explanation
from jaxsight.features.measuring.shown import ShownTimes, kernel_rows
from jaxsight.figures import compile_time, host_transfers, modules
from jaxsight.figures.distributed import collectives
from jaxsight.figures.program_notes import distribution_lines
from jaxsight.figures.summary import (
    estimated_time,
    how,
    kernel_figure,
    launch_figure,
    long_compile,
    temporary_memory,
)
from jaxsight.queries.programs.located_figures import Compilation, LocatedFigures, Refused
from jaxsight.queries.traces.located_answer import View
from jaxsight.targets.target import Target
from jaxsight.text import units
from jaxsight.text.markdown import escaped, markdown_table, prose
from jaxsight.wire.kernel_graph import Graph
from jaxsight.wire.messages.compiling import Compiled

_MODULES = 12
"""Modules or functions that kernels are summed by, a choice: about half of a hover."""
_DEAREST = 5
"""Measured kernels that are listed, a choice: the tooltip and the panel have all."""
_COLLECTIVES = 12
"""Collectives that a table has, likewise; the document of kernels has all."""


def target_rows(view: View, results: Sequence[Compilation], times: Mapping[str, ShownTimes]) -> str:
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
        parts += map(prose, compile_time.notable_lines(kernels))
        by_module = [*map(escaped, modules.summary(kernels, view.subject.name, _MODULES))]
        if by_module and not view.has_unknown_sizes:
            title = f"**{escaped(kernels.target.name)}** by module:"
            parts.append(_listed(title, by_module))
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
    rows = collectives.rows(kernels)
    if rows:
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
