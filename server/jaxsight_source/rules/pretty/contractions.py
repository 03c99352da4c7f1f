"""Pretty style: products of arrays as `@` and `einsum`."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import TypeAlias

import jax

from jaxsight_source.compat.jaxpr_types import Params
from jaxsight_source.equations.fallback import given
from jaxsight_source.equations.idioms import Window
from jaxsight_source.equations.registry import IDIOMS, PRETTY, View
from jaxsight_source.text.exprs import binary, call
from jaxsight_source.values import scalars, spelling
from jaxsight_source.values.spelling import value

_Pairs: TypeAlias = tuple[tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]]
"""The contracted axes of both operands, and the batch axes."""

_BATCH, _LEFT, _RIGHT, _SUMMED = "bcdefgh", "ijlmno", "pqrstuv", "kxyzw"
"""Letters of `einsum`: for batch axes, free axes of each operand, and contracted axes."""


def _letters(numbers: _Pairs, ranks: Sequence[int]) -> tuple[str, str, str]:
    (left_summed, right_summed), (left_batch, right_batch) = numbers
    of_left: dict[int, str] = dict(zip(left_summed, _SUMMED, strict=False))
    of_right: dict[int, str] = dict(zip(right_summed, _SUMMED, strict=False))
    of_left |= dict(zip(left_batch, _BATCH, strict=False))
    of_right |= dict(zip(right_batch, _BATCH, strict=False))
    free_left = [axis for axis in range(ranks[0]) if axis not in of_left]
    free_right = [axis for axis in range(ranks[1]) if axis not in of_right]
    of_left |= dict(zip(free_left, _LEFT, strict=False))
    of_right |= dict(zip(free_right, _RIGHT, strict=False))
    of_result = [of_left[axis] for axis in left_batch]
    of_result += [of_left[axis] for axis in free_left] + [of_right[axis] for axis in free_right]
    return (
        "".join(of_left[axis] for axis in range(ranks[0])),
        "".join(of_right[axis] for axis in range(ranks[1])),
        "".join(of_result),
    )


def _options(params: Params) -> Iterator[dict[str, ast.expr]]:
    named: dict[str, ast.expr] = {}
    if params.get("precision") is not None:
        named["precision"] = precision(params["precision"])
    yield named
    if params.get("preferred_element_type") is not None:
        yield named | {"preferred_element_type": scalars.dtype(params["preferred_element_type"])}


def precision(parameter: object) -> ast.expr:
    """Return a precision by its name, if both operands have the same."""
    match parameter:
        case (jax.lax.Precision() as one, other) if one is other:
            return scalars.text(one.name.lower())
        case _:
            return spelling.value(parameter)


def _einsum(
    params: Params, x: ast.expr, y: ast.expr, ranks: Sequence[int], order: Sequence[int] | None
) -> Iterator[ast.expr]:
    first, second, output = _letters(params["dimension_numbers"], ranks)
    if order is not None:
        output = "".join(output[axis] for axis in order)
    for named in _options(params):
        yield call("jnp.einsum", scalars.text(f"{first},{second}->{output}"), x, y, **named)
        yield call("jnp.einsum", scalars.text(f"{second},{first}->{output}"), y, x, **named)


@PRETTY("dot_general")
def product(view: View) -> Iterator[ast.expr]:
    x, y = view.operands
    ranks = [aval.ndim for aval in view.inputs]
    (left_summed, right_summed), (left_batch, _) = view.params["dimension_numbers"]
    if len(left_summed) == 1 and left_summed[0] == ranks[0] - 1:
        if right_summed[0] == max(ranks[1] - 2, 0):
            yield binary("@", x, y)
            for named in _options(view.params):
                if named:
                    yield call("jnp.matmul", x, y, **named)
        if not left_batch and right_summed[0] == ranks[1] - 1:
            yield call("jnp.inner", x, y)
    if not left_batch:
        for named in _options(view.params):
            if ranks == [1, 1]:
                yield call("jnp.dot", x, y, **named)
            if len(left_summed) == 0:
                yield call("jnp.tensordot", x, y, axes=ast.Constant(0), **named)
    yield from _einsum(view.params, x, y, ranks, None)
    for named in _options(view.params):
        if ranks == [2, 2]:
            yield call("lax.dot", x, y, **named)
        dimensions = spelling.value(view.params["dimension_numbers"])
        yield call("lax.dot_general", x, y, dimensions, **named)


@PRETTY("conv_general_dilated")
def convolution(view: View) -> Iterator[ast.expr]:
    """Yield convolutions with dimension letters, `"SAME"` or `"VALID"`, and without defaults."""
    params = view.params
    numbers = params["dimension_numbers"]
    usual = all(spec == tuple(range(len(spec))) for spec in numbers)
    rank = len(numbers.lhs_spec) - 2
    named: dict[str, ast.expr] = {}
    for key in ("lhs_dilation", "rhs_dilation"):
        if any(step != 1 for step in params[key]):
            named[key] = value(params[key])
    if not usual:
        letters = "DHW"[-rank:] if rank <= 3 else ""
        named["dimension_numbers"] = value(
            tuple(
                "".join(name for _, name in sorted(zip(spec, kind + letters, strict=True)))
                for spec, kind in zip(numbers, ("NC", "OI", "NC"), strict=True)
            )
        )
    for key in ("feature_group_count", "batch_group_count"):
        if params[key] != 1:
            named[key] = value(params[key])
    named |= given(params, "precision", "preferred_element_type")
    strides = value(params["window_strides"])
    for padding in (ast.Constant("SAME"), ast.Constant("VALID"), value(params["padding"])):
        if usual and not named and isinstance(padding, ast.Constant):
            yield call("lax.conv", *view.operands, strides, padding)
        yield call("lax.conv_general_dilated", *view.operands, strides, padding, **named)


@IDIOMS("dot_general transpose")
def product_transposed(window: Window) -> Iterator[ast.expr]:
    product, moved = window.equations
    x, y = window.operands(product)
    ranks = [atom.aval.ndim for atom in product.invars]
    yield from _einsum(product.params, x, y, ranks, moved.params["permutation"])
