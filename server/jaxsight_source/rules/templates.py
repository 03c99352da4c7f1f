"""Rules that need no code: the calls of public functions, by the primitive's name, as Python text.

In a template, `operands` are the equation's operands: `first`, `second` and `third`, `others` after
the first, `later` after the second, and `whole` the only one or the tuple of all. `inputs` and
`result` are types, `literals` the values of operands that are literals. `mesh_axis` is the axis of
a collective (tried as a name, then as a tuple), `groups` its groups of devices. Any other
expression is evaluated with the equation's parameters, and its value is spelled; keywords that are
`None`, or whose parameter the equation lacks, are left out.

Rows of the same primitive are tried in order, each with the alternatives in `{a|b}`; one with a
positional parameter that the equation lacks (they differ between versions of JAX) is skipped, and
so is `None`.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import itertools
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from types import CodeType
from typing import Any, TypeAlias

import numpy as np

from jaxsight_source.compat import avals
from jaxsight_source.equations.registry import LAX, PRETTY, EquationView, Spelling
from jaxsight_source.jaxprs.base import Rules
from jaxsight_source.text.exprs import AT_HAND, IMPORTS, NONE, binary, call, list_, public, tuple_
from jaxsight_source.values import public_names
from jaxsight_source.values.spelling import layout, struct, value

_LAX = r"""
add_any: ad.add_jaxvals(*operands)
all_gather all_gather_invariant all_gather_reduced: \
    lax.all_gather(*operands, mesh_axis, axis_index_groups=groups, \
    axis=all_gather_dimension or None, tiled=tiled or None, \
    to={None|"reduced"|"invariant"|"invarying"})
all_to_all: lax.all_to_all(*operands, mesh_axis, split_axis, concat_axis, \
    axis_index_groups=groups, tiled=tiled or None)
and or xor not: lax.bitwise_{name}(*operands)
approx_top_k: lax.approx_{max|min}_k(*operands, k, \
    reduction_dimension=reduction_dimension, recall_target=recall_target, \
    reduction_input_size_override=reduction_input_size_override, \
    aggregate_to_topk=aggregate_to_topk)
argmax argmin: lax.{name}(*operands, axes[0], index_dtype)
axis_index: lax.axis_index(axis_name)
bitcast_convert_type: lax.bitcast_convert_type(*operands, new_dtype)
cholesky: lax.linalg.cholesky(*operands, symmetrize_input=False)
concatenate: lax.concatenate([*operands], dimension)
copy copy_p: jnp.copy(*operands)
copy copy_p: jnp.array(*operands, copy=True)
dynamic_slice: \
    lax.dynamic_slice(first, (*others,), slice_sizes, allow_negative_indices={None|False})
dynamic_update_slice: lax.{name}(first, second, (*later,), allow_negative_indices={None|False})
eigh: lax.linalg.eigh(*operands, lower=lower, sort_eigenvalues=sort_eigenvalues, \
    subset_by_index=subset_by_index, implementation=implementation, symmetrize_input=False)
eigh: lax.linalg.eigh(*operands, lower=lower, sort_eigenvalues=sort_eigenvalues, \
    subset_by_index=subset_by_index, symmetrize_input=False)
empty empty2: lax.empty(result.shape, result.dtype)
gather: lax.gather(*operands, dimension_numbers=dimension_numbers, slice_sizes=slice_sizes, \
    indices_are_sorted=indices_are_sorted or None, unique_indices=unique_indices or None, \
    mode=mode, fill_value=fill_value)
global_array_to_host_local_array host_local_array_to_global_array: \
    jax.experimental.multihost_utils.{name}(*operands, global_mesh, pspec)
integer_pow: lax.integer_pow(*operands, y)
iota: lax.iota(dtype, shape[0]) if len(shape) == 1 and not operands else None
iota: lax.broadcasted_iota(dtype, shape, dimension, out_sharding=sharding)
layout_constraint: jax.experimental.layout.with_layout_constraint(*operands, layout(layout))
name: jax.ad_checkpoint.checkpoint_name(*operands, name)
optimization_barrier: lax.optimization_barrier(whole)
pad: lax.pad(*operands, tuple(padding_config))
pbroadcast: lax.pbroadcast(*operands, mesh_axis, source)
pmax pmin: lax.{name}(whole, mesh_axis, axis_index_groups=groups)
polynomial: lax.polynomial(first, (*others,), unroll=unroll)
ppermute: lax.ppermute(*operands, mesh_axis, [*perm])
precv: lax.precv(*operands, struct(out_shape), mesh_axis, perm)
preduced reduced_vary_cast unreduced_psum vary_unreduced_cast: \
    lax.pcast(*operands, mesh_axis, to={"varying"|"unreduced"|"reduced"})
