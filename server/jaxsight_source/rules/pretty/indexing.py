"""Pretty style: indexing, which normalizes indices before it gathers, scatters or slices."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from jaxsight_source.compat.jaxpr_types import Atom, Equation
from jaxsight_source.compat.staging import is_literal
from jaxsight_source.equations.idioms import Window
from jaxsight_source.equations.registry import IDIOMS, PRETTY, EquationView, flags, passed
from jaxsight_source.rules.pretty.shapes import bounds, whole
from jaxsight_source.text.exprs import COLON, ELLIPSIS, FALSE, call, once, subscript, tuple_
from jaxsight_source.text.layout import flat
from jaxsight_source.values.public_names import imported
from jaxsight_source.values.spelling import value

_NORMALISED = "lt|add|select_n|convert_element_type|broadcast_in_dim|reshape|squeeze|concatenate*"
"""The equations that convert the user's indices to those of a primitive."""

_SHAPED = ("broadcast_in_dim", "reshape", "squeeze", "concatenate")

_PROMISES = ("indices_are_sorted", "unique_indices")

_MODES = {"CLIP": "clip", "FILL_OR_DROP": "fill", "PROMISE_IN_BOUNDS": "promise_in_bounds"}


def _written(window: Window, atom: Atom, converted: bool) -> Atom:
    """Return the user's index; a `select_n` counts negative ones from the end."""
    while (equation := window.maker(atom)) is not None:
        name = equation.primitive.name
        if name == "select_n" and len(equation.invars) == 3:
            atom = equation.invars[1]
        elif (name in _SHAPED and len(equation.invars) == 1) or (
            name == "convert_element_type" and converted
        ):
            atom = equation.invars[0]
        else:
            break
    return atom


def _parts(window: Window, atom: Atom, converted: bool) -> list[Atom]:
    """Return the indices that were concatenated to one array."""
    atom = window.origin(atom, "reshape", "convert_element_type") if converted else atom
    equation = window.maker(atom)
    joined = (
        equation.invars
        if equation is not None and equation.primitive.name == "concatenate"
        else [atom]
    )
    return [_written(window, part, converted) for part in joined]


def _indexed(
    window: Window, atom: Atom, axes: Sequence[int], rank: int
) -> Iterator[list[ast.expr]]:
    for converted in (True, False):
        parts = _parts(window, atom, converted)
        if len(parts) == len(axes):
            indices: list[ast.expr] = [COLON] * rank
            for axis, part in zip(axes, parts, strict=True):
                indices[axis] = window.expr(part)
            yield whole(indices)


@IDIOMS(f"{_NORMALISED} gather squeeze|reshape?")
def gathered(window: Window) -> Iterator[ast.expr]:
    equation = window.find("gather")
    operand, where = equation.invars
    x = window.expr(operand)
    axes = equation.params["dimension_numbers"].start_index_map
    mode = _MODES.get(getattr(equation.params["mode"], "name", ""))
    for index in _indexed(window, where, axes, operand.aval.ndim):
        yield subscript(x, *index)
        if len(axes) == 1:
            position = index[axes[0]] if index[0] is not ELLIPSIS else index[-1]
            yield call("jnp.take", x, position, axis=value(axes[0]), mode=value(mode or "clip"))
            if mode == "fill":
                yield call("jnp.take", x, position, axis=value(axes[0]))
        if mode is not None:
            yield call(
                ast.Attribute(subscript(ast.Attribute(x, "at"), *index), "get"), mode=value(mode)
            )


_UPDATES = {
    "scatter": "set", "scatter-add": "add", "scatter_add": "add", "scatter-sub": "subtract",
    "scatter_sub": "subtract", "scatter-mul": "multiply", "scatter_mul": "multiply",
    "scatter-min": "min", "scatter_min": "min", "scatter-max": "max", "scatter_max": "max",
}  # fmt: skip


