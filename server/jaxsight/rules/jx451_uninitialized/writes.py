"""Where an equation writes into an array, if that is known while tracing."""

from __future__ import annotations

import re

from jaxsight.rules.jx451_uninitialized.boxes import Box
from jaxsight.rules.program.flow import Flow
from jaxsight.rules.program.steps import numbers
from jaxsight.rules.program.walks import literal
from jaxsight.wire.primitives import COPIES
from jaxsight.wire.program import CONSTANT, LITERAL, Step

_DIMENSIONS = re.compile(r"(\w+)=\(([\d, ]*)\)")


def written_by(flow: Flow, step: Step) -> Box | None:
    """Return the box that a `scatter` or `dynamic_update_slice` writes; `None` if it varies."""
    if step.primitive == "dynamic_update_slice":
        starts = [literal(flow, number) for number in step.operands[2:]]
        sizes = flow.value(step.operands[1]).shape
        shape = flow.value(step.operands[0]).shape
        if any(start is None for start in starts):
            return None
        # Starts are clamped so that the update fits.
        firsts = [
            min(max(int(start or 0) + (size if (start or 0) < 0 else 0), 0), size - part)
            for start, size, part in zip(starts, shape, sizes, strict=True)
        ]
        return tuple((first, first + part) for first, part in zip(firsts, sizes, strict=True))
    return _scattered(flow, step)


def _scattered(flow: Flow, step: Step) -> Box | None:
    text = dict(step.parameters).get("dimension_numbers", "")
    dimensions = {
        name: tuple(int(part) for part in listed.split(",") if part.strip())
        for name, listed in _DIMENSIONS.findall(text)
    }
    shape = flow.value(step.operands[0]).shape
    indices, updates = flow.value(step.operands[1]), flow.value(step.operands[2])
    placed = dimensions.get("scatter_dims_to_operand_dims", ())
    if dimensions.get("operand_batching_dims") or indices.shape != (len(placed),):
        return None
    at = integers(flow, step.operands[1]) if placed else ()
    if at is None or len(at) != len(placed):
        return None
    starts = dict(zip(placed, at, strict=True))
    windows = iter(dimensions.get("update_window_dims", ()))
    inserted = dimensions.get("inserted_window_dims", ())
    box = []
    for axis, size in enumerate(shape):
        part = 1 if axis in inserted else updates.shape[next(windows)]
        start = starts.get(axis, 0)
        start = start + size if start < 0 else start
        if start + part > size:
            return None  # dropped or clamped, by the mode
        box.append((start, start + part))
    return tuple(box)


def integers(flow: Flow, number: int) -> tuple[int, ...] | None:
    """Return the elements of a small array of integers that is known while tracing."""
    value = flow.value(number)
    if value.origin == CONSTANT and len(value.integers) == (value.shape[0] if value.shape else 1):
        return value.integers
    if value.origin == LITERAL:
        one = literal(flow, number)
        return (int(one),) if one is not None else None
    step = flow.made_by(number)
    if step is None:
        return None
    match step.primitive:
        case "concatenate":
            parts = [integers(flow, operand) for operand in step.operands]
            known = [part for part in parts if part is not None]
            return tuple(n for part in known for n in part) if len(known) == len(parts) else None
        case "broadcast_in_dim" | "reshape" if step.operands:
            inner = integers(flow, step.operands[0])
            count = value.shape[0] if value.shape else 1
            return inner * count if inner is not None and len(inner) == 1 else inner
        case name if name in COPIES:
            return integers(flow, step.operands[0])
        case _:
            return None


def sliced_by(flow: Flow, step: Step) -> Box | None:
    """Return the box that a `slice` reads; `None` if it takes steps."""
    if numbers(step, "strides") not in ((), (1,) * len(flow.value(step.operands[0]).shape)):
        return None
    starts, limits = numbers(step, "start_indices"), numbers(step, "limit_indices")
    return tuple(zip(starts, limits, strict=True))
