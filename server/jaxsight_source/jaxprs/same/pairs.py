"""The equations of two programs that are the same, side by side."""

from __future__ import annotations

from collections.abc import Iterator

from jaxsight_source.compat.inner import inner_jaxprs
from jaxsight_source.compat.jaxpr_types import Equation
from jaxsight_source.compat.staging import Program
from jaxsight_source.jaxprs.same.liveness import live


def pairs(left: Program, right: Program) -> Iterator[tuple[str, Equation, Equation]]:
    """Yield the pairs of equations of two programs that are the same, with the path in the first.

    Jaxprs that several equations share are visited once.
    """
    visited: set[tuple[int, int]] = set()
    waiting = [("", left.jaxpr, right.jaxpr)]
    while waiting:
        prefix, lhs, rhs = waiting.pop()
        if (id(lhs), id(rhs)) in visited:
            continue
        visited.add((id(lhs), id(rhs)))
        index = {id(equation): number for number, equation in enumerate(lhs.eqns)}
        equations = (live(jaxpr.outvars, jaxpr.eqns) for jaxpr in (lhs, rhs))
        for equation, counterpart in zip(*equations, strict=True):
            path = f"{prefix}{index[id(equation)]}"
            yield path, equation, counterpart
            parts = zip(inner_jaxprs(equation), inner_jaxprs(counterpart), strict=False)
            waiting += [
                (f"{path}/{ours.name}/", ours.jaxpr, theirs.jaxpr) for ours, theirs in parts
            ]
