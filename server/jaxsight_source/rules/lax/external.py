"""Calls with opaque bodies: foreign functions, exported programs, composites, custom rules.

The custom rules here are those for transposition, batching and partitioning.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

import jax
import numpy as np

from jaxsight_source.compat.jaxpr_types import Atom as JaxprAtom
from jaxsight_source.compat.jaxpr_types import Equation, Var
from jaxsight_source.compat.staging import Program, opened
from jaxsight_source.equations.fallback import flags, given
from jaxsight_source.equations.registry import STRUCTURES
from jaxsight_source.errors import Unsourceable
from jaxsight_source.options import DEEPEST_RULES
from jaxsight_source.proof.prover import Proved
from jaxsight_source.text.exprs import FALSE, call, dict_, parsed, tuple_
from jaxsight_source.text.names import identifier
from jaxsight_source.text.statements import define, effect, return_
from jaxsight_source.values import public_names, scalars, spelling
from jaxsight_source.values.pytrees import Leaf, built
from jaxsight_source.values.spelling import value
from jaxsight_source.writing.results import argument_bases, nested_results, sequence
from jaxsight_source.writing.scope import Scope


@STRUCTURES("ffi_call")
def ffi_call(scope: Scope, equation: Equation) -> Proved:
    params = equation.params
    options = flags(params, "has_side_effect") | given(params, "vmap_method")
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
    options |= given(params, "legacy_backend_config")
    results = [spelling.struct(aval) for aval in params["result_avals"]]
    maker = call(
        "jax.ffi.ffi_call", scalars.text(params["target_name"]), sequence(results), **options
    )
    foreign = scope.assigned("foreign", maker)
    attributes = {  # whose types matter
        name: scalars.typed(attribute) if isinstance(attribute, np.generic) else value(attribute)
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
    made = call("lax.composite", function, scalars.text(params["name"]), **options)
    composed = scope.assigned("composed", made)
    operands = scope.operands(equation.invars, program.jaxpr.invars)
    keywords = {name: value(attribute) for name, attribute in attributes.items()}
    return Proved(call(composed, *operands, **keywords), nested_results(len(equation.outvars)))


@STRUCTURES("linear_call")
def linear_call(scope: Scope, equation: Equation) -> Proved:
    params = equation.params
    program = opened(params["callee"])
    transposed, constants = params["transpose_thunk"]()
    if constants:
        raise Unsourceable("linear_call", "its transpose captures values")
    consts, residuals = params["num_callee_consts"], params["num_res"]
    split = consts + residuals
    forward = _of_two(scope, "linear", program, equation.invars[:consts], residuals)
    backward = _of_two(scope, "transposed", opened(transposed), [], residuals)
    operands = scope.operands(equation.invars, program.jaxpr.invars)
    expr = call(
        public_names.imported("jax.custom_derivatives", "linear_call"),
        forward,
        backward,
        tuple_(operands[consts:split]),
        tuple_(operands[split:]),
    )
    return Proved(expr, tuple(range(len(equation.outvars))))


def _of_two(
    scope: Scope, name: str, program: Program, captured: Sequence[JaxprAtom], residuals: int
) -> ast.expr:
    """Write a function of residuals and of the linear operands, each a tuple."""

    def parameters(inner: Scope, inputs: Sequence[Var], bases: list[str]) -> list[str]:
        names = inner.parameters(inputs, bases)
        groups = []
        for base, part in (("residuals", names[:residuals]), ("linear", names[residuals:])):
            parameter = inner.names.fresh(base)
            if part:
                inner.take_apart(part, parameter)
            groups.append(parameter)
        return groups

    return scope.function(name, program, captured, parameters, tuple_)


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
    inner = scope.inner()
    names = inner.parameters(program.jaxpr.invars, argument_bases(program))
    results = inner.program(program)
    name = scope.names.fresh("batched")
    function = define(name, tuple(names), inner.body)
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
    function.body.append(return_(results[0] if single else tuple_(results)))
    operands = scope.operands(equation.invars, program.jaxpr.invars)
    return Proved(
        call(name, *operands), nested_results(1) if single else tuple(range(len(results)))
    )


@STRUCTURES("custom_partitioning")
def custom_partitioning(scope: Scope, equation: Equation) -> Proved:
    """Write a function with custom partitioning by host functions, which the caller passes."""
    params = equation.params
    program = opened(params["call"])
    count = len(equation.invars)
    if jax.tree.unflatten(params["in_tree"], range(count)) != tuple(range(count)):
        raise Unsourceable("custom_partitioning", "its functions take pytrees")
    if params["static_args"]:
        raise Unsourceable("custom_partitioning", "it has static arguments")
    single = jax.tree.unflatten(params["out_tree"], range(len(equation.outvars))) == 0
    options: dict[str, ast.expr] = {}
    for key in (
        "partition",
        "infer_sharding_from_operands",
        "propagate_user_sharding",
        "sharding_rule",
    ):
        if params.get(key) is not None:
            options[key] = scope.writer.passed.placeholder(
                params[key], key, "partitions a function"
            )
    if not params.get("decode_shardings", True):
        options["decode_shardings"] = FALSE
    body = scope.function(
        "whole", program, results=lambda results: results[0] if single else tuple_(results)
    )
    path = public_names.imported("jax.experimental.custom_partitioning", "custom_partitioning")
    name = scope.assigned("partitioned", call(path, body))
    scope.body.append(effect(call(ast.Attribute(name, "def_partition"), **options)))
    operands = scope.operands(equation.invars, program.jaxpr.invars)
    results = nested_results(1) if single else tuple(range(len(equation.outvars)))
    return Proved(call(name, *operands), results)
