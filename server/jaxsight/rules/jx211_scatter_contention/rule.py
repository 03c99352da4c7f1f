"""JX211: a scatter-add of many values into few slots serializes on a GPU's atomics."""

from __future__ import annotations

from collections.abc import Iterator

from jaxsight.rules.program.steps import elements
from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.rule import Rule
from jaxsight.rules.violation import Violation

RULE = Rule(
    "JX211",
    "scatter-contention",
    "Scatter-add of many values into few slots serializes on atomics.",
    severity="warning",
)
FEW = 64
MANY = 1 << 16
_EACH = 256
"""Rows at most, and values at least: 1024 for each row, and `_EACH` for each slot of it. A choice:
in more rows fewer additions meet, and fewer values wait for less than a launch."""


@RULE.finds_in_kernels
def find(view: ProgramView) -> Iterator[Violation]:
    """Find scatter-adds of many values into at most 64 rows, on targets with atomics."""
    if view.target is None or view.target.platform not in ("cuda", "rocm"):
        return
    flow, target = view.flow, view.target.short
    for step in flow.steps.values():
        if step.primitive not in ("scatter-add", "scatter_add") or len(step.operands) < 3:
            continue
        places, updates = flow.value(step.operands[0]), flow.value(step.operands[2])
        if not places.shape or places.shape[0] > FEW or elements(updates) < MANY:
            continue
        if elements(updates) < _EACH * elements(places):
            continue
        values, slots = elements(updates), elements(places)
        yield Violation(
            f"`scatter-add` of {values:,} values into {slots:,} slots serializes on atomics",
            step.path,
            help="use `jax.nn.one_hot(index, n).T @ values` for so few slots, or sort first and "
            "pass `indices_are_sorted=True`",
            notes=(f"atomic additions to the same slot wait for one another on {target}",),
        )
