"""Calls of jitted functions, and closed calls.

A closed call is not a call of a user's function; it holds the known part of a checkpoint before it
is differentiated. From JAX 0.12 on, calling a traced function binds such an equation; in earlier
versions no public function does, so the text defines one.
"""

from __future__ import annotations

import ast
import contextlib
import enum
import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import jax

from jaxsight_source.compat import equations
from jaxsight_source.compat.jaxpr_types import Atom as JaxprAtom
from jaxsight_source.compat.jaxpr_types import Equation, Params
from jaxsight_source.compat.staging import Program, folded, is_literal, opened, substituted
from jaxsight_source.equations.registry import STRUCTURES
from jaxsight_source.errors import Unsourceable
from jaxsight_source.proof.prover import Proved
from jaxsight_source.rules.functions.lineax import linear_solve
from jaxsight_source.text.exprs import NONE, TRUE, call, list_, parse, public, tuple_
from jaxsight_source.text.layout import flat
from jaxsight_source.text.names import identifier
from jaxsight_source.text.statements import assign, define
from jaxsight_source.values import public_names, spelling
from jaxsight_source.values.spelling import value
from jaxsight_source.writing.results import (
    nested_results,
    passed_as,
    sequence,
    with_parts,
)
from jaxsight_source.writing.scope import Scope


def function_name(program: Program, fallback: str) -> str:
    info = getattr(program.jaxpr, "debug_info", None)
    name = str(getattr(info, "func_name", "") or "")
    return identifier(name.rpartition(".")[2] or fallback, fallback) if name else fallback


def jit_options(params: Params) -> dict[str, ast.expr]:
    """Return the options of `jax.jit`, from the parameters of the equation."""
    options: dict[str, ast.expr] = {}
    for side in ("in", "out"):
        shardings = params[f"{side}_shardings"]
        layouts = params.get(f"{side}_layouts") or (None,) * len(shardings)
        if not all(map(equations.is_unspecified, shardings)) or any(
            array_layout is not None for array_layout in layouts
        ):
            spelled = [_placed(*pair) for pair in zip(shardings, layouts, strict=True)]
            options[f"{side}_shardings"] = sequence(spelled) if side == "out" else tuple_(spelled)
    if any(params["donated_invars"]):
        donated = tuple(
            i for i, array_layout in enumerate(params["donated_invars"]) if array_layout
        )
        options["donate_argnums"] = value(donated[0] if len(donated) == 1 else donated)
    if params["keep_unused"]:
        options["keep_unused"] = TRUE
    match params.get("inline"):
        case enum.Enum(name="AUTO"):  # from JAX 0.12 on
            pass
        case enum.Enum(name="JAX_LATE"):
            options["inline"] = TRUE
        case enum.Enum() as other:
            options["inline"] = value(other)
        case True:
            raise Unsourceable("jit", "its inline=True makes JAX inline it while tracing")
    if params.get("compiler_options_kvs"):
        options["compiler_options"] = value(dict(params["compiler_options_kvs"]))
    return options


def spelled(options: Mapping[str, ast.expr]) -> tuple[tuple[str, str], ...]:
    """Return a key of options."""
    return tuple((name, flat(option)) for name, option in options.items())


def decorated(
    function: ast.FunctionDef,
    decorator: Callable[..., object],
    path: str,
    options: dict[str, ast.expr],
) -> list[ast.stmt]:
    """Decorate a function: with `@decorator(options)`, or by an assignment after it.

    The assignment is for versions of JAX whose decorator takes no options without the function.
    """
    if (
        options
        and inspect.signature(decorator).parameters["fun"].default is inspect.Parameter.empty
    ):
        return [function, assign(function.name, call(path, ast.Name(function.name), **options))]
    function.decorator_list.append(call(path, **options) if options else public(path))
    return [function]


def _placed(sharding: object, layout: object) -> ast.expr:
    """Return the sharding and layout of an argument or result of a jitted function, if given."""
    where = NONE if equations.is_unspecified(sharding) else value(sharding)
    if layout is None:
        return where
    parts = [spelling.layout(layout)] + ([where] if where is not NONE else [])
    return call(public_names.imported("jax.experimental.layout", "Format"), *parts)