@IDIOMS("broadcast_in_dim broadcast_in_dim scatter-add|scatter-max|scatter-min|scatter-mul")
def segments(window: Window) -> Iterator[ast.expr]:
    """Yield `jax.ops.segment_sum` and similar functions."""
    last = window.equations[-1]
    word = {"add": "sum", "mul": "prod"}.get(last.primitive.name[8:], last.primitive.name[8:])
    target, ids, data = last.invars
    segment_ids = window.expr(window.origin(ids, "broadcast_in_dim"))
    if len(target.aval.shape) == data.aval.ndim and target.aval.shape:
        count = value(target.aval.shape[0])
        path = imported("jax.ops", f"segment_{word}")
        yield call(path, window.expr(data), segment_ids, count)
        yield call(path, window.expr(data), segment_ids, num_segments=count)


@IDIOMS(f"{_NORMALISED} {'|'.join(_UPDATES)}")
def updated(window: Window) -> Iterator[ast.expr]:
    equation = window.equations[-1]
    method = _UPDATES[equation.primitive.name]
    operand, where, update = equation.invars
    x = window.expr(operand)
    mode = _MODES.get(getattr(equation.params["mode"], "name", ""))
    promised = flags(equation.params, *_PROMISES)
    sources = [
        window.origin(update, "broadcast_in_dim", "convert_element_type", "reshape"),
        window.origin(update, "broadcast_in_dim"),
    ]
    for source in sources:
        y = window.expr(source)
        for index in _places(window, equation, where):
            at = ast.Attribute(subscript(ast.Attribute(x, "at"), *index), method)
            yield call(at, y)
            if promised:
                yield call(at, y, **promised)
            if mode is not None:
                yield call(at, y, mode=value("drop" if mode == "fill" else mode), **promised)


@PRETTY("gather")
def gathered_alone(view: EquationView) -> Iterator[ast.expr]:
    """Yield a gather whose indices are computed elsewhere, in compact form."""
    mode = _MODES.get(getattr(view.params["mode"], "name", ""))
    if mode is None:
        return
    numbers, sizes = _numbers(view), value(view.params["slice_sizes"])
    named = flags(view.params, *_PROMISES) | {"mode": value(mode)}
    yield call("lax.gather", *view.operands, numbers, sizes, **named)
    yield call(
        "lax.gather", *view.operands, numbers, sizes, **named, **passed(view.params, "fill_value")
    )


@PRETTY(*_UPDATES)
def updated_alone(view: EquationView) -> Iterator[ast.expr]:
    """Yield a scatter whose indices are computed elsewhere, in compact form."""
    mode = _MODES.get(getattr(view.params["mode"], "name", ""))
    if mode is not None:
        path = f"lax.{view.name.replace('-', '_')}"
        yield call(
            path, *view.operands, _numbers(view), **flags(view.params, *_PROMISES), mode=value(mode)
        )


def _numbers(view: EquationView) -> ast.expr:
    """Return dimension numbers, such as `lax.GatherDimensionNumbers((2,), (0,), (0,))`.

    They are written once, at the top of the module, without batching dimensions if there are none.
    """
    numbers = view.params["dimension_numbers"]
    fields = list(numbers)
    while len(fields) > _REQUIRED and not fields[-1]:
        fields.pop()
    base = "_GATHER" if view.name == "gather" else "_SCATTER"
    return once(base, call(f"lax.{type(numbers).__name__}", *map(value, fields)))


_REQUIRED = 3
"""The number of fields of dimension numbers without defaults, which come first."""


def _places(window: Window, equation: Equation, where: Atom) -> Iterator[list[ast.expr]]:
    numbers = equation.params["dimension_numbers"]
    operand, _, update = equation.invars
    axes, rank = numbers.scatter_dims_to_operand_dims, operand.aval.ndim
    inserted = (*numbers.inserted_window_dims, *numbers.operand_batching_dims)
    if all(axis in inserted for axis in axes):
        yield from _indexed(window, where, axes, rank)
    window_axes = [axis for axis in range(rank) if axis not in inserted]
    sizes = dict(
        zip(window_axes, (update.aval.shape[d] for d in numbers.update_window_dims), strict=True)
    )
    indices: list[ast.expr] = [COLON] * rank
    for axis, part in zip(axes, _parts(window, where, True), strict=True):
        if axis in inserted:
            indices[axis] = window.expr(part)
        elif is_literal(part):
            start = int(part.val)
            indices[axis] = bounds(start, start + sizes[axis], 1, operand.aval.shape[axis])
        else:
            return
    yield whole(indices)


