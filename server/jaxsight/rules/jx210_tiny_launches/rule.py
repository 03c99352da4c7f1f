"""JX210: a loop launches so many kernels that do so little that launching them is what takes the time."""

from __future__ import annotations

from collections.abc import Iterator

from jaxsight.rules.noticed import Noticed
from jaxsight.rules.reading import Reading
from jaxsight.rules.rule import Rule
from jaxsight.units import KIB, size

RULE = Rule(
    "JX210",
    "tiny-launches",
    "A loop launches many tiny kernels.",
    severity="warning",
)
MANY = 1000
TINY = 64 * KIB
_COUNTER = 64
"""Bytes that the kernels of a loop's own counter touch at most."""
_LAUNCH = 3e-6
"""Seconds that a launch takes on a GPU, roughly (NVIDIA's launch latency is 2 to 5 microseconds)."""


@RULE.finds_in_kernels
def find(reading: Reading) -> Iterator[Noticed]:
    """Each outermost loop with a thousand launches or more of kernels that touch little memory."""
    if (
        reading.compiled is None
        or reading.target is None
        or reading.target.platform not in ("cuda", "rocm")
    ):
        return
    graph = reading.compiled.graph
    for index, loop in enumerate(graph.loops):
        if loop.parent >= 0 or loop.equation not in reading.flow.steps:
            continue
        moved = {
            number: kernel.bytes_in + kernel.bytes_out
            for number, kernel in enumerate(graph.kernels)
            if index in kernel.loops
        }
        inside = [number for number, size_ in moved.items() if size_ > _COUNTER] or list(moved)
        tiny = [n for n in inside if moved[n] <= TINY and graph.kernels[n].kind != "library"]
        launches = graph.launches_of(inside)
        small = graph.launches_of(tiny)
        if small < MANY or small * 2 < launches:
            continue
        of_them = "all" if small == launches else f"{small:,}"
        known = loop.trips is not None
        rounds = f" in {loop.trips:,} rounds" if known else " in each round"
        most = "up to " if known and graph.fewest_of(inside) < launches else ""
        yield Noticed(
            f"{reading.quoted(loop.equation)} launches {most}{launches:,} kernels{rounds}, {of_them} of which touch {size(TINY)} at most: "
            f"launching alone takes {most}about {launches * _LAUNCH * 1000:.0f} ms. Do more in each round "
            "(`unroll=`, `jax.vmap` over independent problems), or let an associative scan take the loop's place.",
            loop.equation,
        )
