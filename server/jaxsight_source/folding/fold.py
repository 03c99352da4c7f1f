"""Replaces equal runs of the equations of a program with steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jaxsight_source.compat.parameters.sources import is_backward
from jaxsight_source.folding.calls import Chains, chains_of, with_calls
from jaxsight_source.folding.families import (
    Placed,
    complete,
    divided_by_outputs,
    families_of,
    nest,
    replaced,
)
from jaxsight_source.folding.loops import tandem_runs, with_loops
from jaxsight_source.folding.steps import SHORTEST_CALL, Item, members_of
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
    chains = chains_of(equations)
    steps = with_calls(list(equations), outputs, numbers, chains)
    steps = with_iterations(steps, outputs, numbers, chains)
    return with_loops(steps, outputs, numbers)


_SHORTEST_ITERATION = 2 * SHORTEST_CALL
"""The minimum number of equations of an iteration that becomes a helper function."""


def with_iterations(
    equations: list[Any],
    outputs: Sequence[object],
    numbers: EquationNumbers,
    chains: Chains,
) -> list[Any]:
    """Return the equations with helper calls in place of iterations that another loop reverses.

    The backward pass over layers is such a loop. Other iterations stay, and are written as loops.
    """
    tokens = np.array([numbers.of(equation) for equation in equations], np.int64)
    weights = np.array([len(members_of(equation)) for equation in equations])
    families: list[Placed] = []
    regions: list[range] = []
    for _, start, period, length in tandem_runs(tokens, weights):
        region = range(start, start + period + length)
        begin = _first_of_iteration(equations, chains, start, period)
        count = (region.stop - begin) // period
        overlaps = any(region.start < own.stop and own.start < region.stop for own in regions)
        if overlaps or count < 2 or weights[begin : begin + period].sum() < _SHORTEST_ITERATION:
            continue
        regions.append(region)
        name = "step_backward" if is_backward(equations[begin]) else "step"
        places = [(begin + k * period, begin + (k + 1) * period) for k in range(count)]
        families.extend(families_of(equations, places, name))
    families.sort(key=lambda pair: pair[1][0])
    nest([family for family, _ in families])
    families = [pair for pair in families if pair[0].inside is not None or pair[0].returned]
    for family, places in families:
        after = places[-1][1]
        size = len(family.runs[0])
        free = min([position[0] for _, own in families for position in own if position[0] >= after],
                   default=len(equations))  # fmt: skip
        for last in range(min(after + size, free), after + size // 2, -1):
            count = len(family.runs)
            complete(equations, [(family, places)], [(after, last, family.name)], numbers)
            if len(family.runs) > count:
                break
    if not families or divided_by_outputs(equations, families, outputs):
        return equations
    return replaced(equations, families, outputs)


def _first_of_iteration(equations: Sequence[Item], chains: Chains, start: int, period: int) -> int:
    """Return the start of an iteration: where the line numbers in the loop's function restart.

    In a backward pass, the lines run upwards.
    """
    own = [chains[id(equation)] for equation in equations[start : start + period]]
    depth = 0
    for callers_at in zip(*own, strict=False):
        if any(caller[:2] != callers_at[0][:2] for caller in callers_at):
            break
        depth += 1
    if not depth:
        return start
    numbers = [chain[depth - 1][2][0] for chain in own]
    sign = 1 if is_backward(equations[start]) else -1
    jumps = [sign * (after - numbers[at - 1]) for at, after in enumerate(numbers)]
    return start + jumps.index(max(jumps))
