"""Primitives that take functions: reductions by any function, linear solves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jaxsight.sourcerizer.compat.staging import Program, opened
from jaxsight.sourcerizer.exprs import Atom, Expr, call, tuple_
from jaxsight.sourcerizer.spelling import value
from jaxsight.sourcerizer.writer import (
    STRUCTURES,
    Proved,
    Scope,
    argument_bases,
    nested_results,
    sequence,
)


def _reducer(scope: Scope, program: Program, count: int) -> Expr:
    """A function of two groups of `count` values."""
    variables = program.jaxpr.invars

    def parameters(inner: Scope) -> tuple[str, ...]:
        names = inner.parameters(variables, ["x"] * count + ["y"] * count)
        if count == 1:
            return tuple(names)
        xs, ys = inner.names.fresh("xs"), inner.names.fresh("ys")
        inner.take_apart(names[:count], xs)
        inner.take_apart(names[count:], ys)
        return xs, ys

    return scope.function("reducer", program, [], parameters, sequence)


@STRUCTURES("reduce")
def reduce(scope: Scope, equation: Any) -> Proved:
    params = equation.params
    count = len(equation.invars) // 2
    reducer = _reducer(scope, opened(params["jaxpr"]), count)
    operands = [scope.operand(atom) for atom in equation.invars]
    expr = call(
        "lax.reduce",
        sequence(operands[:count]),
        sequence(operands[count:]),
        reducer,
        value(tuple(params["dimensions"])),
    )
    return Proved(expr, nested_results(count))


@STRUCTURES("reduce_window")
def reduce_window(scope: Scope, equation: Any) -> Proved:
    params = equation.params
    count = len(equation.invars) // 2
    reducer = _reducer(scope, opened(params["jaxpr"]), count)
    operands = [scope.operand(atom) for atom in equation.invars]
    named: dict[str, Expr] = {
        name: value(params[name])
        for name in ("window_dimensions", "window_strides", "padding")
    }
    for name in ("base_dilation", "window_dilation"):
        if any(step != 1 for step in params[name]):
            named[name] = value(params[name])
    expr = call(
        "lax.reduce_window",
        sequence(operands[:count]),
        sequence(operands[count:]),
        reducer,
        **named,
    )
    return Proved(expr, nested_results(count))


@STRUCTURES("custom_linear_solve")
def custom_linear_solve(scope: Scope, equation: Any) -> Proved:
    lengths, programs = equation.params["const_lengths"], equation.params["jaxprs"]
    start = 0
    parts: dict[str, Expr] = {}
    unknowns = len(equation.invars) - sum(lengths)
    for name in ("matvec", "vecmat", "solve", "transpose_solve"):
        count = getattr(lengths, name)
        captured = equation.invars[start : start + count]
        start += count
        found = getattr(programs, name)
        if found is not None and name != "vecmat":
            parts[name] = _of_vector(scope, name, opened(found), captured)
    b = [scope.operand(atom) for atom in equation.invars[start:]]
    aux = len(equation.outvars) != unknowns
    options: dict[str, Expr] = {}
    symmetric = programs.vecmat is programs.matvec
    if symmetric:
        options["symmetric"] = Atom("True")
    elif "transpose_solve" in parts:
        options["transpose_solve"] = parts["transpose_solve"]
    if aux:
        options["has_aux"] = Atom("True")
    expr = call(
        "lax.custom_linear_solve", parts["matvec"], sequence(b), parts["solve"], **options
    )
    results: Any = nested_results(unknowns)
    if aux:
        results = (results, tuple(range(unknowns, len(equation.outvars))))
    return Proved(expr, results)


def _of_vector(scope: Scope, name: str, program: Program, captured: Sequence[Any]) -> Expr:
    variables = program.jaxpr.invars[len(captured) :]
    outputs = len(variables)

    def parameters(inner: Scope) -> tuple[str, ...]:
        names = inner.parameters(variables, argument_bases(program)[len(captured) :])
        if len(names) == 1:
            return tuple(names)
        whole = inner.names.fresh("xs")
        inner.take_apart(names, whole)
        return (whole,)

    def results(given: list[Expr]) -> Expr:
        if len(given) == outputs:
            return sequence(given)
        return tuple_([sequence(given[:outputs]), tuple_(given[outputs:])])

    return scope.function(name, program, captured, parameters, results)

