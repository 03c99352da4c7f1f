"""Calls of jitted and of checkpointed functions, and closed calls.

A closed call is not a call of a user's function; it holds the known part of a checkpoint before it
is differentiated. From JAX 0.12 on, calling a traced function binds such an equation; in earlier
versions no public function does, so the text defines one.
"""

from __future__ import annotations

import ast
import dataclasses
import enum
import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import jax

from jaxsight_source.compat import equations
from jaxsight_source.compat.jaxpr_types import Atom, Equation, Params
from jaxsight_source.compat.staging import Program, folded, is_literal, opened, substituted
from jaxsight_source.equations.registry import STRUCTURES
from jaxsight_source.errors import Unsourceable
from jaxsight_source.jaxprs.same.comparison import Comparison
from jaxsight_source.proof.prover import Proved
from jaxsight_source.text.exprs import NONE, TRUE, call, list_, parse, public, tuple_
from jaxsight_source.text.layout import flat
from jaxsight_source.text.names import identifier
from jaxsight_source.text.statements import assign, define
from jaxsight_source.values import public_names
from jaxsight_source.values.spelling import layout as spelled_layout
from jaxsight_source.values.spelling import value
from jaxsight_source.writing.scope import Scope
from jaxsight_source.writing.variables import nested_results, passed_as, sequence, with_parts


def function_name(program: Program, fallback: str) -> str:
    name = equations.function_name(program)
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
    parts = [spelled_layout(layout)] + ([where] if where is not NONE else [])
    return call(public_names.imported("jax.experimental.layout", "Format"), *parts)


@STRUCTURES("jit", "pjit")
def jit(scope: Scope, equation: Equation) -> Proved:
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
    literals: dict[int, Atom] = {}
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


@STRUCTURES("remat2", "remat", "checkpoint")
def checkpoint(scope: Scope, equation: Equation) -> Proved:
    params = equation.params
    program = opened(params["jaxpr"])
    base = function_name(program, "checkpointed")
    policy = policy_expr(params["policy"])
    differentiated = params["differentiated"]
    options: dict[str, ast.expr] = {}
    if params["prevent_cse"] is not True:
        options["prevent_cse"] = value(params["prevent_cse"])
    if policy is not NONE:
        options["policy"] = policy

    operands = scope.operands(equation.invars, program.jaxpr.invars)

    def build(name: str) -> list[ast.stmt]:
        function = Scope.top(scope.writer).as_function(name, program, (), passed_as(operands))
        if differentiated:
            return [function]
        return decorated(function, jax.checkpoint, "jax.checkpoint", options)

    key = ("remat", id(params["jaxpr"]), differentiated, spelled(options))
    function = scope.writer.functions.shared(key, params["jaxpr"], base, build)
    if not differentiated:
        return Proved(call(function, *operands), nested_results(len(equation.outvars)))
    traced = call("jax.make_jaxpr", function)
    arguments = scope.several(operands, "operands")
    jaxpr = scope.assigned("jaxpr", ast.Attribute(call(traced, *arguments), "jaxpr"))
    return scope.bound(
        equation,
        *arguments,
        jaxpr=jaxpr,
        prevent_cse=value(params["prevent_cse"]),
        differentiated=TRUE,
        policy=policy,
    )


def policy_expr(policy: object) -> ast.expr:
    """Return an expression for a checkpoint policy; raise `Unwritable` if it has none.

    It is a name in `jax.checkpoint_policies`, a call there, or the path of an import.
    """
    if policy is None:
        return NONE
    for name in _policies():
        if getattr(jax.checkpoint_policies, name) == policy:
            return public(f"jax.checkpoint_policies.{name}")
    for name in _policies():
        maker = getattr(jax.checkpoint_policies, name)
        for args, kwargs in _makings(maker, _held(policy)):
            try:
                candidate = maker(*args, **kwargs)
            except (TypeError, ValueError, AttributeError):
                continue
            if (
                candidate is not True
                and candidate is not False
                and Comparison().values(candidate, policy)
            ):
                spelled = [_policy_part(arg) for arg in args]
                named = {key: _policy_part(argument) for key, argument in kwargs.items()}
                return call(f"jax.checkpoint_policies.{name}", *spelled, **named)
    return value(policy)


def _policy_part(argument: object) -> ast.expr:
    return policy_expr(argument) if callable(argument) else value(argument)


def _policies() -> list[str]:
    return [name for name in dir(jax.checkpoint_policies) if not name.startswith("_")]


def _held(policy: Any) -> dict[str, object]:
    """Return the arguments of a policy: fields of an object, or variables of a closure."""
    if dataclasses.is_dataclass(policy):
        return {field.name: getattr(policy, field.name) for field in dataclasses.fields(policy)}
    if getattr(policy, "__closure__", None):
        cells = [cell.cell_contents for cell in policy.__closure__]
        return dict(zip(policy.__code__.co_freevars, cells, strict=True))
    return {}


def _makings(
    maker: Callable[..., object], arguments: dict[str, object]
) -> Iterator[tuple[tuple[object, ...], dict[str, object]]]:
    if not arguments:
        yield (), {}
        return
    values_ = list(arguments.values())
    if len(values_) == 1 and isinstance(values_[0], (set, frozenset, tuple, list)):
        yield tuple(sorted(values_[0])), {}
    try:
        wanted = inspect.signature(maker).parameters
    except (TypeError, ValueError):
        return
    bare = {key.strip("_"): argument for key, argument in arguments.items()}
    if set(wanted) <= set(bare):
        parts = ((key, bare[key]) for key in wanted)
        named = {k: sorted(p) if isinstance(p, (set, frozenset)) else p for k, p in parts}
        yield (), named
    if all(callable(argument) for argument in values_):
        yield tuple(values_), {}
