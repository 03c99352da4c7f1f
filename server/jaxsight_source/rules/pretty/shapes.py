"""Pretty style: shapes as methods and by indexing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import jax.numpy as jnp

from jaxsight_source.equations.idioms import Window
from jaxsight_source.equations.registry import IDIOMS, PRETTY, View
from jaxsight_source.text.exprs import Atom, Attribute, Expr, Index, call, list_
from jaxsight_source.values import scalars
from jaxsight_source.values.spelling import value


@PRETTY("transpose")
def transpose(view: View) -> Iterator[Expr]:
    (x,) = view.operands
    order = tuple(view.params["permutation"])
    if order == (1, 0):
        yield Attribute(x, "T")
    moved = [index for index, axis in enumerate(order) if index != axis]
    if len(order) > 2 and moved == [len(order) - 2, len(order) - 1]:
        yield Attribute(x, "mT")
    if len(moved) == 2:
        yield call(Attribute(x, "swapaxes"), *(value(axis) for axis in moved))
    yield call(Attribute(x, "transpose"), *(value(axis) for axis in order))


@PRETTY("reshape")
def reshape(view: View) -> Iterator[Expr]:
    (x, *dynamic_sizes) = view.operands
    sizes = tuple(view.params["new_sizes"])
    if dynamic_sizes or view.literals[0] is not None:
        return
    if (order := view.params.get("dimensions")) is not None:
        joined = next((axis for axis, moved in enumerate(order) if moved == 0), 1)
        yield call("jnp.concatenate", x, axis=value(joined))
        return
    if len(sizes) == 1:
        yield call(Attribute(x, "reshape"), Atom("-1"))
    if len(sizes) == 0:
        yield call("jnp.squeeze", x)
    yield call(Attribute(x, "reshape"), *(value(size) for size in sizes))


@PRETTY("broadcast_in_dim")
def broadcast_in_dim(view: View) -> Iterator[Expr]:
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
        yield Index(x, tuple(_expanding(len(shape), operand_axes)))
    yield call("jnp.broadcast_to", x, value(shape))


def filled(x: Expr, shape: Sequence[int], dtype: object) -> Iterator[Expr]:
    """Yield an array of one number."""
    sizes = value(shape[0] if len(shape) == 1 else tuple(shape))
    kind = scalars.dtype(dtype)
    default = kind == Atom("jnp.float32")
    match x:
        case Atom("0" | "0.0" | "False"):
            if default:
                yield call("jnp.zeros", sizes)
            yield call("jnp.zeros", sizes, kind)
        case Atom("1" | "1.0" | "True"):
            if default:
                yield call("jnp.ones", sizes)
            yield call("jnp.ones", sizes, kind)
        case _:
            pass
    yield call("jnp.full", sizes, x)
    yield call("jnp.full", sizes, x, kind)


def _expanding(rank: int, operand_axes: Sequence[int]) -> Iterator[Expr]:
    """Yield `:` and `None` for the axes of the result, without colons at the end.

    Several colons at the start become an ellipsis.
    """
    last_new = max((axis for axis in range(rank) if axis not in operand_axes), default=-1)
    leading = 0
    while leading in operand_axes:
        leading += 1
    if leading >= 2 and all(axis not in operand_axes for axis in range(leading, rank)):
        yield Atom("...")
        yield from [Atom("None")] * (rank - leading)
        return
    for axis in range(last_new + 1):
        yield Atom(":" if axis in operand_axes else "None")


def bounds(start: int, stop: int, step: int, size: int) -> str:
    """Return the shortest slice of an axis of length `size`."""
    first = "" if start == 0 else str(start)
    last = (
        ""
        if stop == size
        else str(stop - size)
        if stop > size // 2 and size - stop == 1
        else str(stop)
    )
    return f"{first}:{last}" + (f":{step}" if step != 1 else "")


def indices(
    starts: Sequence[int],
    stops: Sequence[int],
    steps: Sequence[int],
    sizes: Sequence[int],
    dropped: Sequence[int] = (),
) -> tuple[Expr, ...]:
    """Return indices that select these ranges, with a single index for the axes in `dropped`."""
    texts = []
    for axis, (start, stop, step, size) in enumerate(zip(starts, stops, steps, sizes, strict=True)):
        if axis in dropped:
            texts.append(str(start - size) if start == size - 1 and start > 0 else str(start))
        else:
            texts.append(bounds(start, stop, step, size))
    return whole([*map(Atom, texts)])


def whole(indices: list[Expr]) -> tuple[Expr, ...]:
    """Return indices without redundant colons.

    Those at the end are omitted; several at the start become an ellipsis.
    """
    colon = Atom(":")
    if indices[-1] == colon:
        while len(indices) > 1 and indices[-1] == colon:
            indices = indices[:-1]
        return tuple(indices)
    leading = next((position for position, index in enumerate(indices) if index != colon), 0)
    return (Atom("..."), *indices[leading:]) if leading > 1 else tuple(indices)


@PRETTY("slice")
def slice_(view: View) -> Iterator[Expr]:
    (x,) = view.operands
    starts, stops = view.params["start_indices"], view.params["limit_indices"]
    sizes = view.inputs[0].shape
    if sizes:
        steps = view.params["strides"] or (1,) * len(starts)
        yield Index(x, indices(starts, stops, steps, sizes))


@IDIOMS("slice squeeze")
def indexed(window: Window) -> Iterator[Expr]:
    slicing, dropped = window.equations
    x = window.expr(slicing.invars[0])
    starts, stops = slicing.params["start_indices"], slicing.params["limit_indices"]
    steps = slicing.params["strides"] or (1,) * len(starts)
    sizes = slicing.invars[0].aval.shape
    yield Index(x, indices(starts, stops, steps, sizes, dropped.params["dimensions"]))


@PRETTY("rev")
def rev(view: View) -> Iterator[Expr]:
    reversed_ = view.params["dimensions"]
    rank = view.inputs[0].ndim
    selected: list[Expr] = [Atom("::-1" if axis in reversed_ else ":") for axis in range(rank)]
    yield Index(view.operands[0], whole(selected))


@IDIOMS("jit|pjit* concatenate")
def joined(window: Window) -> Iterator[Expr]:
    """Yield `jnp.hstack` and `jnp.vstack`, which first adjust the rank of each array."""
    parts = window.operands(window.equations[-1], "jit", "pjit")
    for function in ("hstack", "vstack"):
        yield call(f"jnp.{function}", list_(parts))


@IDIOMS("broadcast_in_dim reshape")
def repeated(window: Window) -> Iterator[Expr]:
    """Yield `jnp.repeat`."""
    before, after = window.equations[0].invars[0].aval, window.output.aval
    if before.ndim != after.ndim:
        return
    x = window.expr(window.equations[0].invars[0])
    for axis, (old, new) in enumerate(zip(before.shape, after.shape, strict=True)):
        if old and new != old and new % old == 0:
            yield call("jnp.repeat", x, value(new // old), axis=value(axis))


@IDIOMS("broadcast_in_dim|reshape* concatenate")
def stacked(window: Window) -> Iterator[Expr]:
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
def triangular(window: Window) -> Iterator[Expr]:
    """Yield `jnp.eye` and `jnp.tri`."""
    aval = window.output.aval
    rows, columns = aval.shape
    sides = [value(rows)] if rows == columns else [value(rows), value(columns)]
    offset = window.expr(window.find("add").invars[1])
    function = "jnp.eye" if any(e.primitive.name == "eq" for e in window.equations) else "jnp.tri"
    shift = {} if offset == Atom("0") else {"k": offset}
    kind = scalars.dtype(aval.dtype)
    if kind == Atom("jnp.float32"):
        yield call(function, *sides, **shift)
    yield call(function, *sides, **shift, dtype=kind)


@PRETTY("iota")
def iota(view: View) -> Iterator[Expr]:
    dtype, shape = view.params["dtype"], view.params["shape"]
    if len(shape) == 1:
        if jnp.arange(0).dtype == dtype:
            yield call("jnp.arange", value(shape[0]))
        yield call("jnp.arange", value(shape[0]), dtype=scalars.dtype(dtype))
        if dtype == jnp.arange(0.0).dtype:
            yield call("jnp.arange", Atom(f"{shape[0]}.0"))
