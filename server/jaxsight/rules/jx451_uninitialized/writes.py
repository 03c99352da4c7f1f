"""Which part of an array an equation may write, as far as that is known while tracing."""

from __future__ import annotations

import re

from jaxsight.rules.jx451_uninitialized.boxes import Box
from jaxsight.rules.program.flow import Flow
from jaxsight.rules.program.integers.indices import Known
from jaxsight.rules.program.steps import numbers
from jaxsight.wire.program import Step

_DIMENSIONS = re.compile(r"(\w+)=\(([\d, ]*)\)")


def written_by(flow: Flow, of: Known, step: Step) -> Box:
    """Return the box in which a `scatter` or `dynamic_update_slice` may write.

    Args:
        flow: the program.
        of: the intervals of its integers: indices in a loop are those of all iterations.
        step: the equation. Its first operand is the array.
    """
    shape = flow.value(step.operands[0]).shape
    if step.primitive == "dynamic_update_slice":
        parts = flow.value(step.operands[1]).shape
        starts = [_bounds(of, number) for number in step.operands[2:]]
        return tuple(map(_range, starts, parts, shape))
    text = dict(step.parameters).get("dimension_numbers", "")
    dimensions = {
        name: tuple(int(part) for part in listed.split(",") if part.strip())
        for name, listed in _DIMENSIONS.findall(text)
    }
    placed = dimensions.get("scatter_dims_to_operand_dims", ())
    updates, indices = flow.value(step.operands[2]).shape, step.operands[1]
    windows = [updates[axis] for axis in dimensions.get("update_window_dims", ())]
    inserted = dimensions.get("inserted_window_dims", ())
    if dimensions.get("operand_batching_dims") or len(windows) + len(inserted) != len(shape):
        return tuple((0, size) for size in shape)
    interval = of(indices)
    listed = interval.integers if interval is not None else None
    exact = listed is not None and len(listed) == len(placed)
    box = []
    for axis, size in enumerate(shape):
        part = 1 if axis in inserted else windows.pop(0)
        start = (0, 0)
        if axis in placed:
            at = placed.index(axis)
            start = (listed[at],) * 2 if exact and listed is not None else _bounds(of, indices)
        box.append(_range(start, part, size))
    return tuple(box)


def _bounds(of: Known, number: int) -> tuple[int, int]:
    interval = of(number)
    return (interval.least, interval.most) if interval is not None else (0, 1 << 62)


def _range(start: tuple[int, int], part: int, size: int) -> tuple[int, int]:
    """Return where parts of an axis may be that begin between two indices."""
    least, most = max(start[0], 0), min(start[1], size - part)
    return (least, most + part) if least <= most else (0, 0)


def sliced_by(flow: Flow, step: Step) -> Box | None:
    """Return the box that a `slice` reads; `None` if it takes steps."""
    if numbers(step, "strides") not in ((), (1,) * len(flow.value(step.operands[0]).shape)):
        return None
    starts, limits = numbers(step, "start_indices"), numbers(step, "limit_indices")
    return tuple(zip(starts, limits, strict=True))
