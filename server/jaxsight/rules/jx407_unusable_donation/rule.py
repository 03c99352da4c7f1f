"""JX407: a donated buffer fits no result, so nothing is saved."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from jaxsight.rules.noticed import Noticed
from jaxsight.rules.reading import Reading
from jaxsight.rules.rule import Rule
from jaxsight.units import size

RULE = Rule(
    "JX407",
    "unusable-donation",
    "A donated buffer fits no result.",
    severity="warning",
)


@RULE.finds_in_program
def find(reading: Reading) -> Iterator[Noticed]:
    """Each donated input for which no result of the same bytes is left (`jit` pairs them by shape and dtype)."""
    program, flow = reading.program, reading.flow
    left = Counter((v.dtype, v.shape) for v in map(flow.value, program.body.outputs))
    for index in program.donated:
        if index >= len(program.body.inputs):
            continue
        value = flow.values[program.body.inputs[index]]
        kind = value.dtype, value.shape
        if left[kind] > 0:
            left[kind] -= 1
            continue
        name = f"`{value.said}`" if value.said else f"argument {index}"
        yield Noticed(
            f"{name} ({value.text}, {size(value.bytes)}) is donated, but no result has its shape and dtype, so its buffer cannot be "
            "used again: do not donate it, or give back what has its type.",
        )
