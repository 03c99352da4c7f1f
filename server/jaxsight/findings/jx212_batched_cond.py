"""JX212: a `cond` whose predicate is batched by `vmap` runs all its branches and selects."""

from __future__ import annotations

import re
from collections.abc import Iterator

from jaxsight.findings.noticed import Noticed
from jaxsight.findings.reading import Reading
from jaxsight.tracer.protocol import Span

CODE = "JX212"
_COND = re.compile(r"(?:^|[\w.]*\.)(?P<name>cond|switch)\(")


def find(reading: Reading) -> Iterator[Noticed]:
    """Each `cond` or `switch` of the user's that became a `select_n`."""
    flow = reading.flow
    told: set[Span] = set()
    for step in flow.steps.values():
        if step.primitive != "select_n" or step.span is None or step.span in told:
            continue
        found = _COND.match(reading.quote(step.path))
        if found is None:
            continue
        told.add(step.span)
        count = len(step.operands) - 1
        what = "both branches" if count == 2 else f"all {count} branches"
        yield Noticed(
            CODE,
            f"{reading.quoted(step.path)} has a predicate of type {flow.value(step.operands[0]).text} under `vmap`: {what} "
            f"are computed for every element, and one is selected. `jax.lax.map` in place of `jax.vmap` runs one branch; where "
            "the predicate is the same for all, take it out of the batch.",
            step.path,
        )
