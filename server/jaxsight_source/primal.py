"""Programs without derivative rules: calls of functions with custom rules are inlined."""

from __future__ import annotations

from collections.abc import Sequence

from jaxsight_source.compat.inner import replaced
from jaxsight_source.compat.jaxpr_types import Atom, Equation
from jaxsight_source.compat.staging import (
    is_dropped,
    new_variable,
    open_jaxpr,
    opened,
    substituted,
    with_inner,
)

_CUSTOM = ("custom_jvp_call", "custom_vjp_call")


def primal(jaxpr: object) -> object:
    """Return a jaxpr with `custom_jvp` and `custom_vjp` calls inlined, at every level.

    It computes the same values; its derivatives are those of the equations. Calls of programs with
    constants of their own are kept.
    """
    return _primal(jaxpr, {})


def _primal(jaxpr: object, cache: dict[int, tuple[object, object]]) -> object:
    if id(jaxpr) not in cache:
        inside = open_jaxpr(jaxpr)
        equations: list[Equation] = []
        values: dict[int, Atom] = {}
        _inline(inside.eqns, equations, values, cache, renamed=False)
        outputs = substituted(inside.outvars, values)
        with_primal = with_inner(jaxpr, inside.replace(eqns=equations, outvars=outputs))
        cache[id(jaxpr)] = jaxpr, with_primal
    return cache[id(jaxpr)][1]


def _inline(
    originals: Sequence[Equation],
    equations: list[Equation],
    values: dict[int, Atom],
    cache: dict[int, tuple[object, object]],
    *,
    renamed: bool,
) -> None:
    """Append equations to others; `values` maps replaced variables to their atoms.

    Args:
        renamed: give results new variables, since the equations may be appended several times.
    """
    for equation in originals:
        operands = substituted(equation.invars, values)
        if equation.primitive.name in _CUSTOM:
            program = opened(equation.params["call_jaxpr"])
            if not program.consts and not program.jaxpr.constvars:
                own = dict(zip(map(id, program.jaxpr.invars), operands, strict=True))
                _inline(program.jaxpr.eqns, equations, own, cache, renamed=True)
                outputs = substituted(program.jaxpr.outvars, own)
                values.update(zip(map(id, equation.outvars), outputs, strict=True))
                continue
        results = list(equation.outvars)
        if renamed:
            results = [var if is_dropped(var) else new_variable(var.aval) for var in results]
            values.update(zip(map(id, equation.outvars), results, strict=True))
        params = replaced(equation.params, lambda part: _primal(part.value, cache))
        equations.append(equation.replace(invars=operands, outvars=results, params=params))
