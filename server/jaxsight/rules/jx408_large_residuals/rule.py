"""JX408: how much memory each line keeps for the backward pass of a derivative."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.rule import Rule, Violation
from jaxsight.text.units import MIB, size
from jaxsight.wire.program import INPUT

RULE = Rule(
    __name__,
    "Large residuals saved for the backward pass.",
    severity="information",
    once_a_line=True,
)
LARGE = 16 * MIB
"""Bytes that one line saves at least, a thousandth of a device's 16 GiB. A choice: lower reports
each layer of a small model, higher misses those of a deep one."""
_MOST = 3
"""Lines of a function that are reported, the largest ones."""
_PARTS = 5
"""A line saves at least one part in so many of all residuals: a smaller one is little."""


@RULE.finds_in_program
def find(view: ProgramView) -> Iterator[Violation]:
    """Yield up to 3 lines that keep 16 MiB or more, and a fifth of all residuals or more."""
    flow = view.flow
    if not any(step.backward for step in flow.steps.values()):
        return
    residuals: Counter[str] = Counter()
    for path, step in flow.steps.items():
        for number in step.results if not step.backward and path not in flow.parent else ():
            if any(user.backward for user in flow.used_by(number)):
                residuals[path] += flow.values[number].bytes
    total = residuals.total()
    by_place: dict[object, list[str]] = defaultdict(list)
    for path in residuals:
        by_place[flow.steps[path].span].append(path)
    groups = sorted(by_place.values(), key=lambda paths: -sum(residuals[path] for path in paths))
    for paths in groups[:_MOST]:
        here = sum(residuals[path] for path in paths)
        if here < LARGE or here * _PARTS < total or flow.steps[paths[0]].span is None:
            continue
        inputs = sum(flow.values[n].bytes for n in flow.inputs if flow.values[n].origin == INPUT)
        yield Violation(
            f"{size(here)} of residuals saved for the backward pass ({size(total)} in total)",
            paths[0],
            help="rematerialize with `jax.checkpoint` and a policy",
            notes=(f"the inputs take {size(inputs)}",),
        )
