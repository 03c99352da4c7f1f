"""JX404: an index that is known while tracing is out of bounds."""

# Longer than most rules: each primitive that indexes has bounds of its own, and each function of
# JAX its words.

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from jaxsight.rules.program.flow import Flow
from jaxsight.rules.program.intervals.inference import Intervals
from jaxsight.rules.program.intervals.interval import Interval, summed
from jaxsight.rules.program.intervals.moves import index_before_wrapping
from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.raised import RaisedError
from jaxsight.rules.rule import Rule, Violation
from jaxsight.rules.text.expressions import parsed
from jaxsight.wire.primitives import ELEMENTWISE, MOVES, SCATTERS, SHAPED
from jaxsight.wire.program import CONSTANT, Step

RULE = Rule(__name__, "Static index out of bounds.")

_MAP = re.compile(
    r"(?:start_index_map|scatter_dims_to_operand_dims)=\(((?:np\.int64\(\d+\)|[\d, ])*)\)"
)
_NUMBER = re.compile(r"(?<![\w.])\d+")
_OUTSIDE = re.compile(
    r"index (?P<index>-?\d+) is out of bounds for axis (?P<axis>\d+) with size (?P<size>\d+)"
)
_SLICES = frozenset({"dynamic_slice", "dynamic_slice_in_dim", "dynamic_index_in_dim"})
_UPDATES = frozenset(
    {"dynamic_update_slice", "dynamic_update_slice_in_dim", "dynamic_update_index_in_dim"}
)
_SEGMENTS = frozenset({"segment_sum", "segment_prod", "segment_max", "segment_min"})
_TAKES = frozenset({"take", "take_along_axis"})
_OF_AT = frozenset(
    {"get", "set", "add", "subtract", "multiply", "mul", "divide", "power", "min", "max", "apply"}
)
_WITH_AXES = frozenset({"argmax", "argmin", "nanargmax", "nanargmin", "swapaxes", "moveaxis"})
"""Functions that look up their axes in the shape: Python's error is that of the shape's tuple."""
_DROPS_ON_PURPOSE = -1
"""The id that captured ids have for no segment."""
_NEAR = 12
"""Equations between a `where` and the write that it masks, and a quarter of those after a read, a
choice: fewer report reads that are masked later, more excuse them by masks of something else."""


@RULE.explains
def explain(error: RaisedError) -> Violation | None:
    """Recognize `IndexError`s about bounds, not those about too many indices."""
    if not error.is_a("IndexError") or not re.search("out of (bounds|range)", error.message):
        return None
    notes = (error.said,)
    if error.name in _WITH_AXES:
        return Violation(
            f"{error.quoted()} names an axis that its array does not have",
            help="use an axis of the array: they count from 0, and -1 is the last one",
            notes=notes,
        )
    if (match := _OUTSIDE.search(error.message)) is not None:
        index, axis, size = map(int, match.groups())
        return Violation(_message(index, axis, size), help=_help(size))
    if not isinstance(error.node, ast.Subscript):
        return None  # of Python's own containers, somewhere in the call
    return Violation("index is out of bounds", notes=notes)


@dataclass(frozen=True, slots=True)
class _Outside:
    """Indices of which at least one is certainly out of bounds."""

    index: int
    axis: int
    size: int
    """The length of the axis."""
    count: int
    """How many elements are read or written from the index on."""
    least: int
    most: int
    exact: bool
    """Whether `index` is one of the indices, not only a bound of one."""

    @property
    def one(self) -> bool:
        return self.least == self.most


@RULE.finds_in_program
def find(view: ProgramView) -> Iterator[Violation]:
    """Yield indices outside their axis that JAX clamps, whose update it drops, or fills.

    Indices that a `where` may choose, or whose result it chooses from, are not reported, nor are
    calls with `mode=`.
    """
    flow = view.flow
    intervals = Intervals(flow, view.exact)
    for step in flow.steps.values():
        is_index = step.primitive in _PRIMITIVES and not step.backward
        function = _kind(view.quote(step.path)) if is_index else ""
        for outside in _outside(intervals, flow, step, function) if function else ():
            if outside.one or not _is_masked(flow, step):
                yield _violation(step, function, outside)
                break


def _kind(text: str) -> str:
    """Return the function that indexes in the user's expression: `[]`, `at`, `take` and others.

    It is empty for other expressions, and where the code says what to do out of bounds.
    """
    match node := parsed(text):
        case ast.Subscript():
            return "[]"
        case ast.Call(func=ast.Attribute(value=ast.Subscript(value=ast.Attribute(attr="at"))) as f):
            name = "at" if f.attr in _OF_AT else ""
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)):
            name = name if name in _SLICES | _UPDATES | _SEGMENTS | _TAKES else ""
        case _:
            return ""
    has_mode = any(keyword.arg in ("mode", None) for keyword in node.keywords)
    return "" if has_mode or (name == "take" and len(node.args) > 3) else name


def _violation(step: Step, function: str, outside: _Outside) -> Violation:
    index, axis, size = outside.index, outside.axis, outside.size
    if function in _SEGMENTS:
        subject = f"segment id {index} is" if outside.exact else "segment ids are"
        message = f"{subject} out of bounds for {size} segments"
        advice = f"use ids from 0 to {size - 1}"
        if index >= size and outside.exact:
            advice = f"pass `num_segments={index + 1}`, or {advice}"
    elif outside.count > 1:
        slice_ = f"{index}:{index + outside.count}"
        message = f"slice {slice_} is out of bounds for axis {axis} of size {size}"
        last = size - outside.count
        advice = f"use starts from 0 to {last}" if last else "start at 0"
    else:
        message = _message(index, axis, size)
        advice = _help(size) if outside.one else _help(size).replace("an index", "indices")
    indices = "ids" if function in _SEGMENTS else "starts" if outside.count > 1 else "indices"
    run = (f"the {indices} run from {outside.least} to {outside.most}",)
    notes = run if outside.exact and not outside.one else ()
    return Violation(
        message, step.path, help=advice, notes=(*notes, _done(step, function, outside))
    )


