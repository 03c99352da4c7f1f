"""Programs without derivative rules: calls of functions with custom rules are inlined."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jaxsight.interpreters.compat.staging import (
    inner_jaxpr,
    is_dropped,
    is_jaxpr,
    is_literal,
    new_variable,
    opened,
    with_inner,
)

_CUSTOM = ("custom_jvp_call", "custom_vjp_call")


def primal(jaxpr: Any) -> Any:
    """Return a jaxpr with `custom_jvp` and `custom_vjp` calls inlined, at every level.

    It computes the same values; its derivatives are those of the equations. Calls of programs with
    constants of their own are kept.
    """
    return _primal(jaxpr, {})


def equations_of(jaxpr: Any) -> int:
    """Count the equations of a jaxpr and of its inner jaxprs, once per call.

    The equations of derivative rules do not count.
    """
    count = 0
    for equation in opened(jaxpr).jaxpr.eqns:
        count += 1
        for parameter in equation.params.values():
            parts = parameter if isinstance(parameter, (tuple, list)) else (parameter,)
            count += sum(equations_of(part) for part in parts if is_jaxpr(part))
    return count


def _primal(jaxpr: Any, cache: dict[int, tuple[Any, Any]]) -> Any:
    if id(jaxpr) not in cache:
        inside = inner_jaxpr(jaxpr)
        equations: list[Any] = []
        values: dict[int, Any] = {}
        _inline(inside.eqns, equations, values, cache, renamed=False)
        outputs = [_read(atom, values) for atom in inside.outvars]
        with_primal = with_inner(jaxpr, inside.replace(eqns=equations, outvars=outputs))
        cache[id(jaxpr)] = jaxpr, with_primal
    return cache[id(jaxpr)][1]


def _inline(
    originals: Sequence[Any],
    equations: list[Any],
    values: dict[int, Any],
    cache: dict[int, tuple[Any, Any]],
    *,
    renamed: bool,
) -> None:
    """Append equations to others; `values` maps replaced variables to their atoms.

    Args:
        renamed: give results new variables, since the equations may be appended several times.
    """
    for equation in originals:
        operands = [_read(atom, values) for atom in equation.invars]
        if equation.primitive.name in _CUSTOM:
            program = opened(equation.params["call_jaxpr"])
            if not program.consts and not program.jaxpr.constvars:
                own = dict(zip(map(id, program.jaxpr.invars), operands, strict=True))
                _inline(program.jaxpr.eqns, equations, own, cache, renamed=True)
                for var, atom in zip(equation.outvars, program.jaxpr.outvars, strict=True):
                    values[id(var)] = _read(atom, own)
                continue
        results = list(equation.outvars)
        if renamed:
            results = [var if is_dropped(var) else new_variable(var.aval) for var in results]
            values.update(zip(map(id, equation.outvars), results, strict=True))
        params = {name: _inside(value, cache) for name, value in equation.params.items()}
        equations.append(equation.replace(invars=operands, outvars=results, params=params))


def _inside(value: Any, cache: dict[int, tuple[Any, Any]]) -> Any:
    if is_jaxpr(value):
        return _primal(value, cache)
    if isinstance(value, tuple) and any(is_jaxpr(part) for part in value):
        parts = [_inside(part, cache) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return value


def _read(atom: Any, values: dict[int, Any]) -> Any:
    return atom if is_literal(atom) else values.get(id(atom), atom)
