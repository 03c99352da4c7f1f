"""The rows of a hover about targets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jaxsight.features.distributed import collectives
from jaxsight.features.kernels import compile_time, host_transfers, modules
from jaxsight.features.kernels.launches import kernel_figure, launch_figure
from jaxsight.features.kernels.summary import distribution_lines, how, temporary_memory
from jaxsight.features.kernels.uncompiled import explanation
from jaxsight.queries.programs.compile_result import CompileResult
from jaxsight.queries.programs.kernels import Kernels
from jaxsight.queries.traces.located_answer import View
from jaxsight.targets.roofline import total
from jaxsight.text import units
from jaxsight.text.markdown import escaped, prose
from jaxsight.wire.kernel_graph import Graph
from jaxsight.wire.messages.compiling import Compiled
from jaxsight.workers.compilation.compilers import Trouble

_MODULES = 12
"""Number of modules or functions that kernels are summed by."""
_COLLECTIVES = 12
"""Number of collectives that a table has."""


def target_rows(view: View, results: Sequence[CompileResult]) -> str:
    """Return a Markdown table with a row for each target, for a hover.

    Programs for several devices follow: their mesh, memory and collectives.
    """
    rows = [
        "| target | kernels | launches | read | written | temporaries | time | compiled |",
        "|---|---|---|---|---|---|---|---|",
    ]
    troubles = []
    for result in results:
        match result.outcome:
            case Compiled() as compiled:
                graph = compiled.graph
                read, written = _traffic(graph)
                rows.append(
                    f"| {escaped(_name(compiled, result))} | {kernel_figure(graph)} | "
                    f"{launch_figure(graph)} | {read} | {written} | "
                    f"{temporary_memory(compiled)}{_scope(compiled)} | "
                    f"{_time(compiled, result)} | {how(compiled)}{_long(compiled)} |"
                )
            case Trouble() as trouble:
                why = explanation(trouble, result.target)
                troubles.append(f"**{escaped(result.target.name)}**: {prose(why)}")
    parts = ["\n".join(rows)] if len(rows) > 2 else []
    parts += filter(None, [_stages(view, results), _by_module(view, results)])
    distributed = [text for result in results if (text := _distributed(view, result))]
    transfers = [text for result in results if (text := _transfers(view, result))]
    return "\n\n".join([*parts, *distributed, *transfers, *troubles])


def _stages(view: View, results: Sequence[CompileResult]) -> str:
    """Return how long the first target's program took to make, and what makes it large."""
    kernels = _first(view, results)
    lines = compile_time.notable_lines(kernels) if kernels is not None else ()
    return "\n\n".join(map(prose, lines))


def _first(view: View, results: Sequence[CompileResult]) -> Kernels | None:
    """Return the kernels of the first target that the program is compiled for."""
    known = (Kernels.of(view, result) for result in results)
    return next((each for each in known if each is not None), None)


def _long(compiled: Compiled) -> str:
    """Return `, compiled in 64 s` for a compile that takes long."""
    word = compile_time.word(compiled)
    return f", {word}" if word else ""


def _by_module(view: View, results: Sequence[CompileResult]) -> str:
    """Return the kernels of the first target by module, as a list; empty for a small program."""
    kernels = _first(view, results)
    if kernels is None:
        return ""
    lines = [f"* {escaped(line)}" for line in modules.summary(kernels, view.subject.name, _MODULES)]
    title = f"**{escaped(kernels.target.name)}** by module:"
    return "\n".join([title, "", *lines]) if lines else ""


def _distributed(view: View, result: CompileResult) -> str:
    """Return what is known about a program for several devices; empty for one device."""
    kernels = Kernels.of(view, result)
    if kernels is None or kernels.compiled.devices == 1:
        return ""
    facts = [prose(fact) for fact in distribution_lines(kernels)]
    title = f"**{escaped(_name(kernels.compiled, result))}**"
    listed = "\n".join([title, "", *(f"* {fact}" for fact in facts)])
    return "\n\n".join([listed, *_collectives(kernels)])


def _transfers(view: View, result: CompileResult) -> str:
    """Return a list of what moves between host and device; empty if nothing does."""
    kernels = Kernels.of(view, result)
    facts = list(host_transfers.lines(kernels)) if kernels is not None else []
    if kernels is None or not facts:
        return ""
    title = f"**{escaped(_name(kernels.compiled, result))}**: between host and device"
    return "\n".join([title, "", *(f"* {prose(fact)}" for fact in facts)])


def _collectives(kernels: Kernels) -> Iterator[str]:
    rows = collectives.rows(kernels)
    if rows:
        shown = [f"| {' | '.join(map(escaped, row))} |" for row in rows[:_COLLECTIVES]]
        yield "\n".join(["| collective | bytes | | time | line |", "|---|---|---|---|---|", *shown])
    if len(rows) > _COLLECTIVES:
        yield f"and {len(rows) - _COLLECTIVES} more"


def _name(compiled: Compiled, result: CompileResult) -> str:
    """Return the target's name, with the number of devices if the name does not have it."""
    name = result.target.name
    if compiled.devices in (1, result.target.devices):
        return name
    return f"{compiled.devices} × {name}"


def _traffic(graph: Graph) -> tuple[str, str]:
    """Return the bytes that kernels read and write in one run; `–` if values decide which run."""
    if graph.branches:
        return "–", "–"
    sign = "" if graph.trips_known else "≥ "
    read = sum(kernel.runs * kernel.bytes_in for kernel in graph.kernels)
    written = sum(kernel.runs * kernel.bytes_out for kernel in graph.kernels)
    return f"{sign}{units.size(read)}", f"{sign}{units.size(written)}"


def _time(compiled: Compiled, result: CompileResult) -> str:
    """Return the roofline estimate of one run; `–` if there is none."""
    estimated = total(compiled.graph, result.target)
    if estimated is None:
        return "–"
    sign = "≥" if estimated.is_lower_bound else "≈"
    return f"{sign} {units.time(estimated.seconds)}"


def _scope(compiled: Compiled) -> str:
    return " per device" if compiled.devices > 1 else ""
