"""What operators, subscripts and attributes demand of a value, and what they return."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from jaxsight.examples.proposals.interpreting.evidence import (
    UNKNOWN,
    Arr,
    Const,
    Dim,
    Dotted,
    Evidence,
    Items,
    Links,
    Param,
    RankOf,
    Shape,
    ShapeOf,
    Size,
    UnknownValue,
    Value,
)
from jaxsight.text.names import words

REDUCTIONS = frozenset(
    words(
        """
        all amax amin any argmax argmin average count_nonzero logsumexp max mean median min
        nanmax nanmean nanmin nansum norm prod ptp std sum var reduce_max reduce_sum logmeanexp
        """
    )
)
_METHODS = REDUCTIONS.union(
    words(
        """
        astype reshape transpose swapaxes ravel flatten squeeze dot conj clip cumsum round item
        copy repeat take sort argsort
        """
    )
)


@dataclass(frozen=True, slots=True)
class LibraryCall:
    """A call of a library's function, or of a method, whose object is the first argument."""

    links: Links
    arguments: Sequence[Value]
    keywords: Mapping[str, Value]

    def get(self, position: int, name: str = "", default: Value = UNKNOWN) -> Value:
        """Return an argument that is passed by position, or by name."""
        passed = self.arguments[position : position + 1]
        return passed[0] if passed else self.keywords.get(name, default)

    def array(self, position: int) -> Shape | None:
        """Return the shape of an argument that is used as an array."""
        return as_array(self.get(position))


def as_array(value: Value) -> Shape | None:
    """Return the shape of a value that is used as an array; `None` if it has none."""
    match value:
        case Param(evidence):
            evidence.array += 1
            return evidence.shape
        case Arr(shape):
            return shape
    return None


def as_integer(value: object) -> None:
    """Note that a value is a Python integer."""
    match value:
        case Param(evidence):
            evidence.static = True
        case Items(values):
            for inner in values:
                as_integer(inner)


def as_shape(value: Value) -> Shape:
    """Note that a value is the shape of an array, and return that shape."""
    match value:
        case Param(evidence):
            evidence.shape_like = True
        case Items(values):
            for inner in values:
                as_integer(inner)
            return Shape.of([size_of(inner) for inner in values])
        case ShapeOf(shape, None, None):
            return shape
        case ShapeOf():
            dims = sizes_of(value)
            return Shape.of(dims) if dims is not None else Shape()
        case Size(dim):
            return Shape.of([dim])
    return Shape()


def as_index(value: Value) -> None:
    """Note that a value is an index, or an array of indices."""
    match value:
        case Param(evidence):
            evidence.integer = True
        case Arr(origin=Evidence() as evidence):
            evidence.integer = True
        case Items(values):
            for inner in values:
                as_index(inner)


def size_of(value: Value) -> Dim:
    """Return a value as a size."""
    match value:
        case Size(dim):
            return dim
        case Const(int() as number) if number >= 0:
            return Dim(number=number)
    return Dim()


def sizes_of(value: ShapeOf) -> list[Dim] | None:
    """Return the sizes of a shape or of a slice of it, if the rank is known."""
    dims = value.shape.dims
    return None if dims is None else dims[value.start : value.stop]


def item_of(value: Value) -> Value:
    """Return what a loop over a value yields."""
    match value:
        case Items(values) if values:
            return values[0]
        case ShapeOf():
            return Size(Dim())
    return UNKNOWN


def of_same_rank(shape: Shape) -> Arr:
    """Return an array of the rank of another one, as far as that is known."""
    dims = shape.dims
    return Arr(Shape.of([Dim() for _ in dims]) if dims is not None else Shape(), loose=True)


