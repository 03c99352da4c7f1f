"""What a subscript demands of the array, and of the index."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from jaxsight.examples.proposals.interpreting import uses
from jaxsight.examples.proposals.interpreting.evidence import (
    UNKNOWN,
    Arr,
    Const,
    Dotted,
    Evidence,
    Items,
    Param,
    Result,
    ShapeOf,
    Size,
    Unknown,
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
            return Param(evidence.key(repr(key)))
        case Dotted("at", bound), _ if bound is not None:
            if (shape := uses.as_array(bound)) is not None:
                _taken(shape, parts)
            return Dotted("at.", bound)
    shape = uses.as_array(value)
    if shape is None:
        for part in parts if isinstance(value, Result) or len(parts) > 1 else ():
            if not isinstance(part, slice | Const):
                uses.as_index(part)
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
    used = sum(not _is_new(part) for part in parts if not _is_ellipsis(part))
    shape.at_least(used)
    has_new = any(_is_new(part) for part in parts)
    if has_new and used and not any(map(_is_ellipsis, parts)):
        shape.find().likely = used
    arrays = [part for part in parts if isinstance(part, Param | Arr | Unknown | Result)]
    for part in parts:
        if not isinstance(part, slice | Const | Size):
            uses.as_index(part)
    index = _index_dims(arrays)
    if index is None:
        return Arr(Shape(), loose=True)
    taken = sum(not _is_new(p) and not _is_ellipsis(p) and not isinstance(p, slice) for p in parts)
    more = sum(map(_is_new, parts)) - taken + len(index)
    return Arr(shape.tied(more, *_kept(shape, parts, index, has_arrays=bool(arrays))))


def _is_new(part: Part) -> bool:
    return isinstance(part, Const) and part.value is None


def _is_ellipsis(part: Part) -> bool:
    return isinstance(part, Const) and part.value is ...


def _index_dims(arrays: Sequence[Value]) -> list[Dim] | None:
    """Return the sizes of arrays that are indices; `None` if their ranks are not known."""
    dims: list[Dim] = []
    for part in arrays:
        shape = part.evidence.shape if isinstance(part, Param) else None
        if isinstance(part, Arr) and not part.loose:
            shape = part.shape
        known = shape.dims if shape is not None else None
        if known is None:
            if isinstance(part, Param) and shape is not None:
                shape.suggest(1)
            return None
        dims = uses.broadcast(dims, known)
    return dims


def _kept(
    shape: Shape, parts: Sequence[Part], index: list[Dim], *, has_arrays: bool
) -> tuple[dict[int, Dim], dict[int, Dim]]:
    """Return the sizes after an index, from the front and from the back."""
    split = next((i for i, part in enumerate(parts) if _is_ellipsis(part)), len(parts))
    left, right = parts[:split], parts[split + 1 :]
    front: list[Dim] = []
    at, is_inserted = 0, not has_arrays
    for part in left:
        at, is_inserted = _keep(shape, part, at, index, is_inserted, front)
    back: list[Dim] = []
    behind = -sum(not _is_new(part) for part in right)
    for part in right:
        behind, is_inserted = _keep(shape, part, behind, index, is_inserted, back)
    root = shape.find()
    if root.rank is not None:
        last = root.rank - sum(not _is_new(part) for part in right)
        front += [root.dim(i) for i in range(at, last)]
    return dict(enumerate(front)), dict(enumerate(reversed(back)))


def _keep(
    shape: Shape, part: Part, at: int, index: list[Dim], is_inserted: bool, kept: list[Dim]
) -> tuple[int, bool]:
    """Add the sizes that one part of an index keeps; return the next axis."""
    if _is_new(part):
        kept.append(Dim(is_one=True))
        return at, is_inserted
    match part:
        case slice():
            kept.append(_sliced(shape.dim(at), part))
        case Const() | Size():
            pass
        case _ if not is_inserted:
            kept += index
            is_inserted = True
    return at + 1, is_inserted


def _sliced(dim: Dim, part: slice) -> Dim:
    """Return the size of a slice with constant bounds."""
    if part.step is not None:
        return Dim()
    match part.start, part.stop:
        case None | 0, None:
            return dim
        case int() as start, None if start < 0:
            return Dim(number=-start)
        case int() as start, None:
            return dim.plus(-start)
        case None | 0, int() as stop if stop < 0:
            return dim.plus(stop)
        case int() as start, int() as stop if start >= 0 > stop:
            return dim.plus(stop - start)
    return Dim()
