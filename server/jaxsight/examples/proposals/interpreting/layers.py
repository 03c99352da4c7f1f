"""What windows, segments, resized images and labels demand of their operands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jaxsight.examples.proposals.interpreting import conditions
from jaxsight.examples.proposals.interpreting.evidence import (
    UNKNOWN,
    Arr,
    Const,
    Items,
    Machine,
    Param,
    RankOf,
    Value,
)
from jaxsight.examples.proposals.interpreting.shapes import Dim, Shape
from jaxsight.examples.proposals.interpreting.uses import as_array, as_index, as_integer, as_shape


def resized(machine: Machine, arguments: Sequence[Value], keywords: Mapping[str, Value]) -> Value:
    method = arguments[2] if len(arguments) > 2 else keywords.get("method")
    if isinstance(method, Param):
        method.evidence.choices.append("'linear'")
    shape = as_shape(arguments[1] if len(arguments) > 1 else keywords.get("shape", UNKNOWN))
    image = as_array(arguments[0]) if arguments else None
    if image is not None and (rank := shape.find().rank) is not None:
        image.set_rank(rank)
    return Arr(shape)


def convolved(machine: Machine, arguments: Sequence[Value], keywords: Mapping[str, Value]) -> Value:
    """Return the result of `conv_general_dilated(lhs, rhs, strides, padding)`."""
    numbers = keywords.get("dimension_numbers", arguments[6] if len(arguments) > 6 else UNKNOWN)
    strides = arguments[2] if len(arguments) > 2 else keywords.get("window_strides", UNKNOWN)
    as_shape(strides)
    layouts = ["", ""]
    rank = None
    match numbers:
        case Items((Const(str() as one), Const(str() as two), *_)) if len(one) == len(two):
            layouts, rank = [one, two], len(one)
    if rank is None and isinstance(strides, Items):
        rank = len(strides.values) + 2
    shapes = [as_array(value) for value in arguments[:2]]
    for shape in shapes:
        if shape is not None and rank is not None:
            shape.set_rank(rank)
        elif shape is not None and shape.find().likely is None:
            shape.find().likely = 4
    match shapes:
        case [Shape() as image, Shape() as kernel]:
            channels = layouts[0].find("C") if layouts[0] else 1
            taken = layouts[1].find("I") if layouts[1] else 1
            if "feature_group_count" not in keywords and min(channels, taken) >= 0:
                image.dim(channels).unify(kernel.dim(taken))
            return Arr(image.tied(0, {}, {}), loose=True)
    return Arr(Shape(), loose=True)


def updated(machine: Machine, arguments: Sequence[Value], keywords: Mapping[str, Value]) -> Value:
    """Return the result of `dynamic_update_slice(operand, update, indices)`."""
    indices = arguments[2] if len(arguments) > 2 else keywords.get("start_indices", UNKNOWN)
    return _at_indices(arguments[:2], indices)


def sliced(machine: Machine, arguments: Sequence[Value], keywords: Mapping[str, Value]) -> Value:
    """Return the result of `dynamic_slice(operand, indices, sizes)`."""
    _at_indices(arguments[:1], arguments[1] if len(arguments) > 1 else UNKNOWN)
    return Arr(as_shape(arguments[2]) if len(arguments) > 2 else Shape(), loose=True)


def _at_indices(arrays: Sequence[Value], indices: Value) -> Value:
    shapes = [shape for value in arrays if (shape := as_array(value)) is not None]
    if isinstance(indices, Items):
        for shape in shapes:
            shape.set_rank(len(indices.values))
        for value in indices.values:
            as_index(value)
            if isinstance(value, Param):
                value.evidence.shape.set_rank(0)
    return Arr(shapes[0]) if shapes else UNKNOWN


def sliced_in_dim(
    machine: Machine, arguments: Sequence[Value], keywords: Mapping[str, Value]
) -> Value:
    """Return the result of `dynamic_slice_in_dim(operand, start, size, axis)` and the like."""
    for value in arguments[1:2]:
        as_index(value)
        if isinstance(value, Param):
            value.evidence.shape.set_rank(0)
    as_integer(arguments[2] if len(arguments) > 2 else keywords.get("slice_size"))
    shape = as_array(arguments[0]) if arguments else None
    return Arr(shape.tied(0, {}, {}), loose=True) if shape is not None else UNKNOWN


def vectors(machine: Machine, arguments: Sequence[Value], keywords: Mapping[str, Value]) -> Value:
    """Return the result of `convolve`, `interp` and the like, whose operands are vectors."""
    for value in arguments:
        if (shape := as_array(value)) is not None:
            shape.set_rank(1)
    return Arr(Shape.of([Dim()]))


def windows(machine: Machine, arguments: Sequence[Value], keywords: Mapping[str, Value]) -> Value:
    """Return the result of `reduce_window(operand, init, function, shape, strides, padding)`."""
    for value in arguments[:1]:
        as_array(value)
    match arguments[1:3]:
        case [Param(evidence), *_]:
            evidence.choices.append("0.0")
    match arguments[2:3]:
        case [Param(evidence)]:
            evidence.called = ("x", "y")
    for value in arguments[3:5]:
        as_shape(value)
    return Arr(Shape(), loose=True)


def segments(machine: Machine, arguments: Sequence[Value], keywords: Mapping[str, Value]) -> Value:
    ids = arguments[1] if len(arguments) > 1 else keywords.get("segment_ids", UNKNOWN)
    count = arguments[2] if len(arguments) > 2 else keywords.get("num_segments")
    as_integer(count)
    as_index(ids)
    shapes = [as_array(value) for value in (*arguments[:1], ids)]
    match shapes:
        case [Shape() as data, Shape() as labels]:
            labels.set_rank(1)
            labels.dim(0).unify(data.dim(0))
    return Arr(Shape(), loose=True)


def labelled(machine: Machine, arguments: Sequence[Value], keywords: Mapping[str, Value]) -> Value:
    """Return a loss of logits and of integer labels, which have an axis less."""
    for value in arguments[1:2]:
        as_index(value)
    match [as_array(value) for value in arguments[:2]]:
        case [None, Shape() as labels] if labels.find().likely is None:
            labels.find().likely = 1
        case [Shape() as logits, Shape() as labels]:
            conditions.equal(machine, RankOf(logits), RankOf(labels, 1))
            return Arr(labels)
    return Arr(Shape(), loose=True)