psum psum_invariant: lax.psum(whole, mesh_axis, axis_index_groups=groups)
pvary: lax.pcast(*operands, mesh_axis, to="varying")
pvary: lax.pvary(*operands, mesh_axis)
ragged_all_to_all: lax.ragged_all_to_all(*operands, axis_name=mesh_axis, axis_index_groups=groups)
random_clone: jax.random.clone(*operands)
random_seed: jax.random.key(*operands, impl=key_impl(result.dtype))
random_unwrap: jax.random.key_data(*operands)
random_wrap: jax.random.wrap_key_data(*operands, impl=key_impl(result.dtype))
reduce_scatter unreduced_reduce_scatter: lax.psum_scatter(*operands, mesh_axis, \
    scatter_dimension=scatter_dimension or None, axis_index_groups=groups, tiled=tiled or None)
regularized_incomplete_beta: lax.betainc(*operands)
rev: lax.rev(*operands, dimensions)
rng_bit_generator: lax.{name}(*operands, shape, dtype=dtype, algorithm=algorithm, \
    out_sharding={None|out_sharding})
scatter scatter-add scatter-max scatter-min scatter-mul scatter-sub: \
    lax.{name}(*operands, dimension_numbers=dimension_numbers, \
    indices_are_sorted=indices_are_sorted or None, unique_indices=unique_indices or None, \
    mode=mode)
slice: lax.slice(*operands, start_indices, limit_indices) if strides is None else None
slice: lax.slice(*operands, start_indices, limit_indices, strides)
sort: lax.sort(whole, dimension=dimension, is_stable=None if is_stable else False, \
    num_keys=None if num_keys == 1 else num_keys)
