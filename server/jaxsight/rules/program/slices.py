"""Which part of an array along one axis the equations after it read, and scatters write."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from jaxsight.rules.program.flow import Flow, axis_after
from jaxsight.rules.program.intervals.inference import Intervals
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
            shape = flow.values[value].shape
            if (part := _part(flow, step, value, along)) is not None:
                first, last = (size - 1 - end for end in part[::-1]) if turned else part
                if last - first + 1 == size:
                    return None
                parts.append(Read(first, last, step, _drops(flow, step)))
                continue
            moved = _moved(flow, step, value, along)
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
    begin: int | None
    match step.primitive:
        case "slice":
            start, limit = step.numbers("start_indices"), step.numbers("limit_indices")
            strides = step.numbers("strides")
            if not limit or (strides and strides[axis] != 1):
                return None
            begin, size = start[axis], limit[axis] - start[axis]
        case "dynamic_slice" if flow.of(step.operands[0]) == value:
            size, index = step.numbers("slice_sizes")[axis], _index(flow, step.operands[1 + axis])
            begin = None if index is None else min(max(index, 0), shape[axis] - size)
        case "gather" if flow.of(step.operands[0]) == value:
            map_ = _MAP.search(dict(step.parameters).get("dimension_numbers", ""))
            is_along = map_ is not None and re.findall(r"\d+", map_[1]) == [str(axis)]
            size = step.numbers("slice_sizes")[axis]
            begin = _index(flow, step.operands[1]) if is_along else None
        case _:
            return None
    return None if begin is None or size == shape[axis] else (begin, begin + size - 1)


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
    match step.primitive:
        case "neg" | "rev":
            return axis
        case "slice":  # along other axes
            start, limit = step.numbers("start_indices"), step.numbers("limit_indices")
            size = flow.values[value].shape[axis]
            is_full = bool(limit) and (start[axis], limit[axis]) == (0, size)
            return axis if is_full and not step.numbers("strides") else None
    return axis_after(flow, step, axis)


def _index(flow: Flow, number: int) -> int | None:
    """Return an index that is computed from literals alone."""
    interval = Intervals(flow, exact=False).of(number)
    return interval.one if interval is not None and flow.value(number).elements == 1 else None


# What a scatter adds up: its updates, and the slots that they go to.

_SCATTERED = re.compile(r"scatter_dims_to_operand_dims=\(([\d, ]*)\)")


@dataclass(frozen=True, slots=True)
class Scattered:
    """How many rows a scatter writes, and to how many slots: each row has one index."""

    rows: int
    slots: int
    axes: tuple[int, ...]
    """The indexed axes of the array that is written to."""


def scattered(flow: Flow, step: Step) -> Scattered | None:
    """Return what a scatter writes; `None` for other equations."""
    match = _SCATTERED.search(dict(step.parameters).get("dimension_numbers", ""))
    if match is None or len(step.operands) != 3:
        return None
    shape = flow.value(step.operands[0]).shape
    axes = tuple(map(int, re.findall(r"\d+", match[1])))
    rows = math.prod(flow.value(step.operands[1]).shape[:-1])
    return Scattered(rows, math.prod(shape[axis] for axis in axes), axes)
