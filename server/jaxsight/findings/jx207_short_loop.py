"""JX207: a loop of a few rounds whose body is one kernel: unrolled, the rounds fuse into one."""

from __future__ import annotations

from collections.abc import Iterator

from jaxsight.findings.noticed import Noticed
from jaxsight.findings.reading import Reading, size

CODE = "JX207"
SHORT = 8


def find(reading: Reading) -> Iterator[Noticed]:
    """Each innermost loop of at most eight rounds with one kernel of elementwise work."""
    if reading.compiled is None:
        return
    graph = reading.compiled.graph
    for index, loop in enumerate(graph.loops):
        step = reading.flow.steps.get(loop.equation)
        if loop.trips is None or not 1 < loop.trips <= SHORT or step is None:
            continue
        if step.primitive not in ("scan", "while") or any(
            each.parent == index for each in graph.loops
        ):
            continue
        if not reading.wrote(loop.equation, "fori_loop", "scan", "while_loop", "map"):
            continue
        indices = [i for i, kernel in enumerate(graph.kernels) if index in kernel.loops]
        inside = [graph.kernels[i] for i in indices]
        launches = graph.launches_of(indices)
        work = [kernel for kernel in inside if kernel.bytes_in + kernel.bytes_out > 64]
        if len(work) != 1 or work[0].kind != "fusion":
            continue
        most = "up to " if graph.fewest_of(indices) < launches else ""
        how = "`unroll=True`" if step.primitive == "scan" else "`unroll=`"
        yield Noticed(
            CODE,
            f"{reading.quoted(loop.equation)} goes round {loop.trips} times with one kernel in its body, which reads and writes "
            f"{size(work[0].bytes_in + work[0].bytes_out)} each time: with {how} the rounds fuse, and its {most}{launches} "
            "launches become few.",
            loop.equation,
        )
