"""JX410: a stored intermediate that is much larger than the inputs and outputs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from jaxsight.rules.noticed import Noticed
from jaxsight.rules.program.view import Reading
from jaxsight.rules.rule import Rule
from jaxsight.text.units import MIB, size

RULE = Rule(
    "JX410",
    "large-intermediate",
    "Intermediate is much larger than inputs and outputs.",
    severity="hint",
    on=False,
)
TIMES = 8
LARGE = 16 * MIB


@dataclass(frozen=True, slots=True)
class LargeIntermediate:
    """A stored intermediate, sizes in bytes."""

    bytes: int
    type: str
    """Its dtype and shape, `f32[3]`."""
    outside: int
    """What the inputs and outputs take together."""


@RULE.finds_in_kernels
def find(reading: Reading) -> Iterator[Noticed]:
    """Yield temporaries of 16 MiB or more, and 8 times the inputs and outputs or more."""
    if reading.compiled is None:
        return
    graph, memory = reading.compiled.graph, reading.compiled.memory
    outside = max(memory.arguments, 0) + max(memory.outputs, 0)
    reported: set[object] = set()
    for each in graph.temporaries:
        at = each.equation
        if (
            each.value.bytes < max(LARGE, TIMES * outside)
            or at not in reading.flow.steps
            or (place := reading.flow.steps[at].span or at) in reported
        ):
            continue
        reported.add(place)
        times = each.value.bytes / max(outside, 1)
        yield Noticed(
            f"intermediate of {size(each.value.bytes)} is {times:,.0f} times as large as "
            "inputs and outputs",
            at,
            help="compute it in chunks, or as a matrix product",
            notes=(f"its type is {each.value.text}, and fusion does not remove it",),
            data=LargeIntermediate(each.value.bytes, each.value.text, outside),
        )
