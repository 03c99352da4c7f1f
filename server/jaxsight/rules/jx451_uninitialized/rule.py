"""JX451: elements of `jnp.empty` are read that nothing has written.

Since JAX 0.11 they are not zero but what the memory holds, where the platform allows that (the
primitive `empty`). The program is followed from the array through what is written into it; what is
not known is not reported.
"""

# Longer than most rules: the part of an array that is not written is followed, box by box, through
# loops.

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.program.flow import Flow
from jaxsight.rules.program.intervals.inference import Intervals
from jaxsight.rules.program.intervals.moves import Known
from jaxsight.rules.program.loops import loop_of
from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.rule import Rule, Violation
from jaxsight.wire.primitives import (
    COPIES,
    CUMULATIVE,
    ELEMENTWISE,
    LOOPS,
    PICKS,
    RESHAPES,
    SCATTERS,
)
from jaxsight.wire.program import Step

# The part of an array that is not written yet, as boxes that do not overlap.

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


# Which part of an array an equation may write, as far as that is known while tracing.

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
    listed = flow.value(indices).integers
    box = []
    for axis, size in enumerate(shape):
        part = 1 if axis in inserted else windows.pop(0)
        start = (0, 0)
        if axis in placed:
            at = placed.index(axis)
            exact = len(listed) == len(placed)
            start = (listed[at], listed[at]) if exact else _bounds(of, indices)
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
    if step.numbers("strides") not in ((), (1,) * len(flow.value(step.operands[0]).shape)):
        return None
    starts, limits = step.numbers("start_indices"), step.numbers("limit_indices")
    return tuple(zip(starts, limits, strict=True))


RULE = Rule(
    __name__,
    "Elements of `jnp.empty` are read before they are written.",
    severity="warning",
    without_inputs=True,
)

_MOST = 64
"""Boxes and equations that are followed, a choice: more is long code that few write."""
_READS = (
    ELEMENTWISE - COPIES - {"select_n"}
    | CUMULATIVE
    | {
        "argmax", "argmin", "dot_general", "reduce_sum", "reduce_prod", "reduce_max", "reduce_min",
        "reduce_and", "reduce_or", "sort", "fft", "cholesky", "triangular_solve", "lu", "qr",
        "conv_general_dilated",
    }
)  # fmt: skip
"""Primitives that compute with all elements of each operand."""


@dataclass(frozen=True, slots=True)
class Empty:
    """The call that makes the array, for the fix."""

    function: str


@dataclass(frozen=True, slots=True)
class _Read:
    """The first read of elements that nothing has written."""

    step: Step | None
    """`None` for what the program returns."""
    unwritten: int


@RULE.finds_in_program
def find(view: ProgramView) -> Iterator[Violation]:
    """Yield arrays of the user's `jnp.empty` whose elements are read before they are written."""
    flow = view.flow
    for step in flow.forward_steps("empty"):
        if not view.wrote(step.path, "empty", "empty_like"):
            continue
        read = _Walk(flow, Intervals(flow, view.exact).of).first_read(step)
        if read is None:
            continue
        function = "empty_like" if view.wrote(step.path, "empty_like") else "empty"
        written = view.quote(read.step.path) if read.step is not None else ""
        size = flow.value(step.results[0]).elements
        which = "elements" if read.unwritten == size else f"{read.unwritten:,} of {size:,} elements"
        how = "read before they are" if read.step is not None else "returned and never"
        yield Violation(
            f"{which} of `jnp.{function}` are {how} written",
            read.step.path if read.step is not None and written else step.path,
            help=f"use `jnp.{function.replace('empty', 'zeros')}`, or write all elements first",
            notes=(f"since JAX 0.11, `jnp.{function}` returns what the memory holds",),
            data=Empty(function),
            related=((step.path, "created here"),) if read.step is not None and written else (),
        )


