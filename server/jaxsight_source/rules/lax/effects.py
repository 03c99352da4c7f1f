"""Calls of the host: callbacks and prints.

A callback is a function of the user's that cannot be written as source: the written function takes
it as an argument.
"""

from __future__ import annotations

import ast

from jaxsight_source.compat.jaxpr_types import Equation
from jaxsight_source.compat.parameters import callbacks
from jaxsight_source.equations.fallback import flags, given
from jaxsight_source.equations.registry import STRUCTURES
from jaxsight_source.errors import Unsourceable, Unwritable
from jaxsight_source.proof.prover import Proved
from jaxsight_source.text.exprs import TRUE, call, tuple_
from jaxsight_source.text.names import identifier
from jaxsight_source.values import scalars, spelling
from jaxsight_source.values.pytrees import pytree
from jaxsight_source.values.spelling import value
from jaxsight_source.writing.scope import Scope


def _function(scope: Scope, function: object) -> ast.expr:
    name = getattr(function, "__name__", "callback")
    base = "callback" if name == "<lambda>" else identifier(str(name), "callback")
    return scope.writer.passed.placeholder(function, base, "runs on the host")


def _spelled(scope: Scope, argument: object) -> ast.expr:
    """Return the expression of an argument's leaf; operands are expressions already."""
    if isinstance(argument, ast.expr):
        return argument
    try:
        return value(argument)
    except Unwritable:
        return scope.writer.passed.placeholder(argument, "static", "cannot be written as source")


def _given(
    scope: Scope, args: tuple[object, ...], kwargs: dict[str, object]
) -> tuple[list[ast.expr], dict[str, ast.expr]]:
    import jax

    def tree(part: object) -> ast.expr:
        leaves, structure = jax.tree.flatten(part)
        spelled = [_spelled(scope, leaf) for leaf in leaves]
        return pytree(structure, spelled, [], scope.writer.passed.structure)

    return [tree(part) for part in args], {name: tree(part) for name, part in kwargs.items()}


def _leaves(scope: Scope, equation: Equation) -> list[ast.expr]:
    return [scope.operand(atom) for atom in equation.invars]


@STRUCTURES("pure_callback", "io_callback")
def callback(scope: Scope, equation: Equation) -> Proved:
    params = equation.params
    called = callbacks.flat_callback(params["callback"])
    args, kwargs = _given(scope, *called.arguments(_leaves(scope, equation)))
    shapes = [spelling.struct(aval) for aval in params["result_avals"]]
    options = given(params, "sharding")
    if equation.primitive.name == "pure_callback":
        path = "jax.pure_callback"
        options |= given(params, "vmap_method")
    else:
        path = "jax.experimental.io_callback"
        options |= flags(params, "ordered")
    clash = kwargs.keys() & {"sharding", "vmap_method", "ordered", "callback"}
    if clash:
        names = ", ".join(sorted(clash))
        raise Unsourceable(equation.primitive.name, f"its callback has an argument named {names}")
    single = len(shapes) == 1
    expr = call(
        path,
        _function(scope, called.function),
        shapes[0] if single else tuple_(shapes),
        *args,
        **options,
        **kwargs,
    )
    return Proved(expr, 0 if single else tuple(range(len(shapes))))


@STRUCTURES("debug_callback")
def debug_callback(scope: Scope, equation: Equation) -> Proved:
    params = equation.params
    called = callbacks.debug_callback(params["callback"])
    if called is None:
        raise Unsourceable("debug_callback", "it was not created by jax.debug.callback")
    args, kwargs = _given(scope, *called.arguments(_leaves(scope, equation)))
    options: dict[str, ast.expr] = {}
    if callbacks.is_ordered(params["effect"]):
        options["ordered"] = TRUE
    options |= flags(params, "partitioned")
    function = _function(scope, called.function)
    return Proved(call("jax.debug.callback", function, *args, **options, **kwargs), ())


@STRUCTURES("debug_print")
def debug_print(scope: Scope, equation: Equation) -> Proved:
    params = equation.params
    if params.get("logging_record") is not None:
        raise Unsourceable("debug_print", "it logs, for which there is no public option")
    args, kwargs = _given(scope, *callbacks.print_arguments(params, _leaves(scope, equation)))
    options = flags(params, "ordered", "partitioned")
    if not params.get("has_placeholders", True) and (args or kwargs):
        options["skip_format_check"] = TRUE
    return Proved(
        call("jax.debug.print", scalars.text(params["fmt"]), *args, **options, **kwargs), ()
    )