def unpacked(value: Value, count: int, *, starred: bool) -> list[Value]:
    """Return the values of an assignment to several targets."""
    match value:
        case ShapeOf(shape, None, None) if starred:
            shape.at_least(count - 1)
            return [UNKNOWN] * count
        case ShapeOf(shape, None, None):
            shape.set_rank(count)
            return [Size(shape.dim(i)) for i in range(count)]
        case ShapeOf(shape, int() as start, None) if start < 0 and count == -start:
            return [Size(shape.dim(i)) for i in range(start, 0)]
        case ShapeOf(shape, None | 0, int() as stop) if stop == count:
            return [Size(shape.dim(i)) for i in range(count)]
        case Items(values) if len(values) == count and not starred:
            return list(values)
    return [UNKNOWN] * count


def attribute(value: Value, name: str) -> Value:
    """Return an attribute of a value."""
    match value:
        case Dotted(dotted, None):
            return Dotted(f"{dotted}.{name}")
        case Param(evidence) if evidence.instance:
            return Param(evidence.members.setdefault(name, Evidence(name)))
        case Param() | Arr() if name in _OF_ARRAYS or name in _METHODS:
            if name == "size" and isinstance(value, Param):
                value.evidence.array += 1
                return UNKNOWN
            if (shape := as_array(value)) is None:
                return UNKNOWN
            return _array_attribute(value, shape, name)
        case Param(evidence):
            if name in _OF_STRINGS:
                return Dotted(f"str.{name}", value)
            return Param(evidence.members.setdefault(name, Evidence(name)))
        case Dotted("at.", bound) if bound is not None:
            return Dotted("at.update", bound)
    return UNKNOWN


_OF_STRINGS = frozenset(("lower", "upper", "strip"))
_OF_ARRAYS = frozenset(("shape", "ndim", "dtype", "size", "T", "mT", "at", "real", "imag"))


def _array_attribute(value: Value, shape: Shape, name: str) -> Value:
    match name:
        case "shape":
            return ShapeOf(shape)
        case "ndim":
            return RankOf(shape)
        case "dtype":
            return UNKNOWN
        case "T" | "mT":
            return transposed(shape)
        case "real" | "imag":
            return Arr(shape)
        case "at":
            return Dotted("at", value)
    return Dotted(name, value)


def transposed(shape: Shape) -> Arr:
    if (dims := shape.dims) is None:
        shape.at_least(2)
        shape.suggest(2)
        return Arr(Shape(back={0: shape.dim(-2), 1: shape.dim(-1)}, likely=2, least=2))
    return Arr(Shape.of(dims[::-1]))


def joined(left: Value, right: Value) -> Value:
    """Return the sum of two tuples, one of which may be a shape."""
    parts: list[Value] = []
    for value in (left, right):
        match value:
            case Items(values):
                parts += values
            case ShapeOf():
                if (dims := sizes_of(value)) is None:
                    return UNKNOWN
                parts += map(Size, dims)
    return Items(tuple(parts))


def arithmetic(links: Links, left: Value, right: Value, *, is_sum: bool = True) -> Value:
    """Return the value of an elementwise operation on two operands."""
    match left, right:
        case RankOf(shape, more), Const(int() as number):
            return RankOf(shape, more + (number if is_sum else -number))
    if isinstance(left, Size | RankOf) or isinstance(right, Size | RankOf):
        both = (left, right)
        if not any(isinstance(value, Arr) for value in both):
            for value in both:
                if isinstance(value, Param) and not value.evidence.array:
                    value.evidence.number += 1
            return UNKNOWN
    shapes: list[Shape] = []
    loose = False
    for value in (left, right):
        match value:
            case Param(evidence):
                evidence.number += 1
                shapes.append(evidence.shape)
            case Arr(shape, is_loose):
                loose = loose or is_loose
                if not is_loose:
                    shapes.append(shape)
            case UnknownValue():
                loose = True
    if len(shapes) == 2 and shapes[0].find() is not shapes[1].find():
        links.append((shapes[0], shapes[1]))
    if not shapes:
        return Arr(Shape(), loose=True) if loose else UNKNOWN
    match [shape.dims for shape in shapes]:
        case [[*first], [*second]] if any(d.find().is_one for d in (*first, *second)):
            return Arr(Shape.of(broadcast(first, second)))
    # An unknown rank is likely above 1.
    ranks = [1.5 if (rank := shape.find().rank) is None else rank for shape in shapes]
    best = ranks.index(max(ranks))
    return Arr(shapes[best], loose=loose and ranks[best] == 0)


