"""Rules that need no code: the calls of public functions, by the primitive's name, as Python text.

In a template, `operands` are the equation's operands: `first`, `second` and `third`, `others` after
the first and `later` after the second. `inputs` and `result` are types. Any other expression is
evaluated with the equation's parameters, and its value is spelled. Rows of the same primitive are
tried in order; one whose parameters an equation lacks (they differ between versions of JAX) is
skipped, and so is `None`.
"""

from __future__ import annotations

import ast
import functools
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from jaxsight.interpreters.base import Rules
from jaxsight.sourcerizer.equations.registry import LAX, PRETTY, Spelling, View
from jaxsight.sourcerizer.text.exprs import Atom, Binary, Expr, Unary, call, list_, tuple_
from jaxsight.sourcerizer.text.imports import AT_HAND, IMPORTS
from jaxsight.sourcerizer.values import public_names
from jaxsight.sourcerizer.values.spelling import value

_LAX = r"""
add_any: ad.add_jaxvals(*operands)
and or xor not: lax.bitwise_{name}(*operands)
argmax argmin: lax.{name}(*operands, axes[0], index_dtype)
axis_index: lax.axis_index(axis_name)
bitcast_convert_type: lax.bitcast_convert_type(*operands, new_dtype)
cholesky: lax.linalg.cholesky(*operands, symmetrize_input=False)
concatenate: lax.concatenate([*operands], dimension)
copy copy_p: jnp.copy(*operands)
copy copy_p: jnp.array(*operands, copy=True)
dynamic_slice: lax.dynamic_slice(first, (*others,), slice_sizes)
dynamic_slice: lax.dynamic_slice(first, (*others,), slice_sizes, allow_negative_indices=False)
dynamic_update_slice: lax.{name}(first, second, (*later,))
dynamic_update_slice: lax.{name}(first, second, (*later,), allow_negative_indices=False)
empty empty2: lax.empty(result.shape, result.dtype)
global_array_to_host_local_array host_local_array_to_global_array: \
    jax.experimental.multihost_utils.{name}(*operands, global_mesh, pspec)
integer_pow: lax.integer_pow(*operands, y)
name: jax.ad_checkpoint.checkpoint_name(*operands, name)
optimization_barrier: lax.optimization_barrier(first) if len(operands) == 1 else None
optimization_barrier: lax.optimization_barrier((*operands,))
pad: lax.pad(*operands, tuple(padding_config))
random_bits: jax.random.bits(*operands, shape, np.dtype(f"uint{bit_width}"))
random_clone: jax.random.clone(*operands)
random_fold_in: jax.random.fold_in(*operands)
random_split: jax.random.split(*operands) if shape == (2,) else None
random_split: jax.random.split(*operands, shape[0]) if len(shape) == 1 else None
random_split: jax.random.split(*operands, shape)
random_unwrap: jax.random.key_data(*operands)
regularized_incomplete_beta: lax.betainc(*operands)
rev: lax.rev(*operands, dimensions)
rng_bit_generator: lax.{name}(*operands, shape, dtype=dtype, algorithm=algorithm)
rng_bit_generator: \
    lax.{name}(*operands, shape, dtype=dtype, algorithm=algorithm, out_sharding=out_sharding)
slice: lax.slice(*operands, start_indices, limit_indices) if strides is None else None
slice: lax.slice(*operands, start_indices, limit_indices, strides)
split: lax.split(*operands, sizes, axis=axis)
spsolve: jax.experimental.sparse.linalg.spsolve(*operands, tol=tol, reorder=reorder)
squeeze: lax.squeeze(*operands, dimensions)
stack: lax.stack([*operands])
stack: lax.stack([*operands], axis=axis)
stack: lax.stack([*operands], dimension=dimension)
stack: jnp.stack([*operands])
stack: jnp.stack([*operands], axis=axis)
tile: lax.tile(*operands, repeats)
tile: jnp.tile(*operands, repeats)
tile: lax.tile(*operands, reps)
tile: jnp.tile(*operands, reps)
todense: jax.experimental.sparse.todense(*operands)
transpose: lax.transpose(*operands, permutation)
unstack: lax.unstack(*operands)
unstack: lax.unstack(*operands, axis=axis)
unstack: lax.unstack(*operands, dimension=dimension)
unstack: jnp.unstack(*operands)
unstack: jnp.unstack(*operands, axis=axis)
"""

