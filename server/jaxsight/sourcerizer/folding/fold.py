"""Replaces equal runs of the equations of a program with steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jaxsight.sourcerizer.folding.calls import callers_of, with_calls
from jaxsight.sourcerizer.folding.iterations import with_iterations
from jaxsight.sourcerizer.folding.loops import with_loops
from jaxsight.sourcerizer.folding.steps import SHORTEST_CALL

"""Returns whether a variable has the same value everywhere in the module, as constants do."""


def folded(
    equations: Sequence[Any], outputs: Sequence[object], cache: dict[object, int]
) -> list[Any]:
    """Return the equations with steps in place of runs of them.

    Args:
        equations: those on which results depend, in order.
        outputs: the program's results.
        cache: a cache of numbers for equal equations, shared between calls.
    """
    if len(equations) < 2 * SHORTEST_CALL:
        return list(equations)
    chains = {id(equation): callers_of(equation) for equation in equations}
    steps = with_calls(list(equations), outputs, cache, chains)
    steps = with_iterations(steps, outputs, cache, chains)
    return with_loops(steps, outputs, cache)
