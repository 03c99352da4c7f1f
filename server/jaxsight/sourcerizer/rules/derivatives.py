"""Equations that derivatives leave behind: sums of cotangents, and calls that are no function of the user's: what a checkpoint knows before it
is differentiated. No public function makes such a call, so the text defines one for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax

from jaxsight.interpreters.compat.staging import opened
from jaxsight.sourcerizer.exprs import Atom, Expr, Star, call, dict_, list_, tuple_
from jaxsight.sourcerizer.module import Assign, Function, Return, Statement
from jaxsight.sourcerizer.view import LAX, View
from jaxsight.sourcerizer.writer import STRUCTURES, Proved, Scope, Writer, argument_bases

_BY_JAXPR = (0, 11)
"""From this version on such a call takes a jaxpr; from the one below on, functions by name."""
_BY_NAME = (0, 9)


@LAX("add_any")
def add_any(view: View) -> Iterator[Expr]:
    yield call("ad.add_jaxvals", *view.operands)


@STRUCTURES("closed_call", "eval_jaxpr")
def closed_call(scope: Scope, equation: Any) -> Proved | None:
    if set(equation.params) != {"call_jaxpr"}:
        return None
    program = opened(equation.params["call_jaxpr"])
    maker = _maker(scope.writer)

    def build(name: str) -> list[Statement]:
        inner = scope.writer.scope()
        parameters = inner.parameters(program.jaxpr.invars, argument_bases(program))
        results = inner.program(program)
        function = Function(name, tuple(parameters), [*inner.body, Return(list_(results))])
        function.decorators.append(Atom(maker))
        return [function]

    key = ("closed_call", id(equation.params["call_jaxpr"]))
    function = scope.writer.shared(key, equation.params["call_jaxpr"], "known", build)
    scope.writer.bound.append(equation.primitive.name)
    operands = scope.operands(equation.invars, program.jaxpr.invars)
    return Proved(call(function, *operands), tuple(range(len(equation.outvars))))


def _maker(writer: Writer) -> str:
    """The function of the module that makes such calls."""
    name = "closed_call"
    if any(isinstance(found, Function) and found.name == name for found in writer.functions):
        return name
    writer.names.keep(name)
    args = Star(Atom("args"))
    bind = "primitives.closed_call_p.bind"
    body: list[Statement] = []
    bound: Expr
    if jax.__version_info__ >= _BY_JAXPR:
        jaxpr = call(call("jax.make_jaxpr", Atom("function")), args)
        bound = call(bind, args, call_jaxpr=jaxpr)
    else:
        function = Atom("function")
        info = call("api_util.debug_info", Atom(f'"{name}"'), function, Atom("args"), dict_([]))
        body.append(Assign("info", info))
        wrapped = call("linear_util.wrap_init", function, debug_info=Atom("info"))
        body.append(Assign("wrapped", wrapped))
        bound = (
            call(bind, args, subfuns=tuple_([Atom("wrapped")]))
            if jax.__version_info__ >= _BY_NAME
            else call(bind, Atom("wrapped"), args)
        )
    inner = Function("called", ("*args",), [*body, Return(bound)])
    writer.functions.append(Function(name, ("function",), [inner, Return(Atom("called"))]))
    return name
