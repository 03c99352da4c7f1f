"""Replaces equal runs of the equations of a program with steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jaxsight_source.folding.calls import with_calls
from jaxsight_source.folding.loops import with_loops
from jaxsight_source.folding.steps import SHORTEST_CALL
from jaxsight_source.folding.tokens import EquationNumbers


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
    return with_loops(with_calls(list(equations), outputs, numbers), outputs, numbers)
