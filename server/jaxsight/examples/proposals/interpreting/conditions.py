"""What conditions demand that must be true, such as `x.ndim == 2` in an `assert`."""

from __future__ import annotations

import ast
from collections.abc import Callable

from jaxsight.examples.proposals.interpreting import uses
from jaxsight.examples.proposals.interpreting.evidence import (
    UNKNOWN,
    Const,
    Dim,
    Items,
    Links,
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
                    if isinstance(one, RankOf) and isinstance(two, Const):
                        one.shape.at_least(two.value if isinstance(two.value, int) else 0)
                case (ast.In(), True) | (ast.NotIn(), False):
                    among(one, two)
        case ast.Compare(left=left, comparators=comparators) if holds:
            first = value(left)
            for right in comparators:
                equal(links, first, value(right))
        case _:
            value(test)


def equal(links: Links, one: Value, two: Value) -> None:
    match one, two:
        case (RankOf(shape), Const(int() as rank)) | (Const(int() as rank), RankOf(shape)):
            shape.set_rank(rank)
        case (RankOf(shape), RankOf(other)):
            links.append((shape, other))
        case (ShapeOf(shape), ShapeOf(other)):
            shape.unify(other)
        case (ShapeOf(shape), Items(values)) | (
            Items(values),
            ShapeOf(shape),
        ):
            shape.unify(Shape.of([uses.size_of(value) for value in values]))
        case (Size(dim), Size(other)):
            dim.unify(other)
        case (Size(dim), Const(int() as number)) | (Const(int() as number), Size(dim)):
            dim.unify(Dim(number=number))


def among(one: Value, two: Value) -> None:
    match one, two:
        case Size(dim), Items((*_, Const(int() as number))):
            dim.unify(Dim(number=number))
        case RankOf(shape), Items((Const(int() as rank), *_)):
            shape.find().likely = rank


def has_rank(call: LibraryCall) -> Value:
    """`chex.assert_rank(x, 2)`, `chex.assert_rank([x, y], [2, 1])`."""
    values, wanted = call.get(0), call.get(1)
    every = values.values if isinstance(values, Items) else (values,)
    ranks = wanted.values if isinstance(wanted, Items) else (wanted,) * len(every)
    for value, rank in zip(every, ranks, strict=False):
        shape = uses.as_array(value)
        if shape is not None and isinstance(rank, Const) and isinstance(rank.value, int):
            shape.set_rank(rank.value)
    return UNKNOWN
