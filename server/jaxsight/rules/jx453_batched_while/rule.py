"""JX453: a `while_loop` whose condition is batched by `vmap` runs until all elements are done.

JAX keeps the loop, with a condition for each element (`_while_loop_batching_rule` in
jax/_src/lax/control_flow/loops.py): it goes on while any holds, and selects the new carry where it
does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from jaxsight.rules.program.loops import loop_of
from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.program.work import first_work
from jaxsight.rules.rule import Rule, Violation
from jaxsight.text.units import size

RULE = Rule(
    __name__,
    "A `while_loop` under `vmap` runs as long as its last element.",
    severity="information",
)

_LOOP = re.compile(r"(?:^|[\w.]*\.)(?P<name>while_loop|fori_loop)\(")


@RULE.finds_in_program
def find(view: ProgramView) -> Iterator[Violation]:
    """Yield the user's loops that have a condition for each element of a batch."""
    flow = view.flow
    for step in flow.forward_steps("while"):
        loop = loop_of(flow, step)
        written = _LOOP.match(view.quote(step.path))
        if loop is None or loop.test is None or written is None:
            continue
        batch = flow.value(loop.test.outputs[0]).elements
        if batch < 2:
            continue
        work = first_work(flow, loop.body.outputs, lambda _: True)
        carried = sum(flow.value(carry.output).bytes for carry in loop.carries)
        notes = ["elements that are done are computed on, and their results dropped"]
        if work is not None:
            notes.append(f"an iteration computes `{work.primitive}` for the whole batch")
        notes.append(f"each iteration selects {size(carried)} of carries by element")
        yield Violation(
            f"`{written['name']}` under `vmap` runs until the last of {batch:,} elements is done",
            step.path,
            help="batch elements that take equally long, or run a fixed number of iterations",
            notes=tuple(notes),
            severity="warning" if work is not None else "",
        )
