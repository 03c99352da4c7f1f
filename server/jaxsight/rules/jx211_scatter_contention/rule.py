"""JX211: many additions are scattered to few places, where a GPU's atomic operations wait for one another."""

from __future__ import annotations

from collections.abc import Iterator

from jaxsight.rules.noticed import Noticed
from jaxsight.rules.reading import Reading, elements
from jaxsight.rules.rule import Rule

RULE = Rule(
    "JX211",
    "scatter-contention",
    "Many additions are scattered to few places.",
    severity="warning",
)
FEW = 64
MANY = 1 << 16


@RULE.finds_in_kernels
def find(reading: Reading) -> Iterator[Noticed]:
    """Each scatter-add of many numbers to at most 64 places, on targets with atomics."""
    if reading.target is None or reading.target.platform not in ("cuda", "rocm"):
        return
    flow = reading.flow
    for step in flow.steps.values():
        if step.primitive not in ("scatter-add", "scatter_add") or len(step.operands) < 3:
            continue
        places, updates = flow.value(step.operands[0]), flow.value(step.operands[2])
        if not places.shape or places.shape[0] > FEW or elements(updates) < MANY:
            continue
        if elements(updates) < 256 * elements(places):
            continue
        yield Noticed(
            f"{reading.quoted(step.path)} adds {elements(updates):,} numbers to {elements(places):,} places: on "
            f"{reading.target.short} these are atomic additions that wait for one another. With so few places "
            "`jax.nn.one_hot(index, n).T @ values`, or sorting first (`indices_are_sorted=True`), is faster.",
            step.path,
        )
