"""JX410: an intermediate much larger than what goes in and comes out, which fusion does not do away with."""

from __future__ import annotations

from collections.abc import Iterator

from jaxsight.rules.noticed import Noticed
from jaxsight.rules.reading import Reading
from jaxsight.rules.rule import Rule
from jaxsight.units import MIB, size

RULE = Rule(
    "JX410",
    "large-intermediate",
    "An intermediate is much larger than inputs and outputs.",
    severity="hint",
    on=False,
)
TIMES = 8
LARGE = 16 * MIB


@RULE.finds_in_kernels
def find(reading: Reading) -> Iterator[Noticed]:
    """The temporaries of the target that are eight times as large as all inputs and outputs."""
    if reading.compiled is None:
        return
    graph, memory = reading.compiled.graph, reading.compiled.memory
    outside = max(memory.arguments, 0) + max(memory.outputs, 0)
    told: set[object] = set()
    for each in graph.temporaries:
        at = each.equation
        if (
            each.value.bytes < max(LARGE, TIMES * outside)
            or at not in reading.flow.steps
            or (place := reading.flow.steps[at].span or at) in told
        ):
            continue
        told.add(place)
        yield Noticed(
            f"{reading.quoted(at)} is stored with {size(each.value.bytes)} ({each.value.text}), {each.value.bytes / max(outside, 1):.0f} times "
            "the inputs and outputs together: compute it in chunks, or as a matrix product.",
            at,
        )
