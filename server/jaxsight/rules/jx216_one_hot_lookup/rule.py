"""JX216: a one-hot array selects what an index would."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from jaxsight.rules.program.matrices import (
    argument,
    factors,
    multiplies,
    one_hot_axis,
    product,
    readers,
    written,
)
from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.rule import Rule, Violation
from jaxsight.rules.text.expressions import called, parsed
from jaxsight.text.units import MIB, size
from jaxsight.wire.program import Step

RULE = Rule(__name__, "One-hot array multiplied to select values by index.", severity="information")

LEAST = 8
"""Classes, a choice: with fewer, the products cost little more than the lookup."""
LARGE = MIB
"""Bytes of a one-hot array that are worth a warning, written and read in 0.7 µs at 3 TB/s."""

_KEEPS = frozenset({"convert_element_type", "copy", "stop_gradient", "transpose"})
_SUMS = frozenset({"sum", "mean", "einsum", "nansum"})


@RULE.finds_in_program
def find(view: ProgramView) -> Iterator[Violation | None]:
    """Yield products with one-hot arrays that select, except for TPUs, where they may be fast."""
    if view.platform == "tpu":
        return
    for step in view.flow.forward_steps("dot_general", "reduce_sum"):
        yield (_multiplied if step.primitive == "dot_general" else _summed)(view, step)


def _multiplied(view: ProgramView, step: Step) -> Violation | None:
    """Return what to say of a product that sums over the classes of a one-hot array."""
    flow, read = view.flow, product(step)
    if read is None or not multiplies(view, step.path):
        return None
    for side, number in enumerate(step.operands):
        axis = one_hot_axis(flow, number)
        if axis is None or read.contracted[side] != (axis,) or not _is_made(view, number):
            continue
        is_pair = one_hot_axis(flow, step.operands[1 - side]) is not None
        if is_pair or readers(flow, number, _KEEPS) != [step]:
            continue
        pair = factors(view.quote(step.path))
        matrix = written(pair[1 - side], "x") if pair is not None else "x"
        before = "" if read.contracted[1 - side] == (0,) else ":, "
        table = f"{matrix}[{before}i]" if read.batch == ((), ()) else ""
        if table or not (read.free(flow, 0) or read.free(flow, 1)):
            return _violation(view, step, number, axis, table, matrix)
    return None


def _summed(view: ProgramView, step: Step) -> Violation | None:
    """Return what to say of a sum over the classes of an array that a one-hot array masks."""
    flow, maker = view.flow, view.flow.producer(step.operands[0])
    if maker is None or maker.primitive != "mul" or view.called(step) not in _SUMS:
        return None
    if readers(flow, maker.results[0], _KEEPS) != [step]:
        return None
    axes = step.numbers("axes")
    for number, values in (maker.operands, maker.operands[::-1]):
        axis = one_hot_axis(flow, number)
        if axis is None or axis not in axes or not _is_made(view, number):
            continue
        is_alike = flow.value(number).shape == flow.value(values).shape
        if not is_alike or one_hot_axis(flow, values) is not None:
            continue
        if readers(flow, number, _KEEPS) == [maker]:
            return _violation(view, step, number, axis, "", "x")
    return None


def _made(view: ProgramView, number: int) -> tuple[Step | None, str]:
    """Return the comparison or the selection of rows that makes a one-hot array, and its text."""
    flow = view.flow
    step = flow.producer(flow.before(number, lambda step: step.primitive not in ("eq", "gather")))
    return step, view.quote(step.path) if step is not None else ""


def _is_made(view: ProgramView, number: int) -> bool:
    """Whether the user's own expression makes a one-hot array: `one_hot`, a comparison, `eye`."""
    _, text = _made(view, number)
    return called(text) == "one_hot" or isinstance(parsed(text), ast.Compare | ast.Subscript)


def _violation(
    view: ProgramView, step: Step, number: int, axis: int, table: str, values: str
) -> Violation | None:
    """Return the finding.

    `table` is the expression that selects rows or columns by an index `i`. It is empty where one
    value of each row is selected.
    """
    value = view.flow.value(number)
    classes = value.shape[axis]
    if classes < LEAST:
        return None
    maker, expression = _made(view, number)
    index = argument(expression, ("one_hot",), "i")
    bare = index[1:-1] if index.startswith("(") else index
    if table:
        message = f"product with a one-hot array of {classes:,} classes only selects rows"
        help = f"index the table: `{table.replace('i]', f'{bare}]')}`"
    else:
        message = f"one-hot array of {classes:,} classes only selects one value of each row"
        if len(value.shape) == 1:
            help = f"index the values: `{values}[{bare}]`"
        elif axis == len(value.shape) - 1:
            help = f"use `jnp.take_along_axis({values}, {index}[..., None], axis=-1)[..., 0]`"
        else:
            help = f"use `jnp.take_along_axis` along axis {axis}"
    return Violation(
        message,
        step.path,
        help=help,
        notes=(
            f"the one-hot array has {size(value.bytes)}, unless XLA fuses it",
            "for indices out of range a one-hot row is zero, and indexing clamps or wraps",
        ),
        severity="warning" if table and value.bytes >= LARGE else "",
        related=((maker.path, "the one-hot array"),) if maker is not None else (),
    )
