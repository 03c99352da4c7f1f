"""Writes a function that is itself jitted as one decorated function, not as a call of another.

That requires that the whole program is a single call of the jitted function, with the arguments and
results of the program in order.
"""

from __future__ import annotations

import ast
import inspect
from collections import defaultdict
from collections.abc import Container, Sequence
from dataclasses import dataclass

import jax

from jaxsight_source.calls.signature import BoundCall
from jaxsight_source.compat.jaxpr_types import Equation
from jaxsight_source.compat.parameters import functions
from jaxsight_source.compat.staging import Program, opened
from jaxsight_source.jaxprs.same.liveness import live
from jaxsight_source.rules.functions.calls import decorated, jit_options
from jaxsight_source.values.spelling import value


@dataclass(frozen=True, slots=True)
class Jitted:
    """The program inside a jitted function, and the options of its `jax.jit`."""

    program: Program
    options: dict[str, ast.expr]

    def decorated(self, function: ast.FunctionDef) -> list[ast.stmt]:
        return decorated(function, jax.jit, "jax.jit", self.options)


def jitted(call: BoundCall, program: Program) -> Jitted | None:
    """Return the program and the options of a jitted function, or None.

    Return None if its program is not a single call, depends on shardings of arguments or results,
    or if it has `*args` and static or donated positions.
    """
    if not functions.is_jitted(call.function):
        return None
    equation = only_call(program)
    if equation is None:
        return None
    options = jit_options(equation.params)
    if "in_shardings" in options or "out_shardings" in options:
        return None
    options.pop("donate_argnums", None)  # counts leaves; parameters are needed here
    if compiling := functions.compiler_options(call.function):
        options["compiler_options"] = value(compiling)
    declared = functions.told(call.function)
    parameters = list(inspect.signature(call.function).parameters.values())
    is_variadic = any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters)
    if is_variadic and declared.by_position:
        return None
    static = declared.static.union(argument.parameter for argument in call.fixed)
    chosen = _chosen("static", static, parameters) | _chosen("donate", declared.donated, parameters)
    return Jitted(opened(equation.params["jaxpr"]), chosen | options)


def only_call(program: Program) -> Equation | None:
    """Return the call of a jitted function that is the whole program, or None."""
    equations = live(program.jaxpr.outvars, program.jaxpr.eqns)
    if len(equations) != 1 or equations[0].primitive.name not in ("jit", "pjit"):
        return None
    (equation,) = equations
    is_whole = _same(equation.invars, program.jaxpr.invars) and _same(
        equation.outvars, program.jaxpr.outvars
    )
    return equation if is_whole else None


def _chosen(
    prefix: str, chosen: Container[str], parameters: Sequence[inspect.Parameter]
) -> dict[str, ast.expr]:
    """Return the names of parameters, or the positions of those without a keyword name."""
    unnamed = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.VAR_POSITIONAL)
    options: dict[str, list[object]] = defaultdict(list)
    for position, parameter in enumerate(parameters):
        if parameter.name in chosen and parameter.kind in unnamed:
            options[f"{prefix}_argnums"].append(position)
        elif parameter.name in chosen:
            options[f"{prefix}_argnames"].append(parameter.name)
    return {
        option: value(given[0] if len(given) == 1 else tuple(given))
        for option, given in options.items()
    }


def _same(first: Sequence[object], second: Sequence[object]) -> bool:
    return len(first) == len(second) and all(a is b for a, b in zip(first, second, strict=True))
