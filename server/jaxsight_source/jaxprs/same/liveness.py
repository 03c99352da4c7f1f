"""Equations on which the results of a program depend, and the variables that these read."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

from jaxsight_source.compat import control_flow
from jaxsight_source.compat.inner import inner_jaxprs
from jaxsight_source.compat.jaxpr_types import Atom, Equation
from jaxsight_source.compat.staging import Program, is_literal

Readers: TypeAlias = Callable[[Equation], Sequence[Atom]]
"""Returns the operands on which an equation depends."""


def all_operands(equation: Equation) -> Sequence[Atom]:
    return equation.invars


def live(
    program_outputs: Iterable[Atom], equations: Sequence[Equation], read_by: Readers = all_operands
) -> list[Equation]:
    """Return the equations on which results depend, or that have effects, in order.

    Args:
        read_by: returns the operands on which an equation depends.
    """
    return _live(program_outputs, equations, read_by)[0]


def read_by_live(program_outputs: Iterable[Atom], equations: Sequence[Equation]) -> set[int]:
    """Return the ids of the atoms that the results and the `live` equations read."""
    return _live(program_outputs, equations, all_operands)[1]


def needed_by(program: Program) -> list[Atom]:
    """Return the variables of a program that are read for its results or effects.

    Captured variables count only if the functions that capture them read them.
    """
    jaxpr = program.jaxpr
    equations = live(jaxpr.outvars, jaxpr.eqns, used_operands)
    atoms = itertools.chain(jaxpr.outvars, *map(used_operands, equations))
    return [atom for atom in atoms if not is_literal(atom)]


def used_inside(program: Program) -> set[int]:
    """Return the ids of the atoms that a program reads, as `needed_by` counts them."""
    return _live(program.jaxpr.outvars, program.jaxpr.eqns, used_operands)[1]


def _live(
    program_outputs: Iterable[Atom], equations: Sequence[Equation], read_by: Readers
) -> tuple[list[Equation], set[int]]:
    """Return the `live` equations, and the ids of all atoms that they and the results read."""
    needed = set(map(id, program_outputs))  # literals too, which are no equation's result
    needed_equations = []
    for equation in reversed(equations):
        if equation.effects or not needed.isdisjoint(map(id, equation.outvars)):
            needed_equations.append(equation)
            needed.update(map(id, read_by(equation)))
    needed_equations.reverse()
    return needed_equations, needed


def used_operands(equation: Equation) -> Sequence[Atom]:
    """Return the operands of an equation, except captured values that are not used.

    Loops, linear solves and functions with custom rules capture values.
    """
    captures = control_flow.captures(equation, equation.invars)
    if captures is None:
        return all_operands(equation)
    operands: list[Atom] = []
    for _, program, captured in captures[0]:
        if program is not None and captured:
            # Runs once for each inner loop: loops may be nested a hundred deep.
            used = used_inside(program)
            pairs = zip(captured, program.jaxpr.invars, strict=False)
            operands += [atom for atom, var in pairs if id(var) in used]
    return [*operands, *captures[1]]


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
