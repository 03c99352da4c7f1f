"""Pretty style: products of arrays as `@` and `einsum`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from jaxsight.sourcerizer import spelling
from jaxsight.sourcerizer.exprs import Atom, Binary, Expr, call
from jaxsight.sourcerizer.view import PRETTY, View
from jaxsight.sourcerizer.windows import IDIOMS, Window

_BATCH, _LEFT, _RIGHT, _SUMMED = "bcdefgh", "ijlmno", "pqrstuv", "kxyzw"
"""Letters of `einsum`, by what an axis is."""


def _letters(numbers: Any, ranks: Sequence[int]) -> tuple[str, str, str]:
    (left_summed, right_summed), (left_batch, right_batch) = numbers
    left: dict[int, str] = dict(zip(left_summed, _SUMMED, strict=False))
    right: dict[int, str] = dict(zip(right_summed, _SUMMED, strict=False))
    left |= dict(zip(left_batch, _BATCH, strict=False))
    right |= dict(zip(right_batch, _BATCH, strict=False))
    free_left = [axis for axis in range(ranks[0]) if axis not in left]
    free_right = [axis for axis in range(ranks[1]) if axis not in right]
    left |= dict(zip(free_left, _LEFT, strict=False))
    right |= dict(zip(free_right, _RIGHT, strict=False))
    result = [left[axis] for axis in left_batch]
    result += [left[axis] for axis in free_left] + [right[axis] for axis in free_right]
    return (
        "".join(left[axis] for axis in range(ranks[0])),
        "".join(right[axis] for axis in range(ranks[1])),
        "".join(result),
    )


def _options(params: dict[str, Any]) -> Iterator[dict[str, Expr]]:
    named: dict[str, Expr] = {}
    if params.get("precision") is not None:
        named["precision"] = spelling.value(params["precision"])
    yield named
    if params.get("preferred_element_type") is not None:
        yield named | {"preferred_element_type": spelling.dtype(params["preferred_element_type"])}


def _einsum(
    params: dict[str, Any], x: Expr, y: Expr, ranks: Sequence[int], order: Sequence[int] | None
) -> Iterator[Expr]:
    first, second, result = _letters(params["dimension_numbers"], ranks)
    if order is not None:
        result = "".join(result[axis] for axis in order)
    for named in _options(params):
        yield call("jnp.einsum", spelling.text(f"{first},{second}->{result}"), x, y, **named)
        yield call("jnp.einsum", spelling.text(f"{second},{first}->{result}"), y, x, **named)


@PRETTY("dot_general")
def product(view: View) -> Iterator[Expr]:
    x, y = view.operands
    ranks = [aval.ndim for aval in view.inputs]
    (left_summed, right_summed), (left_batch, _) = view.params["dimension_numbers"]
    if len(left_summed) == 1 and left_summed[0] == ranks[0] - 1:
        if right_summed[0] == max(ranks[1] - 2, 0):
            yield Binary("@", x, y)
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
                yield call("jnp.tensordot", x, y, axes=Atom("0"), **named)
    yield from _einsum(view.params, x, y, ranks, None)


@IDIOMS("dot_general transpose")
def product_transposed(window: Window) -> Iterator[Expr]:
    made, moved = window.equations
    x, y = (window.expr(atom) for atom in made.invars)
    ranks = [atom.aval.ndim for atom in made.invars]
    yield from _einsum(made.params, x, y, ranks, moved.params["permutation"])
