"""The number of launches in words, and what is unknown of it until the program runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jaxsight.queries.programs.kernels import Kernels
from jaxsight.targets.roofline import estimate
from jaxsight.text import units
from jaxsight.text.units import count
from jaxsight.wire.kernel_graph import Graph


def launches(graph: Graph) -> str:
    """Return `3 launches`; `3–7 launches` if values decide; `≥ 3 launches` with unknown loops."""
    once = graph.launches_known and graph.launch_count == graph.launches_at_least == 1
    return f"{launch_figure(graph)} {'launch' if once else 'launches'}"


def launch_figure(graph: Graph) -> str:
    """Return `3`, `3–7` or `≥ 3`."""
    least, most = graph.launches_at_least, graph.launch_count
    if not graph.launches_known:
        return f"≥ {least}"
    return f"{most}" if least == most else f"{least}–{most}"


def undecided(kernels: Kernels) -> Iterator[str]:
    """Yield what is unknown until the program runs: trip counts of loops, arms of conditionals.

    On a GPU each iteration of a loop whose trip count the HLO does not state, and each conditional,
    copies its predicate to the host and waits (`xla/backends/gpu/runtime/while_thunk.cc`,
    `conditional_thunk.cc`).
    """
    graph = kernels.graph
    for index, loop in enumerate(graph.loops):
        at = _at(kernels, "loop", loop.equation)
        if loop.trips is None:
            yield f"{at}: unknown number of iterations{_each(kernels, index)}"
        if loop.waits:
            yield f"{at}: each iteration copies its condition to the host and waits"
    on_host = kernels.target.platform in ("cuda", "rocm")
    for first, branch in enumerate(graph.branches):
        if branch.arm:
            continue
        arms = range(first, first + branch.arms)
        inside = [i for i, k in enumerate(graph.kernels) if graph.is_within(k.branch, arms)]
        figure = _once(graph, inside, branch.loop)
        words = f"{_at(kernels, 'conditional', branch.equation)}: one of {branch.arms} arms runs"
        words += f" (up to {figure})" if figure else ""
        yield f"{words}; the host reads its predicate first" if on_host else words


def iterations(kernels: Kernels) -> Iterator[str]:
    """Yield `loop at line 12: 7 iterations`, once per line, for loops with known trip counts."""
    counted = dict.fromkeys(
        f"{_at(kernels, 'loop', loop.equation)}: {count(loop.trips, 'iteration')}"
        for loop in kernels.graph.loops
        if loop.trips is not None
    )
    yield from counted


def _each(kernels: Kernels, index: int) -> str:
    """Return `, 3 launches, ≈ 9 µs each` for a loop; empty if unknown.

    In a loop with a conditional it is `, up to 3 launches each`.
    """
    graph = kernels.graph
    inside = [i for i, kernel in enumerate(graph.kernels) if index in kernel.loops]
    figure = _once(graph, inside, index)
    if not figure:
        return ""
    if any(graph.kernels[i].branch != graph.loops[index].branch for i in inside):
        return f", up to {figure} each"
    times = [estimate(graph.kernels[i], kernels.target) for i in inside]
    estimates = [seconds for seconds in times if seconds is not None]
    if len(estimates) < len(times):
        return f", {figure} each"
    time = sum(estimates) / graph.iterations(index)
    return f", {figure}, {'≈ ' if time >= units.SHORTEST else ''}{units.time(time)} each"


def _once(graph: Graph, inside: Sequence[int], loop: int) -> str:
    """Return `3 launches` for some kernels in one iteration of the loop around them all.

    `loop` is -1 if there is no such loop. Empty if a loop within it has an unknown trip count.
    """
    chains = (graph.kernels[index].loops for index in inside)
    within = {
        inner for chain in chains for inner in chain[chain.index(loop) + 1 if loop >= 0 else 0 :]
    }
    if any(graph.loops[inner].trips is None for inner in within):
        return ""
    return count(graph.launches_of(inside) // graph.iterations(loop), "launch", "launches")


def _at(kernels: Kernels, noun: str, equation: str) -> str:
    """Return `loop at line 12`; `loop` if its place is unknown."""
    place = kernels.place(equation) if equation else None
    return noun if place is None else f"{noun} at line {place.start.line + 1}"
