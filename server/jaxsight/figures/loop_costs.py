"""What an iteration of a loop costs on the device, and what it costs the host that launches it.

The host launches kernels while the device runs the ones before, so that a loop takes as long as the
slower of both.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from jaxsight.figures.figures import AnyFigures
from jaxsight.targets.roofline import together
from jaxsight.text import units
from jaxsight.wire.kernel_graph import CALLBACK

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


def words(cost: IterationCost) -> str:
    """Return `≈ 2.1 µs on the device, ≈ 6.2 µs on the host`; empty if nothing is known."""
    known = ((cost.device, "device"), (cost.host, "host"))
    return ", ".join(
        f"{units.about(seconds)} on the {where}" for seconds, where in known if seconds is not None
    )
