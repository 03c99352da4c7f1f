"""Pretty style: shapes as methods and by indexing."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

import jax.numpy as jnp
import numpy as np

from jaxsight_source.equations.idioms import Window
from jaxsight_source.equations.registry import IDIOMS, PRETTY, EquationView
from jaxsight_source.text.exprs import COLON, ELLIPSIS, NONE, call, list_, span, subscript
from jaxsight_source.text.layout import flat
from jaxsight_source.values import spelling
from jaxsight_source.values.spelling import value


@PRETTY("transpose")
def transpose(view: EquationView) -> Iterator[ast.expr]:
    (x,) = view.operands
    order = tuple(view.params["permutation"])
    if order == (1, 0):
        yield ast.Attribute(x, "T")
    moved = [index for index, axis in enumerate(order) if index != axis]
    if len(order) > 2 and moved == [len(order) - 2, len(order) - 1]:
        yield ast.Attribute(x, "mT")
    if len(moved) == 2:
        yield call(ast.Attribute(x, "swapaxes"), *(value(axis) for axis in moved))
    yield call(ast.Attribute(x, "transpose"), *(value(axis) for axis in order))


@PRETTY("reshape")
def reshape(view: EquationView) -> Iterator[ast.expr]:
    (x, *dynamic_sizes) = view.operands
    sizes = tuple(view.params["new_sizes"])
    if dynamic_sizes or view.literals[0] is not None:
        return
    if (order := view.params.get("dimensions")) is not None:
        joined = next((axis for axis, moved in enumerate(order) if moved == 0), 1)
        yield call("jnp.concatenate", x, axis=value(joined))
        return
    if len(sizes) == 1:
        yield call(ast.Attribute(x, "reshape"), ast.Constant(-1))
    if len(sizes) == 0:
        yield call("jnp.squeeze", x)
    yield call(ast.Attribute(x, "reshape"), *(value(size) for size in sizes))


@PRETTY("broadcast_in_dim")
def broadcast_in_dim(view: EquationView) -> Iterator[ast.expr]:
    x, *dynamic_sizes = view.operands
    if dynamic_sizes:
        return
    shape, operand_axes = tuple(view.params["shape"]), tuple(view.params["broadcast_dimensions"])
    (output,) = view.outputs
    if view.literals[0] is not None and not operand_axes:
        yield from filled(x, shape, output.dtype)
        return
    sizes = view.inputs[0].shape
    if all(shape[axis] == size for axis, size in zip(operand_axes, sizes, strict=True)) and all(
        size == 1 for axis, size in enumerate(shape) if axis not in operand_axes
    ):
        yield subscript(x, *_expanding(len(shape), operand_axes))
    yield call("jnp.broadcast_to", x, value(shape))


_ZEROS, _ONES = ("0", "0.0", "False"), ("1", "1.0", "True")


def filled(x: ast.expr, shape: Sequence[int], dtype: object) -> Iterator[ast.expr]:
    """Yield an array of one number."""
    sizes = value(shape[0] if len(shape) == 1 else tuple(shape))
    kind = spelling.dtype(dtype)
    default = dtype == np.float32
    for numbers, function in ((_ZEROS, "jnp.zeros"), (_ONES, "jnp.ones")):
        if flat(x) in numbers:
            if default:
                yield call(function, sizes)
            yield call(function, sizes, kind)
    yield call("jnp.full", sizes, x)
    yield call("jnp.full", sizes, x, kind)


def _expanding(rank: int, operand_axes: Sequence[int]) -> Iterator[ast.expr]:
    """Yield `:` and `None` for the axes of the result, without colons at the end.

    Several colons at the start become an ellipsis.
    """
    last_new = max((axis for axis in range(rank) if axis not in operand_axes), default=-1)
    leading = 0
    while leading in operand_axes:
        leading += 1
    if leading >= 2 and all(axis not in operand_axes for axis in range(leading, rank)):
        yield ELLIPSIS
        yield from [NONE] * (rank - leading)
        return
    for axis in range(last_new + 1):
        yield COLON if axis in operand_axes else NONE


def bounds(start: int, stop: int, step: int, size: int) -> ast.Slice:
    """Return the shortest slice of an axis of length `size`."""
    before_last = stop > size // 2 and size - stop == 1
    return span(start, None if stop == size else -1 if before_last else stop, step)


def indices(
    starts: Sequence[int],
    stops: Sequence[int],
    steps: Sequence[int],
    sizes: Sequence[int],
    dropped: Sequence[int] = (),
) -> list[ast.expr]:
    """Return indices that select these ranges, with a single index for the axes in `dropped`."""
    selected: list[ast.expr] = []
    for axis, (start, stop, step, size) in enumerate(zip(starts, stops, steps, sizes, strict=True)):
        if axis in dropped:
            selected.append(ast.Constant(-1 if 0 < start == size - 1 else int(start)))
        else:
            selected.append(bounds(start, stop, step, size))
    return whole(selected)


def whole(indices: list[ast.expr]) -> list[ast.expr]:
    """Return indices without redundant colons.

    Those at the end are omitted; several at the start become an ellipsis.
    """
    colons = [flat(index) == ":" for index in indices]
    if colons[-1]:
        while len(indices) > 1 and colons[len(indices) - 1]:
            indices = indices[:-1]
        return indices
    leading = colons.index(False)
    return [ELLIPSIS, *indices[leading:]] if leading > 1 else indices


@PRETTY("slice")
def slice_(view: EquationView) -> Iterator[ast.expr]:
    (x,) = view.operands
    starts, stops = view.params["start_indices"], view.params["limit_indices"]
    sizes = view.inputs[0].shape
    if sizes:
        steps = view.params["strides"] or (1,) * len(starts)
        yield subscript(x, *indices(starts, stops, steps, sizes))


@IDIOMS("slice squeeze")
def indexed(window: Window) -> Iterator[ast.expr]:
    slicing, dropped = window.equations
    x = window.expr(slicing.invars[0])
    starts, stops = slicing.params["start_indices"], slicing.params["limit_indices"]
    steps = slicing.params["strides"] or (1,) * len(starts)
    sizes = slicing.invars[0].aval.shape
    yield subscript(x, *indices(starts, stops, steps, sizes, dropped.params["dimensions"]))


@PRETTY("rev")
def rev(view: EquationView) -> Iterator[ast.expr]:
    reversed_ = view.params["dimensions"]
    rank = view.inputs[0].ndim
    selected: list[ast.expr] = [
        span(None, None, -1 if axis in reversed_ else 1) for axis in range(rank)
    ]
    yield subscript(view.operands[0], *whole(selected))


@IDIOMS("jit|pjit* concatenate")
def joined(window: Window) -> Iterator[ast.expr]:
    """Yield `jnp.hstack` and `jnp.vstack`, which first adjust the rank of each array."""
    parts = window.operands(window.equations[-1], "jit", "pjit")
    for function in ("hstack", "vstack"):
        yield call(f"jnp.{function}", list_(parts))


@IDIOMS("broadcast_in_dim reshape")
def repeated(window: Window) -> Iterator[ast.expr]:
    """Yield `jnp.repeat`."""
    before, after = window.equations[0].invars[0].aval, window.output.aval
    if before.ndim != after.ndim:
        return
    x = window.expr(window.equations[0].invars[0])
    for axis, (old, new) in enumerate(zip(before.shape, after.shape, strict=True)):
        if old and new != old and new % old == 0:
            yield call("jnp.repeat", x, value(new // old), axis=value(axis))


@IDIOMS("broadcast_in_dim|reshape* concatenate")
def stacked(window: Window) -> Iterator[ast.expr]:
    joined = window.equations[-1]
    parts = []
    for atom in joined.invars:
        expanded = window.maker(atom)
        if expanded is None:
            return
        parts.append(window.expr(expanded.invars[0]))
    axis = joined.params["dimension"]
    yield call("jnp.stack", list_(parts), **({"axis": value(axis)} if axis else {}))


@IDIOMS(
    "iota add iota ge convert_element_type?",
    "iota iota add ge convert_element_type?",
    "iota add iota eq convert_element_type?",
    "iota iota add eq convert_element_type?",
)
def triangular(window: Window) -> Iterator[ast.expr]:
    """Yield `jnp.eye` and `jnp.tri`."""
    aval = window.output.aval
    rows, columns = aval.shape
    sides = [value(rows)] if rows == columns else [value(rows), value(columns)]
    offset = window.expr(window.find("add").invars[1])
    function = "jnp.eye" if any(e.primitive.name == "eq" for e in window.equations) else "jnp.tri"
    shift = {} if flat(offset) == "0" else {"k": offset}
    kind = spelling.dtype(aval.dtype)
    if flat(kind) == "jnp.float32":
        yield call(function, *sides, **shift)
    yield call(function, *sides, **shift, dtype=kind)


@PRETTY("iota")
def iota(view: EquationView) -> Iterator[ast.expr]:
    dtype, shape = view.params["dtype"], view.params["shape"]
    if len(shape) == 1:
        if jnp.arange(0).dtype == dtype:
            yield call("jnp.arange", value(shape[0]))
        yield call("jnp.arange", value(shape[0]), dtype=spelling.dtype(dtype))
        if dtype == jnp.arange(0.0).dtype:
            yield call("jnp.arange", ast.Constant(float(shape[0])))
