"""Functions with custom derivative rules, and these rules."""

from __future__ import annotations

import ast
import contextlib
import textwrap
from collections.abc import Callable, Sequence

from jaxsight_source.compat import derivative_rules, rule_identity
from jaxsight_source.compat.jaxpr_types import Atom, Aval, Equation, Params
from jaxsight_source.compat.staging import Program, is_literal, opened
from jaxsight_source.equations.registry import STRUCTURES, equation_key
from jaxsight_source.errors import Unsourceable
from jaxsight_source.proof.prover import Proved
from jaxsight_source.rules.functions.calls import function_name
from jaxsight_source.rules.lax.external import call_exported
from jaxsight_source.text.exprs import NONE, TRUE, call, public, tuple_
from jaxsight_source.text.layout import flat
from jaxsight_source.text.statements import assign, define, effect, return_
from jaxsight_source.values import scalars
from jaxsight_source.values.spelling import value
from jaxsight_source.writing.results import argument_bases, nested_results, passed_as, sequence
from jaxsight_source.writing.scope import Scope


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
        try:
            with scope.writer.functions.rule():
                derivative = _jvp_function(home, name, program, params)
        except derivative_rules.Refused as error:
            if isinstance(error, derivative_rules.Outlived) and home is not scope:
                raise
            derivative = define(f"{name}_jvp", ("primals", "tangents"), [_refusal(base, error)])
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
    rule = derivative_rules.jvp_rule(params, absent)
    jvp = home.inner()
    primals = [jvp.names.fresh(base) for base in argument_bases(program)[params["num_consts"] :]]
    tangents = [
        "_" if is_absent else jvp.names.fresh(f"{primal}_dot")
        for primal, is_absent in zip(primals, absent, strict=True)
    ]
    jvp.names.keep("primals")
    jvp.names.keep("tangents")
    inputs = [*primals, *(tangent for tangent in tangents if tangent != "_")]
    for var, parameter in zip(rule.program.jaxpr.invars, inputs, strict=True):
        jvp.write(var, ast.Name(parameter))
    jvp.body.append(assign(tuple_(map(ast.Name, primals)), ast.Name("primals")))
    jvp.body.append(assign(tuple_(map(ast.Name, tangents)), ast.Name("tangents")))
    results = iter(jvp.program(rule.program))
    outputs = [next(results) for _ in rule.zeros]
    symbolic = "jax.custom_derivatives.SymbolicZero.from_primal_value"
    dots = [
        next(results)
        if not is_zero
        else call(symbolic, output)
        if symbolic_zeros
        else _zero_tangent(var.aval)
        for var, output, is_zero in zip(program.jaxpr.outvars, outputs, rule.zeros, strict=True)
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


def _refusal(name: str, why: derivative_rules.Refused) -> ast.stmt:
    """Return the body of a rule for a function that cannot be differentiated."""
    message = ast.Constant(textwrap.shorten(f"no derivative of {name}: {why}", 80, placeholder="…"))
    return ast.Raise(call("NotImplementedError", message))


def _zero_tangent(aval: Aval) -> ast.expr:
    tangent = aval.to_tangent_aval()
    if (
        str(tangent.dtype) == "float0"
        or tangent.dtype.names is not None
        or tangent.dtype.kind == "V"
    ):
        return call("np.zeros", value(tangent.shape), public("jax.dtypes.float0"))
    return call("jnp.zeros", value(tangent.shape), scalars.dtype(tangent.dtype))


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
        identity = rule_identity.rule_identity(equation.params)
        with contextlib.suppress(
            derivative_rules.Outlived
        ):  # a rule that captures values stays here
            name = scope.writer.functions.custom(identity, program, base, shared)
            return Proved(call(name, *operands), nested_results(count))
    captures = [_known(scope, atom) for atom in equation.invars[:captured]]
    types = [var.aval for var in program.jaxpr.invars]
    key = (rule_identity.rule_identity(equation.params), captures, types)
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
        pair = f"{name}_fwd", f"{name}_bwd"
        try:
            with scope.writer.functions.rule():
                rules = _vjp_functions(home, pair, program, params)
        except derivative_rules.Refused as error:
            if isinstance(error, derivative_rules.Outlived) and home is not scope:
                raise
            pair = f"{name}_refused", f"{name}_refused"
            rules = [define(pair[0], ("*_",), [_refusal(base, error)])]
        except derivative_rules.Unreadable as error:
            raise Unsourceable("custom_vjp_call", str(error)) from error
        return [function, *rules, effect(call(f"{name}.defvjp", *map(ast.Name, pair)))]

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
    residuals = backward.parameters(inputs[: rules.residuals], bases)
    cotangents = backward.parameters(
        inputs[rules.residuals :], ["ct"] * (len(inputs) - rules.residuals)
    )
    parameter = cotangents[0]
    if count != 1:
        parameter = backward.names.fresh("cts")
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
