"""Where a column comes from, and what becomes of a matrix of pairs."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from jaxsight.rules.program.flow import Flow
from jaxsight.rules.program.steps import elements, numbers
from jaxsight.wire.primitives import ELEMENTWISE
from jaxsight.wire.program import CONSTANT, LITERAL, Step

_REDUCTIONS = frozenset(
    {"reduce_sum", "reduce_max", "reduce_min", "reduce_and", "reduce_or", "reduce_prod"}
)
_MOVES = frozenset(
    {"reshape", "squeeze", "broadcast_in_dim", "transpose", "slice", "dynamic_slice", "gather",
     "rev", "expand_dims", "split", "unstack", "copy"}
)  # fmt: skip
_KEEPS = ELEMENTWISE | {"reduce_precision"}


class Origin(Enum):
    """Where the trailing axis of size 1 comes from."""

    LAYER = "a product or a convolution with one output"
    GIVEN = "an argument, a constant, a slice, a loop"
    ADDED = "an axis that was added to a vector"


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


def origin_of(flow: Flow, number: int) -> Origin:
    """Return where the trailing axis of a column comes from; a layer is stronger than the rest."""
    waiting, visited = [flow.of(number)], set[int]()
    origins = set[Origin]()
    while waiting and len(visited) < 200:
        reached = waiting.pop()
        if reached in visited:
            continue
        visited.add(reached)
        step, value = flow.made_by(reached), flow.values[reached]
        if step is None or step.bodies or value.origin == CONSTANT:
            origins.add(Origin.GIVEN)
        elif step.primitive in ("dot_general", "conv_general_dilated"):
            origins.add(Origin.LAYER)
        elif step.primitive == "split":
            layered = origin_of(flow, step.operands[0])
            origins.add(layered if layered is Origin.LAYER else Origin.GIVEN)
        elif step.primitive in _KEEPS:
            waiting += [
                flow.of(operand)
                for operand in step.operands
                if flow.value(operand).shape[-2:] == value.shape[-2:]
            ]
        elif step.primitive in ("broadcast_in_dim", "reshape", "expand_dims"):
            before = flow.value(step.operands[0]).shape
            if before[-1:] == (1,) and len(before) > 1:
                waiting.append(flow.of(step.operands[0]))
            else:
                origins.add(Origin.ADDED)
        elif step.primitive in ("squeeze", "transpose", "rev", "copy", "concatenate", "slice"):
            waiting.append(flow.of(step.operands[0]))
        else:
            origins.add(Origin.GIVEN)
    for origin in (Origin.LAYER, Origin.ADDED):
        if origin in origins:
            return origin
    return Origin.GIVEN


def use_of(flow: Flow, join: Step) -> Use:
    """Return what becomes of the matrix, through elementwise equations of the forward pass."""
    shape = flow.value(join.results[0]).shape
    axes = {len(shape) - 2, len(shape) - 1}
    waiting, visited = [flow.of(join.results[0])], set[int]()
    reduced = in_part = is_used_otherwise = matrix = False
    primitives = set[str]()
    while waiting and len(visited) < 200:
        number = waiting.pop()
        if number in visited:
            continue
        visited.add(number)
        for user in flow.used_by(number):
            if user.backward:
                continue
            if user.primitive in _REDUCTIONS:
                along = set(numbers(user, "axes"))
                if axes <= along or len(along) == len(flow.value(number).shape) == 1:
                    reduced = True
                elif user.primitive == "reduce_sum" and along & axes:
                    in_part = in_part or _is_summed(flow, user)
                else:
                    is_used_otherwise = True
            elif user.primitive in _KEEPS:
                primitives.add(user.primitive)
                waiting += map(flow.of, user.results)
                matrix = matrix or any(
                    _is_matrix(flow, operand, shape)
                    for operand in user.operands
                    if flow.of(operand) not in visited
                )
            elif user.primitive in ("reshape", "squeeze") and _is_flat(flow, user, shape):
                reduced = True
            elif user.primitive in ("dot_general", "transpose"):
                in_part = True
            else:
                is_used_otherwise = True
    return Use(reduced, frozenset(primitives), in_part, is_used_otherwise, matrix)


def _is_matrix(flow: Flow, number: int, shape: tuple[int, ...]) -> bool:
    """Whether an operand is computed from an array of all pairs that was one before."""
    if flow.value(number).shape[-2:] != shape[-2:]:
        return False
    sources = flow.sources(
        number, lambda step: step.primitive in _KEEPS | _MOVES and not step.bodies, most=200
    )
    return any(flow.values[source].shape[-2:] == shape[-2:] for source in sources or ())


def _is_flat(flow: Flow, step: Step, shape: tuple[int, ...]) -> bool:
    """Whether a matrix of pairs is raveled."""
    after = flow.value(step.results[0]).shape
    return after[-1:] == (shape[-1] * shape[-2],)


def _is_summed(flow: Flow, step: Step) -> bool:
    """Whether sums along one axis of the pairs are summed along the other."""
    waiting, visited = [flow.of(step.results[0])], set[int]()
    while waiting and len(visited) < 50:
        number = waiting.pop()
        if number in visited:
            continue
        visited.add(number)
        for user in flow.used_by(number):
            if user.primitive == "reduce_sum":
                return True
            if user.primitive in _KEEPS and not user.backward:
                waiting += map(flow.of, user.results)
    return False


def arrays_behind(flow: Flow, number: int, count: int) -> set[int]:
    """Return the arrays of so many elements that a value is computed from element by element."""
    sources = flow.sources(
        number, lambda step: step.primitive in _KEEPS | _MOVES and not step.bodies, most=500
    )
    return {source for source in sources or () if elements(flow.values[source]) >= count}


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
