"""What a subscript demands of the array, and of the index."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from jaxsight.examples.proposals.interpreting import uses
from jaxsight.examples.proposals.interpreting.evidence import (
    UNKNOWN,
    Arr,
    Const,
    Evidence,
    Items,
    Named,
    Param,
    ShapeOf,
    Size,
    Value,
)
from jaxsight.examples.proposals.interpreting.shapes import Dim, Shape

Part = Value | slice


def indexed(value: Value, parts: Sequence[Part]) -> Value:
    """Return the value of a subscript."""
    match value, parts:
        case ShapeOf(), [part]:
            return _of_shape(value, part)
        case Items(values), [Const(int() as number)] if -len(values) <= number < len(values):
            return values[number]
        case Items(values), [slice() as part] if part.step is None:
            return Items(values[part])
        case Param(evidence), [Const(str() as key)]:
            return Arr(evidence.keys.setdefault(repr(key), Shape()))
        case Named("at", bound), _ if bound is not None:
            if (shape := uses.as_array(bound)) is not None:
                _taken(shape, parts)
            return Named("at.", bound)
    shape = uses.as_array(value)
    if shape is None:
        return UNKNOWN
    taken = _taken(shape, parts)
    match value, taken:
        case ((Param(evidence) | Arr(origin=Evidence() as evidence)), Arr()):
            return replace(taken, origin=evidence)
    return taken


def _of_shape(value: ShapeOf, part: Part) -> Value:
    match part:
        case Const(int() as number):
            if value.start is None and value.stop is None:
                return Size(value.shape.dim(number))
            dims = uses.sizes_of(value)
            if dims is not None and -len(dims) <= number < len(dims):
                return Size(dims[number])
            if value.start is not None and value.start >= 0 and number >= 0:
                return Size(value.shape.dim(value.start + number))
            return UNKNOWN
        case slice(start=start, stop=stop, step=None) if value.start is None and value.stop is None:
            return ShapeOf(value.shape, start, stop)
        case Param(evidence):
            evidence.static = evidence.axis = True
    return UNKNOWN


def _taken(shape: Shape, parts: Sequence[Part]) -> Value:
    """Return what an index takes from an array."""
    used = 0
    rest: list[Dim | None] = []
    ellipsis = -1
    known = shape.dims
    loose = False
    for part in parts:
        match part:
            case Const(None):
                rest.append(Dim(number=1))
                loose = True
            case Const(value) if value is ...:
                ellipsis = len(rest)
            case slice():
                rest.append(Dim())
                used += 1
            case Const() | Size():
                used += 1
            case _:
                uses.as_index(part)
                used += 1
                loose = True
    shape.at_least(used)
    if known is None or loose:
        return Arr(Shape(), loose=True)
    return Arr(_kept(known, parts, used, ellipsis))


def _kept(known: list[Dim], parts: Sequence[Part], used: int, ellipsis: int) -> Shape:
    """Return the shape after integers and slices are taken."""
    dims: list[Dim] = []
    at = 0
    for part in parts:
        match part:
            case Const(value) if value is ...:
                skip = len(known) - used
                dims += known[at : at + skip]
                at += skip
            case slice(start=None, stop=None, step=None):
                dims += known[at : at + 1]
                at += 1
            case slice():
                dims.append(Dim())
                at += 1
            case _:
                at += 1
    if ellipsis < 0:
        dims += known[at:]
    return Shape.of(dims)
