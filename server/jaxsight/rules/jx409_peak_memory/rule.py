"""JX409: what takes the most memory at once, and the lines that make it."""

from __future__ import annotations

from collections.abc import Iterator

from jaxsight.rules.noticed import Noticed
from jaxsight.rules.reading import Reading
from jaxsight.rules.rule import Rule
from jaxsight.units import MIB, size

RULE = Rule(
    "JX409",
    "peak-memory",
    "What takes the most memory at once.",
    severity="information",
)
LARGE = 64 * MIB
_NAMED = 3


@RULE.finds_in_kernels
def find(reading: Reading) -> Iterator[Noticed]:
    """One finding for a function whose temporaries take 64 MiB or more and as much as its inputs and outputs, at the largest."""
    if reading.compiled is None:
        return
    memory, graph = reading.compiled.memory, reading.compiled.graph
    fixed = memory.arguments + memory.outputs
    if memory.temporaries < max(LARGE, fixed):
        return
    largest = sorted(graph.temporaries, key=lambda each: -each.value.bytes)
    places: dict[str, int] = {}
    spans: set[object] = set()
    for each in largest:
        kernel = graph.kernels[each.producer] if each.producer < len(graph.kernels) else None
        at = each.equation or (kernel.ends_at if kernel is not None else "")
        at = at or (kernel.equations[-1] if kernel is not None and kernel.equations else "")
        if at in reading.flow.steps and reading.quote(at):
            span = reading.flow.steps[at].span or reading.quote(at)
            if span not in spans:
                spans.add(span)
                places[at] = each.value.bytes
    named = list(places.items())[:_NAMED]
    if not named:
        return
    what = ", ".join(f"{reading.quoted(at)} {size(count)}" for at, count in named)
    yield Noticed(
        f"{size(memory.temporaries + fixed)} are in use at once: {size(memory.temporaries)} of temporaries beside {size(fixed)} of "
        f"inputs and outputs. The largest: {what}. Chunk the work (`jax.lax.map`, `jax.lax.scan`), or compute again what is kept "
        "(`jax.checkpoint`).",
        named[0][0],
        related=tuple((at, f"{size(count)} here") for at, count in named[1:]),
    )
