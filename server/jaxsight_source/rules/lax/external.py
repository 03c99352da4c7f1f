"""Calls of the host, and calls with opaque bodies.

The latter are foreign functions, exported programs, composites, and functions with custom batching
rules. A callback is a function of the user's that cannot be written as source:
the written function takes it as an argument.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

import jax
import numpy as np

from jaxsight_source.compat import parameters
from jaxsight_source.compat.jaxpr_types import Equation, Var
from jaxsight_source.compat.staging import opened
from jaxsight_source.equations.registry import STRUCTURES, flags, passed
from jaxsight_source.errors import Unsourceable, Unwritable
from jaxsight_source.options import DEEPEST_RULES
from jaxsight_source.proof.prover import Proved
from jaxsight_source.text.exprs import TRUE, call, dict_, parsed, tuple_
from jaxsight_source.text.names import identifier
from jaxsight_source.text.statements import effect
from jaxsight_source.values import public_names, spelling
from jaxsight_source.values.pytrees import Leaf, built, pytree
from jaxsight_source.values.spelling import struct, value
from jaxsight_source.writing.scope import Scope
from jaxsight_source.writing.variables import nested_results, sequence


@STRUCTURES("ffi_call")
def ffi_call(scope: Scope, equation: Equation) -> Proved:
    params = equation.params
    options = flags(params, "has_side_effect") | passed(params, "vmap_method")
    for key in ("input_layouts", "output_layouts"):
        layouts = params[key]
        if layouts is not None and any(
            layout is not None and tuple(layout) != tuple(reversed(range(len(layout))))
            for layout in layouts
        ):
            outer = [layout and tuple(reversed(layout)) for layout in layouts]
            single = key == "output_layouts" and len(outer) == 1  # as `sequence` has the results
            options[key] = value(outer[0] if single else outer)
    if params["input_output_aliases"]:
        pairs = dict(params["input_output_aliases"]).items()
        options["input_output_aliases"] = dict_((value(i), value(o)) for i, o in pairs)
    if params.get("custom_call_api_version", 4) != 4:
        options["custom_call_api_version"] = value(params["custom_call_api_version"])
    options |= passed(params, "legacy_backend_config")
    results = [struct(aval) for aval in params["result_avals"]]
    maker = call(
        "jax.ffi.ffi_call", ast.Constant(params["target_name"]), sequence(results), **options
    )
    foreign = scope.assigned("foreign", maker)
    attributes = {  # whose types matter
        name: spelling.typed(attribute) if isinstance(attribute, np.generic) else value(attribute)
        for name, attribute in params["attributes"]
    }
    operands = [scope.operand(atom) for atom in equation.invars]
    return Proved(call(foreign, *operands, **attributes), nested_results(len(results)))


@STRUCTURES("call_exported")
def call_exported(scope: Scope, equation: Equation) -> Proved:
    exported = equation.params["exported"]
    data = bytes(exported.serialize(vjp_order=DEEPEST_RULES * exported.has_vjp()))
    stored = parsed(f'bytearray.fromhex("{data.hex()}")')
    deserialize = public_names.imported("jax.export", "deserialize")
    name = scope.writer.constants.named(data, "_EXPORTED", call(deserialize, stored))
    leaves = [scope.operand(atom) for atom in equation.invars]
    args, kwargs = jax.tree.unflatten(exported.in_tree, map(Leaf, range(len(leaves))))
    opaque = scope.writer.passed.structure
    arguments = [built(part, leaves, [], opaque) for part in args]
    named = {key: built(part, leaves, [], opaque) for key, part in kwargs.items()}
    results = jax.tree.unflatten(exported.out_tree, range(len(equation.outvars)))
    return Proved(call(ast.Attribute(name, "call"), *arguments, **named), results)


@STRUCTURES("composite")
def composite(scope: Scope, equation: Equation) -> Proved:
    params = equation.params
    program = opened(params["call_jaxpr"] if "call_jaxpr" in params else params["jaxpr"])
    attributes = {
        name: jax.tree.unflatten(tree, leaves) for name, leaves, tree in params["attributes"]
    }

    def parameters(inner: Scope, inputs: Sequence[Var], bases: list[str]) -> Sequence[str]:
        names = inner.parameters(inputs, bases)
        for name in attributes:
            inner.names.keep(name)
        return [*names, "*", *attributes] if attributes else names

    base = identifier(str(params["name"]), "composite")
    function = scope.function(base, program, (), parameters)
    options = {"version": value(params["version"])} if params.get("version") else {}
    made = call("lax.composite", function, ast.Constant(params["name"]), **options)
    composed = scope.assigned("composed", made)
    operands = scope.operands(equation.invars, program.jaxpr.invars)
    keywords = {name: value(attribute) for name, attribute in attributes.items()}
    return Proved(call(composed, *operands, **keywords), nested_results(len(equation.outvars)))


@STRUCTURES("custom_vmap_call")
def custom_vmap(scope: Scope, equation: Equation) -> Proved:
    """Write a function with a custom batching rule, which the caller passes.

    The rule is Python code for any batch size, so it cannot be written as source.
    """
    params = equation.params
    program = opened(params["call"])
    consts, args = jax.tree.unflatten(params["in_tree"], range(len(equation.invars)))
    if consts or list(args) != list(range(len(equation.invars))):
        raise Unsourceable("custom_vmap_call", "its rule takes pytrees or captured values")
    single = jax.tree.unflatten(params["out_tree"], range(len(equation.outvars))) == 0
    rule = params["rule"].rule
    name = scope.names.fresh("batched")
    results = sequence if single else tuple_
    function = scope.inner().as_function(name, program, results=results)
    decorator = "custom_vmap"
    scope.body.append(function)
    if str(getattr(rule, "__qualname__", "")).startswith("sequential_vmap."):
        decorator = "sequential_vmap"
    else:
        batching_rule = scope.writer.passed.placeholder(
            rule, "vmap_rule", "is the batching rule of a function"
        )
        scope.body.append(effect(call(f"{name}.def_vmap", batching_rule)))
    function.decorator_list.append(public_names.imported("jax.custom_batching", decorator))
    operands = scope.operands(equation.invars, program.jaxpr.invars)
    return Proved(call(name, *operands), 0 if single else tuple(range(len(equation.outvars))))


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
    scope: Scope, equation: Equation, called: parameters.HostCall
) -> tuple[list[ast.expr], dict[str, ast.expr]]:
    def tree(part: object) -> ast.expr:
        leaves, structure = jax.tree.flatten(part)
        spelled = [_spelled(scope, leaf) for leaf in leaves]
        return pytree(structure, spelled, [], scope.writer.passed.structure)

    args, kwargs = called.arguments([scope.operand(atom) for atom in equation.invars])
    return [tree(part) for part in args], {name: tree(part) for name, part in kwargs.items()}


@STRUCTURES("pure_callback", "io_callback")
def callback(scope: Scope, equation: Equation) -> Proved:
    params = equation.params
    called = parameters.flat_callback(params["callback"])
    args, kwargs = _given(scope, equation, called)
    shapes = [struct(aval) for aval in params["result_avals"]]
    options = passed(params, "sharding")
    if equation.primitive.name == "pure_callback":
        path = "jax.pure_callback"
        options |= passed(params, "vmap_method")
    else:
        path = "jax.experimental.io_callback"
        options |= flags(params, "ordered")
    clash = kwargs.keys() & {"sharding", "vmap_method", "ordered", "callback"}
    if clash:
        names = ", ".join(sorted(clash))
        raise Unsourceable(equation.primitive.name, f"its callback has an argument named {names}")
    function = _function(scope, called.function)
    expr = call(path, function, sequence(shapes), *args, **options, **kwargs)
    return Proved(expr, nested_results(len(shapes)))


@STRUCTURES("debug_callback")
def debug_callback(scope: Scope, equation: Equation) -> Proved:
    params = equation.params
    called = parameters.debug_callback(params["callback"])
    if called is None:
        raise Unsourceable("debug_callback", "it was not created by jax.debug.callback")
    args, kwargs = _given(scope, equation, called)
    ordered = {"ordered": TRUE} if parameters.is_ordered(params["effect"]) else {}
    options = ordered | flags(params, "partitioned")
    function = _function(scope, called.function)
    return Proved(call("jax.debug.callback", function, *args, **options, **kwargs), ())


@STRUCTURES("debug_print")
def debug_print(scope: Scope, equation: Equation) -> Proved:
    params = equation.params
    if params.get("logging_record") is not None:
        raise Unsourceable("debug_print", "it logs, for which there is no public option")
    args, kwargs = _given(scope, equation, parameters.print_call(params))
    options = flags(params, "ordered", "partitioned")
    if not params.get("has_placeholders", True) and (args or kwargs):
        options["skip_format_check"] = TRUE
    text = ast.Constant(params["fmt"])
    return Proved(call("jax.debug.print", text, *args, **options, **kwargs), ())
