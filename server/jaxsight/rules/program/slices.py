"""Which part of an array along one axis the equations after it read."""

from __future__ import annotations

import re
from dataclasses import dataclass

from jaxsight.rules.program.flow import Flow
from jaxsight.rules.program.intervals.inference import Intervals
from jaxsight.wire.primitives import COPIES
from jaxsight.wire.program import Step

_MAP = re.compile(r"start_index_map=\(([\d, ]*)\)")
_MOST = 60
"""Values that are followed: of more, all may be read."""


@dataclass(frozen=True, slots=True)
class Read:
    """Elements `first` to `last` of an axis, both included, as one equation reads them."""

    first: int
    last: int
    step: Step
    dropped: bool
    """Whether the axis is dropped: one element is read, not a slice of one."""


def reads(
    flow: Flow, number: int, axis: int, through: frozenset[str] = frozenset()
) -> list[Read] | None:
    """Return what is read of a value along an axis; `None` where all of it may be.

    Equations of the backward pass are skipped. Signs, types and other axes may change in between.

    Args:
        flow: the program.
        number: the value.
        axis: its axis.
        through: elementwise primitives whose results are read in place of their operands.
    """
    parts: list[Read] = []
    size = flow.value(number).shape[axis]
    waiting = [(flow.of(number), axis, False)]
    for _ in range(_MOST):
        if not waiting:
            return parts
        value, along, turned = waiting.pop()
        if value in flow.returned:
            return None
        for step in flow.used_by(value):
            if step.backward:
                continue
            part = _part(flow, step, value, along)
            if part is not None:
                first, last = part
                if turned:
                    first, last = size - 1 - last, size - 1 - first
                if last - first + 1 == size:
                    return None
                parts.append(Read(first, last, step, _drops(flow, step)))
                continue
            moved = _moved(flow, step, value, along)
            shape = flow.values[value].shape
            if step.primitive in through and flow.value(step.results[0]).shape == shape:
                moved = along
            if moved is None:
                return None
            turns = step.primitive == "rev" and along in step.numbers("dimensions")
            waiting.append((flow.of(step.results[0]), moved, turned != turns))
    return None


def _part(flow: Flow, step: Step, value: int, axis: int) -> tuple[int, int] | None:
    """Return the first and last element that an equation reads, where that is known."""
    shape = flow.values[value].shape
    match step.primitive:
        case "slice":
            start, limit = step.numbers("start_indices"), step.numbers("limit_indices")
            strides = step.numbers("strides")
            if not limit or (strides and strides[axis] != 1):
                return None
            begin, end = start[axis], limit[axis] - 1
            return None if (begin, end) == (0, shape[axis] - 1) else (begin, end)
        case "dynamic_slice" if flow.of(step.operands[0]) == value:
            sizes = step.numbers("slice_sizes")
            start_index = _index(flow, step.operands[1 + axis])
            if start_index is None or sizes[axis] == shape[axis]:
                return None
            begin = min(max(start_index, 0), shape[axis] - sizes[axis])
            return begin, begin + sizes[axis] - 1
        case "gather" if flow.of(step.operands[0]) == value:
            map_ = _MAP.search(dict(step.parameters).get("dimension_numbers", ""))
            axes = [int(digits) for digits in re.findall(r"\d+", map_[1])] if map_ else []
            sizes = step.numbers("slice_sizes")
            start_index = _index(flow, step.operands[1])
            if axes != [axis] or start_index is None or sizes[axis] == shape[axis]:
                return None
            return start_index, start_index + sizes[axis] - 1
    return None


def _drops(flow: Flow, step: Step) -> bool:
    """Whether what an equation reads is only used without the axis that it reads along."""
    if step.primitive == "gather":
        return True
    users = flow.used_by(step.results[0])
    return bool(users) and all(user.primitive in ("squeeze", "reshape") for user in users)


def _moved(flow: Flow, step: Step, value: int, axis: int) -> int | None:
    """Return where an axis is after an equation that keeps all of its elements."""
    if not step.operands or not step.results:
        return None
    before, after = flow.values[value].shape, flow.value(step.results[0]).shape
    match step.primitive:
        case "neg" | "rev":
            return axis
        case "slice":  # along other axes
            start, limit = step.numbers("start_indices"), step.numbers("limit_indices")
            is_full = bool(limit) and start[axis] == 0 and limit[axis] == before[axis]
            return axis if is_full and not step.numbers("strides") else None
        case "transpose":
            order = step.numbers("permutation")
            return order.index(axis) if axis in order else None
        case "squeeze":
            return axis - sum(dimension < axis for dimension in step.numbers("dimensions"))
        case "broadcast_in_dim" | "expand_dims" | "reshape":
            if [n for n in before if n != 1] != [n for n in after if n != 1] or before[axis] == 1:
                return None
            position = sum(n != 1 for n in before[:axis])
            return [index for index, n in enumerate(after) if n != 1][position]
    return axis if step.primitive in COPIES else None


def _index(flow: Flow, number: int) -> int | None:
    """Return an index that is computed from literals alone."""
    interval = Intervals(flow, exact=False).of(number)
    return interval.one if interval is not None and flow.value(number).elements == 1 else None
