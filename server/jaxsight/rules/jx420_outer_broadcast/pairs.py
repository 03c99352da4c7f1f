"""Columns that meet vectors: where a column comes from, and what becomes of all pairs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from jaxsight.rules.program.flow import Flow
from jaxsight.rules.program.steps import elements, numbers
from jaxsight.wire.primitives import ELEMENTWISE, PICKS, SHAPED
from jaxsight.wire.program import LITERAL, Step

_REDUCTIONS = frozenset(
    {"reduce_sum", "reduce_max", "reduce_min", "reduce_and", "reduce_or", "reduce_prod"}
)
_ADDS_AXIS = frozenset({"broadcast_in_dim", "reshape", "expand_dims"})
_KEEPS_AXIS = frozenset({"squeeze", "transpose", "rev", "concatenate", "slice"})
_MOST = 200
"""Values that a column's origin is looked for in."""


class ColumnOrigin(Enum):
    """Where the trailing axis of size 1 comes from."""

    LAYER = "a product or a convolution with one output"
    GIVEN = "an argument, a constant, a slice, a loop"
    ADDED = "an axis that was added to a vector"


@dataclass(frozen=True, slots=True)
class Join:
    """An equation whose operands are a column and a row that was a vector."""

    step: Step
    column: int
    vector: int
    column_first: bool


@dataclass(frozen=True, slots=True)
class Use:
    """What becomes of a matrix of pairs."""

    reduced: bool = False
    """All its elements are reduced to one, or to one for each batch."""
    primitives: frozenset[str] = frozenset()
    """The elementwise primitives before that."""
    in_part: bool = False
    """It is summed along one axis after the other, or multiplied as a matrix."""
    other: bool = False
    """Something uses it that needs a matrix: a sort, a maximum along an axis."""
    matrix: bool = False
    """It is combined with another matrix of that shape, so all pairs are meant."""


def join_of(flow: Flow, step: Step, shape: tuple[int, ...]) -> Join | None:
    """Return the column and the vector that an equation makes a matrix of.

    The vector becomes a row by broadcasting in the same expression: nobody wrote it.
    """

    def broadcasts(maker: Step) -> bool:
        is_shaped = maker.primitive in _ADDS_AXIS
        return is_shaped and maker.span == step.span

    operands = [
        (index, flow.before(number, broadcasts)) for index, number in enumerate(step.operands)
    ]
    columns = [
        (index, number)
        for index, number in operands
        if flow.value(number).shape[-2:] == (shape[-1], 1)
    ]
    rows = [
        (index, number)
        for index, number in operands
        if flow.of(step.operands[index]) != number
        and flow.value(number).shape[-1:] == shape[-1:]
        and flow.value(number).shape[:-1] in ((), shape[:-2])
    ]
    if not columns or not rows:
        return None
    return Join(step, columns[0][1], rows[0][1], columns[0][0] < rows[0][0])


def origin_of(flow: Flow, number: int) -> ColumnOrigin:
    """Return where the trailing axis of a column comes from; a layer is stronger than the rest."""
    origins = set(_origins(flow, number, set()))
    strong = (origin for origin in (ColumnOrigin.LAYER, ColumnOrigin.ADDED) if origin in origins)
    return next(strong, ColumnOrigin.GIVEN)


def _origins(flow: Flow, number: int, visited: set[int]) -> Iterator[ColumnOrigin]:
    number = flow.of(number)
    if number in visited or len(visited) >= _MOST:
        return
    visited.add(number)
    step, shape = flow.made_by(number), flow.values[number].shape
    if step is None:
        yield ColumnOrigin.GIVEN
        return
    before = flow.value(step.operands[0]).shape if step.operands else ()
    match step.primitive:
        case "dot_general" | "conv_general_dilated":
            yield ColumnOrigin.LAYER
        case "split":
            is_layer = origin_of(flow, step.operands[0]) is ColumnOrigin.LAYER
            yield ColumnOrigin.LAYER if is_layer else ColumnOrigin.GIVEN
        case primitive if primitive in ELEMENTWISE:
            for operand in step.operands:
                if flow.value(operand).shape[-2:] == shape[-2:]:
                    yield from _origins(flow, operand, visited)
        case primitive if primitive in _ADDS_AXIS and not (len(before) > 1 and before[-1] == 1):
            yield ColumnOrigin.ADDED
        case primitive if primitive in _ADDS_AXIS | _KEEPS_AXIS:
            yield from _origins(flow, step.operands[0], visited)
        case _:
            yield ColumnOrigin.GIVEN


def use_of(flow: Flow, join: Step) -> Use:
    """Return what becomes of the matrix, through elementwise equations of the forward pass."""
    shape = flow.value(join.results[0]).shape
    axes = {len(shape) - 2, len(shape) - 1}
    reduced = in_part = is_used_otherwise = matrix = False
    primitives, read = set[str](), set[int]()
    for number, user in flow.forwards(join.results[0], _is_kept):
        read.add(number)
        if user.backward:
            continue
        if user.primitive in _REDUCTIONS:
            along = set(numbers(user, "axes"))
            if axes <= along or len(along) == len(flow.value(number).shape) == 1:
                reduced = True
            elif user.primitive == "reduce_sum" and along & axes:
                sums = flow.forwards(user.results[0], _is_kept, 50)
                in_part = in_part or any(summed.primitive == "reduce_sum" for _, summed in sums)
            else:
                is_used_otherwise = True
        elif user.primitive in ELEMENTWISE:
            primitives.add(user.primitive)
            others = {flow.of(operand) for operand in user.operands} - read
            matrix = matrix or any(_is_matrix(flow, operand, shape) for operand in others)
        elif user.primitive in ("reshape", "squeeze") and (
            flow.value(user.results[0]).shape[-1:] == (shape[-1] * shape[-2],)
        ):
            reduced = True  # it is raveled
        elif user.primitive in ("dot_general", "transpose"):
            in_part = True
        else:
            is_used_otherwise = True
    return Use(reduced, frozenset(primitives), in_part, is_used_otherwise, matrix)


def _is_kept(step: Step) -> bool:
    return step.primitive in ELEMENTWISE and not step.backward


def _is_matrix(flow: Flow, number: int, shape: tuple[int, ...]) -> bool:
    """Whether an operand is computed from an array of all pairs that was one before."""
    if flow.value(number).shape[-2:] != shape[-2:]:
        return False
    return any(flow.values[source].shape[-2:] == shape[-2:] for source in _behind(flow, number))


def arrays_behind(flow: Flow, number: int, count: int) -> set[int]:
    """Return the arrays of so many elements that a value is computed from element by element."""
    return {source for source in _behind(flow, number) if elements(flow.values[source]) >= count}


def _behind(flow: Flow, number: int) -> set[int]:
    """Return the values that a value is computed from element by element."""
    return flow.sources(number, ELEMENTWISE | SHAPED | PICKS, most=500) or set()


def is_constant(flow: Flow, number: int) -> bool:
    """Whether a value is made from literals and counters alone, as classes of a one-hot are."""
    sources = flow.sources(number, lambda step: bool(step.operands) and not step.bodies, most=500)
    if sources is None:
        return False
    return all(
        flow.values[source].origin == LITERAL
        or ((maker := flow.made_by(source)) is not None and maker.primitive == "iota")
        for source in sources
    )
