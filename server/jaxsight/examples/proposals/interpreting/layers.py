"""What windows, segments, resized images and labels demand of their operands."""

from __future__ import annotations

from collections.abc import Sequence

from jaxsight.examples.proposals.interpreting import conditions, uses
from jaxsight.examples.proposals.interpreting.evidence import (
    UNKNOWN,
    Arr,
    Const,
    Items,
    RankOf,
    Value,
    facts_of,
)
from jaxsight.examples.proposals.interpreting.shapes import Dim, Shape
from jaxsight.examples.proposals.interpreting.uses import (
    LibraryCall,
    as_array,
    as_index,
    as_integer,
    as_shape,
)


def convolved(call: LibraryCall) -> Value:
    """Return the result of `conv_general_dilated(lhs, rhs, strides, padding)`."""
    numbers = call.get(6, "dimension_numbers")
    strides = call.get(2, "window_strides")
    as_shape(strides)
    layouts = ["", ""]
    rank = None
    match numbers:
        case Items((Const(str() as one), Const(str() as two), *_)) if len(one) == len(two):
            layouts, rank = [one, two], len(one)
    if rank is None and isinstance(strides, Items):
        rank = len(strides.values) + 2
    shapes = [as_array(value) for value in call.arguments[:2]]
    for shape in shapes:
        if shape is not None and rank is not None:
            shape.set_rank(rank)
        elif shape is not None:
            shape.suggest(4)  # most convolutions are of images
    match shapes:
        case [Shape() as image, Shape() as kernel]:
            channels = layouts[0].find("C") if layouts[0] else 1
            taken = layouts[1].find("I") if layouts[1] else 1
            if "feature_group_count" not in call.keywords and min(channels, taken) >= 0:
                image.dim(channels).unify(kernel.dim(taken))
            return uses.of_same_rank(image)
    return Arr(Shape(), loose=True)


def updated(call: LibraryCall) -> Value:
    """Return the result of `dynamic_update_slice(operand, update, indices)`."""
    return _at_indices(call.arguments[:2], call.get(2, "start_indices"))


def sliced(call: LibraryCall) -> Value:
    """Return the result of `dynamic_slice(operand, indices, sizes)`."""
    _at_indices(call.arguments[:1], call.get(1))
    return Arr(as_shape(call.get(2)), loose=True)


def _at_indices(arrays: Sequence[Value], indices: Value) -> Value:
    shapes = [shape for value in arrays if (shape := as_array(value)) is not None]
    if isinstance(indices, Items):
        for shape in shapes:
            shape.set_rank(len(indices.values))
        for value in indices.values:
            _scalar_index(value)
    return Arr(shapes[0]) if shapes else UNKNOWN


def _scalar_index(value: Value) -> None:
    as_index(value)
    facts_of(value).shape.set_rank(0)


def sliced_in_dim(call: LibraryCall) -> Value:
    """Return the result of `dynamic_slice_in_dim(operand, start, size, axis)` and the like."""
    _scalar_index(call.get(1))
    as_integer(call.get(2, "slice_size"))
    shape = call.array(0)
    return uses.of_same_rank(shape) if shape is not None else UNKNOWN


def vectors(call: LibraryCall) -> Value:
    """Return the result of `convolve`, `interp` and the like, whose operands are vectors."""
    for value in call.arguments:
        if (shape := as_array(value)) is not None:
            shape.set_rank(1)
    return Arr(Shape.of([Dim()]))


def segments(call: LibraryCall) -> Value:
    ids = call.get(1, "segment_ids")
    count = call.get(2, "num_segments")
    as_integer(count)
    as_index(ids)
    shapes = [as_array(value) for value in (*call.arguments[:1], ids)]
    match shapes:
        case [Shape() as data, Shape() as labels]:
            labels.set_rank(1)
            labels.dim(0).unify(data.dim(0))
    return Arr(Shape(), loose=True)


def labelled(call: LibraryCall) -> Value:
    """Return a loss of logits and of integer labels, which have an axis less."""
    as_index(call.get(1))
    match [call.array(0), call.array(1)]:
        case [None, Shape() as labels]:
            labels.suggest(1)
        case [Shape() as logits, Shape() as labels]:
            conditions.equal(call.links, RankOf(logits), RankOf(labels, 1))
            return Arr(labels)
    return Arr(Shape(), loose=True)