@PRETTY("dynamic_slice")
def slice_at(view: EquationView) -> Iterator[ast.expr]:
    """Yield a slice along one axis."""
    x, *starts = view.operands
    sizes, shape = view.params["slice_sizes"], view.inputs[0].shape
    moving = [axis for axis, size in enumerate(sizes) if size != shape[axis]]
    if len(moving) == 1:
        (axis,) = moving
        along = [value(axis)] if axis else []
        for options in ({}, _AS_IT_IS):
            yield call(
                "lax.dynamic_slice_in_dim", x, starts[axis], value(sizes[axis]), *along, **options
            )


@PRETTY("dynamic_update_slice")
def update_at(view: EquationView) -> Iterator[ast.expr]:
    """Yield an update along one axis."""
    x, update, *starts = view.operands
    moving = [axis for axis, start in enumerate(starts) if flat(start) != "0"]
    if len(moving) == 1:
        (axis,) = moving
        for options in ({}, _AS_IT_IS):
            yield call(
                "lax.dynamic_update_slice_in_dim", x, update, starts[axis], value(axis), **options
            )


_AS_IT_IS = {"allow_negative_indices": FALSE}
"""Makes JAX use indices unchanged; by default it counts negative ones from the end, which adds
equations.
"""


@IDIOMS("lt|add|select_n|convert_element_type* dynamic_slice squeeze|reshape?")
def sliced(window: Window) -> Iterator[ast.expr]:
    equation = window.find("dynamic_slice")
    operand, *starts = equation.invars
    x, sizes, shape = window.expr(operand), equation.params["slice_sizes"], operand.aval.shape
    moving = [
        axis
        for axis, size in enumerate(sizes)
        if size != shape[axis] or not is_literal(starts[axis])
    ]
    indices = [_written(window, start, True) for start in starts]
    last = window.equations[-1]
    along = {"axis": value(moving[0])} if len(moving) == 1 and moving[0] else {}
    if last is not equation:
        dropped = moving if len(moving) == 1 else last.params.get("dimensions") or ()
        subscripts = [
            window.expr(index) if axis in dropped else COLON for axis, index in enumerate(indices)
        ]
        yield subscript(x, *whole(subscripts))
        if len(moving) == 1:
            start, kept = window.expr(indices[moving[0]]), FALSE
            yield call("lax.dynamic_index_in_dim", x, start, **along, keepdims=kept)
        return
    if len(moving) == 1:
        start, size = window.expr(indices[moving[0]]), sizes[moving[0]]
        yield call("lax.dynamic_slice_in_dim", x, start, value(size), *along.values())
        if size == 1:
            yield call("lax.dynamic_index_in_dim", x, start, **along)
    if len(window.equations) > 1:
        yield call("lax.dynamic_slice", x, tuple_(map(window.expr, indices)), value(sizes))


@IDIOMS("lt|add|select_n|convert_element_type|broadcast_in_dim|reshape* dynamic_update_slice")
def updated_slice(window: Window) -> Iterator[ast.expr]:
    equation = window.equations[-1]
    operand, update, *starts = equation.invars
    x = window.expr(operand)
    indices = [_written(window, start, True) for start in starts]
    moving = [
        axis for axis, start in enumerate(starts) if not (is_literal(start) and int(start.val) == 0)
    ]
    stored = window.expr(window.origin(update, "broadcast_in_dim", "reshape"))
    if len(moving) == 1:
        (axis,) = moving
        for name in ("lax.dynamic_update_slice_in_dim", "lax.dynamic_update_index_in_dim"):
            yield call(name, x, stored, window.expr(indices[axis]), value(axis))
    starts_at = tuple_(map(window.expr, indices))
    yield call("lax.dynamic_update_slice", x, window.expr(update), starts_at)
