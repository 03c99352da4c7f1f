"""What conditions demand that must be true, such as `x.ndim == 2` in an `assert`."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence

from jaxsight.examples.proposals.interpreting import uses
from jaxsight.examples.proposals.interpreting.evidence import (
    UNKNOWN,
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
    Value,
)
from jaxsight.examples.proposals.interpreting.uses import LibraryCall


def learn(links: Links, value: Callable[[ast.expr], Value], test: ast.expr, *, holds: bool) -> None:
    """Learn from a condition that must be true, or false; `value` evaluates an expression."""
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            learn(links, value, operand, holds=not holds)
        case ast.BoolOp(op=op, values=values) if isinstance(op, ast.And) == holds:
            for inner in values:
                learn(links, value, inner, holds=holds)
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            one, two = value(left), value(right)
            match op, holds:
                case (ast.Eq(), True) | (ast.NotEq(), False):
                    equal(links, one, two)
                case (ast.GtE(), True) | (ast.Lt(), False):
                    at_least(one, two, 0)
                case ast.Gt(), True:
                    at_least(one, two, 1)
                case (ast.In(), True) | (ast.NotIn(), False):
                    among(one, two)
        case ast.Compare(left=left, comparators=comparators) if holds:
            first = value(left)
            for right in comparators:
                equal(links, first, value(right))
        case _:
            value(test)


def choose(evidence: Evidence, value: object) -> None:
    if isinstance(value, str):
        evidence.choices.append(repr(value))


def equal(links: Links, one: Value, two: Value) -> None:
    match one, two:
        case (RankOf(shape), Const(int() as rank)) | (Const(int() as rank), RankOf(shape)):
            shape.set_rank(rank)
        case (RankOf(shape, more), RankOf(other, less)) if more == less:
            links.append((shape, other))
        case (RankOf(shape, more), RankOf(other, less)):
            _ranks_differ(shape.find(), other.find(), less - more)
        case (ShapeOf(shape, None, None), ShapeOf(other, None, None)):
            shape.unify(other)
        case (ShapeOf(shape, None, None), ShapeOf(_, None | 0, int() as stop)) | (
            ShapeOf(_, None | 0, int() as stop),
            ShapeOf(shape, None, None),
        ) if stop > 0:
            shape.set_rank(stop)
            part = two if one.shape is shape else one
            for first, second in zip(_sizes(part), shape.dims or (), strict=False):
                first.unify(second)
        case (ShapeOf(), ShapeOf()):
            for first, second in zip(_sizes(one), _sizes(two), strict=False):
                first.unify(second)
        case (ShapeOf(shape, None, None), Items(values)) | (
            Items(values),
            ShapeOf(shape, None, None),
        ):
            shape.unify(Shape.of([uses.size_of(value) for value in values]))
        case (Size(dim), Size(other)):
            dim.unify(other)
        case (Size(dim), Const(int() as number)) | (Const(int() as number), Size(dim)):
            dim.unify(Dim(number=number))
        case (Param(evidence), Const(value)):
            choose(evidence, value)


def _ranks_differ(one: Shape, two: Shape, more: int) -> None:
    """Make the rank of `one` greater than that of `two` by `more`."""
    first = one.rank if one.rank is not None else one.likely
    second = two.rank if two.rank is not None else two.likely
    if first is None and second is None:
        second = max(1, two.least, 1 - more, one.least - more)
    if second is None:
        two.likely = max((first or 0) - more, 0)
    else:
        two.likely = second
        one.likely = max(second + more, 0)


def _sizes(value: ShapeOf) -> Iterator[Dim]:
    """Yield the sizes of a slice of a shape whose rank need not be known."""
    if (known := uses.sizes_of(value)) is not None:
        yield from known
    elif value.stop is not None and value.stop > 0:
        yield from (value.shape.dim(i) for i in range(value.start or 0, value.stop))
    elif value.start is not None and value.start < 0:
        yield from (value.shape.dim(i) for i in range(value.start, value.stop or 0))


def at_least(one: Value, two: Value, more: int) -> None:
    match one, two:
        case RankOf(shape), Const(int() as rank):
            shape.at_least(rank + more)


def among(one: Value, two: Value) -> None:
    match one, two:
        case Param(evidence), Items(values):
            for value in values:
                match value:
                    case Const(str() as choice):
                        evidence.choices.append(repr(choice))
                    case Dotted(dotted, None) if dotted.startswith(("jax.numpy.", "numpy.")):
                        evidence.dtype = True
        case Size(dim), Items((*_, Const(int() as number))):
            dim.unify(Dim(number=number))
        case RankOf(shape), Items((Const(int() as rank), *_)):
            shape.find().likely = rank


def has_rank(call: LibraryCall) -> Value:
    """`chex.assert_rank(x, 2)`, `chex.assert_rank([x, y], [2, 1])`."""
    for value, wanted in _asserted(call.arguments):
        shape = uses.as_array(value)
        if shape is not None and isinstance(wanted, Const) and isinstance(wanted.value, int):
            shape.set_rank(wanted.value)
    return UNKNOWN


def has_shape(call: LibraryCall) -> Value:
    """`chex.assert_shape(x, (None, 3))`."""
    for value, wanted in _asserted(call.arguments):
        shape = uses.as_array(value)
        if shape is not None and isinstance(wanted, Items | ShapeOf):
            shape.unify(uses.as_shape(wanted))
    return UNKNOWN


def has_type(call: LibraryCall) -> Value:
    """`chex.assert_type([x, y], [float, int])`."""
    for value, wanted in _asserted(call.arguments):
        if isinstance(wanted, Dotted) and wanted.dotted == "int":
            uses.as_index(value)
    return UNKNOWN


def _asserted(arguments: Sequence[Value]) -> Iterator[tuple[Value, Value]]:
    """Yield the arrays that an assertion is about, each with what is asserted of it."""
    match arguments:
        case [Items(values), Items(wanted), *_] if len(wanted) == len(values) and not all(
            isinstance(w, Const) and w.value is None for w in wanted
        ):
            yield from zip(values, wanted, strict=True)
        case [Items(values), wanted, *_]:
            yield from ((value, wanted) for value in values)
        case [value, wanted, *_]:
            yield value, wanted


def equal_shapes(call: LibraryCall) -> Value:
    values = [v for a in call.arguments for v in (a.values if isinstance(a, Items) else (a,))]
    shapes = [shape for value in values if (shape := uses.as_array(value)) is not None]
    for other in shapes[1:]:
        shapes[0].unify(other)
    return UNKNOWN
