"""Primitives that take functions: reductions by any function, linear solves."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax

from jaxsight_source.compat.jaxpr_types import Atom, Equation, Var
from jaxsight_source.compat.staging import Program, evaluate, is_literal, opened, stage
from jaxsight_source.equations.fallback import flags, given
from jaxsight_source.equations.registry import ABSORBS, STRUCTURES
from jaxsight_source.jaxprs.same.comparison import Comparison
from jaxsight_source.proof.prover import Proved
from jaxsight_source.text.exprs import NONE, TRUE, call, subscript, tuple_
from jaxsight_source.values.spelling import struct, value
from jaxsight_source.writing.results import nested_results, sequence
from jaxsight_source.writing.scope import Scope


def _reducer(scope: Scope, program: Program, count: int) -> ast.expr:
    """Write a function of two groups of `count` values."""

    def parameters(inner: Scope, inputs: Sequence[Var], _: object) -> tuple[str, ...]:
        xs = inner.grouped(inputs[:count], ["x"] * count, "xs")
        return xs, inner.grouped(inputs[count:], ["y"] * count, "ys")

    return scope.function("reducer", program, (), parameters)


@STRUCTURES("reduce", "reduce_window")
def reduce(scope: Scope, equation: Equation) -> Proved:
    params, name = equation.params, equation.primitive.name
    count = len(equation.invars) // 2
    reducer = _reducer(scope, opened(params["jaxpr"]), count)
    operands = [scope.operand(atom) for atom in equation.invars]
    arguments = [sequence(operands[:count]), sequence(operands[count:]), reducer]
    if name == "reduce":
        arguments.append(value(tuple(params["dimensions"])))
        return Proved(call("lax.reduce", *arguments), nested_results(count))
    named = given(params, "window_dimensions", "window_strides", "padding")
    for dilation in ("base_dilation", "window_dilation"):
        if any(step != 1 for step in params[dilation]):
            named |= given(params, dilation)
    return Proved(call("lax.reduce_window", *arguments, **named), nested_results(count))


@ABSORBS("broadcast_in_dim")
def applied(equations: Sequence[Equation], position: int, uses: Callable[[object], int]) -> int:
    """Group a scatter with the unread updates that `lax.scatter_apply` creates before it."""
    first = equations[position]
    if position + 1 >= len(equations) or not is_literal(first.invars[0]):
        return 1
    following = equations[position + 1]
    (updates,) = first.outvars
    if (
        following.primitive.name != "scatter"
        or uses(updates) != 1
        or following.invars[2] is not updates
    ):
        return 1
    if following.params["update_jaxpr"] is None or following.params["update_consts"]:
        return 1
    jaxpr = opened(following.params["update_jaxpr"]).jaxpr
    update = jaxpr.invars[1]
    read = [*jaxpr.outvars, *(atom for inner in jaxpr.eqns for atom in inner.invars)]
    return 2 if all(atom is not update for atom in read) else 1


@STRUCTURES("scatter")
def scatter_apply(scope: Scope, group: object) -> Proved | None:
    if not isinstance(group, list):
        return None
    equation = group[-1]
    params = equation.params
    program = opened(params["update_jaxpr"])
    applied_function = scope.function(
        "applied", program, (), lambda inner, inputs, _: inner.parameters(inputs, ["x", "_"])[:1]
    )
    operand, indices, update = equation.invars
    named = flags(params, "indices_are_sorted", "unique_indices")
    expr = call(
        "lax.scatter_apply",
        scope.operand(operand),
        scope.operand(indices),
        applied_function,
        value(params["dimension_numbers"]),
        update_shape=value(tuple(update.aval.shape)),
        **named,
        mode=value(params["mode"]),
    )
    return Proved(expr, 0)


_PARTS = ("matvec", "vecmat", "solve", "transpose_solve")


@STRUCTURES("custom_linear_solve")
def custom_linear_solve(scope: Scope, equation: Equation) -> Proved:
    """Write a linear solve.

    The public function derives `vecmat` from `matvec`; if that is another function than the
    equation's (under vmap), the solve is written with `bind`.
    """
    lengths, programs = equation.params["const_lengths"], equation.params["jaxprs"]
    captured: dict[str, Sequence[Atom]] = {}
    start = 0
    for name in _PARTS:
        captured[name] = equation.invars[start : start + getattr(lengths, name)]
        start += getattr(lengths, name)
    b = equation.invars[start:]
    count = len(b)
    aux = len(equation.outvars) != count
    symmetric = programs.vecmat is programs.matvec
    if programs.vecmat is not None and not symmetric and not _derived(programs, lengths):
        return _bound_solve(scope, equation)
    parts = {
        name: _of_vector(scope, name, opened(getattr(programs, name)), captured[name])
        for name in ("matvec", "solve", "transpose_solve")
        if getattr(programs, name) is not None and not (symmetric and name == "transpose_solve")
    }
    options: dict[str, ast.expr] = {}
    if symmetric:
        options["symmetric"] = TRUE
    elif "transpose_solve" in parts:
        options["transpose_solve"] = parts["transpose_solve"]
    if aux:
        options["has_aux"] = TRUE
    operands = [scope.operand(atom) for atom in b]
    solve = call(
        "lax.custom_linear_solve", parts["matvec"], sequence(operands), parts["solve"], **options
    )
    results: object = nested_results(count)
    if aux:
        results = (results, tuple(range(count, len(equation.outvars))))
    return Proved(solve, results)


def _derived(programs: Any, lengths: Any) -> bool:
    """Return whether `vecmat` is the result of `jax.linear_transpose` for `matvec`."""
    matvec, vecmat = opened(programs.matvec), opened(programs.vecmat)
    consts = [var.aval for var in matvec.jaxpr.invars[: lengths.matvec]]
    vectors = [var.aval for var in matvec.jaxpr.invars[lengths.matvec :]]

    def transposed(*args: object) -> object:
        constants, cotangents = args[: len(consts)], args[len(consts) :]
        return jax.linear_transpose(lambda *xs: evaluate(matvec, *constants, *xs), *vectors)(
            list(cotangents)
        )

    staged = stage(transposed, [*consts, *vectors])
    return Comparison().programs(staged.program, vecmat) is None


_EXAMPLE = "jax.make_jaxpr(lambda b: lax.custom_linear_solve(abs, b, lambda _, x: x))(0.0)"
"""A linear solve from which to read the types of its parameters, which are not public."""


def _bound_solve(scope: Scope, equation: Equation) -> Proved:
    lengths, programs = equation.params["const_lengths"], equation.params["jaxprs"]
    jaxprs: dict[str, ast.expr] = {}
    counts: dict[str, ast.expr] = {}
    for name in _PARTS:
        program = getattr(programs, name)
        counts[name] = value(getattr(lengths, name))
        if program is None:
            jaxprs[name] = NONE
            continue
        part = opened(program)
        function = scope.writer.functions.shared(
            ("linear_solve", id(program)),
            program,
            name,
            functools.partial(_alone, scope, part),
        )
        structs = [struct(var.aval) for var in part.jaxpr.invars]
        jaxprs[name] = call(call("jax.make_jaxpr", function), *structs)
    scope.writer.constants.helper("_SOLVE", _EXAMPLE)
    example = scope.writer.constants.helper("_LINEAR_SOLVE", "_SOLVE.eqns[0].params")
    operands = [scope.operand(atom) for atom in equation.invars]
    return scope.bound(
        equation,
        *operands,
        const_lengths=call(
            ast.Attribute(subscript(example, ast.Constant("const_lengths")), "_replace"), **counts
        ),
        jaxprs=call(
            ast.Attribute(subscript(example, ast.Constant("jaxprs")), "_replace"), **jaxprs
        ),
    )


def _alone(scope: Scope, program: Program, name: str) -> list[ast.stmt]:
    return [Scope.top(scope.writer).as_function(name, program)]


def _of_vector(scope: Scope, name: str, program: Program, captured: Sequence[Atom]) -> ast.expr:
    outputs = len(program.jaxpr.invars) - len(captured)

    def parameters(inner: Scope, inputs: Sequence[Var], bases: list[str]) -> tuple[str, ...]:
        unused = () if name == "matvec" else (inner.names.fresh("_"),)  # solvers take `matvec`
        return *unused, inner.grouped(inputs, bases, "xs")

    def results(values: list[ast.expr]) -> ast.expr:
        if len(values) == outputs:
            return sequence(values)
        return tuple_([sequence(values[:outputs]), tuple_(values[outputs:])])

    return scope.function(name, program, captured, parameters, results)
