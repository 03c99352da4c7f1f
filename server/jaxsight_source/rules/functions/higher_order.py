"""Equations with functions: reductions by any function, linear solves, derivative rules."""

from __future__ import annotations

import ast
import contextlib
import textwrap
from collections.abc import Callable, Sequence
from typing import Any

import jax

from jaxsight_source.compat import control_flow, derivative_rules
from jaxsight_source.compat.jaxpr_types import Atom, Aval, Equation, Params, Var
from jaxsight_source.compat.staging import Program, evaluate, is_literal, opened, stage
from jaxsight_source.equations.registry import (
    ABSORBS,
    STRUCTURES,
    equation_key,
    flags,
    passed,
    stepping,
)
from jaxsight_source.errors import Unsourceable
from jaxsight_source.jaxprs.same.comparison import Comparison
from jaxsight_source.proof.prover import Proved
from jaxsight_source.rules.functions.calls import function_name
from jaxsight_source.rules.lax.external import call_exported
from jaxsight_source.text.exprs import NONE, TRUE, call, public, subscript, tuple_
from jaxsight_source.text.layout import flat
from jaxsight_source.text.statements import assign, define, effect, return_
from jaxsight_source.values import spelling
from jaxsight_source.values.spelling import struct, value
from jaxsight_source.writing.scope import Scope
from jaxsight_source.writing.variables import argument_bases, nested_results, passed_as, sequence


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
    named = passed(params, "window_dimensions", "window_strides", "padding")
    named |= stepping(params, "base_dilation", "window_dilation")
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


@STRUCTURES("custom_linear_solve")
def custom_linear_solve(scope: Scope, equation: Equation) -> Proved:
    """Write a linear solve.

    The public function derives `vecmat` from `matvec`; if that is another function than the
    equation's (under vmap), the solve is written with `bind`.
    """
    lengths, programs = equation.params["const_lengths"], equation.params["jaxprs"]
    functions, b = control_flow.captures(equation, equation.invars) or ((), ())
    count = len(b)
    aux = len(equation.outvars) != count
    symmetric = programs.vecmat is programs.matvec
    if programs.vecmat is not None and not symmetric and not _derived(programs, lengths):
        return _bound_solve(scope, equation)
    left_out = ("vecmat", "transpose_solve") if symmetric else ("vecmat",)
    parts = {
        name: _of_vector(scope, name, program, captured)
        for name, program, captured in functions
        if program is not None and name not in left_out
    }
    options = {name: part for name, part in parts.items() if name == "transpose_solve"}
    if symmetric:
        options["symmetric"] = TRUE
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
    for name in control_flow.SOLVES:
        program = getattr(programs, name)
        counts[name] = value(getattr(lengths, name))
        if program is None:
            jaxprs[name] = NONE
            continue
        part = opened(program)

        def alone(name: str, part: Program = part) -> list[ast.stmt]:
            return [Scope.top(scope.writer).as_function(name, part)]

        key = "linear_solve", id(program)
        function = scope.writer.functions.shared(key, program, name, alone)
        structs = [struct(var.aval) for var in part.jaxpr.invars]
        jaxprs[name] = call(call("jax.make_jaxpr", function), *structs)
    scope.writer.constants.helper("_SOLVE", _EXAMPLE)
    example = scope.writer.constants.helper("_LINEAR_SOLVE", "_SOLVE.eqns[0].params")
    operands = [scope.operand(atom) for atom in equation.invars]
    params = {
        name: call(ast.Attribute(subscript(example, ast.Constant(name)), "_replace"), **parts)
        for name, parts in (("const_lengths", counts), ("jaxprs", jaxprs))
    }
    return scope.bound(equation, *operands, **params)


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


@STRUCTURES("custom_jvp_call")
def custom_jvp(scope: Scope, equation: Equation) -> Proved:
    params = equation.params
    program = opened(params["call_jaxpr"])
    captured = params["num_consts"]
    base = function_name(program, "function")
    if params["symbolic_zeros"] and sum(derivative_rules.differentiable(params)) > 1:
        why = "its rule asks for symbolic zeros of several tangents"
        return _with_rules_passed_in(scope, equation, why)

    def build(home: Scope, name: str) -> list[ast.stmt]:
        function = home.inner().as_function(name, program, equation.invars[:captured])
        function.decorator_list.append(public("jax.custom_jvp"))
        (derivative,) = _rules(
            scope,
            home,
            base,
            lambda: [_jvp_function(home, name, program, params)],
            (f"{name}_jvp", ("primals", "tangents")),
        )
        if params["symbolic_zeros"]:
            registered = call(f"{name}.defjvp", ast.Name(derivative.name), symbolic_zeros=TRUE)
            return [function, derivative, effect(registered)]
        derivative.decorator_list.append(public(f"{name}.defjvp"))
        return [function, derivative]

    return _custom(scope, equation, program, captured, base, build)


