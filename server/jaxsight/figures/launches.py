"""The number of launches in words, and what is unknown of it until the program runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from jaxsight.figures.figures import AnyFigures
from jaxsight.targets.roofline import together
from jaxsight.text import units
from jaxsight.text.units import count, interval, some
from jaxsight.wire.kernel_graph import CALLBACK, Graph

_NAMED = 3
"""Libraries that a line names, a choice: more than that call cuBLAS, cuDNN and cuFFT."""


def undecided(kernels: AnyFigures) -> Iterator[str]:
    """Yield what is unknown until the program runs.

    That are trip counts of loops, arms of conditionals, and the launches of libraries.

    On a GPU each iteration of a loop whose trip count the HLO does not state, and each conditional,
    copies its predicate to the host and waits (`xla/backends/gpu/runtime/while_thunk.cc`,
    `conditional_thunk.cc`).
    """
    graph = kernels.graph
    for index, (loop, cost) in enumerate(zip(graph.loops, costs(kernels), strict=True)):
        at = _at(kernels, "loop", loop.equation)
        if loop.trips is None:
            inside = [i for i, kernel in enumerate(graph.kernels) if index in kernel.loops]
            in_arms = any(graph.kernels[i].branch != loop.branch for i in inside)
            figure = _once(graph, inside, index, "up to" if in_arms else "")
            each = f", {figure} each" if figure else ""
            yield f"{at}: unknown number of iterations{each}"
            if words := cost_words(cost):
                yield f"{at}: an iteration takes {words}"
        if loop.waits:
            yield f"{at}: each iteration copies its condition to the host and waits"
    on_host = kernels.target.platform in ("cuda", "rocm")
    for first, branch in enumerate(graph.branches):
        if branch.arm:
            continue
        arms = range(first, first + branch.arms)
        inside = [i for i, k in enumerate(graph.kernels) if graph.is_within(k.branch, arms)]
        words = f"{_at(kernels, 'conditional', branch.equation)}: one of {branch.arms} arms runs"
        words += f" ({figure})" if (figure := _once(graph, inside, branch.loop, "up to")) else ""
        yield f"{words}; the host reads its predicate first" if on_host else words
    named = list(dict.fromkeys(kernel.title for kernel in graph.libraries))
    if named:
        yield f"{some(named, _NAMED)}: one call launches an unknown number of kernels"


def iterations(kernels: AnyFigures) -> Iterator[str]:
    """Yield `loop at line 12: 7 iterations`, once per line, for loops with known trip counts.

    With what one costs it is `loop at line 12: 7 iterations, each ≈ 2.1 µs on the device, …`.
    """
    lines: dict[str, None] = {}
    for loop, cost in zip(kernels.graph.loops, costs(kernels), strict=True):
        if loop.trips is not None:
            each = f", each {words}" if (words := cost_words(cost)) else ""
            at = _at(kernels, "loop", loop.equation)
            lines[f"{at}: {count(loop.trips, 'iteration')}{each}"] = None
    yield from lines


def _once(graph: Graph, inside: Sequence[int], loop: int, up_to: str) -> str:
    """Return `3 launches` for some kernels in one iteration of the loop around them all.

    `loop` is -1 if there is no such loop. Empty if a loop within it has an unknown trip count.
    Where a library decides it is `3–5 launches` or `≥ 3 launches`, with `up_to` `up to 5 launches`.
    """
    chains = (graph.kernels[index].loops for index in inside)
    within = {
        inner for chain in chains for inner in chain[chain.index(loop) + 1 if loop >= 0 else 0 :]
    }
    if any(graph.loops[inner].trips is None for inner in within):
        return ""
    times = graph.iterations(loop)
    least, most = graph.launches_of(inside) // times, graph.most_of(inside)
    if most is None:
        return f"≥ {least} launches" if not up_to else ""
    figure = f"{up_to} {most // times}" if up_to else interval(least, most // times)
    return f"{figure} {'launch' if most // times == 1 else 'launches'}"


def _at(kernels: AnyFigures, noun: str, equation: str) -> str:
    """Return `loop at line 12`; `loop` if its place is unknown."""
    line = kernels.line(equation)
    return noun if line is None else f"{noun} at line {line}"


# What an iteration of a loop costs on the device, and what it costs the host that launches it.


LAUNCH = 3.1e-6
"""Seconds of the host per launch, on a machine with an H100: `fori_loop`s of one small kernel and a
`scan` of a small product take 6.3 and 9.4 µs an iteration, with 2 and 3 launches."""
WAIT = 15e-6
"""Seconds of the host to copy a loop's condition and to wait for it, on the same machine: a `while`
of unknown length with two kernels takes 22 µs an iteration."""


@dataclass(frozen=True, slots=True)
class IterationCost:
    """Seconds of one iteration of a loop; `None` if unknown."""

    device: float | None
    host: float | None


def costs(kernels: AnyFigures) -> Iterator[IterationCost]:
    """Yield what an iteration of each loop costs, in the order of the graph's loops.

    That is unknown if values decide what runs in it, in conditionals and loops of unknown length.
    The time of a callback on the host and the launches of a library are unknown, too.
    """
    graph, libraries = kernels.graph, kernels.graph.libraries
    for index, loop in enumerate(graph.loops):
        inside = [i for i, kernel in enumerate(graph.kernels) if index in kernel.loops]
        of_it = [graph.kernels[i] for i in inside]
        inner = {each for kernel in of_it for each in kernel.loops[kernel.loops.index(index) + 1 :]}
        is_open = any(kernel.branch != loop.branch for kernel in of_it)
        if not inside or is_open or any(graph.loops[each].trips is None for each in inner):
            yield IterationCost(None, None)
            continue
        times, seconds = graph.iterations(index), together(of_it, kernels.target)
        device = seconds / times if seconds is not None else None
        is_unknown = any(each.kind == CALLBACK or each in libraries for each in of_it)
        if kernels.target.platform != "cuda" or is_unknown:
            yield IterationCost(device, None)
            continue
        waits = sum(graph.iterations(each) for each in {index, *inner} if graph.loops[each].waits)
        host = (graph.launches_of(inside) * LAUNCH + waits * WAIT) / times
        yield IterationCost(device, host)


def cost_words(cost: IterationCost) -> str:
    """Return `≈ 2.1 µs on the device, ≈ 6.2 µs on the host`; empty if nothing is known."""
    known = ((cost.device, "device"), (cost.host, "host"))
    return ", ".join(
        f"{units.about(seconds)} on the {where}" for seconds, where in known if seconds is not None
    )
