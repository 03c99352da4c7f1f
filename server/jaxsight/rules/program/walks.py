"""Look at what a value is a moved copy of, and whether two values are computed alike."""

from __future__ import annotations

from jaxsight.rules.program.flow import Flow
from jaxsight.text.parsing import literal_in
from jaxsight.wire.primitives import MOVES
from jaxsight.wire.program import LITERAL, Step


def literal(flow: Flow, number: int) -> float | None:
    """Return the number of a value that is a moved or reshaped literal, else `None`."""
    value = flow.values[stripped(flow, number)]
    if value.origin != LITERAL or not value.said:
        return None
    if value.said.lstrip("-") in ("inf", "nan"):
        return float(value.said)
    try:
        found = literal_in(value.said)
        return float(found) if isinstance(found, int | float) else None
    except (ValueError, OverflowError):
        return None


def stripped(flow: Flow, number: int, also: frozenset[str] = frozenset()) -> int:
    """Return the value that a value is a moved or reshaped copy of."""
    return flow.before(number, MOVES | also)


def maker_of(flow: Flow, number: int, also: frozenset[str] = frozenset()) -> Step | None:
    """Return the step that makes what a value is a moved or reshaped copy of."""
    return flow.made_by(stripped(flow, number, also))


def alike(flow: Flow, number: int, other_number: int, depth: int = 8) -> bool:
    """Whether two values are computed alike from the same ones, at most `depth` equations above."""
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
        and first.results.index(number) == second.results.index(other_number)
        and len(first.operands) == len(second.operands)
        and flow.values[number].shape == flow.values[other_number].shape
        and all(
            alike(flow, a, b, depth - 1)
            for a, b in zip(first.operands, second.operands, strict=True)
        )
    )