split: lax.split(*operands, sizes, axis=axis)
spsolve: jax.experimental.sparse.linalg.spsolve(*operands, tol=tol, reorder=reorder)
squeeze: lax.squeeze(*operands, dimensions)
stack: {lax|jnp}.stack([*operands], axis={None|axis})
stack: lax.stack([*operands], dimension=dimension)
tile: {lax|jnp}.tile(*operands, {repeats|reps})
todense: jax.experimental.sparse.todense(*operands)
transpose: lax.transpose(*operands, permutation)
unstack: {lax|jnp}.unstack(*operands, axis={None|axis})
unstack: lax.unstack(*operands, dimension=dimension)
"""

_PRETTY = """
clamp: jnp.clip(second, first, third)
concatenate: jnp.concatenate([*operands], axis=dimension or None)
convert_element_type: first.astype(new_dtype) if literals[0] is None else None
cumprod cumsum: None if reverse else jnp.{name}(*operands, axis=axis)
integer_pow: first ** y
logistic: jax.nn.sigmoid(*operands)
neg: -first
not: ~first
select_n: lax.select(first, third, second) if inputs[0].dtype == bool and len(inputs) == 3 else None
split: jnp.split(*operands, len(sizes), axis=axis or None) if len({*sizes}) == 1 else None
split: jnp.split(*operands, [*accumulate(sizes)][:-1], axis=axis or None)
square: jnp.square(*operands)
squeeze: jnp.squeeze(*operands) if all(size == 1 for size in inputs[0].shape) else None
squeeze: first.squeeze(dimensions[0] if len(dimensions) == 1 else dimensions)
stack: jnp.stack([*operands], axis={axis|dimension} or None)
stop_gradient: lax.stop_gradient(*operands)
tile: jnp.tile(*operands, tuple(reps))
top_k: lax.top_k(*operands, k)
"""


_Values: TypeAlias = Mapping[str, Any]
"""What the names in a template stand for."""


def _register(rules: Rules[Spelling], table: str) -> None:
    templates: dict[str, list[ast.expr]] = defaultdict(list)
    for row in table.replace("\\\n    ", "").strip().splitlines():
        names, _, template = row.partition(": ")
        for name in names.split():
            text = template.strip().replace("{name}", name.replace("-", "_"))
            # Each of the alternatives in `{a|b}`.
            parts = re.split(r"\{([^{}]*\|[^{}]*)\}", text)
            texts = map("".join, itertools.product(*(part.split("|") for part in parts)))
            templates[name] += [ast.parse(each, mode="eval").body for each in texts]
    for name, own in templates.items():
        rules(name)(functools.partial(_candidates, own))


def _candidates(templates: list[ast.expr], view: EquationView) -> Iterator[ast.expr]:
    params = view.params
    axes: Any = params.get("axes", params.get("axis_name"))
    groups = params.get("axis_index_groups")
    names = params | {
        "operands": view.operands,
        **dict(zip(("first", "second", "third"), view.operands, strict=False)),
        "whole": view.operands[0] if len(view.operands) == 1 else tuple_(view.operands),
        "others": view.operands[1:],
        "later": view.operands[2:],
        "inputs": view.inputs,
        "literals": view.literals,
        "result": view.outputs[0] if view.outputs else None,
        "groups": None if groups is None else [*map(list, groups)],
    }
    is_single = isinstance(axes, tuple) and len(axes) == 1
    for mesh_axis in (axes[0], axes) if is_single else (axes,):
        for template in templates:
            try:
                expr = _filled(template, names | {"mesh_axis": mesh_axis})
            except NameError:
                continue
            if expr is not None:
                yield expr


def _filled(node: ast.expr, names: _Values) -> ast.expr | None:
    """Return a template with operands and parameters; raise `NameError` if one is missing."""
    match node:
        case ast.IfExp(test, chosen, other):
            return _filled(chosen if _evaluated(test, names) else other, names)
        case ast.Constant(None):
            return None
        case ast.Call(ast.Attribute(ast.Name("first"), method), args):
            return call(ast.Attribute(names["first"], method), *_parts(args, names))
        case ast.Call(function, args, keywords):
            return call(_path(function), *_parts(args, names), **_keywords(keywords, names))
        case ast.BinOp(left, ast.Pow(), right):
            return binary("**", _part(left, names), _part(right, names))
        case ast.UnaryOp(operator, operand):
            return ast.UnaryOp(operator, _part(operand, names))
        case _:
            return _part(node, names)


def _keywords(nodes: list[ast.keyword], names: _Values) -> dict[str, ast.expr]:
    named: dict[str, ast.expr] = {}
    for node in nodes:
        with contextlib.suppress(NameError):
            named[str(node.arg)] = _part(node.value, names)
    return {name: part for name, part in named.items() if part is not NONE}


def _parts(nodes: list[ast.expr], names: _Values) -> Iterator[ast.expr]:
    for node in nodes:
        match node:
            case ast.Starred(ast.Name(name)):
                yield from names[name]
            case _:
                yield _part(node, names)


def _part(node: ast.expr, names: _Values) -> ast.expr:
    match node:
        case ast.List([ast.Starred(ast.Name("operands"))] as parts):
            return list_(_parts(parts, names))
        case ast.Tuple([ast.Starred(ast.Name("others" | "later"))] as parts):
            return tuple_(_parts(parts, names))
        case ast.Name("first" | "second" | "third" | "whole" as name):
            return names[name]  # type: ignore[no-any-return]
        case ast.Call(ast.Name("struct"), [aval]):
            return struct(_evaluated(aval, names))
        case ast.Call(ast.Name("layout"), [array_layout]):
            return layout(_evaluated(array_layout, names))
        case _:
            return value(_evaluated(node, names))


def _evaluated(node: ast.expr, names: _Values) -> Any:
    return eval(_compiled(node), {**_NAMES, **names})


_NAMES = {"accumulate": itertools.accumulate, "key_impl": avals.key_impl, "np": np}


@functools.cache
def _compiled(node: ast.expr) -> CodeType:
    return compile(ast.Expression(node), "<template>", "eval")


@functools.cache
def _path(function: ast.expr) -> ast.expr:
    """Return the path of a public function, with the module to import for it."""
    module, _, name = ast.unparse(function).rpartition(".")
    at_hand = module in AT_HAND or module.partition(".")[0] in IMPORTS.keys() - {"jax"}
    return public(f"{module}.{name}") if at_hand else public_names.imported(module, name)


_register(LAX, _LAX)
_register(PRETTY, _PRETTY)
