"""JX408: what the forward pass keeps for the backward pass of a derivative, by line."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from jaxsight.rules.noticed import Noticed
from jaxsight.rules.reading import Reading
from jaxsight.rules.rule import Rule
from jaxsight.tracer.program import INPUT
from jaxsight.units import MIB, size

RULE = Rule(
    "JX408",
    "large-residuals",
    "Much is kept for the backward pass.",
    severity="information",
    once_a_line=True,
)
LARGE = 16 * MIB
_MOST = 3


@RULE.finds_in_program
def find(reading: Reading) -> Iterator[Noticed]:
    """The lines that keep sixteen mebibytes or more and a fifth of all, the greediest first."""
    flow = reading.flow
    if not any(step.backward for step in flow.steps.values()):
        return
    kept: dict[str, int] = {}
    for path, step in flow.steps.items():
        if step.backward or path in flow.parent:
            continue
        for number in step.results:
            if any(user.backward for user in flow.used_by(number)):
                kept[path] = kept.get(path, 0) + flow.values[number].bytes
    total = sum(kept.values())
    by_place: dict[object, list[str]] = defaultdict(list)
    for path in kept:
        by_place[flow.steps[path].span].append(path)
    groups = sorted(by_place.values(), key=lambda paths: -sum(kept[path] for path in paths))
    for paths in groups[:_MOST]:
        size_here = sum(kept[path] for path in paths)
        if size_here < LARGE or size_here * 5 < total or flow.steps[paths[0]].span is None:
            continue
        given = sum(flow.values[n].bytes for n in flow.inputs if flow.values[n].origin == INPUT)
        yield Noticed(
            f"{size(size_here)} of {reading.quoted(paths[0])} are kept for the backward pass, of {size(total)} in all (the inputs are "
            f"{size(given)}): `jax.checkpoint` with a policy computes them again instead.",
            paths[0],
        )
