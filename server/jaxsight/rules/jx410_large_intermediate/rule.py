"""JX410: a stored intermediate that is much larger than the inputs and outputs."""

from __future__ import annotations

from collections.abc import Iterator

from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.rule import Rule, Violation
from jaxsight.text.units import MIB, size

RULE = Rule(
    __name__, "Intermediate is much larger than inputs and outputs.", severity="hint", on=False
)
TIMES = 8
LARGE = 16 * MIB
"""Times the inputs and outputs, and bytes, at least: the outer product of 2048 numbers has 16 MiB.
A choice: lower reports most broadcasts, higher only what JX409 reports too."""


@RULE.finds_in_kernels
def find(view: ProgramView) -> Iterator[Violation]:
    """Yield temporaries of 16 MiB or more, and 8 times the inputs and outputs or more."""
    graph = view.on_target.graph
    outside = sum(value.bytes for value in (*graph.parameters, *graph.outputs))
    for temporary in graph.temporaries:
        at = temporary.equation
        if temporary.value.bytes < max(LARGE, TIMES * outside) or at not in view.flow.steps:
            continue
        times = temporary.value.bytes / max(outside, 1)
        yield Violation(
            f"intermediate of {size(temporary.value.bytes)} is {times:,.0f} times as large as "
            "inputs and outputs",
            at,
            help="compute it in chunks, or as a matrix product",
            notes=(f"its type is {temporary.value.text}, and fusion does not remove it",),
        )
