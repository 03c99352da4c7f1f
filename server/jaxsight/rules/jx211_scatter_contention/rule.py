"""JX211: a scatter-add of many values into few slots serializes on a GPU's atomics."""

from __future__ import annotations

from collections.abc import Iterator

from jaxsight.rules.program.slices import scattered
from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.rule import Rule, Violation
from jaxsight.text import units

RULE = Rule(
    __name__, "Scatter-add of many values into few slots serializes on atomics.", severity="warning"
)
FEW = 64
MANY = 1 << 16
_EACH = 256
"""Slots at most, values at least, and rows for each slot at least, a choice: in more slots fewer
additions meet, and fewer values wait for less than a launch."""


@RULE.finds_in_kernels
def find(view: ProgramView) -> Iterator[Violation]:
    """Find scatter-adds of many values into at most 64 slots, on targets with atomics."""
    if view.target is None or view.target.platform not in ("cuda", "rocm"):
        return
    flow = view.flow
    for step in flow.steps.values():
        if step.primitive not in ("scatter-add", "scatter_add"):
            continue
        found = scattered(flow, step)
        values = flow.value(step.operands[2]).elements
        if found is None or found.slots > FEW or values < MANY:
            continue
        if found.rows < _EACH * found.slots:
            continue
        noun = "values" if values == found.rows else "rows"
        one_hot = f"jax.nn.one_hot(index, {found.slots})"
        instead = (
            f"use `{one_hot}.T @ values` for so few slots"
            if found.axes == (0,)
            else f"contract the rows with `{one_hot}`"
        )
        yield Violation(
            f"`scatter-add` of {found.rows:,} {noun} into {units.count(found.slots, 'slot')} "
            "serializes on atomics",
            step.path,
            help=f"{instead}, or sort first and pass `indices_are_sorted=True`",
            notes=(
                f"atomic additions to the same slot wait for one another on {view.target.short}",
            ),
        )