_PRETTY = """
clamp: jnp.clip(second, first, third)
concatenate: None if dimension else jnp.concatenate([*operands])
concatenate: jnp.concatenate([*operands], axis=dimension)
cumprod cumsum: None if reverse else jnp.{name}(*operands, axis=axis)
integer_pow: first ** y
logistic: jax.nn.sigmoid(*operands)
neg: -first
not: ~first
select_n: lax.select(first, third, second) if inputs[0].dtype == bool and len(inputs) == 3 else None
square: jnp.square(*operands)
stack: jnp.stack([*operands], axis=axis) if axis else jnp.stack([*operands])
stack: jnp.stack([*operands], axis=dimension) if dimension else jnp.stack([*operands])
stop_gradient: lax.stop_gradient(*operands)
tile: jnp.tile(*operands, tuple(reps))
top_k: lax.top_k(*operands, k)
"""


def _register(rules: Rules[Spelling], table: str) -> None:
    templates: dict[str, list[ast.expr]] = defaultdict(list)
    for row in table.replace("\\\n", "").strip().splitlines():
        names, _, template = row.partition(": ")
        for name in names.split():
            text = template.strip().replace("{name}", name)
            templates[name].append(ast.parse(text, mode="eval").body)
    for name, own in templates.items():
        rules(name)(functools.partial(_candidates, own))


def _candidates(templates: list[ast.expr], view: View) -> Iterator[Expr]:
    names = view.params | {
        "operands": view.operands,
        **dict(zip(("first", "second", "third"), view.operands, strict=False)),
        "others": view.operands[1:],
        "later": view.operands[2:],
        "inputs": view.inputs,
        "result": view.outputs[0],
    }
    for template in templates:
        try:
            expr = _filled(template, names)
        except NameError:
            continue
        if expr is not None:
            yield expr


def _filled(node: ast.expr, names: Mapping[str, Any]) -> Expr | None:
    """Return a template with operands and parameters; raise `NameError` if one is missing."""
    match node:
        case ast.IfExp(test, chosen, other):
            return _filled(chosen if _evaluated(test, names) else other, names)
        case ast.Constant(None):
            return None
        case ast.Call(function, args, keywords) if (path := _path(function)) is not None:
            named = {str(part.arg): _part(part.value, names) for part in keywords}
            return call(path, *_parts(args, names), **named)
        case ast.BinOp(left, ast.Pow(), right):
            return Binary("**", _part(left, names), _part(right, names))
        case ast.UnaryOp(operator, operand):
            return Unary("-" if isinstance(operator, ast.USub) else "~", _part(operand, names))
        case _:
            return _part(node, names)


def _parts(nodes: list[ast.expr], names: Mapping[str, Any]) -> Iterator[Expr]:
    for node in nodes:
        match node:
            case ast.Starred(ast.Name(name)):
                yield from names[name]
            case _:
                yield _part(node, names)


def _part(node: ast.expr, names: Mapping[str, Any]) -> Expr:
    match node:
        case ast.List([ast.Starred()] as parts):
            return list_(_parts(parts, names))
        case ast.Tuple([ast.Starred()] as parts):
            return tuple_(_parts(parts, names))
        case ast.Name("first" | "second" | "third" as name):
            return names[name]  # type: ignore[no-any-return]
        case _:
            return value(_evaluated(node, names))


def _evaluated(node: ast.expr, names: Mapping[str, Any]) -> Any:
    return eval(compile(ast.Expression(node), "<template>", "eval"), {"np": np, **names})


@functools.cache
def _path(function: ast.expr) -> Atom | None:
    """Return the path of a public function, with the module to import for it."""
    module, dot, name = ast.unparse(function).rpartition(".")
    if not dot:
        return None
    at_hand = module in AT_HAND or module.partition(".")[0] in IMPORTS.keys() - {"jax"}
    return Atom(f"{module}.{name}") if at_hand else public_names.imported(module, name)


_register(LAX, _LAX)
_register(PRETTY, _PRETTY)