def _done(step: Step, function: str, outside: _Outside) -> str:
    """Return what JAX does with an index out of bounds.

    Sources: https://docs.jax.dev/en/latest/_autosummary/jax.numpy.ndarray.at.html for subscripts,
    the pages of the functions for the others.
    """
    if function in _SEGMENTS:
        return f"`{function}` drops values with out-of-bounds ids silently"
    if outside.count > 1:
        start = 0 if outside.index < 0 else outside.size - outside.count
        does = "writes" if step.primitive == "dynamic_update_slice" else "reads"
        return f"JAX clamps the start silently: it {does} {start}:{start + outside.count}"
    if step.primitive == "dynamic_update_slice":
        return "JAX clamps the index silently: it overwrites the nearest element"
    if step.primitive.startswith("scatter"):
        return "JAX drops out-of-bounds updates silently"
    if "FILL" in dict(step.parameters).get("mode", ""):
        fill = dict(step.parameters).get("fill_value", "")
        name = f"`{function}`" if function in _TAKES else "JAX"
        value = {"nan": "NaN", "": "a fill value"}.get(fill, fill)
        return f"{name} fills out-of-bounds reads with {value} silently"
    return "JAX clamps out-of-bounds reads silently: it reads the nearest element"


def _message(index: int, axis: int, size: int) -> str:
    return f"index {index} is out of bounds for axis {axis} of size {size}"


def _help(size: int) -> str:
    return f"use an index from {-size} to {size - 1}" if size else ""


_PRIMITIVES = SCATTERS | {"gather", "dynamic_slice", "dynamic_update_slice"}


def _outside(intervals: Intervals, flow: Flow, step: Step, function: str) -> Iterator[_Outside]:
    """Yield indices of an equation that are certainly out of bounds."""
    shape = flow.value(step.operands[0]).shape
    for axis, number, count in _starts(flow, step):
        size = shape[axis]
        index, from_end = index_before_wrapping(flow, intervals.of, number, size)
        interval = intervals.of(index)
        if interval is None or count > size:
            continue
        if function not in _SEGMENTS and not from_end and (interval.one or 0) < 0:
            # JAX adds the size to a negative literal while tracing (`_normalize_index`).
            interval, from_end = summed(interval, Interval.listed([-size])), True
        first = -size if from_end else 0
        least, most, low, high = interval.least, interval.most, interval.low, interval.high
        drops = function in _SEGMENTS and flow.value(index).origin == CONSTANT
        if high > size - count:
            yield _Outside(high, axis, size, count, least, most, exact=high == most)
        elif low < first and not (drops and least == _DROPS_ON_PURPOSE):
            yield _Outside(low, axis, size, count, least, most, exact=low == least)


def _starts(flow: Flow, step: Step) -> Iterator[tuple[int, int, int]]:
    """Yield axis, first index and length of what an equation reads or writes."""
    match step.primitive:
        case "dynamic_slice":
            for axis, count in enumerate(step.numbers("slice_sizes")):
                yield axis, step.operands[1 + axis], count
        case "dynamic_update_slice":
            for axis, count in enumerate(flow.value(step.operands[1]).shape):
                yield axis, step.operands[2 + axis], count
        case _:
            match = _MAP.search(dict(step.parameters).get("dimension_numbers", ""))
            axes = [int(axis) for axis in _NUMBER.findall(match[1])] if match else []
            sizes = step.numbers("slice_sizes")
            parts = _parts(flow, step.operands[1], len(axes))
            for axis, number in zip(axes, parts, strict=False):
                yield axis, number, sizes[axis] if sizes else 1


def _parts(flow: Flow, number: int, count: int) -> Sequence[int]:
    """Return the values that indices of several axes are concatenated from."""
    shape, step = flow.value(number).shape, flow.producer(number)
    if shape[-1:] != (count,):
        return ()
    if count == 1:
        return (number,)
    joins = step is not None and step.primitive == "concatenate" and len(step.operands) == count
    return step.operands if step is not None and joins else ()


def _is_masked(flow: Flow, step: Step) -> bool:
    """Return whether a `where`, a mask or a slice selects from what an equation reads or writes."""
    if step.primitive in SCATTERS | {"dynamic_update_slice"}:
        position = 1 if step.primitive == "dynamic_update_slice" else 2
        above = flow.backwards(step.operands[position], ELEMENTWISE | SHAPED, _NEAR)
        if any(node.primitive == "select_n" or _multiplies(flow, node) for node in above):
            return True

    def goes_on(user: Step) -> bool:
        is_followed = user.primitive in ELEMENTWISE | SHAPED | {"reduce_sum"}
        return is_followed and flow.value(user.results[0]).dtype != "bool"

    return any(
        (user.primitive == "select_n" and flow.of(number) in map(flow.of, user.operands[1:]))
        or _multiplies(flow, user)
        or (
            user.primitive == "slice"
            and len(flow.used_by(number)) == 1
            and step.primitive == "gather"
        )
        for number, user in flow.forwards(step.results[0], goes_on, _NEAR * 4)
    )


def _multiplies(flow: Flow, step: Step) -> bool:
    """Whether an equation multiplies by a mask, which is made from booleans."""
    return step.primitive in ("mul", "and") and any(
        maker.primitive == "convert_element_type" and flow.value(maker.operands[0]).dtype == "bool"
        for operand in step.operands
        for maker in flow.backwards(operand, MOVES, _NEAR)
    )
