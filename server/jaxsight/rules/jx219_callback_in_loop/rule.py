"""JX219: each iteration of a loop calls back to Python."""

from __future__ import annotations

import math
from collections.abc import Iterator

from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.rule import Rule, Violation
from jaxsight.wire.primitives import LOOPS
from jaxsight.wire.program import Step

RULE = Rule(__name__, "Host callback in every iteration of a loop.", severity="warning")

FEWEST = 8
"""Iterations, where their number is known, a choice: fewer delay a program unnoticed."""

_CALLBACKS = frozenset({"pure_callback", "io_callback", "debug_callback", "debug_print"})
_FUNCTIONS = frozenset({"pure_callback", "io_callback", "callback", "print", "log"})
_DEBUGGING = frozenset({"callback", "print", "log"})


@RULE.finds_in_program
def find(view: ProgramView) -> Iterator[Violation]:
    """Yield callbacks in the bodies of loops, unless a branch around them may skip them."""
    flow = view.flow
    for step in flow.steps.values():
        if step.primitive not in _CALLBACKS or step.path in flow.ruled:
            continue
        name = view.called(step)
        iterations = _iterations(view, step)
        if name not in _FUNCTIONS or iterations is None or 0 < iterations < FEWEST:
            continue
        debugs = name in _DEBUGGING
        function = f"jax.debug.{name}" if debugs else name
        times = f"each of {iterations:,} iterations" if iterations else "every iteration"
        yield Violation(
            f"`{function}` calls back to Python in {times} of a loop",
            step.path,
            help="print every 100 iterations: `jax.lax.cond(i % 100 == 0, …)`, "
            "or return the values and print them after the loop"
            if debugs
            else "call back once for all iterations, before or after the loop, "
            "or compute it with `jax.numpy`",
            notes=(
                "each call copies its operands to the host, where Python runs"
                if debugs
                else "each call copies its operands to the host and waits for Python",
            ),
            severity="information" if debugs else "",
        )


def _iterations(view: ProgramView, step: Step) -> int | None:
    """Return how often a step runs in the loops around it, 0 where that is not known.

    `None` where no loop is around it, or a branch is.
    """
    around = list(view.flow.enclosing(step))
    if any(parent.primitive == "cond" for parent in around):
        return None
    loops = [parent for parent in around if parent.primitive in LOOPS]
    # A `while` has no length.
    lengths = (loop.number("length", 0) for loop in loops)
    return math.prod(lengths) if loops else None
