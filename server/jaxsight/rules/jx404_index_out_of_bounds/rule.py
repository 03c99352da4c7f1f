"""JX404: an index that is known while tracing lies outside its axis."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from jaxsight.rules.exceptions import first_paragraph, is_a, jax_page, quoted
from jaxsight.rules.noticed import Noticed
from jaxsight.rules.reading import Flow, Reading, numbers
from jaxsight.rules.rule import Rule
from jaxsight.tracer.program import LITERAL, Step
from jaxsight.tracer.protocol import Failure

RULE = Rule(
    "JX404",
    "index-out-of-bounds",
    "A static index is out of bounds.",
)

_SUBSCRIPT = re.compile(r"\]$|\.at\[")
_MAP = re.compile(r"(?:start_index_map|scatter_dims_to_operand_dims)=\(([\d, ]*)\)")
_WHOLE = re.compile(r"-?\d+")


@RULE.explains
def explain(failure: Failure, expression: str, line: str) -> Noticed | None:
    """Recognises `IndexError`s that speak of bounds (not of too many indices, nor of Python lists)."""
    message = failure.message
    if not is_a(failure, "IndexError") or (
        "out of bounds" not in message and "out of range" not in message
    ):
        return None
    return Noticed(
        f"{quoted(expression, 'This index')} is out of bounds: {first_paragraph(message)}",
        url=jax_page(failure),
    )


@RULE.finds_in_program
def find(reading: Reading) -> Iterator[Noticed]:
    """Each index written as a number that lies outside of its axis, where JAX does not raise but clamps it, or drops what is stored there."""
    flow = reading.flow
    for step in flow.steps.values():
        text = reading.quote(step.path)
        if _SUBSCRIPT.search(text) is None or "mode=" in text:
            continue
        for axis, start, taken in _starts(flow, step):
            size = flow.value(step.operands[0]).shape[axis]
            if start >= 0 and start + taken <= size:
                continue
            index = start if start >= 0 else start - size
            stored = step.primitive.startswith("scatter")
            yield Noticed(
                f"{reading.quoted(step.path)} is out of bounds: index {index} is out of bounds for axis {axis} with size {size}. JAX does not "
                f"raise: {'what is stored there is dropped' if stored else 'the nearest element is read'}.",
                step.path,
            )
            break


def _starts(flow: Flow, step: Step) -> Iterator[tuple[int, int, int]]:
    """Axis, first index and how much is taken from there, of what an equation reads or writes at numbers that are known."""
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
    """The values that a vector of indices is made of, where it is one index."""
    value, step = flow.value(number), flow.made_by(number)
    if value.shape != (count,):
        return ()
    if step is not None and step.primitive == "concatenate" and len(step.operands) == count:
        return step.operands
    return (number,) if count == 1 else ()


def _known(flow: Flow, number: int) -> int | None:
    """A whole number that is computed of numbers alone: what becomes of an index that is written as one."""
    value, step = flow.value(number), flow.made_by(number)
    if step is None:
        return int(value.said) if value.origin == LITERAL and _WHOLE.fullmatch(value.said) else None
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