@STRUCTURES("jit", "pjit")
def jit(scope: Scope, calls: Equation | list[Equation]) -> Proved | None:
    group = calls if isinstance(calls, list) else [calls]
    solution = linear_solve(scope, group)
    if solution is not None or len(group) > 1:
        return solution
    (equation,) = group
    program = opened(equation.params["jaxpr"])
    if scope.writer.options.inline:
        return in_place(scope, program, equation)
    base = identifier(str(equation.params["name"]), "function")
    options = {name: scope.once(option) for name, option in jit_options(equation.params).items()}

    def build(name: str) -> list[ast.stmt]:
        return decorated(
            Scope.top(scope.writer).as_function(name, program), jax.jit, "jax.jit", options
        )

    key = ("jit", id(equation.params["jaxpr"]), spelled(options))
    function = scope.writer.functions.shared(key, equation.params["jaxpr"], base, build)
    operands = scope.operands(equation.invars, program.jaxpr.invars)
    return Proved(call(function, *operands), nested_results(len(equation.outvars)))


def in_place(scope: Scope, program: Program, equation: Equation) -> Proved:
    """Write a program's equations in place of its call."""
    literals: dict[int, JaxprAtom] = {}
    for var, atom in zip(program.jaxpr.invars, equation.invars, strict=True):
        if is_literal(atom):
            literals[id(var)] = atom
        else:
            scope.alias(var, atom)
    inlined: list[object] = []
    for inner in program.jaxpr.eqns:
        invars = substituted(inner.invars, literals)
        if (number := folded(inner, invars)) is not None:
            literals[id(inner.outvars[0])] = number
        else:
            inlined.append(inner.replace(invars=invars))
    outvars = substituted(program.jaxpr.outvars, literals)
    results = scope.program(with_parts(program, eqns=inlined, outvars=outvars))
    return Proved(sequence(results), nested_results(len(results)))


_CLOSED_CALL = "closed_call"
"""The name of the module's function that makes closed calls."""

_BY_JAXPR = (0, 11)
"""From this version on a closed call takes a jaxpr; before, it takes functions."""
_BY_NAME = (0, 9)
"""From this version on these functions are a keyword argument."""


@STRUCTURES("closed_call", "eval_jaxpr")
def closed_call(scope: Scope, equation: Equation) -> Proved | None:
    if set(equation.params) != {"call_jaxpr"}:
        return None
    program = opened(equation.params["call_jaxpr"])
    with contextlib.suppress(KeyError):  # the function of a `lax.custom_root`, in its solver
        given = scope.read(program.jaxpr)
        roots = [scope.operand(atom) for atom in equation.invars[-len(equation.outvars) :]]
        return Proved(call(given, sequence(roots)), nested_results(len(roots)))
    operands = scope.operands(equation.invars, program.jaxpr.invars)

    def build(name: str) -> list[ast.stmt]:
        unnamed = passed_as(operands)
        return [Scope.top(scope.writer).as_function(name, program, (), unnamed, list_)]

    traced = _bound_by_traced_calls() is equation.primitive
    build_maker = functools.partial(_closed_call, traced=traced)
    maker = scope.writer.functions.helper(_CLOSED_CALL, build_maker)
    key = ("closed_call", id(equation.params["call_jaxpr"]))
    function = scope.writer.functions.shared(key, equation.params["call_jaxpr"], "known", build)
    scope.writer.bound.extend([] if traced else [equation.primitive.name])
    expr = call(maker, function, *operands)
    return Proved(expr, tuple(range(len(equation.outvars))))


@functools.cache
def _bound_by_traced_calls() -> object:
    inside = jax.jit(lambda x: x)
    try:
        jaxpr: Any = jax.make_jaxpr(lambda x: inside.trace(x)(x))(1.0)
    except TypeError:
        return None  # such functions cannot be called
    return jaxpr.eqns[0].primitive if jaxpr.eqns else None


def _closed_call(*, traced: bool) -> ast.FunctionDef:
    """Return the module's function that makes closed calls."""
    bind = "return primitives.closed_call_p.bind"
    if traced:
        rows = ["return jax.jit(function).trace(*args)(*args)"]
    elif jax.__version_info__ >= _BY_JAXPR:
        rows = [f"{bind}(*args, call_jaxpr=jax.make_jaxpr(function)(*args))"]
    else:
        by_name = jax.__version_info__ >= _BY_NAME
        rows = [
            f"info = api_util.debug_info('{_CLOSED_CALL}', function, args, {{}})",
            "wrapped = linear_util.wrap_init(function, debug_info=info)",
            f"{bind}({'*args, subfuns=(wrapped,)' if by_name else 'wrapped, *args'})",
        ]
    return define(_CLOSED_CALL, ("function", "*args"), parse("\n".join(rows)))