def _jvp_function(home: Scope, name: str, program: Program, params: Params) -> ast.FunctionDef:
    """Write the rule of a `custom_jvp` function `name`, for its only pattern of symbolic zeros."""
    symbolic_zeros = bool(params["symbolic_zeros"])
    absent = [symbolic_zeros and not may for may in derivative_rules.differentiable(params)]
    rule, zeros = derivative_rules.jvp_rule(params, absent)
    jvp = home.inner()
    primals = [jvp.names.fresh(base) for base in argument_bases(program)[params["num_consts"] :]]
    tangents = [
        "_" if is_absent else jvp.names.fresh(f"{primal}_dot")
        for primal, is_absent in zip(primals, absent, strict=True)
    ]
    jvp.names.keep("primals")
    jvp.names.keep("tangents")
    inputs = [*primals, *(tangent for tangent in tangents if tangent != "_")]
    for var, parameter in zip(rule.jaxpr.invars, inputs, strict=True):
        jvp.write(var, ast.Name(parameter))
    jvp.body.append(assign(tuple_(map(ast.Name, primals)), ast.Name("primals")))
    jvp.body.append(assign(tuple_(map(ast.Name, tangents)), ast.Name("tangents")))
    results = iter(jvp.program(rule))
    outputs = [next(results) for _ in zeros]
    symbolic = "jax.custom_derivatives.SymbolicZero.from_primal_value"
    dots = [
        next(results)
        if not is_zero
        else call(symbolic, output)
        if symbolic_zeros
        else _zero_tangent(var.aval)
        for var, output, is_zero in zip(program.jaxpr.outvars, outputs, zeros, strict=True)
    ]
    jvp.body.append(return_(tuple_([sequence(outputs), sequence(dots)])))
    return define(f"{name}_jvp", ("primals", "tangents"), jvp.body)


def _with_rules_passed_in(scope: Scope, equation: Equation, why: str) -> Proved:
    """Return a call of a function that is written, with rules that the caller passes."""
    params = equation.params
    program = opened(params["call_jaxpr"])
    base = function_name(program, "function")
    operands = scope.operands(equation.invars, program.jaxpr.invars)

    def build(name: str) -> list[ast.stmt]:
        function = Scope.top(scope.writer).as_function(name, program, (), passed_as(operands))
        function.decorator_list.append(scope.writer.passed.rules_of(equation, base, why))
        return [function]

    key = ("ruled", equation_key(equation))
    function = scope.writer.functions.shared(key, equation, base, build)
    return Proved(call(function, *operands), nested_results(len(equation.outvars)))


def _rules(
    scope: Scope,
    home: Scope,
    name: str,
    write: Callable[[], list[ast.FunctionDef]],
    refused: tuple[str, Sequence[str]],
) -> list[ast.FunctionDef]:
    """Return rules as functions; one that raises, with this name and parameters, if JAX refuses."""
    try:
        with scope.writer.functions.rule():
            return write()
    except derivative_rules.RuleFailed as error:
        if isinstance(error, derivative_rules.Outlived) and home is not scope:
            raise
        text = textwrap.shorten(f"no derivative of {name}: {error}", 80, placeholder="…")
        raising = ast.Raise(call("NotImplementedError", ast.Constant(text)))
        return [define(*refused, [raising])]


def _zero_tangent(aval: Aval) -> ast.expr:
    tangent = aval.to_tangent_aval()
    if str(tangent.dtype) == "float0" or tangent.dtype.kind == "V":  # the kind of structures too
        return call("np.zeros", value(tangent.shape), public("jax.dtypes.float0"))
    return call("jnp.zeros", value(tangent.shape), spelling.dtype(tangent.dtype))


