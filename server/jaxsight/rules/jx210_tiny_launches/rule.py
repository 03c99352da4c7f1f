"""JX210: a loop is launch-bound: launching its many small kernels takes the time."""

from __future__ import annotations

from collections.abc import Iterator

from jaxsight.rules.program.loops import COUNTER
from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.rule import Rule, Violation
from jaxsight.text.units import KIB, size, time

RULE = Rule(__name__, "Loop is launch-bound: it launches many small kernels.", severity="warning")
MANY = 1000
"""Launches from which a loop is reported: 3 ms, at `_LAUNCH` each. A choice: lower reports loops of
a few dozen iterations, higher misses delays that users see."""
TINY = 64 * KIB
"""Bytes up to which a kernel takes less than its launch: 64 KiB take 20 ns at 3 TB/s."""
_LAUNCH = 3e-6
"""Seconds that the host takes for a launch on a GPU, roughly (`docs/estimates.md`)."""


@RULE.finds_in_kernels
def find(view: ProgramView) -> Iterator[Violation]:
    """Find outermost loops with a thousand or more launches of kernels that touch little memory."""
    if view.target is None or view.target.platform not in ("cuda", "rocm"):
        return
    graph = view.on_target.graph
    for index, loop in enumerate(graph.loops):
        if loop.parent >= 0 or loop.equation not in view.flow.steps:
            continue
        moved = {
            number: kernel.bytes_in + kernel.bytes_out
            for number, kernel in enumerate(graph.kernels)
            if index in kernel.loops
        }
        inside = [number for number, size_ in moved.items() if size_ > COUNTER] or list(moved)
        tiny = [n for n in inside if moved[n] <= TINY and graph.kernels[n].kind != "library"]
        launches = graph.launches_of(inside)
        small = graph.launches_of(tiny)
        if small < MANY or small * 2 < launches:
            continue
        share = "all" if small == launches else f"{small:,}"
        seconds = launches * _LAUNCH
        has_trips = loop.trips is not None
        most = "up to " if has_trips and graph.fewest_of(inside) < launches else ""
        per = "" if has_trips else " per iteration"
        yield Violation(
            f"loop is launch-bound: {most}{launches:,} launches{per} "
            f"take {most}about {seconds * 1000:,.0f} ms",
            loop.equation,
            help="do more in each iteration: use `unroll=`, batch independent problems with "
            "`jax.vmap`, or replace the loop by `jax.lax.associative_scan`",
            notes=(
                f"{share} launches are of kernels that read and write at most {size(TINY)}",
                f"a launch takes about {time(_LAUNCH)}",
                *((f"the loop runs {loop.trips:,} iterations",) if has_trips else ()),
            ),
        )
