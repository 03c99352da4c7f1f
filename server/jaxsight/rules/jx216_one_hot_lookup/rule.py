"""JX216: a one-hot array selects what an index would."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from jaxsight.rules.noticed import Noticed
from jaxsight.rules.program.matrices import (
    argument,
    called,
    factors,
    multiplies,
    one_hot_axis,
    product,
    readers,
    written,
)
from jaxsight.rules.program.view import Reading, numbers
from jaxsight.rules.rule import Rule
from jaxsight.text.units import MIB, size
from jaxsight.wire.program import Step

RULE = Rule(
    "JX216",
    "one-hot-lookup",
    "One-hot array multiplied to select values by index.",
    severity="information",
)

LEAST = 8
"""Classes."""
LARGE = MIB
"""Bytes of a one-hot array that are worth a warning."""

_KEEPS = frozenset({"convert_element_type", "copy", "stop_gradient", "transpose"})
_SUMS = frozenset({"sum", "mean", "einsum", "nansum"})


@dataclass(frozen=True, slots=True)
class Lookup:
    """Where an index would do."""

    classes: int
    rows: bool
    """Whether it selects rows of a table, and not one value of each row."""


@RULE.finds_in_program
def find(reading: Reading) -> Iterator[Noticed]:
    """Yield products with one-hot arrays that select, except for TPUs, where they may be fast."""
    if reading.platform == "tpu":
        return
    for step in reading.flow.steps.values():
        if step.backward or step.path in reading.flow.ruled:
            continue
        if step.primitive == "dot_general":
            noticed = _multiplied(reading, step)
        elif step.primitive == "reduce_sum":
            noticed = _summed(reading, step)
        else:
            continue
        if noticed is not None:
            yield noticed


def _multiplied(reading: Reading, step: Step) -> Noticed | None:
    """Return what to say of a product that sums over the classes of a one-hot array."""
    flow, read = reading.flow, product(step)
    if read is None or not multiplies(reading, step.path):
        return None
    for side, number in enumerate(step.operands):
        axis = one_hot_axis(flow, number)
        if axis is None or read.contracted[side] != (axis,) or not _is_made(reading, number):
            continue
        if one_hot_axis(flow, step.operands[1 - side]) is not None:
            continue
        if readers(flow, number, _KEEPS) != [step]:
            continue
        pair = factors(reading.quote(step.path))
        other = written(pair[1 - side], "x") if pair is not None else "x"
        if read.batch != ((), ()):
            if read.free(flow, 0) or read.free(flow, 1):
                continue
            return _noticed(reading, step, number, axis, "", other)
        first = read.contracted[1 - side] == (0,)
        return _noticed(reading, step, number, axis, f"{other}[{'' if first else ':, '}i]", other)
    return None


def _summed(reading: Reading, step: Step) -> Noticed | None:
    """Return what to say of a sum over the classes of an array that a one-hot array masks."""
    flow, made = reading.flow, reading.flow.made_by(step.operands[0])
    if made is None or made.primitive != "mul" or called(reading.quote(step.path)) not in _SUMS:
        return None
    if readers(flow, made.results[0], _KEEPS) != [step]:
        return None
    axes = numbers(step, "axes")
    for number, other in (made.operands, made.operands[::-1]):
        axis = one_hot_axis(flow, number)
        if axis is None or axis not in axes or not _is_made(reading, number):
            continue
        shapes = flow.value(number).shape, flow.value(other).shape
        if shapes[0] != shapes[1] or one_hot_axis(flow, other) is not None:
            continue
        if readers(flow, number, _KEEPS) != [made]:
            continue
        return _noticed(reading, step, number, axis, "", "x")
    return None


def _maker(reading: Reading, number: int) -> Step | None:
    """Return the comparison or the selection of rows that makes a one-hot array."""
    step = reading.flow.made_by(number)
    for _ in range(8):
        if step is None or step.primitive in ("eq", "gather"):
            break
        step = reading.flow.made_by(step.operands[0])
    return step


def _is_made(reading: Reading, number: int) -> bool:
    """Whether the user's own expression makes a one-hot array: `one_hot`, a comparison, `eye`."""
    step = _maker(reading, number)
    text = reading.quote(step.path) if step is not None else ""
    try:
        node = ast.parse(text, mode="eval").body
    except SyntaxError:
        return False
    return called(text) == "one_hot" or isinstance(node, ast.Compare | ast.Subscript)


def _noticed(
    reading: Reading, step: Step, number: int, axis: int, table: str, values: str
) -> Noticed | None:
    """Return the finding.

    `table` is the expression that selects rows or columns by an index `i`. It is empty where one
    value of each row is selected.
    """
    value = reading.flow.value(number)
    classes = value.shape[axis]
    if classes < LEAST:
        return None
    made = _maker(reading, number)
    expression = reading.quote(made.path) if made is not None else ""
    index = argument(expression, ("one_hot",), "i")
    bare = index[1:-1] if index.startswith("(") else index
    large = bool(table) and value.bytes >= LARGE
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
    return Noticed(
        message,
        step.path,
        help=help,
        notes=(
            f"the one-hot array has {size(value.bytes)}, unless XLA fuses it",
            "for indices out of range a one-hot row is zero, and indexing clamps or wraps",
        ),
        severity="warning" if large else "",
        related=((made.path, "the one-hot array"),)
        if made is not None and made.span != step.span
        else (),
        data=Lookup(classes, bool(table)),
    )