def _custom(
    scope: Scope,
    equation: Equation,
    program: Program,
    captured: int,
    base: str,
    build: Callable[[Scope, str], list[ast.stmt]],
) -> Proved:
    """Return a call of a function with custom rules; it is shared if it captures nothing."""
    count = len(equation.outvars)
    operands = scope.operands(equation.invars[captured:], program.jaxpr.invars[captured:])

    def shared(name: str) -> list[ast.stmt]:
        return build(Scope.top(scope.writer), name)

    if not captured or all(map(is_literal, equation.invars[:captured])):
        identity = derivative_rules.rule_identity(equation.params)
        with contextlib.suppress(derivative_rules.Outlived):  # it captures values: it stays here
            name = scope.writer.functions.custom(identity, program, base, shared)
            return Proved(call(name, *operands), nested_results(count))
    captures = [_known(scope, atom) for atom in equation.invars[:captured]]
    types = [var.aval for var in program.jaxpr.invars]
    key = (derivative_rules.rule_identity(equation.params), captures, types)
    for own_key, around in scope.writer.functions.inside:
        if own_key == key:  # its own rule calls it
            return Proved(call(around, *operands), nested_results(count))
    own = scope.names.fresh(base)
    scope.writer.functions.inside.append((key, own))
    try:
        scope.body.extend(build(scope, own))
    finally:
        scope.writer.functions.inside.pop()
    return Proved(call(own, *operands), nested_results(count))


@STRUCTURES("custom_vjp_call")
def custom_vjp(scope: Scope, equation: Equation) -> Proved | None:
    params = equation.params
    program = opened(params["call_jaxpr"])
    match program.jaxpr.eqns:
        # `Exported.call` adds the derivative (`call_exported`, jax/_src/export/_export.py).
        case [inner] if inner.primitive.name == "call_exported":
            if [*inner.invars] == [*program.jaxpr.invars]:
                return call_exported(scope, equation.replace(params=inner.params))
    captured = params["num_consts"]
    if params["symbolic_zeros"]:
        why = "its rules ask for symbolic zeros, which are supported for custom_jvp only"
        return _with_rules_passed_in(scope, equation, why)
    base = function_name(program, "function")

    def build(home: Scope, name: str) -> list[ast.stmt]:
        function = home.inner().as_function(name, program, equation.invars[:captured])
        function.decorator_list.append(public("jax.custom_vjp"))
        pair, refused = (f"{name}_fwd", f"{name}_bwd"), (f"{name}_refused", ("*_",))
        write = lambda: _vjp_functions(home, pair, program, params)
        try:
            rules = _rules(scope, home, base, write, refused)
        except derivative_rules.Unreadable as error:
            raise Unsourceable("custom_vjp_call", str(error)) from error
        names = (ast.Name(rule.name) for rule in (rules[0], rules[-1]))
        return [function, *rules, effect(call(f"{name}.defvjp", *names))]

    return _custom(scope, equation, program, captured, base, build)


def _vjp_functions(
    home: Scope, names: tuple[str, str], program: Program, params: Params
) -> list[ast.FunctionDef]:
    """Write the forward and the backward rule of a `custom_vjp` function, under these names."""
    rules = derivative_rules.vjp_rules(params)
    bases = argument_bases(program)[params["num_consts"] :]
    forward = home.inner()
    parameters = forward.parameters(rules.forward.jaxpr.invars, bases)
    results = iter(forward.program(rules.forward))
    residuals = [
        next(results) if source is None else ast.Name(parameters[source])
        for source in rules.forwarded
    ]
    forward.body.append(return_(tuple_([sequence(list(results)), tuple_(residuals)])))
    backward = home.inner()
    parameter = _backward_parameter(backward, rules, parameters, len(program.jaxpr.outvars))
    cotangents = iter(backward.program(rules.backward))
    answers = [NONE if zero else next(cotangents) for zero in rules.zeros]
    backward.body.append(return_(tuple_(answers)))
    return [
        define(names[0], tuple(parameters), forward.body),
        define(names[1], ("residuals", parameter), backward.body),
    ]


def _backward_parameter(
    backward: Scope, rules: derivative_rules.VjpRules, named: Sequence[str], count: int
) -> str:
    """Unpack the parameters of a backward rule; return the name of the second one.

    `named` are the parameters of the forward rule, and `count` is the number of results.
    """
    backward.names.keep("residuals")
    inputs = rules.backward.jaxpr.invars
    bases = ["residual" if source is None else named[source] for source in rules.forwarded]
    residuals = backward.parameters(inputs[: len(rules.forwarded)], bases)
    cotangents = backward.parameters(inputs[len(rules.forwarded) :], ["ct"] * len(inputs))
    parameter = cotangents[0] if count == 1 else backward.names.fresh("cts")
    if residuals:
        backward.take_apart(residuals, "residuals")
    if count > 1:
        backward.take_apart(cotangents, parameter)
    return parameter


def _known(scope: Scope, atom: Atom) -> str:
    """Return the expression of a captured value; empty if only dead code reads it."""
    try:
        return flat(scope.operand(atom))
    except KeyError:
        return ""
