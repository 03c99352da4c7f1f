"""Calls of checkpointed functions, and their policies."""

from __future__ import annotations

import ast
import dataclasses
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import jax

from jaxsight_source.compat.jaxpr_types import Equation
from jaxsight_source.compat.staging import opened
from jaxsight_source.equations.registry import STRUCTURES
from jaxsight_source.jaxprs.same.comparison import Comparison
from jaxsight_source.proof.prover import Proved
from jaxsight_source.rules.functions.calls import decorated, function_name, spelled
from jaxsight_source.text.exprs import NONE, TRUE, call, public
from jaxsight_source.values import public_names
from jaxsight_source.values.spelling import value
from jaxsight_source.writing.results import nested_results, passed_as
from jaxsight_source.writing.scope import Scope


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
    count = len(equation.outvars)
    if not differentiated:
        return Proved(call(function, *operands), nested_results(count))
    scope.writer.bound.append(equation.primitive.name)
    traced = call("jax.make_jaxpr", function)
    arguments = scope.several(operands, "operands")
    jaxpr = scope.assigned("jaxpr", ast.Attribute(call(traced, *arguments), "jaxpr"))
    bound = call(
        ast.Attribute(public_names.primitive(equation.primitive), "bind"),
        *arguments,
        jaxpr=jaxpr,
        prevent_cse=value(params["prevent_cse"]),
        differentiated=TRUE,
        policy=policy,
    )
    return Proved(bound, tuple(range(count)))


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
