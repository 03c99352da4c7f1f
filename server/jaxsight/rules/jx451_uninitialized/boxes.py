"""The part of an array that is not written yet, as boxes that do not overlap."""

from __future__ import annotations

import math
from collections.abc import Sequence

Box = tuple[tuple[int, int], ...]
"""For each axis where it begins and ends, the end excluded."""


def whole(shape: Sequence[int]) -> tuple[Box, ...]:
    """Return all of an array."""
    return (tuple((0, size) for size in shape),) if math.prod(shape) else ()


def without(boxes: Sequence[Box], written: Box) -> tuple[Box, ...]:
    """Return what is left of boxes when a box is written."""
    return tuple(rest for box in boxes for rest in _cut(box, written))


def _cut(box: Box, written: Box) -> list[Box]:
    """Return the parts of a box outside of another one, axis by axis."""
    if not overlap([box], written):
        return [box]
    rests: list[Box] = []
    for axis, ((first, last), (start, end)) in enumerate(zip(box, written, strict=True)):
        start, end = max(first, start), min(last, end)
        parts = ((first, start), (end, last))
        rests += ((*box[:axis], part, *box[axis + 1 :]) for part in parts if part[0] < part[1])
        box = (*box[:axis], (start, end), *box[axis + 1 :])
    return rests


def overlap(boxes: Sequence[Box], box: Box) -> tuple[Box, ...]:
    """Return the parts of boxes that are in a box."""
    parts = []
    for each in boxes:
        part = tuple(
            (max(first, start), min(last, end))
            for (first, last), (start, end) in zip(each, box, strict=True)
        )
        if all(first < last for first, last in part):
            parts.append(part)
    return tuple(parts)


def moved(boxes: Sequence[Box], by: Sequence[int]) -> tuple[Box, ...]:
    """Return boxes moved by so many elements along each axis."""
    return tuple(
        tuple((first + step, last + step) for (first, last), step in zip(box, by, strict=True))
        for box in boxes
    )


def count(boxes: Sequence[Box]) -> int:
    """Return the number of elements of boxes."""
    return sum(math.prod(last - first for first, last in box) for box in boxes)
