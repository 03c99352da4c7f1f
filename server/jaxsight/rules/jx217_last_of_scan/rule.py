"""JX217: a scan stacks a value of each iteration, and only that of the last one is read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from jaxsight.rules.noticed import Noticed
from jaxsight.rules.program.matrices import called
from jaxsight.rules.program.slices import reads
from jaxsight.rules.program.view import Flow, Reading, numbers, parameter
from jaxsight.rules.rule import Rule
from jaxsight.text.units import KIB, size
from jaxsight.wire.program import LITERAL, Step

RULE = Rule(
    "JX217",
    "last-of-scan",
    "Outputs of a scan stacked to read only the last.",
    severity="warning",
)

FEWEST = 4
"""Iterations."""
LEAST = KIB
"""Bytes of the stacked arrays, unless the final carry already is what is read."""

_TOTALS = {
    "cumsum": "sum",
    "cumprod": "prod",
    "cummax": "max",
    "cummin": "min",
    "cumlogsumexp": "logsumexp",
}
"""Running totals, and the function that gives the last one alone."""


@dataclass(frozen=True, slots=True)
class Stacked:
    """What a scan stacks in vain."""

    bytes: int
    carried: bool
    """Whether the final carry is the same."""


@RULE.finds_in_program
def find(reading: Reading) -> Iterator[Noticed]:
    """Yield scans and running totals of which only the last element is read."""
    flow = reading.flow
    for step in flow.steps.values():
        if step.backward or step.path in flow.ruled:
            continue
        if step.primitive == "scan":
            noticed = _scan(reading, step)
        elif step.primitive in _TOTALS:
            noticed = _total(reading, step)
        else:
            continue
        if noticed is not None:
            yield noticed


def _scan(reading: Reading, step: Step) -> Noticed | None:
    flow, name = reading.flow, called(reading.quote(step.path))
    length = next(iter(numbers(step, "length")), 0)
    if name not in ("scan", "map") or length < FEWEST or not step.bodies:
        return None
    outputs = step.bodies[0].outputs
    last = 0 if parameter(step, "reverse") is True else length - 1
    total, carried = 0, True
    for result, output in zip(step.results, outputs, strict=False):
        shape = flow.value(result).shape
        if shape != (length, *flow.value(output).shape) or not _is_only_read_at(flow, result, last):
            continue
        total += flow.value(result).bytes
        carried &= any(
            _is_same(flow, other, output)
            for final, other in zip(step.results, outputs, strict=False)
            if flow.value(final).shape == flow.value(other).shape
        )
    if not total or (total < LEAST and not carried):
        return None
    place = "first" if last == 0 else "last"
    if name == "map":
        help = f"call the function with the {place} row alone"
        words = (
            f"`map` computes {length:,} results ({size(total)}), of which only the {place} is read"
        )
        return Noticed(words, step.path, help=help, data=Stacked(total, False))
    return Noticed(
        f"scan stacks {length:,} outputs ({size(total)}), of which only the {place} is read",
        step.path,
        help="use the final carry, and return `None` in place of the output"
        if carried
        else "return the value in the carry, and `None` in place of the output",
        data=Stacked(total, carried),
    )


def _total(reading: Reading, step: Step) -> Noticed | None:
    flow, name = reading.flow, called(reading.quote(step.path))
    axis = next(iter(numbers(step, "axis")), -1)
    length = flow.value(step.results[0]).shape[axis]
    if name not in (*_TOTALS, "cumulative_sum", "cumulative_prod") or length < 2 * FEWEST:
        return None
    last = 0 if parameter(step, "reverse") is True else length - 1
    if not _is_only_read_at(flow, step.results[0], last, axis):
        return None
    function = _TOTALS[step.primitive]
    module = "jax.nn" if function == "logsumexp" else "jnp"
    return Noticed(
        f"running total of {length:,} values, of which only the last is read",
        step.path,
        help=f"use `{module}.{function}`",
        data=Stacked(flow.value(step.results[0]).bytes, False),
    )


def _is_same(flow: Flow, one: int, other: int, most: int = 8) -> bool:
    """Whether two values are one, or are computed alike from the same values."""
    one, other = flow.of(one), flow.of(other)
    first, second = flow.made_by(one), flow.made_by(other)
    if one == other or first is None or second is None or not most:
        values = flow.values[one], flow.values[other]
        return one == other or (
            all(value.origin == LITERAL for value in values) and values[0] == values[1]
        )
    return (
        not first.bodies
        and (first.primitive, first.parameters) == (second.primitive, second.parameters)
        and first.results.index(one) == second.results.index(other)
        and len(first.operands) == len(second.operands)
        and all(
            _is_same(flow, a, b, most - 1)
            for a, b in zip(first.operands, second.operands, strict=True)
        )
    )


def _is_only_read_at(flow: Flow, number: int, place: int, axis: int = 0) -> bool:
    """Whether a value is read, and only at one place along an axis."""
    found = reads(flow, number, axis)
    return bool(found) and all(each.first == each.last == place for each in found or ())