class _Walk:
    """From an array to the first read of an element that nothing can have written."""

    def __init__(self, flow: Flow, of: Known) -> None:
        self._flow = flow
        self._of = of
        self._results: dict[int, int] = {}
        """By output of a loop's body: the result of the loop that it is at the end."""
        for step in flow.steps.values():
            if (loop := loop_of(flow, step)) is not None:
                outputs = (flow.of(carry.output) for carry in loop.carries)
                self._results |= zip(outputs, step.results, strict=False)

    def first_read(self, empty: Step) -> _Read | None:
        """Return the first read of an element of an array that nothing has written before."""
        flow, first = self._flow, empty.results[0]
        waiting = [(flow.of(first), whole(flow.value(first).shape), False)]
        seen = set[int]()
        while waiting:
            number, unwritten, looped = waiting.pop()
            if not unwritten or number in seen or len(seen) > _MOST or len(unwritten) > _MOST:
                continue
            seen.add(number)
            for user in flow.used_by(number):
                if user.backward:
                    continue
                if self._reads(user, number, unwritten, looped):
                    return _Read(user, count(unwritten))
                within = looped or user.primitive in LOOPS
                waiting += (
                    (result, boxes, within)
                    for result, boxes in self._after(user, number, unwritten)
                )
            if number in self._results:
                waiting.append((flow.of(self._results[number]), unwritten, False))
            rest, size = count(unwritten), flow.value(number).elements
            if number in flow.outputs and 2 * rest < size:
                return _Read(None, rest)  # of a buffer that is filled later, most is empty
        return None

    def _reads(self, user: Step, number: int, unwritten: tuple[Box, ...], looped: bool) -> bool:
        """Whether an equation computes with elements that are not written.

        In a loop, what is read at an index may have been written by an iteration before.
        """
        flow = self._flow
        if user.primitive in _READS:
            later = [each for result in user.results for each in flow.used_by(result)]
            return not later or any(each.primitive != "select_n" for each in later)
        is_array = bool(user.operands) and flow.of(user.operands[0]) == number
        if user.primitive in SCATTERS - {"scatter"} and is_array:
            box = written_by(flow, self._of, user)
            return bool(count([box])) and count(overlap(unwritten, box)) == count([box])
        if user.primitive in PICKS and is_array and not looped:
            return count(unwritten) == flow.value(number).elements
        return False

    def _after(
        self, user: Step, number: int, unwritten: tuple[Box, ...]
    ) -> Iterator[tuple[int, tuple[Box, ...]]]:
        """Yield the values that have the array in them, with what is not written of each."""
        flow = self._flow
        shape = flow.value(number).shape
        match user.primitive:
            case "scatter" | "dynamic_update_slice":
                if flow.of(user.operands[0]) == number:
                    box = written_by(flow, self._of, user)
                    yield flow.of(user.results[0]), without(unwritten, box)
            case "slice":
                box_read = sliced_by(flow, user)
                if box_read is not None:
                    part = overlap(unwritten, box_read)
                    yield flow.of(user.results[0]), moved(part, [-first for first, _ in box_read])
            case "concatenate":
                axis = user.number("dimension", 0)
                before = 0
                for operand in user.operands:
                    if flow.of(operand) == number:
                        by = [before if at == axis else 0 for at in range(len(shape))]
                        yield flow.of(user.results[0]), moved(unwritten, by)
                    before += flow.value(operand).shape[axis]
            case "scan" | "while":
                loop = loop_of(flow, user)
                if loop is None:
                    return
                for carry in loop.carries:
                    if flow.of(carry.outer) == number:
                        yield carry.inner, unwritten
                        if carry.tested >= 0:
                            yield carry.tested, unwritten
                for inner, outer in loop.captured.items():
                    if flow.of(outer) == number:
                        yield inner, unwritten
            case name if name in COPIES:
                yield flow.of(user.results[0]), unwritten
            case name if name in RESHAPES | {"broadcast_in_dim", "transpose"}:
                if count(unwritten) == flow.value(number).elements:
                    yield flow.of(user.results[0]), whole(flow.value(user.results[0]).shape)


# The fix: create an array of zeros.


@RULE.corrects("`jnp.zeros` instead of `jnp.empty` (unsafe)")
def candidates(context: FixContext, empty: Empty) -> Iterator[Candidate]:
    """Yield `zeros` in place of each `empty` of the function, and of the one that was reported."""
    function = context.function(context.node) or context.subject
    calls = [
        node
        for node in ast.walk(function or ast.Module([], []))
        if isinstance(node, ast.Call)
        and context.called(node.func) == f"jax.numpy.{empty.function}"
        and isinstance(node.func, ast.Attribute)
    ]
    zeros = empty.function.replace("empty", "zeros")
    for call in calls:
        assert isinstance(call.func, ast.Attribute)
        name = f"{context.text(call.func.value)}.{zeros}"
        yield Candidate(f"Use `{name}`", (context.replace(call.func, name),), same=False)
