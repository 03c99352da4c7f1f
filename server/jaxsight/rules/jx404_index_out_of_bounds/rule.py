"""JX404: an index that is known while tracing is out of bounds."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from jaxsight.rules.exceptions import first_sentence, is_a, jax_page
from jaxsight.rules.noticed import Noticed
from jaxsight.rules.reading import Flow, Reading, numbers
from jaxsight.rules.rule import Rule
from jaxsight.tracer.program import LITERAL, Step
from jaxsight.tracer.protocol import Failure

RULE = Rule(
    "JX404",
    "index-out-of-bounds",
    "Static index out of bounds.",
)

_SUBSCRIPT = re.compile(r"\]$|\.at\[")
_MAP = re.compile(r"(?:start_index_map|scatter_dims_to_operand_dims)=\(([\d, ]*)\)")
_INTEGER = re.compile(r"-?\d+")
_OUTSIDE = re.compile(
    r"index (?P<index>-?\d+) is out of bounds for axis (?P<axis>\d+) with size (?P<size>\d+)"
)


@dataclass(frozen=True, slots=True)
class OutOfBounds:
    """An index outside its axis."""

    index: int
    axis: int
    size: int
    """The length of the axis."""


@RULE.explains
def explain(failure: Failure, expression: str, line: str) -> Noticed | None:
    """Recognize `IndexError`s about bounds, not those about too many indices."""
    message = failure.message
    if not is_a(failure, "IndexError") or (
        "out of bounds" not in message and "out of range" not in message
    ):
        return None
    found = _OUTSIDE.search(message)
    if found is None:
        return Noticed(
            "index is out of bounds", notes=(first_sentence(message),), url=jax_page(failure)
        )
    where = OutOfBounds(*map(int, found.groups()))
    return Noticed(_message(where), help=_help(where), data=where, url=jax_page(failure))


@RULE.finds_in_program
def find(reading: Reading) -> Iterator[Noticed]:
    """Yield literal indices outside their axis that JAX clamps, or whose update it drops."""
    flow = reading.flow
    for step in flow.steps.values():
        text = reading.quote(step.path)
        if _SUBSCRIPT.search(text) is None or "mode=" in text:
            continue
        for axis, start, taken in _starts(flow, step):
            size = flow.value(step.operands[0]).shape[axis]
            if start >= 0 and start + taken <= size:
                continue
            where = OutOfBounds(start if start >= 0 else start - size, axis, size)
            updates = step.primitive.startswith("scatter")
            yield Noticed(
                _message(where),
                step.path,
                help=_help(where),
                notes=(
                    "JAX drops out-of-bounds updates silently"
                    if updates
                    else "JAX clamps out-of-bounds reads silently: it reads the nearest element",
                ),
                data=where,
            )
            break


def _message(where: OutOfBounds) -> str:
    return f"index {where.index} is out of bounds for axis {where.axis} of size {where.size}"


def _help(where: OutOfBounds) -> str:
    return f"use an index from {-where.size} to {where.size - 1}" if where.size else ""


def _starts(flow: Flow, step: Step) -> Iterator[tuple[int, int, int]]:
    """Yield axis, first index and length of what an equation reads or writes at known indices."""
    match step.primitive:
        case "dynamic_slice":
            for axis, taken in enumerate(numbers(step, "slice_sizes")):
                if (start := _known(flow, step.operands[1 + axis])) is not None:
                    yield axis, start, taken
        case "gather" | "scatter" | "scatter-add" | "scatter-mul" | "scatter-min" | "scatter-max":
            found = _MAP.search(dict(step.parameters).get("dimension_numbers", ""))
            axes = [int(axis) for axis in re.findall(r"\d+", found[1])] if found else []
            sizes = numbers(step, "slice_sizes")
            made = _parts(flow, step.operands[1], len(axes))
            for axis, number in zip(axes, made, strict=False):
                if (start := _known(flow, number)) is not None:
                    yield axis, start, sizes[axis] if sizes else 1


def _parts(flow: Flow, number: int, count: int) -> Sequence[int]:
    """Return the values that one index of several axes is concatenated from."""
    value, step = flow.value(number), flow.made_by(number)
    if value.shape != (count,):
        return ()
    if step is not None and step.primitive == "concatenate" and len(step.operands) == count:
        return step.operands
    return (number,) if count == 1 else ()


def _known(flow: Flow, number: int) -> int | None:
    """Return an integer that is computed from literals alone, as literal indices are."""
    value, step = flow.value(number), flow.made_by(number)
    if step is None:
        return (
            int(value.said) if value.origin == LITERAL and _INTEGER.fullmatch(value.said) else None
        )
    given = [_known(flow, each) for each in step.operands]
    match step.primitive, given:
        case (("broadcast_in_dim" | "reshape" | "squeeze" | "convert_element_type"), [one]):
            return one
        case "lt", [int(a), int(b)]:
            return int(a < b)
        case "add", [int(a), int(b)]:
            return a + b
        case "select_n", [int(chosen), *cases]:
            return cases[chosen]
        case _:
            return None
