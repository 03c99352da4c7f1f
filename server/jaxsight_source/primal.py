"""Programs with others inlined, such as calls of functions with custom derivative rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from jaxsight_source.compat.inner import replaced
from jaxsight_source.compat.jaxpr_types import Atom, Equation
from jaxsight_source.compat.staging import (
    Program,
    is_dropped,
    new_variable,
    open_jaxpr,
    opened,
    substituted,
    with_inner,
)

_CUSTOM = ("custom_jvp_call", "custom_vjp_call")


Inlined = Callable[[Equation], Program | None]
"""Returns the program that takes the place of an equation; None if none does."""


def primal(jaxpr: object) -> object:
    """Return a jaxpr with `custom_jvp` and `custom_vjp` calls inlined, at every level.

    It computes the same values; its derivatives are those of the equations. Calls of programs with
    constants of their own are kept.
    """
    return inlined(jaxpr, _without_rules)


def _without_rules(equation: Equation) -> Program | None:
    return opened(equation.params["call_jaxpr"]) if equation.primitive.name in _CUSTOM else None


def inlined(jaxpr: object, program_of: Inlined) -> object:
    """Return a jaxpr with the programs of equations in place of these, at every level.

    A program with constants of its own takes no place.
    """
    return _Inlining(program_of).jaxpr(jaxpr)


class _Inlining:
    """Inlines programs; what two jaxprs share is one object again."""

    def __init__(self, program_of: Inlined) -> None:
        self._program_of = program_of
        self._known: dict[int, tuple[object, object]] = {}

    def jaxpr(self, jaxpr: object) -> object:
        if id(jaxpr) not in self._known:
            inside = open_jaxpr(jaxpr)
            equations: list[Equation] = []
            values: dict[int, Atom] = {}
            self._append(inside.eqns, equations, values, renamed=False)
            outputs = substituted(inside.outvars, values)
            left = {effect for equation in equations for effect in equation.effects}
            gone = {effect for equation in inside.eqns for effect in equation.effects} - left
            effects = frozenset(inside.effects) - gone
            changed = inside.replace(eqns=equations, outvars=outputs, effects=effects)
            self._known[id(jaxpr)] = jaxpr, with_inner(jaxpr, changed)
        return self._known[id(jaxpr)][1]

    def _append(
        self,
        originals: Sequence[Equation],
        equations: list[Equation],
        values: dict[int, Atom],
        *,
        renamed: bool,
    ) -> None:
        """Append equations to others; `values` maps replaced variables to their atoms.

        Args:
            renamed: give results new variables, since the equations may be appended several times.
        """
        for equation in originals:
            operands = substituted(equation.invars, values)
            program = self._program_of(equation)
            if program is not None and not program.jaxpr.constvars:
                own = dict(zip(map(id, program.jaxpr.invars), operands, strict=True))
                self._append(program.jaxpr.eqns, equations, own, renamed=True)
                outputs = substituted(program.jaxpr.outvars, own)
                values.update(zip(map(id, equation.outvars), outputs, strict=True))
                continue
            results = list(equation.outvars)
            if renamed:
                results = [var if is_dropped(var) else new_variable(var.aval) for var in results]
                values.update(zip(map(id, equation.outvars), results, strict=True))
            params = replaced(equation.params, lambda part: self.jaxpr(part.value))
            equations.append(equation.replace(invars=operands, outvars=results, params=params))
