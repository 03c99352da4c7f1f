"""Replaces equal runs of the equations of a program with steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jaxsight.sourcerizer.folding.calls import chains_of, with_calls
from jaxsight.sourcerizer.folding.iterations import with_iterations
from jaxsight.sourcerizer.folding.loops import with_loops
from jaxsight.sourcerizer.folding.steps import SHORTEST_CALL
from jaxsight.sourcerizer.folding.tokens import EquationNumbers


def folded(
    equations: Sequence[Any], outputs: Sequence[object], numbers: EquationNumbers
) -> list[Any]:
    """Return the equations with steps in place of runs of them.

    Args:
        equations: those on which results depend, in order.
        outputs: the program's results.
        numbers: the numbers of equations, shared between calls.
    """
    if len(equations) < 2 * SHORTEST_CALL:
        return list(equations)
    chains = chains_of(equations)
    steps = with_calls(list(equations), outputs, numbers, chains)
    steps = with_iterations(steps, outputs, numbers, chains)
    return with_loops(steps, outputs, numbers)