def broadcast(one: list[Dim], two: list[Dim]) -> list[Dim]:
    """Return the sizes that two arrays are broadcast to."""
    longer, shorter = (one, two) if len(one) >= len(two) else (two, one)
    skipped = len(longer) - len(shorter)
    pairs = zip(longer[skipped:], shorter, strict=True)
    return [*longer[:skipped], *(b if a.find().is_one else a for a, b in pairs)]


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
            if (shape := as_array(bound)) is not None:
                _taken(shape, parts)
            return Dotted("at.", bound)
    if (shape := as_array(value)) is None:
        for part in parts if len(parts) > 1 else ():
            if not isinstance(part, slice | Const):
                as_index(part)
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
            dims = sizes_of(value)
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


def _taken(shape: Shape, parts: Sequence[Part]) -> Arr:
    """Return what an index takes from an array."""
    used = sum(not _is_new(part) for part in parts if not _is_ellipsis(part))
    shape.at_least(used)
    has_new = any(_is_new(part) for part in parts)
    if has_new and used and not any(map(_is_ellipsis, parts)):
        shape.find().likely = used
    arrays = [part for part in parts if isinstance(part, Param | Arr | UnknownValue)]
    for part in parts:
        if not isinstance(part, slice | Const | Size):
            as_index(part)
    index, dims = _index_dims(arrays), shape.dims
    if index is None or dims is None:
        return Arr(Shape(), loose=True)
    split = next((i for i, part in enumerate(parts) if _is_ellipsis(part)), len(parts))
    whole = [slice(None)] * (len(dims) - used)
    kept: list[Dim] = []
    rest, is_inserted = iter(dims), not arrays
    for part in (*parts[:split], *whole, *parts[split + 1 :]):
        if _is_new(part):
            kept.append(Dim(is_one=True))
            continue
        dim = next(rest, Dim())
        match part:
            case slice():
                kept.append(_sliced(dim, part))
            case Const() | Size():
                pass
            case _ if not is_inserted:
                kept += index
                is_inserted = True
    return Arr(Shape.of(kept))


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
            return None
        dims = broadcast(dims, known)
    return dims


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


_MATRIX = re.compile(r"[A-Z]|(?:.*_)?[wW]\d*|(?:.*_)?weights?")


def matmul(left: Value, right: Value) -> Value:
    """Return a matrix product; the contracted sizes are the same."""
    one, two = as_array(left), as_array(right)
    if one is not None:
        one.at_least(1)
    if two is not None:
        two.at_least(1)
    if one is None or two is None:
        return Arr(Shape(), loose=True)
    is_vector = two.find().likely == 1 and two.find().least <= 1
    if two.find().rank is None and two.find().likely is None and two.find().least <= 1:
        # `A @ x` is a product with a vector as people write it, `x @ w` one with a matrix.
        is_vector = _is_matrix(left) and not _is_matrix(right)
        if is_vector:
            one.set_rank(2)
        two.find().likely = 1 if is_vector else None
    if two.find().rank == 1 or (two.find().rank is None and is_vector):
        one.dim(-1).unify(two.dim(-1))
        dims = one.dims
        return Arr(Shape.of(dims[:-1])) if dims else Arr(Shape(), loose=True)
    if two.find().rank is None:
        two.suggest(2)
    two.at_least(2)
    one.dim(-1).unify(two.dim(-2))
    last = two.dim(-1)
    if (dims := one.dims) is None:
        result = Shape(back={0: last}, least=1)
        if one.find().least >= 2 or one.find().likely == 2:
            result.back[1] = one.dim(-2)
        return Arr(result, loose=False)
    return Arr(Shape.of([*dims[:-1], last]))


def _is_matrix(value: Value) -> bool:
    """Return whether a parameter is called as matrices are: `A`, `w1`."""
    return isinstance(value, Param) and _MATRIX.fullmatch(value.evidence.name) is not None
