"""What windows, segments, resized images and labels demand of their operands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jaxsight.examples.proposals.interpreting import conditions
from jaxsight.examples.proposals.interpreting.evidence import (
    UNKNOWN,
    Arr,
    Machine,
    Param,
    RankOf,
    Value,
)
from jaxsight.examples.proposals.interpreting.shapes import Shape
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
