"""Walk from a value to what makes it and to what reads it, past equations that only move it."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from jaxsight.rules.program.flow import Flow
from jaxsight.rules.program.steps import SHAPED
from jaxsight.wire.program import LITERAL, Step

MOVES = SHAPED | {"convert_element_type", "copy", "copy_p", "stop_gradient", "reduce_precision"}
"""Primitives whose result has the elements of their operand, up to rounding."""
PICKS = frozenset({"gather", "dynamic_slice"})
"""Primitives that take some elements of their first operand."""


def literal(flow: Flow, number: int) -> float | None:
    """Return the number of a value that is a moved or reshaped literal, else `None`."""
    value = flow.values[stripped(flow, number)]
    if value.origin != LITERAL or not value.said:
        return None
    if value.said.lstrip("-") in ("inf", "nan"):
        return float(value.said)
    try:
        return float(ast.literal_eval(value.said))
    except (ValueError, SyntaxError, TypeError, OverflowError):
        return None


def stripped(flow: Flow, number: int, also: frozenset[str] = frozenset()) -> int:
    """Return the value that a value is a moved or reshaped copy of."""
    number = flow.of(number)
    step = flow.made_by(number)
    while step is not None and step.operands and step.primitive in MOVES | also:
        number = flow.of(step.operands[0])
        step = flow.made_by(number)
    return number


def maker_of(flow: Flow, number: int, also: frozenset[str] = frozenset()) -> Step | None:
    """Return the step that makes what a value is a moved or reshaped copy of."""
    return flow.made_by(stripped(flow, number, also))


def alike(flow: Flow, number: int, other_number: int, depth: int = 8) -> bool:
    """Whether two values are computed alike from the same ones."""
    number, other_number = flow.of(number), flow.of(other_number)
    if number == other_number:
        return True
    first, second = flow.made_by(number), flow.made_by(other_number)
    if first is None or second is None:
        a, b = flow.values[number], flow.values[other_number]
        return a.origin == b.origin == LITERAL and bool(a.said) and a.said == b.said
    return (
        depth > 0
        and first.primitive == second.primitive
        and first.parameters == second.parameters
        and not first.bodies
        and not first.primitive.startswith("random_")
        and len(first.operands) == len(second.operands)
        and flow.values[number].shape == flow.values[other_number].shape
        and all(
            alike(flow, a, b, depth - 1)
            for a, b in zip(first.operands, second.operands, strict=True)
        )
    )


def readers(
    flow: Flow, number: int, through: Callable[[Step], bool], most: int = 50
) -> Iterator[tuple[int, Step]]:
    """Yield the steps that read a value or what `through` makes of it, each with what it reads."""
    waiting, visited = [flow.of(number)], set[str]()
    while waiting and most:
        value = waiting.pop()
        for user in flow.used_by(value):
            if user.path in visited:
                continue
            visited.add(user.path)
            most -= 1
            yield value, user
            if through(user):
                waiting += user.results


def is_in_branch(flow: Flow, step: Step) -> bool:
    """Whether an equation is in a branch that a comparison chooses: it may be guarded."""
    around = flow.parent.get(step.path)
    while around is not None and around.primitive != "cond":
        around = flow.parent.get(around.path)
    if around is None:
        return False
    through = MOVES | {"and", "or", "not", "clamp", "min", "max", "reduce_and", "reduce_or"}
    chosen = flow.above(around.operands[0], lambda step: step.primitive in through, 20)
    return any(maker.primitive in ("gt", "ge", "lt", "le", "eq", "ne") for maker in chosen)
