"""Equations that differentiation leaves behind: sums of cotangents, and closed calls.

A closed call is not a call of a user's function; it holds the known part of a checkpoint before it
is differentiated. From JAX 0.12 on, calling a traced function binds such an equation; in earlier
versions no public function does, so the text defines one.
"""

from __future__ import annotations

import functools
from typing import Any

import jax

from jaxsight.interpreters.compat.staging import Program, opened
from jaxsight.sourcerizer.equations.registry import STRUCTURES
from jaxsight.sourcerizer.proof.prover import Proved
from jaxsight.sourcerizer.text.exprs import Atom, Attribute, Expr, Star, call, dict_, list_, tuple_
from jaxsight.sourcerizer.text.statements import Assign, Function, Return, Statement
from jaxsight.sourcerizer.writing.results import argument_bases, nested_results, passed_as, sequence
from jaxsight.sourcerizer.writing.scope import Scope

_CLOSED_CALL = "closed_call"
"""The name of the module's function that makes closed calls."""

_BY_JAXPR = (0, 11)
"""From this version on a closed call takes a jaxpr; before, it takes functions."""
_BY_NAME = (0, 9)
"""From this version on these functions are a keyword argument."""


@STRUCTURES("closed_call", "eval_jaxpr")
def closed_call(scope: Scope, equation: Any) -> Proved | None:
    if set(equation.params) != {"call_jaxpr"}:
        return None
    program = opened(equation.params["call_jaxpr"])
    if (function := _given(scope, program)) is not None:
        roots = [scope.operand(atom) for atom in equation.invars[-len(equation.outvars) :]]
        return Proved(call(function, sequence(roots)), nested_results(len(roots)))
    operands = scope.operands(equation.invars, program.jaxpr.invars)
    bases = argument_bases(program, passed_as(operands))

    def build(name: str) -> list[Statement]:
        inner = Scope.top(scope.writer)
        parameters = inner.parameters(program.jaxpr.invars, bases)
        results = inner.program(program)
        return [Function(name, tuple(parameters), [*inner.body, Return(list_(results))])]

    traced = _bound_by_traced_calls() is equation.primitive
    build_maker = functools.partial(_closed_call, traced=traced)
    maker = scope.writer.functions.helper(_CLOSED_CALL, build_maker)
    key = ("closed_call", id(equation.params["call_jaxpr"]))
    function = scope.writer.functions.shared(key, equation.params["call_jaxpr"], "known", build)
    scope.writer.bound.extend([] if traced else [equation.primitive.name])
    expr = call(maker, function, *operands)
    return Proved(expr, tuple(range(len(equation.outvars))))


def _given(scope: Scope, program: Program) -> Expr | None:
    """Return the function of a `lax.custom_root` if its solver calls it here, or None."""
    try:
        return scope.read(program.jaxpr)
    except KeyError:
        return None


@functools.cache
def _bound_by_traced_calls() -> Any:
    inside = jax.jit(lambda x: x)
    try:
        jaxpr: Any = jax.make_jaxpr(lambda x: inside.trace(x)(x))(1.0)
    except TypeError:
        return None  # such functions cannot be called
    return jaxpr.eqns[0].primitive if jaxpr.eqns else None


def _closed_call(*, traced: bool) -> Function:
    """Return the module's function that makes closed calls."""
    function, args = Atom("function"), Star(Atom("args"))
    bind = "primitives.closed_call_p.bind"
    body: list[Statement] = []
    bound: Expr
    if traced:
        bound = call(call(Attribute(call("jax.jit", function), "trace"), args), args)
    elif jax.__version_info__ >= _BY_JAXPR:
        jaxpr = call(call("jax.make_jaxpr", function), args)
        bound = call(bind, args, call_jaxpr=jaxpr)
    else:
        name = Atom(f'"{_CLOSED_CALL}"')
        info = call("api_util.debug_info", name, function, Atom("args"), dict_([]))
        body.append(Assign("info", info))
        wrapped = call("linear_util.wrap_init", function, debug_info=Atom("info"))
        body.append(Assign("wrapped", wrapped))
        bound = (
            call(bind, args, subfuns=tuple_([Atom("wrapped")]))
            if jax.__version_info__ >= _BY_NAME
            else call(bind, Atom("wrapped"), args)
        )
    return Function(_CLOSED_CALL, ("function", "*args"), [*body, Return(bound)])
